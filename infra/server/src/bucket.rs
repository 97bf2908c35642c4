//! Emulates S3 in this process: stores objects in a directory, and handles requests of the real SDK without a socket.
//! Each put becomes the event that Lambda would receive. Nothing here depends on the objects' content.

mod connector;
mod files;
mod server;
pub mod website;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::files::{Files, Object};
use crate::account::REGION;
use crate::http_server::empty;
use crate::publisher::{Publisher, Subscription};

#[derive(Debug, thiserror::Error)]
#[error("bucket: {0}")]
pub struct BucketError(String);

impl From<io::Error> for BucketError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Cheap to clone; all clones share one bucket.
#[derive(Clone)]
pub struct Bucket {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    files: Files,
    puts: Mutex<Publisher>,
    /// Removed when the last clone is dropped.
    _temporary: Option<TempDir>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.shared.name).finish()
    }
}

impl Bucket {
    /// Opens the bucket, and creates its directory if it's missing.
    pub fn open(directory: &Path, name: &str) -> Result<Self, BucketError> {
        Self::new(directory, name, None)
    }

    /// A bucket in a directory that is removed when the last clone is dropped.
    pub fn temporary(name: &str) -> Result<Self, BucketError> {
        let directory = TempDir::new()?;
        let path = directory.path().to_owned();
        Self::new(&path, name, Some(directory))
    }

    fn new(directory: &Path, name: &str, temporary: Option<TempDir>) -> Result<Self, BucketError> {
        let files = Files::open(directory, name);
        let files = files.map_err(|error| BucketError(format!("{}: {error}", directory.join(name).display())))?;
        let shared = Shared { name: name.to_owned(), files, puts: Mutex::default(), _temporary: temporary };
        Ok(Self { shared: Arc::new(shared) })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Subscribes to all puts from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.puts().subscribe()
    }

    /// The number of the last put.
    #[must_use]
    pub fn reported(&self) -> i64 {
        self.puts().published()
    }

