//! API Gateway's HTTP API and Lambda's invocation in one process: HTTP becomes the event that Lambda would get, passes
//! the same adapter and comes back as HTTP, within the limits AWS has. What functions do is not known here.

mod cors;
mod event;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use jiff::Timestamp;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Context, LambdaEvent, Service};
use serde_json::json;
use tokio::net::TcpListener;

pub use self::cors::Cors;
use self::event::{event, into_http};
use crate::route::{self, Route};

/// API Gateway's own bound on a request body.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// API Gateway's bound on the request line and the header values together.
const HEAD_LIMIT: usize = 10_240;
/// Lambda's bounds on a synchronous payload; the one on answers has 100 bytes to spare.
const EVENT_LIMIT: usize = 6_291_456;
const ANSWER_LIMIT: usize = 6_291_556;
/// Connections get this long to finish once the server is told to stop.
const GRACE: Duration = Duration::from_secs(5);

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What Lambda would run.
pub type Function = Arc<
    dyn Fn(lambda_http::Request) -> BoxFuture<Result<Response<lambda_http::Body>, lambda_http::Error>> + Send + Sync,
>;

/// Serves a part of the port that is no part of the API, such as the bucket.
pub struct Mount {
    /// Begins with a slash and ends without one.
    pub prefix: String,
    pub handler: Arc<dyn Fn(Request<Bytes>) -> BoxFuture<Response<Bytes>> + Send + Sync>,
}

pub fn function<F, T>(handler: F) -> Function
where
    F: Fn(lambda_http::Request) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Response<lambda_http::Body>, lambda_http::Error>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handler(request)))
}

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
#[error("route {route} leads to function {function}, which is not there")]
pub struct MissingFunction {
    route: String,
    function: String,
}

/// One request and its answer, for the log.
#[derive(Debug)]
pub struct Exchange {
    pub method: Method,
    pub path: String,
    pub status: StatusCode,
    pub elapsed: Duration,
    /// The answer's.
    pub extensions: Extensions,
}

impl Mount {
    fn covers(&self, path: &str) -> bool {
        path.strip_prefix(&self.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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

    /// Answers one request. A panic of the function is an answer, as a crashed Lambda is.
    pub async fn call(&self, request: Request<Bytes>, source_ip: IpAddr) -> Response<Bytes> {
        if let Some(mount) = self.shared.mounts.iter().find(|mount| mount.covers(request.uri().path())) {
            return (mount.handler)(request).await;
        }
        let request_id = format!("local-{:06}", self.shared.requests.fetch_add(1, Ordering::Relaxed));
        let cors = self.shared.cors.as_ref();
        let mut response = if let Some(answer) = cors.and_then(|cors| cors.preflight(&request)) {
            answer
        } else {
            let shown = cors.map(|cors| cors.headers(request.headers()));
            let answer = self.answer(request, source_ip, &request_id).await;
            let mut response = answer.unwrap_or_else(Refusal::into_response);
            if let Some(shown) = shown {
                cors::replace(response.headers_mut(), shown);
            }
            response
        };
        if let Ok(id) = HeaderValue::try_from(request_id) {
            response.headers_mut().insert("apigw-requestid", id);
        }
        response
    }

    async fn answer(&self, request: Request<Bytes>, ip: IpAddr, request_id: &str) -> Result<Response<Bytes>, Refusal> {
        if head_size(&request) > HEAD_LIMIT {
            return Err(Refusal::HeadTooLarge);
        }
        if request.body().len() > BODY_LIMIT {
            return Err(Refusal::BodyTooLarge);
        }
        let found = route::find(&self.shared.routes, request.method(), request.uri().path()).ok_or(Refusal::NoRoute)?;
        let event = event(&request, &found, ip, request_id, Timestamp::now()).to_string();
        if event.len() > EVENT_LIMIT {
            return Err(Refusal::BodyTooLarge);
        }
        let function = Arc::clone(&self.shared.functions[&found.route.function]);
        let (answer, extensions) = invoke(function, &event, request_id).await.map_err(|cause| {
            tracing::error!(function = found.route.function, request_id, "{cause}");
            Refusal::FunctionFailed
        })?;
        let mut response = into_http(&answer).map_err(|error| {
            tracing::error!(function = found.route.function, request_id, "malformed answer: {error}");
            Refusal::FunctionFailed
        })?;
        *response.extensions_mut() = extensions;
        Ok(response)
    }

    /// Serves until `shutdown` resolves, then lets open requests end. `log` is told of every answer.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        log: impl Fn(&Exchange) + Clone + Send + Sync + 'static,
    ) {
        let connections = GracefulShutdown::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, peer) = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!("no connection accepted: {error}");
                        // Out of file descriptors, most likely: trying at once would spin.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let gateway = self.clone();
            let log = log.clone();
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let gateway = gateway.clone();
                let log = log.clone();
                async move { Ok::<_, Infallible>(gateway.exchange(request, peer.ip(), log).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!("connection ended: {error}");
                }
            });
        }
        drop(listener);
        if tokio::time::timeout(GRACE, connections.shutdown()).await.is_err() {
            tracing::warn!("stopped with requests still open");
        }
    }

    async fn exchange(&self, request: Request<Incoming>, ip: IpAddr, log: impl Fn(&Exchange)) -> Response<Full<Bytes>> {
        let start = Instant::now();
        let (head, body) = request.into_parts();
        let (method, path) = (head.method.clone(), head.uri.path().to_owned());
        let response = match read(body).await {
            Ok(body) => self.call(Request::from_parts(head, body), ip).await,
            Err(error) => {
                tracing::debug!("request body not read: {error}");
                Refusal::BadRequest.into_response()
            }
        };
        let extensions = response.extensions().clone();
        log(&Exchange { method, path, status: response.status(), elapsed: start.elapsed(), extensions });
        response.map(Full::new)
    }
}

