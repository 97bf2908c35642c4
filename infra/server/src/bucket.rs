//! Emulates S3 in this process: stores objects in a directory, and handles requests of the real SDK without a socket.
//! Each put becomes the event that Lambda would receive. Nothing here depends on the objects' content.

mod connector;
mod files;
mod server;
pub mod website;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;

use self::files::{Files, put_event, remove_orphans};
use crate::account::ACCESS_KEY;
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
    directory: PathBuf,
    service: S3Service,
    puts: Arc<Mutex<Publisher>>,
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
        // s3s-fs stores a bucket as a directory.
        let objects = directory.join(name);
        let failed = |error| BucketError(format!("{}: {error}", objects.display()));
        crate::files::make_folder(&objects).map_err(failed)?;
        remove_orphans(directory, name)?;
        let system = FileSystem::new(directory).map_err(|error| BucketError(format!("{error:?}")))?;
        let puts = Arc::default();
        let mut service = S3ServiceBuilder::new(Files { system, root: directory.to_owned(), puts: Arc::clone(&puts) });
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, ACCESS_KEY));
        let (name, service) = (name.to_owned(), service.build());
        let shared = Shared { name, directory: objects, service, puts, _temporary: temporary };
        Ok(Self { shared: Arc::new(shared) })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Subscribes to all puts from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        lock(&self.shared.puts).subscribe()
    }

    /// The number of the last put.
    #[must_use]
    pub fn reported(&self) -> i64 {
        lock(&self.shared.puts).published()
    }

    pub fn publish_again(&self, since: SystemTime) -> Result<(), BucketError> {
        let mut directories = vec![self.shared.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    directories.push(entry.path());
                } else if metadata.modified()? >= since
                    && let Ok(key) = entry.path().strip_prefix(&self.shared.directory)
                {
                    let size = i64::try_from(metadata.len()).unwrap_or(i64::MAX);
                    let put = put_event(&self.shared.name, &key.to_string_lossy(), size);
                    lock(&self.shared.puts).publish(put);
                }
            }
        }
        Ok(())
    }

    /// Handles a signed request to S3's interface.
    async fn respond(&self, request: Request<Body>) -> Result<Response<Bytes>, BucketError> {
        let answer = self.shared.service.call(request).await;
        let (head, body) = answer.map_err(|error| BucketError(format!("{error:?}")))?.into_parts();
        let body = body.collect().await.map_err(|error| BucketError(error.to_string()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

fn lock(puts: &Mutex<Publisher>) -> MutexGuard<'_, Publisher> {
    // A panic leaves the publisher consistent.
    puts.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(files(), 6);
        bucket.client().delete_object().bucket("things").key("in/a.png").send().await.unwrap();
        assert_eq!(files(), 4);

        // A process that is killed during a deletion leaves the object's companion files behind.
        fs::remove_file(directory.path().join("things/in/b.png")).unwrap();
        let opened_again = Bucket::open(directory.path(), "things").unwrap();
        assert_eq!(files(), 2);
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
