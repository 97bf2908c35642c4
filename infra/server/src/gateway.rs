//! Emulates API Gateway's HTTP API and Lambda's invocation in one process, with AWS's limits for sizes. A request
//! becomes the event that Lambda would receive, and passes through the same adapter. The result becomes an HTTP
//! response. Nothing here depends on the functions.

mod client;
mod cors;
mod event;
mod invocation;
mod mount;
mod pace;
pub mod route;
mod server;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::uri::Authority;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use shared::domain::origin;

pub use self::client::Proxies;
pub use self::cors::Cors;
use self::event::{event, into_http};
use self::invocation::invoke;
pub use self::invocation::{BoxFuture, Function, function};
pub use self::mount::Mount;
use self::route::Route;
pub use self::server::{Front, SmallBodies};

/// API Gateway's limit for a request body.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// API Gateway's limit for the request line and the header values together.
const HEAD_LIMIT: usize = 10_240;

/// Cheap to clone; all clones share one gateway.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    routes: Vec<Route>,
    functions: HashMap<String, Function>,
    mounts: Vec<Mount>,
    cors: Option<Cors>,
    requests: AtomicU64,
}

#[derive(Debug, thiserror::Error)]
#[error("route {route} leads to function {function}, which does not exist")]
pub struct MissingFunction {
    route: String,
    function: String,
}

/// A request and its response, for the log.
#[derive(Debug)]
pub struct Exchange {
    pub method: Method,
    /// The path, without tokens.
    pub path: String,
    /// The path's template, or the prefix of its mount; `unknown` if no route except the default one matches the path
    /// and method.
    pub route: String,
    pub status: StatusCode,
    pub elapsed: Duration,
    pub extensions: Extensions,
}

impl Mount {
    fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.prefix);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && self.prefix != "/"))
    }
}

impl Gateway {
    pub fn new(
        routes: Vec<Route>,
        functions: HashMap<String, Function>,
        mounts: Vec<Mount>,
        cors: Option<Cors>,
    ) -> Result<Self, MissingFunction> {
        if let Some(route) = routes.iter().find(|route| !functions.contains_key(&route.function)) {
            return Err(MissingFunction { route: route.key.clone(), function: route.function.clone() });
        }
        let shared = Shared { routes, functions, mounts, cors, requests: AtomicU64::new(0) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Handles one request. If the function panics, the response is 500, as if Lambda had crashed.
    pub async fn call(&self, request: Request<Bytes>, source_ip: IpAddr) -> Response<Bytes> {
        let Some(host) = host(request.headers()) else { return Refusal::BadRequest.into_response() };
        if let Some(mount) = self.shared.mounts.iter().find(|mount| mount.covers(request.uri().path())) {
            return (mount.handler)(request).await;
        }
        let request_id = format!("local-{:06}", self.shared.requests.fetch_add(1, Ordering::Relaxed));
        let mut response = self.answer_with_cors(request, &host, source_ip, &request_id).await;
        if let Ok(id) = HeaderValue::try_from(request_id) {
            response.headers_mut().insert("apigw-requestid", id);
        }
        response
    }

    /// The template of a path, and the function that handles it.
    fn route_of(&self, method: &Method, path: &str) -> (String, Option<&str>) {
        if let Some(mount) = self.shared.mounts.iter().find(|mount| mount.covers(path)) {
            return (mount.prefix.clone(), None);
        }
        let found = route::find(&self.shared.routes, method, path).map(|found| found.route);
        let template = found.and_then(Route::path).unwrap_or("unknown");
        (template.to_owned(), found.map(|route| route.function.as_str()))
    }

    /// The refusal of a request whose body wasn't read.
    fn refuse(&self, request: &Request<()>, refusal: Refusal) -> Response<Bytes> {
        let mut response = refusal.into_response();
        if let Some(cors) = &self.shared.cors {
            cors::replace(response.headers_mut(), cors.headers(request.headers()));
        }
        response
    }

    async fn answer_with_cors(
        &self,
        request: Request<Bytes>,
        host: &Authority,
        ip: IpAddr,
        request_id: &str,
    ) -> Response<Bytes> {
        let is_preflight =
            request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let cors = self.shared.cors.as_ref().filter(|_| !is_preflight);
        let headers = cors.map(|cors| cors.headers(request.headers()));
        let mut response = self.answer(request, host, ip, request_id).await.unwrap_or_else(Refusal::into_response);
        if let Some(headers) = headers {
            cors::replace(response.headers_mut(), headers);
        }
        response
    }

    async fn answer(
        &self,
        request: Request<Bytes>,
        host: &Authority,
        ip: IpAddr,
        request_id: &str,
    ) -> Result<Response<Bytes>, Refusal> {
        if head_size(&request) > HEAD_LIMIT {
            return Err(Refusal::HeadTooLarge);
        }
        if request.body().len() > BODY_LIMIT {
            return Err(Refusal::BodyTooLarge);
        }
        let found = route::find(&self.shared.routes, request.method(), request.uri().path()).ok_or(Refusal::NoRoute)?;
        let event = event(&request, &found, host, ip, request_id, Timestamp::now()).to_string();
        if event.len() > invocation::EVENT_LIMIT {
            return Err(Refusal::BodyTooLarge);
        }
        let function = Arc::clone(&self.shared.functions[&found.route.function]);
        let (answer, extensions) = invoke(function, &event, request_id).await.map_err(|cause| {
            tracing::error!(function = found.route.function, request_id, "{cause}");
            Refusal::FunctionFailed
        })?;
        let mut response = into_http(&answer).map_err(|error| {
            tracing::error!(function = found.route.function, request_id, "malformed response: {error}");
            Refusal::FunctionFailed
        })?;
        *response.extensions_mut() = extensions;
        Ok(response)
    }
}

/// Error responses of the gateway itself: AWS's messages, in the API's error envelope.
#[derive(Debug)]
enum Refusal {
    BadRequest,
    NoRoute,
    TooSlow,
    BodyTooLarge,
    HeadTooLarge,
    FunctionFailed,
    Busy,
}

impl Refusal {
    fn into_response(self) -> Response<Bytes> {
        let (status, code, message) = match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "bad_request", "Bad Request"),
            Self::NoRoute => (StatusCode::NOT_FOUND, "not_found", "Not Found"),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "request_timeout", "Request Timeout"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "Request Entity Too Large"),
            Self::HeadTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", "Request Header Fields Too Large")
            }
            Self::FunctionFailed => (StatusCode::INTERNAL_SERVER_ERROR, "server_error", "Internal Server Error"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Service Unavailable"),
        };
        let body = json!({ "message": message, "code": code, "errors": {} });
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The `Host` of a request; `localhost` if it's missing, as in HTTP/1.0. `None` if it's malformed or repeated.
fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).into_iter();
    let host = hosts.next().map_or(Some("localhost"), |host| host.to_str().ok())?;
    origin::authority(host).filter(|_| hosts.next().is_none())
}

fn head_size(request: &Request<Bytes>) -> usize {
    let line = request.method().as_str().len() + request.uri().path_and_query().map_or(1, |path| path.as_str().len());
    line + request.headers().values().map(HeaderValue::len).sum::<usize>()
}