/// Keeps one byte more than the limit at most, and reads the rest away so that the client hears the answer.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut kept = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            let room = (BODY_LIMIT + 1).saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    Ok(kept.freeze())
}

/// What AWS itself answers.
enum Refusal {
    BadRequest,
    NoRoute,
    BodyTooLarge,
    HeadTooLarge,
    FunctionFailed,
}

impl Refusal {
    fn into_response(self) -> Response<Bytes> {
        let (status, message) = match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "Bad Request"),
            Self::NoRoute => (StatusCode::NOT_FOUND, "Not Found"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
            Self::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "Request Header Fields Too Large"),
            Self::FunctionFailed => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        };
        let mut response = Response::new(Bytes::from(json!({ "message": message }).to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn head_size(request: &Request<Bytes>) -> usize {
    let line = request.method().as_str().len() + request.uri().path_and_query().map_or(1, |path| path.as_str().len());
    line + request.headers().values().map(HeaderValue::len).sum::<usize>()
}

/// The answer's JSON as Lambda would return it, or why there is none. Extensions, which JSON has no place for, come
/// along for whoever measures or logs in this process.
async fn invoke(function: Function, event: &str, request_id: &str) -> Result<(String, Extensions), String> {
    let payload: LambdaRequest = serde_json::from_str(event).map_err(|error| error.to_string())?;
    let mut context = Context::default();
    request_id.clone_into(&mut context.request_id);
    // A task of its own: its panic ends nothing else, and it runs on when the client has gone, as a Lambda does.
    let run = tokio::spawn(async move {
        let (keep, kept) = std::sync::mpsc::sync_channel(1);
        let mut adapter = Adapter::from(lambda_http::service_fn(move |request| {
            let (answer, keep) = (function(request), keep.clone());
            async move {
                let mut response = answer.await?;
                // One answer a request: there is room.
                drop(keep.try_send(std::mem::take(response.extensions_mut())));
                Ok::<_, lambda_http::Error>(response)
            }
        }));
        let answer = adapter.call(LambdaEvent::new(payload, context)).await?;
        Ok::<_, lambda_http::Error>((answer, kept.try_recv().unwrap_or_default()))
    });
    let (answer, extensions) = match run.await {
        Ok(Ok((answer, extensions))) => {
            (serde_json::to_string(&answer).map_err(|error| error.to_string())?, extensions)
        }
        Ok(Err(error)) => return Err(error.to_string()),
        Err(panic) => return Err(panic.to_string()),
    };
    if answer.len() > ANSWER_LIMIT {
        return Err(format!("answer of {} bytes is larger than {ANSWER_LIMIT}", answer.len()));
    }
    Ok((answer, extensions))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::header::{COOKIE, HOST, SET_COOKIE, USER_AGENT};
    use lambda_http::{Body, RequestExt, RequestPayloadExt as _};
    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

    /// Routes `POST /things/{id}` and all else to one function.
    fn gateway<F, T>(handler: F) -> Gateway
    where
        F: Fn(lambda_http::Request) -> T + Send + Sync + 'static,
        T: Future<Output = Result<Response<Body>, lambda_http::Error>> + Send + 'static,
    {
        let routes = vec![Route::new("POST", "/things/{id}", "things").unwrap(), Route::fallback("things")];
        Gateway::new(routes, HashMap::from([("things".to_owned(), function(handler))]), Vec::new(), None).unwrap()
    }

    async fn echo_body(request: lambda_http::Request) -> Result<Response<Body>, lambda_http::Error> {
        Ok(Response::new(request.into_body()))
    }

    fn post(uri: &str, body: impl Into<Bytes>) -> Request<Bytes> {
        Request::post(uri).header(HOST, "localhost:3000").body(body.into()).unwrap()
    }

    fn message(response: &Response<Bytes>) -> (u16, Value) {
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    #[tokio::test]
    async fn a_function_sees_the_request_that_was_sent() {
        let gateway = gateway(async |request| {
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.uri(), "http://localhost:3000/things/a%20b?tag=x&tag=y%20z");
            assert_eq!(request.path_parameters().first("id"), Some("a b"));
            assert_eq!(request.query_string_parameters().all("tag"), Some(vec!["x", "y z"]));
            assert_eq!(request.headers()[COOKIE], "a=1; b=2");
            assert_eq!(request.payload::<Value>()?, Some(json!({"n": 1})));
            Ok(Response::builder().status(201).header("x-answer", "yes").extension(17_u8).body(Body::Empty)?)
        });
        let mut request = post("/things/a%20b?tag=x&tag=y%20z", r#"{"n": 1}"#);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(COOKIE, HeaderValue::from_static("a=1; b=2"));

        let response = gateway.call(request, CLIENT).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{response:?}");
        assert_eq!(response.headers()["x-answer"], "yes");
        assert_eq!(response.extensions().get(), Some(&17_u8));
        assert!(!response.headers().contains_key(CONTENT_TYPE));
        assert!(response.body().is_empty());
    }

    #[tokio::test]
    async fn odd_requests_reach_the_function_too() {
        let gateway = gateway(async |_| Ok(Response::new(Body::Empty)));
        let uris =
            ["/%", "/%zz", "/%00", "//a//", "/a%3Fb", "/a%23b?x=1", "/%E4", "/?q=%", "/?a=b=c&&", "/a%20b?q=a+b", "*"];
        for uri in uris {
            let response = gateway.call(Request::get(uri).body(Bytes::new()).unwrap(), CLIENT).await;
            assert_eq!(response.status(), StatusCode::OK, "{uri}");
        }
        let mut request = post("/", "");
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_bytes(b"caf\xe9 \xc3\xa9").unwrap());
        assert_eq!(gateway.call(request, CLIENT).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn bytes_go_both_ways_unchanged() {
        let body: Vec<u8> = (0..=255).collect();
        let gateway = gateway(async |request| {
            Ok(Response::builder().header(CONTENT_TYPE, "application/octet-stream").body(request.into_body())?)
        });
        let mut request = post("/things/1", body.clone());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        assert_eq!(gateway.call(request, CLIENT).await.body(), &body);
    }

    #[tokio::test]
    async fn cookies_stay_apart_and_text_gets_a_type() {
        let gateway = gateway(async |_| {
            let response = Response::builder().header(SET_COOKIE, "a=1").header(SET_COOKIE, "b=2");
            Ok(response.body(Body::from("hi"))?)
        });
        let response = gateway.call(post("/", ""), CLIENT).await;
        assert_eq!(response.headers().get_all(SET_COOKIE).iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain;charset=UTF-8");
        assert!(response.headers().contains_key("apigw-requestid"));
    }

    #[tokio::test]
    async fn a_body_over_10_mb_and_an_event_over_6_mb_are_refused() {
        let refused = (413, json!({"message": "Request Entity Too Large"}));
        let gateway = gateway(async |_| Ok(Response::new(Body::Empty)));
        let response = gateway.call(post("/things/1", vec![b'a'; BODY_LIMIT + 1]), CLIENT).await;
        assert_eq!(message(&response), refused);
        let response = gateway.call(post("/things/1", vec![b'a'; EVENT_LIMIT]), CLIENT).await;
        assert_eq!(message(&response), refused);
        // Base64 makes four bytes of three.
        let mut image = post("/things/1", vec![b'a'; 5 * 1024 * 1024]);
        image.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/png"));
        assert_eq!(message(&gateway.call(image, CLIENT).await), refused);
        let response = gateway.call(post("/things/1", vec![b'a'; EVENT_LIMIT - 2_000]), CLIENT).await;
        assert_eq!(response.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn an_answer_over_6_mb_fails() {
        let gateway = gateway(async |request| {
            let size: usize = request.path_parameters().first("id").unwrap_or_default().parse()?;
            Ok(Response::new(Body::from("a".repeat(size))))
        });
        let response = gateway.call(post(&format!("/things/{ANSWER_LIMIT}"), ""), CLIENT).await;
        assert_eq!(message(&response), (500, json!({"message": "Internal Server Error"})));
        let response = gateway.call(post(&format!("/things/{}", ANSWER_LIMIT - 200), ""), CLIENT).await;
        assert_eq!(response.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_panic_or_an_error_of_a_function_is_a_500_without_its_cause() {
        let panics = gateway(async |request| match request.method() {
            &Method::GET => panic!("secret"),
            _ => Err("secret".into()),
        });
        for method in [Method::GET, Method::POST] {
            let request = Request::builder().method(method).uri("/").body(Bytes::new()).unwrap();
            let response = panics.call(request, CLIENT).await;
            assert_eq!(message(&response), (500, json!({"message": "Internal Server Error"})));
        }
    }

    #[tokio::test]
    async fn too_much_head_is_refused() {
        let mut request = post("/things/1", "");
        request.headers_mut().insert("x-long", HeaderValue::try_from("a".repeat(HEAD_LIMIT)).unwrap());
        let response = gateway(echo_body).call(request, CLIENT).await;
        assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }

    #[tokio::test]
    async fn a_mount_takes_its_prefix_and_nothing_else() {
        let mount = Mount {
            prefix: "/media".to_owned(),
            handler: Arc::new(|request| {
                Box::pin(async move { Response::new(Bytes::from(request.uri().path().to_owned())) })
            }),
        };
        let functions = HashMap::from([("echo".to_owned(), function(echo_body))]);
        let gateway = Gateway::new(vec![Route::fallback("echo")], functions, vec![mount], None).unwrap();
        assert_eq!(gateway.call(post("/media/a.png", ""), CLIENT).await.body(), "/media/a.png");
        assert_eq!(gateway.call(post("/mediate", "echoed"), CLIENT).await.body(), "echoed");
    }

    #[tokio::test]
    async fn what_a_function_says_to_pages_from_elsewhere_is_replaced() {
        let says = async |_| {
            let response = Response::builder().header("access-control-allow-origin", "https://function.example");
            Ok(response.header("access-control-allow-credentials", "true").body(Body::Empty)?)
        };
        let cors = Cors::read(&json!({ "AllowOrigins": ["https://a.example"], "ExposeHeaders": ["etag"] }));
        let functions = HashMap::from([("says".to_owned(), function(says))]);
        let gateway = Gateway::new(vec![Route::fallback("says")], functions, Vec::new(), cors).unwrap();
        for (origin, told) in [
            ("https://a.example", vec!["access-control-allow-origin", "access-control-expose-headers"]),
            ("https://b.example", vec![]),
        ] {
            let mut request = post("/", "");
            request.headers_mut().insert("origin", HeaderValue::from_static(origin));
            let response = gateway.call(request, CLIENT).await;
            let names = response.headers().iter().map(|(name, _)| name.as_str());
            let mut names: Vec<_> = names.filter(|name| name.starts_with("access-control-")).collect();
            names.sort_unstable();
            assert_eq!(names, told, "{origin}");
        }
    }

    #[test]
    fn a_route_to_no_function_is_refused_at_the_start() {
        let gateway = Gateway::new(vec![Route::fallback("none")], HashMap::new(), Vec::new(), None);
        let error = gateway.err().unwrap().to_string();
        assert_eq!(error, "route $default leads to function none, which is not there");
    }

    #[tokio::test]
    async fn it_serves_over_tcp_until_told_to_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, mut log) = tokio::sync::mpsc::unbounded_channel();
        let log_exchange = move |exchange: &Exchange| {
            told.send(format!("{} {} {}", exchange.method, exchange.path, exchange.status.as_u16())).unwrap();
        };
        let shutdown = async move { drop(stopped.await) };
        let server = tokio::spawn(gateway(echo_body).serve(listener, shutdown, log_exchange));

        let ask = async |body: &[u8]| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /things/1?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = ask(b"hello").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        assert_eq!(log.recv().await.unwrap(), "POST /things/1 200");
        let answer = ask(&vec![b'a'; BODY_LIMIT + 1_000_000]).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

        stop.send(()).unwrap();
        server.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
