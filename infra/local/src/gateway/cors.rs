//! Cross-origin requests, as API Gateway handles them: it answers a preflight itself and sets headers on all other
//! answers.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;

/// The template's `CorsConfiguration`.
#[derive(Debug, Clone)]
pub struct Cors {
    origins: Vec<String>,
    /// The headers of the answer to a preflight.
    preflight: HeaderMap,
    expose: HeaderValue,
}

impl Cors {
    /// `None` when a value is not a valid header.
    #[must_use]
    pub fn read(configuration: &Value) -> Option<Self> {
        let mut preflight = HeaderMap::new();
        let listed = [(ACCESS_CONTROL_ALLOW_METHODS, "AllowMethods"), (ACCESS_CONTROL_ALLOW_HEADERS, "AllowHeaders")];
        for (header, name) in listed {
            preflight.insert(header, names(&configuration[name]).join(",").try_into().ok()?);
        }
        if let Some(seconds) = configuration["MaxAge"].as_u64() {
            preflight.insert(ACCESS_CONTROL_MAX_AGE, seconds.into());
        }
        let expose = names(&configuration["ExposeHeaders"]).join(",").try_into().ok()?;
        Some(Self { origins: names(&configuration["AllowOrigins"]), preflight, expose })
    }

    /// The answer, when the request is a preflight from an allowed origin.
    pub(super) fn preflight(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let asks = request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        let origin = self.allowed(request.headers())?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().clone_from(&self.preflight);
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        Some(response)
    }

    /// The headers of the answer to a request that is not a preflight.
    pub(super) fn headers(&self, request: &HeaderMap) -> HeaderMap {
        let origin = self.allowed(request);
        let headers = origin.map(|origin| {
            [(ACCESS_CONTROL_ALLOW_ORIGIN, origin), (ACCESS_CONTROL_EXPOSE_HEADERS, self.expose.clone())]
        });
        headers.into_iter().flatten().collect()
    }

    fn allowed(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let origin = request.get(ORIGIN)?;
        if self.origins.iter().any(|allowed| allowed == "*") {
            return Some(HeaderValue::from_static("*"));
        }
        self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }
}

/// Replaces the CORS headers of a function, which API Gateway ignores.
pub(super) fn replace(answer: &mut HeaderMap, headers: HeaderMap) {
    let said: Vec<HeaderName> =
        answer.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    for name in said {
        answer.remove(name);
    }
    answer.extend(headers);
}

/// The items of a list, or of a comma-separated parameter.
fn names(list: &Value) -> Vec<String> {
    match list {
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cors(origins: &str) -> Cors {
        let configuration = json!({
            "AllowOrigins": origins,
            "AllowMethods": ["GET", "POST"],
            "AllowHeaders": ["authorization"],
            "ExposeHeaders": ["etag"],
            "MaxAge": 7200,
        });
        Cors::read(&configuration).unwrap()
    }

    fn asked(method: Method, origin: &str) -> Request<Bytes> {
        let request = Request::builder().method(method).header(ORIGIN, origin);
        request.header(ACCESS_CONTROL_REQUEST_METHOD, "POST").body(Bytes::new()).unwrap()
    }

    #[test]
    fn a_preflight_is_answered_with_the_allowed_methods_and_headers() {
        let answer = cors("*").preflight(&asked(Method::OPTIONS, "https://a.example")).unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(answer.headers().len(), 4);
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET,POST"),
            ("access-control-allow-headers", "authorization"),
            ("access-control-max-age", "7200"),
        ] {
            assert_eq!(answer.headers()[name], value);
        }
    }

    #[test]
    fn only_the_listed_origins_are_allowed() {
        let cors = cors("https://a.example, https://b.example");
        let (good, bad) = (asked(Method::OPTIONS, "https://b.example"), asked(Method::OPTIONS, "https://c.example"));
        assert_eq!(cors.preflight(&good).unwrap().headers()["access-control-allow-origin"], "https://b.example");
        assert!(cors.preflight(&bad).is_none() && cors.headers(bad.headers()).is_empty());
        let headers = cors.headers(good.headers());
        assert_eq!(headers.len(), 2);
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://b.example");
        assert_eq!(headers[ACCESS_CONTROL_EXPOSE_HEADERS], "etag");
    }

    #[test]
    fn a_request_that_is_no_preflight_reaches_the_function() {
        let cors = cors("*");
        assert!(cors.preflight(&asked(Method::GET, "https://a.example")).is_none());
        let plain = Request::builder().method(Method::OPTIONS).body(Bytes::new()).unwrap();
        assert!(cors.preflight(&plain).is_none() && cors.headers(plain.headers()).is_empty());
    }
}
