//! Stores each object as a file, and its headers as a JSON file in the folder that contains the bucket's folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue};

use crate::files;

/// The headers that the service sets on objects.
const HEADERS: [HeaderName; 3] = [CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE];
/// The suffix of a file of headers.
const SUFFIX: &str = ".metadata.json";

#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    /// The folder of the objects.
    pub(super) bucket: PathBuf,
    /// The prefix of a file of headers, which the encoded key follows.
    prefix: String,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) headers: HeaderMap,
    pub(super) content: Vec<u8>,
}

impl Files {
    /// Creates the bucket's folder if it's missing.
    pub(super) fn open(root: &Path, bucket: &str) -> io::Result<Self> {
        let prefix = format!(".bucket-{}.object-", URL_SAFE_NO_PAD.encode(bucket));
        let files = Self { root: root.to_owned(), bucket: root.join(bucket), prefix };
        files::make_folder(&files.bucket)?;
        files.remove_orphans()?;
        Ok(files)
    }

    pub(super) fn get(&self, key: &str) -> io::Result<Option<Object>> {
        use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
        let Some(object) = self.object(key) else { return Ok(None) };
        let content = match fs::read(object) {
            Err(error) if matches!(error.kind(), NotFound | IsADirectory | NotADirectory) => return Ok(None),
            read => read?,
        };
        let headers: BTreeMap<String, String> = match fs::read(self.headers(key)) {
            Err(error) if error.kind() == NotFound => BTreeMap::new(),
            read => serde_json::from_slice(&read?)?,
        };
        let header = |name: HeaderName| Some((name.clone(), headers.get(&field(&name))?.parse().ok()?));
        Ok(Some(Object { headers: HEADERS.into_iter().filter_map(header).collect(), content }))
    }

    /// Waits until the object is on the disk. The headers come first, so that no object lacks them.
    pub(super) fn put(&self, key: &str, headers: &HeaderMap, content: &[u8]) -> io::Result<()> {
        let object = self.object(key).ok_or(io::ErrorKind::InvalidInput)?;
        let value = |name: &HeaderName| headers.get(name).map(HeaderValue::to_str)?.ok();
        let headers = HEADERS.iter().filter_map(|name| Some((field(name), value(name)?)));
        files::write(&self.headers(key), &serde_json::to_vec(&headers.collect::<BTreeMap<_, _>>())?)?;
        object.parent().map_or(Ok(()), files::make_folder)?;
        files::write(&object, content)
    }

    /// Succeeds even if the object doesn't exist.
    pub(super) fn delete(&self, key: &str) -> io::Result<()> {
        self.object(key).map_or(Ok(()), |object| remove(&object))?;
        remove(&self.headers(key))
    }

    /// The file of an object. `None` if the key would be outside of the bucket.
    fn object(&self, key: &str) -> Option<PathBuf> {
        let is_plain = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
        (is_plain && !key.is_empty() && !key.contains('\0')).then(|| self.bucket.join(key))
    }

    fn headers(&self, key: &str) -> PathBuf {
        self.root.join(format!("{}{}{SUFFIX}", self.prefix, URL_SAFE_NO_PAD.encode(key)))
    }

    /// Removes headers without an object, which remain if the process is killed during a put or a deletion.
    fn remove_orphans(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&self.prefix)) else { continue };
            let key =
                rest.strip_suffix(SUFFIX).and_then(|key| String::from_utf8(URL_SAFE_NO_PAD.decode(key).ok()?).ok());
            if !key.and_then(|key| self.object(&key)).is_some_and(|object| object.exists()) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The name of a header in the JSON file.
fn field(header: &HeaderName) -> String {
    header.as_str().replace('-', "_")
}

/// Removes a file if it exists, so that it stays removed after a power failure.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => files::sync_folder(file),
    }
}
