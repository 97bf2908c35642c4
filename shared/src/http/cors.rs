//! CORS preflights: OPTIONS requests that browsers send before some cross-origin requests. API Gateway responds to most
//! preflights itself, but passes some on to a function. It also sets the CORS headers of all other responses.

use http::{HeaderValue, Method, header};

use crate::domain::origin::Origins;
use crate::http::request::Call;
use crate::http::response::Answer;

/// Must equal the `CorsConfiguration` in `template.yaml`; a test compares them.
pub const METHODS: &str = "GET,POST,PUT,PATCH,DELETE";
pub const HEADERS: &str = "accept-language,authorization,comment-key,content-type,idempotency-key,if-none-match";
/// Cache lifetime of a preflight in browsers, in seconds.
pub const MAX_AGE: u16 = 7200;

/// The response to a preflight; `None` if the call isn't a preflight. Browsers block pages whose origin isn't in the response.
pub(crate) fn preflight(origins: &Origins, call: &Call) -> Option<Answer> {
    let asks = call.method == Method::OPTIONS && call.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !asks {
        return None;
    }
    let mut answer = Answer::no_content();
    let allowed = call.header(header::ORIGIN).and_then(|origin| origins.allow(origin));
    if let Some(origin) = allowed.and_then(|origin| HeaderValue::from_str(origin).ok()) {
        answer.set(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.set(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        answer.set(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
        answer.set(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from(MAX_AGE));
    }
    Some(answer)
}