    pub fn publish_again(&self, since: SystemTime) -> Result<(), BucketError> {
        let bucket = &self.shared.files.bucket;
        let mut directories = vec![bucket.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else if metadata.modified()? >= since
                    && let Ok(key) = entry.path().strip_prefix(bucket)
                {
                    let put = put_event(self.name(), &key.to_string_lossy(), metadata.len());
                    self.puts().publish(put);
                }
            }
        }
        Ok(())
    }

    async fn object(&self, key: String) -> io::Result<Option<Object>> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.files.get(&key)).await.map_err(io::Error::other).flatten()
    }

    /// Handles a request to S3's interface that has the bucket in its path. Checks no signature.
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let bucket = self.clone();
        let response = tokio::task::spawn_blocking(move || bucket.operate(&request)).await;
        response.map_err(io::Error::other).flatten().unwrap_or_else(|error| {
            tracing::error!("the bucket failed: {error}");
            refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
        })
    }

    /// Only the operations that the service uses are implemented.
    fn operate(&self, request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let path = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((_, key)) = path.filter(|(bucket, _)| *bucket == self.name()) else {
            return Ok(refused(StatusCode::NOT_FOUND, "NoSuchBucket"));
        };
        let is_plain = request.uri().query().is_none_or(|query| query.starts_with("x-id="))
            && !request.headers().contains_key("x-amz-copy-source")
            && request.headers().get(CONTENT_ENCODING).is_none();
        let files = &self.shared.files;
        match *request.method() {
            Method::GET | Method::HEAD if is_plain => {
                let Some(object) = files.get(key)? else { return Ok(refused(StatusCode::NOT_FOUND, "NoSuchKey")) };
                Ok(respond_with(object, request.method()))
            }
            Method::PUT if is_plain => {
                files.put(key, request.headers(), request.body())?;
                self.puts().publish(put_event(self.name(), key, request.body().len() as u64));
                Ok(empty(StatusCode::OK))
            }
            Method::DELETE if is_plain => {
                files.delete(key)?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => Ok(refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented")),
        }
    }

    fn puts(&self) -> MutexGuard<'_, Publisher> {
        // A panic leaves the publisher consistent.
        self.shared.puts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an object, or only its headers for HEAD.
fn respond_with(object: Object, method: &Method) -> Response<Bytes> {
    let length = object.content.len();
    let mut response = Response::new(if method == Method::HEAD { Bytes::new() } else { object.content.into() });
    *response.headers_mut() = object.headers;
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

fn refused(status: StatusCode, code: &str) -> Response<Bytes> {
    let body = format!("<Error><Code>{code}</Code><Message>{status}</Message></Error>");
    empty(status).map(|_| body.into())
}

/// The record of a put, in version 2.1 of S3's format.
fn put_event(bucket: &str, key: &str, size: u64) -> Value {
    let now = Timestamp::now();
    // S3 form-encodes keys but leaves slashes.
    let key: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    json!({
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventTime": now.to_string(),
        "eventName": "ObjectCreated:Put",
        "userIdentity": { "principalId": "AWS:local" },
        "requestParameters": { "sourceIPAddress": "127.0.0.1" },
        "responseElements": {},
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": { "name": bucket, "ownerIdentity": { "principalId": "local" }, "arn": format!("arn:aws:s3:::{bucket}") },
            "object": { "key": key.replace("%2F", "/"), "size": size, "sequencer": format!("{:016X}", now.as_microsecond()) },
        },
    })
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::event::s3::S3Event;
    use aws_sdk_s3::primitives::ByteStream;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_object_keeps_its_headers_and_its_put_is_published() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(directory.path(), "things").unwrap();
        let mut puts = bucket.subscribe();
        let put = bucket.client().put_object().bucket("things").key("in/a b+c.png");
        let put = put.content_type("image/png").cache_control("immutable").content_disposition("inline");
        put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        assert_eq!(bucket.reported(), 1);
        let put = puts.next(1).await.unwrap().records.remove(0).content;
        let event: S3Event = serde_json::from_value(json!({ "Records": [put] })).unwrap();
        let put = &event.records[0].s3;
        assert_eq!(put.bucket.name.as_deref(), Some("things"));
        assert_eq!(put.object.key.as_deref(), Some("in/a+b%2Bc.png"));
        assert_eq!(put.object.size, Some(6));

        let opened_again = Bucket::open(directory.path(), "things").unwrap();
        let object = opened_again.client().get_object().bucket("things").key("in/a b+c.png").send().await.unwrap();
        assert_eq!(object.content_type.as_deref(), Some("image/png"));
        assert_eq!(object.cache_control.as_deref(), Some("immutable"));
        assert_eq!(object.content_disposition.as_deref(), Some("inline"));
        assert_eq!(object.body.collect().await.unwrap().to_vec(), b"pixels");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_object_can_be_deleted_twice_even_concurrently() {
        let bucket = Bucket::temporary("things").unwrap();
        for _ in 0..5 {
            let put = bucket.client().put_object().bucket("things").key("in/a.png");
            put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
            let delete = |_| tokio::spawn(bucket.client().delete_object().bucket("things").key("in/a.png").send());
            for deletion in (0..8).map(delete).collect::<Vec<_>>() {
                deletion.await.unwrap().unwrap();
            }
        }
        let get = bucket.client().get_object().bucket("things").key("in/a.png").send().await;
        assert!(get.unwrap_err().as_service_error().unwrap().is_no_such_key());
    }

    #[tokio::test]
    async fn a_deleted_object_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let files = || {
            let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
            let names = entries.map(|entry| entry.file_name().into_string().unwrap());
            names.filter(|name| name.starts_with(".bucket-")).count()
        };
        let bucket = Bucket::open(directory.path(), "things").unwrap();
        let put = |key: &str| {
            let put = bucket.client().put_object().bucket("things").key(key).content_type("image/png");
            put.body(ByteStream::from_static(b"pixels")).send()
        };
        put("in/a.png").await.unwrap();
        put("in/b.png").await.unwrap();
        put("in/c.png").await.unwrap();
        assert_eq!(files(), 3);
        bucket.client().delete_object().bucket("things").key("in/a.png").send().await.unwrap();
        assert_eq!(files(), 2);

        // A process that is killed during a deletion leaves the object's headers behind.
        fs::remove_file(directory.path().join("things/in/b.png")).unwrap();
        let opened_again = Bucket::open(directory.path(), "things").unwrap();
        assert_eq!(files(), 1);
        let object = opened_again.client().head_object().bucket("things").key("in/c.png").send().await.unwrap();
        assert_eq!(object.content_type.as_deref(), Some("image/png"));
    }

    #[tokio::test]
    async fn a_missing_object_is_no_such_key_and_keys_do_not_leave_the_bucket() {
        let bucket = Bucket::temporary("things").unwrap();
        let get = |key: &str| bucket.client().get_object().bucket("things").key(key).send();
        assert!(get("in/missing").await.unwrap_err().as_service_error().unwrap().is_no_such_key());
        let head = bucket.client().head_object().bucket("things").key("in/missing").send().await;
        assert_eq!(head.unwrap_err().raw_response().unwrap().status().as_u16(), 404);
        for key in ["../../etc/passwd", "/etc/passwd", "in/../../../etc/passwd"] {
            assert!(get(key).await.is_err(), "{key}");
        }
    }
}
