//! Implements the part of S3 that the service uses, with files. Publishes each put.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    PutObjectInput, PutObjectOutput,
};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;
use serde_json::{Value, json};

use super::lock;
use crate::account::REGION;
use crate::files::sync_folder;
use crate::publisher::Publisher;

/// The suffixes of an object's companion files.
const COMPANIONS: [&str; 2] = [".metadata.json", ".internal.json"];

/// Operations that the service doesn't use fail as not implemented.
pub(super) struct Files {
    pub(super) system: FileSystem,
    /// The folder that contains the bucket's folder.
    pub(super) root: PathBuf,
    pub(super) puts: Arc<Mutex<Publisher>>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

#[async_trait::async_trait]
impl S3 for Files {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        self.system.get_object(request).await
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        self.system.head_object(request).await
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let (bucket, key) = (request.input.bucket.clone(), request.input.key.clone());
        let size = request.input.content_length.unwrap_or_default();
        let answer = self.system.put_object(request).await?;
        self.sync(bucket.clone(), key.clone()).await?;
        lock(&self.puts).publish(put_event(&bucket, &key, size));
        Ok(answer)
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        let (bucket, key) = (request.input.bucket.clone(), request.input.key.clone());
        let answer = match self.system.delete_object(request).await {
            // Another request deleted the object at the same moment.
            Err(_) if !self.root.join(&bucket).join(&key).exists() => S3Response::new(DeleteObjectOutput::default()),
            answer => answer?,
        };
        let companions = companions(&self.root, &bucket, &key);
        let removed = tokio::task::spawn_blocking(move || companions.iter().try_for_each(|file| remove(file))).await;
        removed.map_err(io::Error::other).flatten().map_err(S3Error::internal_error)?;
        self.sync(bucket, key).await?;
        Ok(answer)
    }
}

impl Files {
    /// Waits until the write or deletion of an object and its metadata has reached the disk.
    async fn sync(&self, bucket: String, key: String) -> S3Result<()> {
        let root = self.root.clone();
        let synced = tokio::task::spawn_blocking(move || sync(&root, &bucket, &key)).await;
        synced.map_err(io::Error::other).flatten().map_err(S3Error::internal_error)
    }
}

fn sync(root: &Path, bucket: &str, key: &str) -> io::Result<()> {
    let object = root.join(bucket).join(key);
    for file in [&object].into_iter().chain(&companions(root, bucket, key)) {
        match File::open(file) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // The folders of the key and of the bucket may be new.
    object.ancestors().take_while(|path| *path != root).try_for_each(|path| match sync_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    })
}

/// The files in the root where s3s-fs stores an object's headers and checksums, but which it doesn't delete with the
/// object.
fn companions(root: &Path, bucket: &str, key: &str) -> [PathBuf; 2] {
    let stem = format!("{}{}", companion_prefix(bucket), URL_SAFE_NO_PAD.encode(key));
    COMPANIONS.map(|ending| root.join(format!("{stem}{ending}")))
}

fn companion_prefix(bucket: &str) -> String {
    format!(".bucket-{}.object-", URL_SAFE_NO_PAD.encode(bucket))
}

/// Removes companion files without an object, which remain if the process is killed while it deletes the object.
pub(super) fn remove_orphans(root: &Path, bucket: &str) -> io::Result<()> {
    let (objects, prefix) = (root.join(bucket), companion_prefix(bucket));
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let key = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let key = key.and_then(|name| COMPANIONS.iter().find_map(|ending| name.strip_suffix(ending)));
        let key = key.and_then(|key| String::from_utf8(URL_SAFE_NO_PAD.decode(key).ok()?).ok());
        if let Some(key) = key
            && !objects.join(key).try_exists()?
        {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file if it exists.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The record of a put, in version 2.1 of S3's format.
pub(super) fn put_event(bucket: &str, key: &str, size: i64) -> Value {
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
