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
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::files::{Files, Object};
use crate::account::REGION;
use crate::files::TEMPORARY;
use crate::http_server::empty;
use crate::publisher::{Publisher, Subscription};

/// Headers of requests for more than the emulated operations do: conditions, ranges, copies, and bodies in chunks.
const UNSUPPORTED: [&str; 8] = [
    "content-encoding",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "x-amz-copy-source",
    "x-amz-decoded-content-length",
];

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

    /// The number of the last published put.
    #[must_use]
    pub fn reported(&self) -> i64 {
        self.puts().published()
    }

    /// Publishes the puts since this time once more. A function may write or delete objects at the same time.
    pub fn publish_again(&self, since: SystemTime) -> Result<(), BucketError> {
        let bucket = &self.shared.files.bucket;
        let mut directories = vec![bucket.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let metadata = match entry.metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    metadata => metadata?,
                };
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else if metadata.modified()? >= since
                    && !entry.file_name().to_string_lossy().starts_with(TEMPORARY)
                    && let Ok(key) = entry.path().strip_prefix(bucket)
                {
                    let put = put_event(self.name(), &key.to_string_lossy(), metadata.len());
                    self.puts().publish(put);
                }
            }
        }
        Ok(())
    }

    /// Runs `work` with the files, on a thread where it may block.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared.files)).await.map_err(io::Error::other).flatten()
    }

    /// Handles a request to S3's interface that has the bucket in its path. Checks no signature.
    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let is_head = request.method() == Method::HEAD;
        let response = self.operate(request).await.unwrap_or_else(|error| {
            tracing::error!("the bucket failed: {error}");
            refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &error.to_string())
        });
        if is_head { response.map(|_| Bytes::new()) } else { response }
    }

    /// Only the operations that the service uses are implemented.
    async fn operate(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let path = percent_decode_str(request.uri().path()).decode_utf8().ok();
        let path = path.as_deref().and_then(|path| path.strip_prefix('/')?.split_once('/'));
        let is_plain =
            matches!(request.uri().query(), None | Some("x-id=DeleteObject" | "x-id=GetObject" | "x-id=PutObject"))
                && UNSUPPORTED.iter().all(|name| !request.headers().contains_key(*name));
        let Some((bucket, key)) = path.filter(|(_, key)| is_plain && !key.is_empty()) else {
            return Ok(refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented", "not emulated"));
        };
        if bucket != self.name() {
            return Ok(refused(StatusCode::NOT_FOUND, "NoSuchBucket", "no bucket"));
        }
        let key = key.to_owned();
        Ok(match *request.method() {
            Method::GET | Method::HEAD => {
                let only_headers = request.method() == Method::HEAD;
                let object = self.with_files(move |files| files.get(&key, only_headers)).await?;
                object.map_or_else(|| refused(StatusCode::NOT_FOUND, "NoSuchKey", "no object"), Object::into_response)
            }
            Method::PUT => {
                let put = put_event(bucket, &key, request.body().len() as u64);
                if !self.with_files(move |files| files.put(&key, request.headers(), request.body())).await? {
                    return Ok(refused(StatusCode::BAD_REQUEST, "InvalidArgument", "not a key"));
                }
                self.puts().publish(put);
                empty(StatusCode::OK)
            }
            Method::DELETE => {
                self.with_files(move |files| files.delete(&key)).await?;
                empty(StatusCode::NO_CONTENT)
            }
            _ => refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented", "not emulated"),
        })
    }

    fn puts(&self) -> MutexGuard<'_, Publisher> {
        // A panic leaves the publisher consistent.
        self.shared.puts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
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
    use aws_sdk_s3::error::SdkError;
    use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
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

        // A process that is killed during a deletion leaves the object's headers behind. One that is killed during a
        // put leaves the file that it was writing.
        fs::remove_file(directory.path().join("things/in/b.png")).unwrap();
        fs::write(directory.path().join("things/in/.tmpX.partial"), "pix").unwrap();
        let opened_again = Bucket::open(directory.path(), "things").unwrap();
        assert_eq!(files(), 1);
        let object = opened_again.client().head_object().bucket("things").key("in/c.png").send().await.unwrap();
        assert_eq!(object.content_type.as_deref(), Some("image/png"));
        assert!(!directory.path().join("things/in/.tmpX.partial").exists());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_object_that_is_stored_and_deleted_concurrently_never_lacks_its_headers() {
        let bucket = Bucket::temporary("things").unwrap();
        for _ in 0..30 {
            let put = bucket.client().put_object().bucket("things").key("in/a.png").content_type("image/png");
            let put = tokio::spawn(put.body(ByteStream::from_static(b"pixels")).send());
            let delete = tokio::spawn(bucket.client().delete_object().bucket("things").key("in/a.png").send());
            let get = || bucket.client().get_object().bucket("things").key("in/a.png").send();
            let check = |object: Result<GetObjectOutput, SdkError<GetObjectError>>| match object {
                Ok(object) => assert_eq!(object.content_type.as_deref(), Some("image/png")),
                Err(error) => assert!(error.as_service_error().is_some_and(GetObjectError::is_no_such_key)),
            };
            check(get().await);
            check(get().await);
            put.await.unwrap().unwrap();
            delete.await.unwrap().unwrap();
            check(get().await);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn headers_are_kept_while_their_object_cannot_be_looked_up() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(directory.path(), "things").unwrap();
        let put = bucket.client().put_object().bucket("things").key("in/a.png").content_type("image/png");
        put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        // A link that leads to itself can't be followed, even by root.
        let (folder, moved) = (directory.path().join("things/in"), directory.path().join("moved"));
        fs::rename(&folder, &moved).unwrap();
        symlink(&folder, &folder).unwrap();
        assert!(Bucket::open(directory.path(), "things").is_err());
        fs::remove_file(&folder).unwrap();
        fs::rename(&moved, &folder).unwrap();
        let object = Bucket::open(directory.path(), "things").unwrap();
        let object = object.client().head_object().bucket("things").key("in/a.png").send().await.unwrap();
        assert_eq!((object.content_length, object.content_type.as_deref()), (Some(6), Some("image/png")));
    }

    #[tokio::test]
    async fn other_operations_are_refused_and_change_nothing() {
        let bucket = Bucket::temporary("things").unwrap();
        let put = || bucket.client().put_object().bucket("things").key("in/a.png");
        put().body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        let part = bucket.client().upload_part().bucket("things").key("in/a.png").upload_id("u").part_number(1);
        assert!(part.body(ByteStream::from_static(b"part")).send().await.is_err());
        let abort = bucket.client().abort_multipart_upload().bucket("things").key("in/a.png").upload_id("u");
        assert!(abort.send().await.is_err());
        assert!(put().if_none_match("*").body(ByteStream::from_static(b"others")).send().await.is_err());
        assert!(bucket.client().delete_bucket().bucket("things").send().await.is_err());
        let object = bucket.client().get_object().bucket("things").key("in/a.png").send().await.unwrap();
        assert_eq!(object.body.collect().await.unwrap().to_vec(), b"pixels");
    }

    #[tokio::test]
    async fn a_missing_object_is_no_such_key_and_keys_do_not_leave_the_bucket() {
        let bucket = Bucket::temporary("things").unwrap();
        let get = |key: &str| bucket.client().get_object().bucket("things").key(key).send();
        assert!(get("in/missing").await.unwrap_err().as_service_error().unwrap().is_no_such_key());
        let head = bucket.client().head_object().bucket("things").key("in/missing").send().await;
        assert_eq!(head.unwrap_err().raw_response().unwrap().status().as_u16(), 404);
        let long = "a".repeat(300);
        let put = bucket.client().put_object().bucket("things").key("in/a");
        put.body(ByteStream::from_static(b"x")).send().await.unwrap();
        let outside = bucket.shared.files.bucket.parent().unwrap().join("outside");
        fs::write(&outside, "secret").unwrap();
        for key in [
            "../outside",
            "in/../../outside",
            outside.to_str().unwrap(),
            "in",
            "in//a",
            "in/./a",
            "in/a/b",
            "in/.tmpa",
            "a\0b",
            &long,
        ] {
            let error = get(key).await.unwrap_err();
            assert!(error.as_service_error().is_some_and(GetObjectError::is_no_such_key), "{key}: {error:?}");
            bucket.client().delete_object().bucket("things").key(key).send().await.unwrap();
            let put = bucket.client().put_object().bucket("things").key(key);
            let error = put.body(ByteStream::from_static(b"x")).send().await.unwrap_err();
            assert_eq!(error.raw_response().unwrap().status().as_u16(), 400, "{key}: {error:?}");
        }
        Bucket::open(outside.parent().unwrap(), "things").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"secret");
    }
}
