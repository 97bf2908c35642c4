//! Handles CORS as API Gateway does: replaces the CORS headers of all responses except those to preflight requests.
//! Depending on the API, API Gateway responds to preflight requests itself or passes them to a function. This gateway
//! always passes them to a function, the stricter case.

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use shared::domain::origin::Origins;

/// The template's `CorsConfiguration`.
#[derive(Debug, Clone)]
pub struct Cors {
    origins: Origins,
    expose: HeaderValue,
}

impl Cors {
    /// `None` if an origin or a header name is invalid.
    #[must_use]
    pub fn read(configuration: &Value) -> Option<Self> {
        let expose = names(&configuration["ExposeHeaders"]).join(",").try_into().ok()?;
        Some(Self { origins: Origins::parse(&names(&configuration["AllowOrigins"]).join(","))?, expose })
    }

    /// The CORS headers of the response to a request with these headers.
    pub(super) fn headers(&self, request: &HeaderMap) -> HeaderMap {
        let origin = self.allowed(request);
        let headers = origin.map(|origin| {
            [(ACCESS_CONTROL_ALLOW_ORIGIN, origin), (ACCESS_CONTROL_EXPOSE_HEADERS, self.expose.clone())]
        });
        headers.into_iter().flatten().collect()
    }

    fn allowed(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let origin = request.get(ORIGIN)?.to_str().ok()?;
        HeaderValue::from_str(self.origins.allow(origin)?).ok()
    }
}

/// Replaces a function's CORS headers, which API Gateway ignores.
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
