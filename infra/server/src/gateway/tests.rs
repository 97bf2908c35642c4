use std::net::Ipv4Addr;

use http::header::{COOKIE, HOST, SET_COOKIE, USER_AGENT};
use lambda_http::{Body, RequestExt, RequestPayloadExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::invocation::{ANSWER_LIMIT, EVENT_LIMIT};
use super::*;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

/// Routes `POST /things/{id}`, `GET /mail/{token}` and everything else to one function.
fn gateway<F, T>(handler: F) -> Gateway
where
    F: Fn(lambda_http::Request) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Response<Body>, lambda_http::Error>> + Send + 'static,
{
    let routes = [("POST", "/things/{id}"), ("GET", "/mail/{token}")];
    let routes = routes.map(|(method, path)| Route::new(method, path, "things").unwrap());
    let routes = routes.into_iter().chain([Route::fallback("things")]).collect();
    Gateway::new(routes, HashMap::from([("things".to_owned(), function(handler))]), Vec::new(), None).unwrap()
}

async fn echo_body(request: lambda_http::Request) -> Result<Response<Body>, lambda_http::Error> {
    Ok(Response::new(request.into_body()))
}

fn post(uri: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post(uri).header(HOST, "localhost:3000").body(body.into()).unwrap()
}

fn message(response: &Response<Bytes>) -> (u16, Value) {
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["errors"], json!({}));
    (response.status().as_u16(), json!([body["message"], body["code"]]))
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
async fn a_malformed_host_is_400_and_reaches_neither_function_nor_page() {
    let pages = vec![Mount::for_this_machine("/page", |_| std::future::ready(Response::new("secret".into())))];
    let echo = HashMap::from([("things".to_owned(), function(echo_body))]);
    let gateway = Gateway::new(vec![Route::fallback("things")], echo, pages, None).unwrap();
    let status = async |path: &str, hosts: &[&[u8]]| {
        let mut request = Request::get(path).body(Bytes::new()).unwrap();
        for host in hosts {
            request.headers_mut().append(HOST, HeaderValue::from_bytes(host).unwrap());
        }
        gateway.call(request, CLIENT).await.status().as_u16()
    };
    for path in ["/", "/page"] {
        for host in [
            "",
            "a b",
            "x\"><script>",
            "127.0.0.1:1@evil",
            "localhost:x",
            "localhost:99999",
            "[::1",
            "h\u{e9}",
            "256.256.256.256",
            "1.2.3.4.5",
            "09.1:80",
            "xn--",
            "xn--a.example:443",
        ] {
            assert_eq!(status(path, &[host.as_bytes()]).await, 400, "{host} {path}");
        }
        assert_eq!(status(path, &[b"localhost", b"evil.example"]).await, 400);
        for host in ["localhost:3000", "127.0.0.1", "[::1]", "[::1]:3000"] {
            assert_eq!(status(path, &[host.as_bytes()]).await, 200, "{host} {path}");
        }
    }
    assert_eq!(status("/", &[]).await, 200);
}

#[tokio::test]
async fn a_query_with_characters_that_are_invalid_in_urls_reaches_the_function_intact() {
    let seen = |request: &lambda_http::Request| {
        let query = request.uri().query().unwrap_or_default();
        let (name, value) = form_urlencoded::parse(query.as_bytes()).next().unwrap();
        format!("{name}={value}")
    };
    let echo = function(move |request| std::future::ready(Ok(Response::new(Body::from(seen(&request))))));
    let routes = [Route::fallback("echo")];
    let request = Request::get("/").header(HOST, "localhost:3000").body(Bytes::new()).unwrap();
    let found = route::find(&routes, request.method(), "/").unwrap();
    let mut event = event(
        &request,
        &found,
        &Authority::from_static("localhost:3000"),
        CLIENT,
        "local-000001",
        Timestamp::UNIX_EPOCH,
    );
    for (sent, meant) in [
        ("q=\"<a>\"", "q=\"<a>\""),
        ("q=a b%20c+d", "q=a b c d"),
        ("q=\u{1}\u{7f}é", "q=\u{1}\u{7f}é"),
        ("q=a#b", "q=a#b"),
        ("q=%zz", "q=%zz"),
    ] {
        event["rawQueryString"] = json!(sent);
        let (answer, _) = invoke(Arc::clone(&echo), &event.to_string(), "local-000001").await.unwrap();
        assert_eq!(into_http(&answer).unwrap().body(), meant, "{sent}");
    }
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
async fn cookies_stay_separate_and_text_gets_a_type() {
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
    let refused = (413, json!(["Request Entity Too Large", "payload_too_large"]));
    let gateway = gateway(async |_| Ok(Response::new(Body::Empty)));
    let response = gateway.call(post("/things/1", vec![b'a'; BODY_LIMIT + 1]), CLIENT).await;
    assert_eq!(message(&response), refused);
    let response = gateway.call(post("/things/1", vec![b'a'; EVENT_LIMIT]), CLIENT).await;
    assert_eq!(message(&response), refused);
    // Base64 turns three bytes into four.
    let mut image = post("/things/1", vec![b'a'; 5 * 1024 * 1024]);
    image.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/png"));
    assert_eq!(message(&gateway.call(image, CLIENT).await), refused);
    let response = gateway.call(post("/things/1", vec![b'a'; EVENT_LIMIT - 2_000]), CLIENT).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_response_over_6_mb_fails() {
    let gateway = gateway(async |request| {
        let size: usize = request.path_parameters().first("id").unwrap_or_default().parse()?;
        Ok(Response::new(Body::from("a".repeat(size))))
    });
    let response = gateway.call(post(&format!("/things/{ANSWER_LIMIT}"), ""), CLIENT).await;
    assert_eq!(message(&response), (500, json!(["Internal Server Error", "server_error"])));
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
        assert_eq!(message(&response), (500, json!(["Internal Server Error", "server_error"])));
    }
}

#[tokio::test]
async fn a_too_large_head_is_refused() {
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
async fn only_listed_origins_are_allowed_and_cors_headers_of_a_function_are_replaced() {
    let handler = async |_| {
        let response = Response::builder().header("access-control-allow-origin", "https://function.example");
        Ok(response.header("access-control-allow-credentials", "true").body(Body::Empty)?)
    };
    let origins = "https://a.example, https://b.example";
    let cors = Cors::read(&json!({ "AllowOrigins": origins, "ExposeHeaders": ["etag", "x"] }));
    let functions = HashMap::from([("things".to_owned(), function(handler))]);
    let gateway = Gateway::new(vec![Route::fallback("things")], functions, Vec::new(), cors).unwrap();
    for (origin, expected) in [
        (
            "https://b.example",
            vec!["access-control-allow-origin: https://b.example", "access-control-expose-headers: etag,x"],
        ),
        ("https://c.example", vec![]),
    ] {
        let mut request = post("/", "");
        request.headers_mut().insert("origin", HeaderValue::from_static(origin));
        let response = gateway.call(request, CLIENT).await;
        let headers = response.headers().iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
        let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        headers.sort_unstable();
        assert_eq!(headers, expected, "{origin}");
    }
}

#[test]
fn a_route_to_a_missing_function_is_refused_at_the_start() {
    let gateway = Gateway::new(vec![Route::fallback("none")], HashMap::new(), Vec::new(), None);
    let error = gateway.err().unwrap().to_string();
    assert_eq!(error, "route $default leads to function none, which does not exist");
}

#[tokio::test]
async fn the_gateway_serves_over_tcp_until_shutdown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (sender, mut log) = tokio::sync::mpsc::unbounded_channel();
    let log_exchange = move |exchange: &Exchange| {
        sender.send(format!("{} {} {}", exchange.method, exchange.path, exchange.status.as_u16())).unwrap();
    };
    let shutdown = async move { drop(stopped.await) };
    let server = tokio::spawn(gateway(echo_body).serve(listener, Front::default(), shutdown, log_exchange));

    let ask = async |path: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("/things/1?a=b", b"hello").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(log.recv().await.unwrap(), "POST /things/1 200");
    let answer = ask("/things/1", &vec![b'a'; BODY_LIMIT + 1_000_000]).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(log.recv().await.unwrap(), "POST /things/1 413");
    // The token isn't logged, so a reader of the log can't act for the recipient of an email.
    ask("/mail/secret/?token=secret", b"").await;
    assert_eq!(log.recv().await.unwrap(), "POST /mail/{token} 200");

    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
