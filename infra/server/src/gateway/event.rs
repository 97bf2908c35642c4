//! Translates a request into the event that a function receives, and the function's result into an HTTP response, as
//! API Gateway does.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, SET_COOKIE, TE, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::route::{self, Match};
use crate::account::ACCOUNT_ID;

/// The event for a request, in payload format 2.0.
pub(super) fn event(
    request: &Request<Bytes>,
    found: &Match<'_>,
    authority: &Authority,
    ip: IpAddr,
    request_id: &str,
    now: Timestamp,
) -> Value {
    let headers = request.headers();
    let path = route::decode(request.uri().path());
    let query = request.uri().query().unwrap_or_default();

    let mut event = json!({
        "version": "2.0",
        "routeKey": found.route.key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": event_headers(headers, authority, ip),
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": "local",
            "domainName": authority.as_str(),
            "domainPrefix": authority.host().split('.').next(),
            "http": {
                "method": request.method().as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": ip,
                "userAgent": text(headers, &USER_AGENT).unwrap_or_default(),
            },
            "requestId": request_id,
            "routeKey": found.route.key,
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now.as_millisecond(),
        },
        "isBase64Encoded": false,
    });
    let cookies: Vec<&str> = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';').map(str::trim))
        .filter(|cookie| !cookie.is_empty())
        .collect();
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !query.is_empty() {
        event["queryStringParameters"] = json!(joined(form_urlencoded::parse(query.as_bytes())));
    }
    if !found.parameters.is_empty() {
        event["pathParameters"] = found.parameters.iter().map(|(name, value)| (*name, value.clone())).collect();
    }
    match request.body() {
        body if body.is_empty() => {}
        body => match str::from_utf8(body) {
            Ok(body) if is_text(headers) => event["body"] = json!(body),
            _ => {
                event["body"] = json!(BASE64.encode(body));
                event["isBase64Encoded"] = json!(true);
            }
        },
    }
    event
}

/// The event's headers, without cookies and hop-by-hop headers. Names are in lower case, multiple values are joined by
/// commas, and the gateway sets the forwarding headers.
fn event_headers(headers: &HeaderMap, authority: &Authority, ip: IpAddr) -> BTreeMap<String, String> {
    let hop_by_hop = [&COOKIE, &CONNECTION, &TRANSFER_ENCODING, &UPGRADE, &TE, &EXPECT];
    let sent = headers.iter().filter(|(name, _)| !hop_by_hop.contains(name));
    let mut joined = joined(sent.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))));
    let forwarded_for = match joined.remove("x-forwarded-for") {
        Some(before) => format!("{before}, {ip}"),
        None => ip.to_string(),
    };
    let port = authority.port_u16().unwrap_or(80).to_string();
    joined.insert("x-forwarded-for".to_owned(), forwarded_for);
    joined.insert("x-forwarded-proto".to_owned(), "http".to_owned());
    joined.insert("x-forwarded-port".to_owned(), port);
    joined
}

fn joined<K: AsRef<str>, V: AsRef<str>>(pairs: impl Iterator<Item = (K, V)>) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in pairs {
        joined
            .entry(name.as_ref().to_owned())
            .and_modify(|before| {
                before.push(',');
                before.push_str(value.as_ref());
            })
            .or_insert_with(|| value.as_ref().to_owned());
    }
    joined
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a UTF-8 body is passed on as text. HTTP APIs encode all other bodies in Base64, including forms.
fn is_text(headers: &HeaderMap) -> bool {
    let media_type = text(headers, &CONTENT_TYPE).unwrap_or("text/plain").split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    !headers.contains_key(CONTENT_ENCODING)
        && (media_type.starts_with("text/")
            || matches!(media_type.as_str(), "application/json" | "application/javascript" | "application/xml")
            || media_type.ends_with("+json")
            || media_type.ends_with("+xml"))
}

/// The fields of a response that HTTP APIs read; they ignore `multiValueHeaders`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    cookies: Vec<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

