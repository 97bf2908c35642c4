//! GET `embed.js`, GET `moderation.js` and GET `moderate`: the widget, the moderators' element, and the page around it. They
//! are compiled in, so they touch neither the table nor a limiter.

use http::{HeaderValue, StatusCode, header};
use shared::http::response::{Answer, Sharing};

const EMBED: &str = include_str!("../embed/embed.js");
const MODERATION: &str = include_str!("../embed/moderation.js");
const MODERATE: &str = include_str!("../embed/moderate.html");

/// Sheets are constructed by script, so the page needs no source of styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' https:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";

pub(crate) fn embed() -> Answer {
    file(SCRIPT, EMBED)
}

pub(crate) fn moderation() -> Answer {
    file(SCRIPT, MODERATION)
}

pub(crate) fn moderate() -> Answer {
    let mut answer = file(PAGE, MODERATE);
    answer.set(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer.set(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

/// Pages of any origin may load it. API Gateway replaces the header by its own, which the edge replaces once more.
fn file(content_type: &'static str, content: &'static str) -> Answer {
    let mut answer = Answer::new(StatusCode::OK, content_type, content.into()).shared(Sharing::File);
    answer.set(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}
