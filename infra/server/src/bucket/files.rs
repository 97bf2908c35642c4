//! Stores each object as a file, and its headers as a JSON file in the folder that contains the bucket's folder.

use std::fs;
use std::io;
use std::io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, Response};
use serde_json::{Map, Value};

use crate::files::{self, TEMPORARY};

/// The headers that the service sets on objects, and their names in the JSON file.
const HEADERS: [(HeaderName, &str); 3] =
    [(CACHE_CONTROL, "cache_control"), (CONTENT_DISPOSITION, "content_disposition"), (CONTENT_TYPE, "content_type")];
/// The suffix of a file of headers.
const SUFFIX: &str = ".metadata.json";

#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    /// The folder of the objects.
    pub(super) bucket: PathBuf,
    /// The prefix of a file of headers, which the encoded key follows.
    prefix: String,
    /// Held by the put or deletion in progress, so that an object and its headers change together.
    writing: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct Object {
    headers: HeaderMap,
    content: Bytes,
}

impl Object {
    pub(super) fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.content);
        *response.headers_mut() = self.headers;
        response
    }
}

impl Files {
    /// Creates the bucket's folder if it's missing. Removes what a killed process left behind, and files of checksums
    /// that earlier versions kept beside the headers.
    pub(super) fn open(root: &Path, bucket: &str) -> io::Result<Self> {
        let prefix = format!(".bucket-{}.object-", URL_SAFE_NO_PAD.encode(bucket));
        let files = Self { root: root.to_owned(), bucket: root.join(bucket), prefix, writing: Mutex::default() };
        files::make_folder(&files.bucket)?;
        files::remove_partial(&files.bucket)?;
        files.remove_orphans()?;
        Ok(files)
    }

    /// The object, without its content if `only_headers` is set.
    pub(super) fn get(&self, key: &str, only_headers: bool) -> io::Result<Option<Object>> {
        let Some(file) = self.object_file(key) else { return Ok(None) };
        let read = match fs::metadata(&file) {
            Ok(metadata) if only_headers && metadata.is_file() => Ok((metadata.len(), Vec::new())),
            Ok(_) => fs::read(&file).map(|content| (content.len() as u64, content)),
            Err(error) => Err(error),
        };
        let (length, content) = match read {
            Err(error) if is_absence(&error) => return Ok(None),
            read => read?,
        };
        let Some(mut headers) = self.headers(key, &file)? else { return Ok(None) };
        headers.insert(CONTENT_LENGTH, length.into());
        Ok(Some(Object { headers, content: content.into() }))
    }

    /// The headers of an object that was just read. `None` if it was deleted since.
    fn headers(&self, key: &str, file: &Path) -> io::Result<Option<HeaderMap>> {
        let headers_file = self.headers_file(key);
        if let Ok(json) = fs::read(&headers_file) {
            return Ok(Some(parse(&json, key)));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !file.try_exists()? {
            return Ok(None);
        }
        match fs::read(headers_file) {
            // The object was copied here without headers.
            Err(error) if is_absence(&error) => Ok(Some(HeaderMap::new())),
            read => Ok(Some(parse(&read?, key))),
        }
    }

    /// Waits until the object is on the disk. Returns false if there can be no object with this key.
    pub(super) fn put(&self, key: &str, headers: &HeaderMap, content: &[u8]) -> io::Result<bool> {
        let Some(file) = self.object_file(key) else { return Ok(false) };
        let value = |name: &HeaderName| headers.get(name)?.to_str().ok();
        let headers = HEADERS.iter().filter_map(|(name, field)| Some(((*field).to_owned(), value(name)?.into())));
        let headers = Value::Object(headers.collect()).to_string();
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Writes the headers first, so that a killed process leaves no object without headers.
        let headers_file = self.headers_file(key);
        let written = file.parent().map_or(Ok(()), files::make_folder);
        let written = written.and_then(|()| if file.is_dir() { Err(IsADirectory.into()) } else { Ok(()) });
        match written.and_then(|()| files::write(&headers_file, headers.as_bytes())) {
            Err(error) if is_absence(&error) || error.kind() == AlreadyExists => return Ok(false),
            written => written?,
        }
        files::write(&file, content)?;
        Ok(true)
    }

    /// Succeeds even if the object doesn't exist.
    pub(super) fn delete(&self, key: &str) -> io::Result<()> {
        let Some(file) = self.object_file(key) else { return Ok(()) };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        remove(&file)?;
        remove(&self.headers_file(key))
    }

    /// The file of an object. `None` for keys that no object here can have: those with an empty part, a part that
    /// begins with a dot, a backslash or a NUL.
    fn object_file(&self, key: &str) -> Option<PathBuf> {
        let is_plain =
            key.split('/').all(|part| !part.is_empty() && !part.starts_with('.')) && !key.contains(['\0', '\\']);
        is_plain.then(|| self.bucket.join(key))
    }

    fn headers_file(&self, key: &str) -> PathBuf {
        self.root.join(format!("{}{}{SUFFIX}", self.prefix, URL_SAFE_NO_PAD.encode(key)))
    }

    fn remove_orphans(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            if name.starts_with(TEMPORARY) {
                if_present(fs::remove_file(entry.path()))?;
            }
            let Some(rest) = name.strip_prefix(&self.prefix) else { continue };
            let key = rest.strip_suffix(SUFFIX).and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
            let object = key.and_then(|key| self.object_file(&String::from_utf8(key).ok()?));
            let exists = match object.map_or(Ok(false), |object| object.try_exists()) {
                Err(error) if is_absence(&error) => false,
                exists => exists?,
            };
            if !exists {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Reads a file of headers. A damaged one counts as empty, because the image can be shown without it.
fn parse(json: &[u8], key: &str) -> HeaderMap {
    let fields: Map<String, Value> = serde_json::from_slice(json).unwrap_or_else(|error| {
        tracing::warn!("the headers of the object {key} can't be read: {error}");
        Map::new()
    });
    let header = |(name, field): (HeaderName, &str)| Some((name, fields.get(field)?.as_str()?.parse().ok()?));
    HEADERS.into_iter().filter_map(header).collect()
}

/// Removes a file if it exists. It stays removed after a power failure.
fn remove(file: &Path) -> io::Result<()> {
    if_present(fs::remove_file(file))?;
    // Also if it was missing, because its removal by a killed process may not have reached the disk.
    if_present(files::sync_folder(file))
}

/// Succeeds even if the file is missing, or is a folder.
fn if_present(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if is_absence(&error) => Ok(()),
        done => done,
    }
}

/// Whether the error means that no file has this name.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), InvalidFilename | IsADirectory | NotADirectory | NotFound)
}