pub(super) fn into_http(answer: &str) -> Result<Response<Bytes>, lambda_http::Error> {
    let answer: Answer = serde_json::from_str(answer)?;
    let body = match answer.body {
        Some(body) if answer.is_base64_encoded => BASE64.decode(body)?.into(),
        Some(body) => Bytes::from(body),
        None => Bytes::new(),
    };
    let typed = answer.headers.keys().any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
    let untyped = !typed && !body.is_empty();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status_code)?;
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        let name: HeaderName = name.parse()?;
        // The HTTP server sets these headers itself.
        if ![CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING].contains(&name) {
            headers.insert(name, value.parse()?);
        }
    }
    for cookie in answer.cookies {
        headers.append(SET_COOKIE, cookie.parse()?);
    }
    if untyped {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain;charset=UTF-8"));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::header::HOST;

    use super::*;
    use crate::gateway::route::Route;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

    fn event_of(request: &Request<Bytes>) -> Value {
        let routes = [Route::new("POST", "/things/{id}", "things").unwrap(), Route::fallback("things")];
        let found = route::find(&routes, request.method(), request.uri().path()).unwrap();
        let host = text(request.headers(), &HOST).unwrap_or("localhost").parse().unwrap();
        event(request, &found, &host, CLIENT, "local-000001", "2026-01-02T03:04:05.678Z".parse().unwrap())
    }

    #[test]
    fn an_event_has_the_shape_of_format_2() {
        let request = Request::post("/things/a%20b?tag=x&tag=y%20z&page=2")
            .header(HOST, "localhost:3000")
            .header(USER_AGENT, "curl")
            .header("Accept", "text/html")
            .header("Accept", "application/json")
            .header(COOKIE, "a=1; b=2")
            .header("X-Forwarded-For", "198.51.100.1")
            .header(CONTENT_TYPE, "application/json")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        assert_eq!(
            event_of(&request),
            json!({
                "version": "2.0",
                "routeKey": "POST /things/{id}",
                "rawPath": "/things/a b",
                "rawQueryString": "tag=x&tag=y%20z&page=2",
                "cookies": ["a=1", "b=2"],
                "headers": {
                    "accept": "text/html,application/json",
                    "content-type": "application/json",
                    "host": "localhost:3000",
                    "user-agent": "curl",
                    "x-forwarded-for": "198.51.100.1, 203.0.113.9",
                    "x-forwarded-port": "3000",
                    "x-forwarded-proto": "http",
                },
                "queryStringParameters": {"page": "2", "tag": "x,y z"},
                "pathParameters": {"id": "a b"},
                "requestContext": {
                    "accountId": "000000000000",
                    "apiId": "local",
                    "domainName": "localhost:3000",
                    "domainPrefix": "localhost",
                    "http": {
                        "method": "POST",
                        "path": "/things/a b",
                        "protocol": "HTTP/1.1",
                        "sourceIp": "203.0.113.9",
                        "userAgent": "curl",
                    },
                    "requestId": "local-000001",
                    "routeKey": "POST /things/{id}",
                    "stage": "$default",
                    "time": "02/Jan/2026:03:04:05 +0000",
                    "timeEpoch": 1_767_323_045_678_i64,
                },
                "body": "{}",
                "isBase64Encoded": false,
            })
        );
    }

    #[test]
    fn an_event_omits_what_the_request_does_not_have() {
        let event = event_of(&Request::get("/").body(Bytes::new()).unwrap());
        assert_eq!(event["routeKey"], "$default");
        for absent in ["body", "cookies", "queryStringParameters", "pathParameters"] {
            assert_eq!(event.get(absent), None, "{absent}");
        }
    }

    #[test]
    fn only_text_passes_unencoded() {
        let encoded = |content_type: &str, body: &'static [u8]| {
            let request = Request::post("/").header(CONTENT_TYPE, content_type).body(Bytes::from_static(body)).unwrap();
            event_of(&request)["isBase64Encoded"].as_bool().unwrap()
        };
        assert!(!encoded("application/json; charset=utf-8", b"{}"));
        assert!(!encoded("text/plain", b"hi"));
        assert!(!encoded("application/problem+json", b"{}"));
        assert!(encoded("multipart/form-data; boundary=x", b"--x--"));
        assert!(encoded("application/x-www-form-urlencoded", b"a=b"));
        assert!(encoded("image/png", b"\x89PNG"));
        assert!(encoded("text/plain", b"\xff"));
    }
}
