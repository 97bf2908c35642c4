//! A response before it is sent: its headers, caching and compression.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use lambda_http::{Body, Response};
use serde::Serialize;
use serde_json::json;

use crate::error::Refusal;
use crate::http::request::Call;

/// Minimum size of a body to compress, in bytes. Smaller bodies gain nothing.
const COMPRESS_FROM: usize = 1024;

/// Half a year: long enough to cover a moderator's absence, and short enough in case the owner gives up the domain.
/// Subdomains are excluded, because they aren't ours. Browsers ignore this header over plain HTTP, which `cargo local`
/// uses.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=15768000");

/// The caches that may store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No cache.
    Never,
    /// The caller's cache, which must revalidate the response.
    Private,
    /// Shared caches, for anonymous callers, for five seconds.
    Anonymous,
    /// Shared caches, for this many seconds. Every caller gets the same response.
    Everyone { seconds: u16 },
    /// Shared caches, for `fresh` seconds, then for `stale` more seconds while they refetch it, and for `failing` seconds while
    /// the service fails. Every caller gets the same response, even with a key or with `mine=1`.
    Public { fresh: u32, stale: u32, failing: u32 },
    /// All caches, for an hour, then for a day while they refetch it: a file that is compiled in. Every caller gets the
    /// same response.
    File,
    /// All caches, forever: a file whose name changes with its content. Every caller gets the same response.
    Forever,
}

impl Sharing {
    fn cache_control(self) -> Cow<'static, str> {
        match self {
            Self::Never => "no-store".into(),
            Self::Private => "private, no-cache".into(),
            Self::Anonymous => "public, max-age=0, s-maxage=5".into(),
            Self::Everyone { seconds } => format!("public, max-age=0, s-maxage={seconds}").into(),
            Self::Public { fresh, stale, failing } => {
                format!("public, max-age=0, s-maxage={fresh}, stale-while-revalidate={stale}, stale-if-error={failing}")
                    .into()
            }
            Self::File => "public, max-age=3600, stale-while-revalidate=86400".into(),
            Self::Forever => "public, max-age=31536000, immutable".into(),
        }
    }

    /// Whether the response depends on the token.
    fn is_by_caller(self) -> bool {
        !matches!(self, Self::Everyone { .. } | Self::Public { .. } | Self::File | Self::Forever)
    }
}

/// A file that is compiled in, plain and as gzip.
#[derive(Clone, Copy, Debug)]
pub struct StaticFile {
    pub content_type: &'static str,
    pub content: &'static str,
    pub gzip: &'static [u8],
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    body: Cow<'static, [u8]>,
    /// The body as gzip, if it was compressed in advance.
    gzip: Option<&'static [u8]>,
    sharing: Sharing,
    /// Whether the response depends on `Accept-Language`.
    by_language: bool,
    /// Whether CORS headers depend on `Origin`.
    by_origin: bool,
}

impl Answer {
    #[must_use]
    pub fn json(status: StatusCode, body: &impl Serialize) -> Self {
        // Cannot fail: our types consist of strings, numbers and maps with string keys.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self::new(status, "application/json", body)
    }

