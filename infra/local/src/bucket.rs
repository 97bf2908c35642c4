//! The bucket in this process: S3's own interface over a directory, behind the real SDK, whose signed requests are
//! answered without a socket. Every put is told as the event that Lambda would get. Nothing here knows what the objects
//! are.

mod server;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use s3s::auth::SimpleAuth;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, GetObjectInput, GetObjectOutput, PutObjectInput, PutObjectOutput,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::access;
use crate::engine::{REGION, Subscription};

/// Nothing listens there: requests never leave the process.
const HOST_NAME: &str = "bucket.localhost";
const KEY: &str = "local";

#[derive(Debug, thiserror::Error)]
#[error("bucket: {0}")]
pub struct BucketError(String);

impl From<io::Error> for BucketError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Cheap to clone; all clones are one bucket.
#[derive(Clone)]
pub struct Bucket {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    directory: PathBuf,
    service: S3Service,
    puts: Arc<Mutex<Puts>>,
    /// Removed with the last clone.
    _temporary: Option<TempDir>,
}

#[derive(Default)]
struct Puts {
    observers: Vec<UnboundedSender<Value>>,
    reported: u64,
}

impl Puts {
    fn tell(&mut self, bucket: &str, key: &str, size: i64) {
        let event = event(bucket, key, size, Timestamp::now());
        self.reported += 1;
        self.observers.retain(|observer| observer.send(event.clone()).is_ok());
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.shared.name).finish()
    }
}

impl Bucket {
    /// Made when it is missing.
    pub fn open(directory: &Path, name: &str) -> Result<Self, BucketError> {
        Self::new(directory, name, None)
    }

    /// Gone with the process.
    pub fn temporary(name: &str) -> Result<Self, BucketError> {
        let directory = TempDir::new()?;
        let path = directory.path().to_owned();
        Self::new(&path, name, Some(directory))
    }

    fn new(directory: &Path, name: &str, temporary: Option<TempDir>) -> Result<Self, BucketError> {
        // To this file system a bucket is a directory.
        let objects = directory.join(name);
        fs::create_dir_all(&objects)?;
        let files = FileSystem::new(directory).map_err(|error| BucketError(format!("{error:?}")))?;
        let puts = Arc::default();
        let mut service = S3ServiceBuilder::new(Observed { files, puts: Arc::clone(&puts) });
        service.set_auth(SimpleAuth::from_single(KEY, KEY));
        let (name, service) = (name.to_owned(), service.build());
        let shared = Shared { name, directory: objects, service, puts, _temporary: temporary };
        Ok(Self { shared: Arc::new(shared) })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Every put from now on, one Lambda event (`{"Records": […]}`) each.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let (sender, events) = unbounded_channel();
        let mut puts = lock(&self.shared.puts);
        puts.observers.push(sender);
        Subscription { events, missed: puts.reported }
    }

