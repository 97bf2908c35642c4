//! What the distribution in front of the bucket is in AWS: objects by their keys, for reading only, with the headers
//! that keep an object from being anything but an image.

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use crate::bucket::Bucket;
use crate::gateway::Mount;

/// As the template's policy for the distribution adds them.
const HEADERS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

/// Below `prefix`, which begins with a slash and ends without one.
#[must_use]
pub fn mount(prefix: String, bucket: &Bucket) -> Mount {
    let (client, name, root) = (bucket.client(), bucket.name().to_owned(), prefix.clone());
    let handler = move |request: Request<Bytes>| {
        let (client, name) = (client.clone(), name.clone());
        let key = request.uri().path().strip_prefix(&root).and_then(key).map(str::to_owned);
        let method = request.method().clone();
        Box::pin(async move {
            let mut response = answer(&client, &name, &method, key).await;
            let headers = HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value)));
            response.headers_mut().extend(headers);
            response
        }) as _
    };
    Mount { prefix, handler: Arc::new(handler) }
}

/// Directory and file, both of letters that mean nothing to a file system. There is nothing else to be asked for.
fn key(path: &str) -> Option<&str> {
    let key = path.strip_prefix('/')?;
    let plain =
        |part: &str| !part.starts_with('.') && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let (directory, file) = key.split_once('/')?;
    (!directory.is_empty() && !file.is_empty() && plain(directory) && plain(file)).then_some(key)
}

async fn answer(client: &Client, bucket: &str, method: &Method, key: Option<String>) -> Response<Bytes> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refused = empty(StatusCode::METHOD_NOT_ALLOWED);
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let Some(key) = key else { return empty(StatusCode::NOT_FOUND) };
    let object = match client.get_object().bucket(bucket).key(key).send().await {
        Ok(object) => object,
        Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => {
            return empty(StatusCode::NOT_FOUND);
        }
        Err(error) => {
            tracing::error!("object not read: {}", aws_sdk_s3::error::DisplayErrorContext(error));
            return empty(StatusCode::BAD_GATEWAY);
        }
    };
    let headers = headers(&object);
    let Ok(content) = object.body.collect().await else { return empty(StatusCode::BAD_GATEWAY) };
    let body = if method == Method::HEAD { Bytes::new() } else { content.into_bytes() };
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

fn headers(object: &GetObjectOutput) -> HeaderMap {
    let length = object.content_length.map(|length| length.to_string());
    let stored = [
        (CONTENT_TYPE, &object.content_type),
        (CACHE_CONTROL, &object.cache_control),
        (CONTENT_DISPOSITION, &object.content_disposition),
        (ETAG, &object.e_tag),
        (CONTENT_LENGTH, &length),
    ];
    let stored = stored.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?.try_into().ok()?)));
    stored.collect()
}

fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = status;
    // A thumbnail that is not there yet will be in a moment.
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
