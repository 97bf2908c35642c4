//! Emulates the CloudFront distribution in front of the bucket: serves objects by their keys, read-only, with headers
//! that keep a browser from treating an object as anything but an image.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::Bucket;

/// The headers of the template's `MediaHeaders`, except for `Strict-Transport-Security`.
const HEADERS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

/// Serves the objects of a bucket below a prefix. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Website {
    bucket: Bucket,
    /// Begins with a slash and ends without one.
    prefix: String,
}

impl Website {
    #[must_use]
    pub fn new(prefix: String, bucket: &Bucket) -> Self {
        Self { bucket: bucket.clone(), prefix }
    }

    #[must_use]
    pub async fn respond(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let key = request.uri().path().strip_prefix(&self.prefix).and_then(key);
        let mut response = self.object(request.method(), key).await;
        response.headers_mut().extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }

    async fn object(&self, method: &Method, key: Option<&str>) -> Response<Bytes> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut refused = empty(StatusCode::METHOD_NOT_ALLOWED);
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        let Some(key) = key else { return empty(StatusCode::NOT_FOUND) };
        let (key, only_headers) = (key.to_owned(), method == Method::HEAD);
        match self.bucket.with_files(move |files| files.get(&key, only_headers)).await {
            Ok(Some(object)) => object.into_response(),
            Ok(None) => empty(StatusCode::NOT_FOUND),
            Err(error) => {
                tracing::error!("reading an object failed: {error}");
                empty(StatusCode::BAD_GATEWAY)
            }
        }
    }
}

/// The key in a path: a directory and a file, without characters that have a special meaning in file names.
fn key(path: &str) -> Option<&str> {
    let key = path.strip_prefix('/')?;
    let plain =
        |part: &str| !part.starts_with('.') && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let (directory, file) = key.split_once('/')?;
    (!directory.is_empty() && !file.is_empty() && plain(directory) && plain(file)).then_some(key)
}

fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = status;
    // Not cached, because a missing thumbnail may be stored in a moment.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn only_a_plain_directory_and_file_are_a_key() {
        assert_eq!(key("/uploads/a-B_9.png"), Some("uploads/a-B_9.png"));
        for path in [
            "",
            "/",
            "/uploads",
            "/uploads/",
            "//a",
            "/../a",
            "/uploads/..",
            "/uploads/../a",
            "/uploads/%2e%2e/a",
            "/.a/b",
            "/a/b/c",
        ] {
            assert_eq!(key(path), None, "{path}");
        }
    }
}