    /// Tells once more of the objects that were put since then.
    pub fn tell_again(&self, since: SystemTime) -> Result<(), BucketError> {
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
                    lock(&self.shared.puts).tell(&self.shared.name, &key.to_string_lossy(), size);
                }
            }
        }
        Ok(())
    }

    /// How many puts there were so far.
    #[must_use]
    pub fn reported(&self) -> u64 {
        lock(&self.shared.puts).reported
    }

    #[must_use]
    pub fn client(&self) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(KEY, KEY, None, None, "local"))
            .endpoint_url(format!("http://{HOST_NAME}"))
            .force_path_style(true)
            .http_client(http_client_fn(move |_, _| connector.clone()));
        Client::from_conf(config.build())
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request: Request<SdkBody> =
            request.try_into_http1x().map_err(|error| ConnectorError::user(Box::new(error)))?;
        let key = request.uri().path().trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        if let Err(denied) = access::check_object(request.method(), key) {
            tracing::error!("{denied}");
            let body = format!("<Error><Code>AccessDenied</Code><Message>{denied}</Message></Error>");
            let status = 403_u16.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
            return Ok(HttpResponse::new(status, SdkBody::from(body)));
        }
        let mut request = request.map(Body::http_body_unsync);
        // What an HTTP client would send.
        request.headers_mut().insert(HOST, HeaderValue::from_static(HOST_NAME));
        let answer = self.respond(request).await.map_err(|error| ConnectorError::other(Box::new(error), None))?;
        HttpResponse::try_from(answer.map(SdkBody::from)).map_err(|error| ConnectorError::other(Box::new(error), None))
    }

    async fn respond(&self, request: Request<Body>) -> Result<Response<Bytes>, BucketError> {
        let answer = self.shared.service.call(request).await;
        let (head, body) = answer.map_err(|error| BucketError(format!("{error:?}")))?.into_parts();
        let body = body.collect().await.map_err(|error| BucketError(error.to_string()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

impl HttpConnector for Bucket {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let bucket = self.clone();
        HttpConnectorFuture::new(async move { bucket.answer(request).await })
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observed")
    }
}

/// What of S3 the service uses. All else is answered as not implemented.
struct Observed {
    files: FileSystem,
    puts: Arc<Mutex<Puts>>,
}

#[async_trait::async_trait]
impl S3 for Observed {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        self.files.get_object(request).await
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let (bucket, key, size) =
            (request.input.bucket.clone(), request.input.key.clone(), request.input.content_length);
        let answer = self.files.put_object(request).await?;
        lock(&self.puts).tell(&bucket, &key, size.unwrap_or_default());
        Ok(answer)
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.files.delete_object(request).await
    }
}

fn lock(puts: &Mutex<Puts>) -> MutexGuard<'_, Puts> {
    // What it guards is whole between any two statements.
    puts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Version 2.1, as S3 sends it.
fn event(bucket: &str, key: &str, size: i64, now: Timestamp) -> Value {
    // Form-encoded, but for slashes.
    let key: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    json!({ "Records": [{
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
    }]})
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::event::s3::S3Event;
    use aws_sdk_s3::primitives::ByteStream;

    use super::*;

    #[tokio::test]
    async fn an_object_is_kept_with_its_headers_and_its_put_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(directory.path(), "things").unwrap();
        let mut puts = bucket.subscribe();
        let put = bucket.client().put_object().bucket("things").key("in/a b+c.png");
        let put = put.content_type("image/png").cache_control("immutable").content_disposition("inline");
        put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        assert_eq!(bucket.reported(), 1);
        let event: S3Event = serde_json::from_value(puts.events.recv().await.unwrap()).unwrap();
        let told = &event.records[0].s3;
        assert_eq!(told.bucket.name.as_deref(), Some("things"));
        assert_eq!(told.object.key.as_deref(), Some("in/a+b%2Bc.png"));
        assert_eq!(told.object.size, Some(6));

        let opened_again = Bucket::open(directory.path(), "things").unwrap();
        let object = opened_again.client().get_object().bucket("things").key("in/a b+c.png").send().await.unwrap();
        assert_eq!(object.content_type.as_deref(), Some("image/png"));
        assert_eq!(object.cache_control.as_deref(), Some("immutable"));
        assert_eq!(object.content_disposition.as_deref(), Some("inline"));
        assert_eq!(object.body.collect().await.unwrap().to_vec(), b"pixels");
    }

    #[tokio::test]
    async fn a_deleted_object_is_gone_and_may_be_deleted_again() {
        let bucket = Bucket::temporary("things").unwrap();
        let put = bucket.client().put_object().bucket("things").key("in/a.png");
        put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        for _ in 0..2 {
            bucket.client().delete_object().bucket("things").key("in/a.png").send().await.unwrap();
        }
        let get = bucket.client().get_object().bucket("things").key("in/a.png").send().await;
        assert!(get.unwrap_err().as_service_error().unwrap().is_no_such_key());
    }

    #[tokio::test]
    async fn what_is_not_there_is_no_such_key_and_keys_do_not_leave_the_bucket() {
        let bucket = Bucket::temporary("things").unwrap();
        let get = |key: &str| bucket.client().get_object().bucket("things").key(key).send();
        assert!(get("in/missing").await.unwrap_err().as_service_error().unwrap().is_no_such_key());
        for key in ["../../etc/passwd", "/etc/passwd", "in/../../../etc/passwd"] {
            assert!(get(key).await.is_err(), "{key}");
        }
    }
}