    #[must_use]
    pub fn ok(body: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, body)
    }

    #[must_use]
    pub fn created(body: &impl Serialize) -> Self {
        Self::json(StatusCode::CREATED, body)
    }

    #[must_use]
    pub fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            headers: HeaderMap::new(),
            body: Cow::default(),
            gzip: None,
            sharing: Sharing::Never,
            by_language: false,
            by_origin: false,
        }
    }

    #[must_use]
    pub fn new(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Self {
        Self::of(status, content_type, body.into())
    }

    /// An HTML page with a content security policy. Its links send no referrer.
    #[must_use]
    pub fn page(status: StatusCode, html: String, policy: &str) -> Self {
        let mut answer = Self::new(status, "text/html; charset=utf-8", html.into_bytes());
        if let Ok(policy) = HeaderValue::from_str(policy) {
            answer.set(header::CONTENT_SECURITY_POLICY, policy);
        }
        answer.set(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        answer
    }

    #[must_use]
    pub fn file(file: StaticFile) -> Self {
        let answer = Self::of(StatusCode::OK, file.content_type, file.content.as_bytes().into());
        Self { gzip: Some(file.gzip), ..answer }
    }

    fn of(status: StatusCode, content_type: &'static str, body: Cow<'static, [u8]>) -> Self {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { status, headers, body, gzip: None, sharing: Sharing::Never, by_language: false, by_origin: false }
    }

    #[must_use]
    pub fn shared(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    /// Marks a response that depends on [`Call::language`].
    #[must_use]
    pub fn in_the_language_asked_for(mut self) -> Self {
        self.by_language = true;
        self
    }

    /// Marks a response that caches must store separately for each `Origin`.
    #[must_use]
    pub fn by_origin(mut self, by_origin: bool) -> Self {
        self.by_origin = by_origin;
        self
    }

    pub fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }

    /// Bytes of the body before compression.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Adds the common headers, returns 304 if the caller has cached the body, compresses the body, and omits it for HEAD.
    #[must_use]
    pub fn into_response(mut self, call: &Call) -> Response<Body> {
        self.set_common_headers(call);
        if self.sharing != Sharing::Never {
            self.validate(call);
        }
        if call.accepts_gzip() {
            self.compress();
        }
        if call.is_head {
            self.body = Cow::default();
        }
        let mut response = Response::new(into_body(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    pub fn set_rate_limit(&mut self, limit: u32, remaining: u32) {
        self.set(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(limit));
        self.set(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(remaining));
    }

    fn set_common_headers(&mut self, call: &Call) {
        if let Some(rate_limit) = call.reserved.get().or(call.rate_limit.get()) {
            self.set_rate_limit(rate_limit.limit, rate_limit.remaining);
        }
        self.set(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        self.set(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
        let control = match self.sharing {
            Sharing::Public { .. } => self.sharing.cache_control(),
            _ if call.is_for_the_caller_alone() => "private, no-store".into(),
            sharing => sharing.cache_control(),
        };
        if let Ok(control) = HeaderValue::from_str(&control) {
            self.set(header::CACHE_CONTROL, control);
        }
        // `Vary` is one header, because API Gateway keeps only one of several headers with the same name.
        let vary = match self.sharing {
            sharing if !sharing.is_by_caller() && self.by_origin => "Accept-Encoding, Origin",
            sharing if !sharing.is_by_caller() => "Accept-Encoding",
            _ if self.by_language => "Authorization, Accept-Encoding, Accept-Language",
            Sharing::Never => return,
            _ => "Authorization, Accept-Encoding",
        };
        self.set(header::VARY, HeaderValue::from_static(vary));
    }

    /// Sets `ETag`, and turns the response into a 304 if the caller has cached this body.
    fn validate(&mut self, call: &Call) {
        let tag = etag(&self.body);
        if let Ok(value) = HeaderValue::from_str(&tag) {
            self.set(header::ETAG, value);
        }
        if call.holds(&tag) {
            self.status = StatusCode::NOT_MODIFIED;
            self.headers.remove(header::CONTENT_TYPE);
            self.body = Cow::default();
            self.gzip = None;
        }
    }

    fn compress(&mut self) {
        let compressed = match self.gzip {
            Some(gzip) => gzip.into(),
            None if self.body.len() >= COMPRESS_FROM => match gzip(&self.body) {
                Ok(body) => body.into(),
                Err(_) => return,
            },
            None => return,
        };
        self.body = compressed;
        self.set(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::new(4));
    encoder.write_all(body)?;
    encoder.finish()
}

/// Text is sent as text, so that Lambda need not encode it as base64. A gzip stream is never valid UTF-8, because its second
/// byte is 0x8B.
fn into_body(bytes: Cow<[u8]>) -> Body {
    match String::from_utf8(bytes.into_owned()) {
        Ok(text) if text.is_empty() => Body::Empty,
        Ok(text) => Body::Text(text),
        Err(error) => Body::Binary(error.into_bytes()),
    }
}

/// The entity tag of a body before compression. It only distinguishes versions of one response, so a fast hash is enough.
fn etag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}\"", hasher.finish())
}

/// The error envelope: `{"message", "code", "errors"}`.
impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let (_, code, message) = refusal.row();
        let errors = match &refusal {
            Refusal::Invalid(errors) => errors.to_json(),
            _ => json!({}),
        };
        let mut answer = Self::json(refusal.status(), &json!({ "message": message, "code": code, "errors": errors }));
        match refusal {
            Refusal::RateLimited { after, limit } => {
                answer.set(header::RETRY_AFTER, HeaderValue::from(after));
                if let Some(limit) = limit {
                    answer.set_rate_limit(limit, 0);
                }
            }
            Refusal::Unavailable => answer.set(header::RETRY_AFTER, HeaderValue::from(1)),
            Refusal::Unauthenticated => answer.set(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            Refusal::MethodNotAllowed(methods) => {
                let allow: Vec<&str> = methods.iter().map(Method::as_str).collect();
                if let Ok(allow) = HeaderValue::from_str(&allow.join(", ")) {
                    answer.set(header::ALLOW, allow);
                }
            }
            _ => {}
        }
        answer
    }
}
