//! The page at `/`: a post with the widget, for whoever tries the service on this machine.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use shared::config::Config;

use super::sample_tokens;
use crate::gateway::{BoxFuture, Mount};
use crate::token::NoSecret;

const PAGE: &str = include_str!("demo.html");

pub(super) fn mount(config: &Config) -> Mount {
    let config = config.clone();
    let handler = move |request: Request<Bytes>| -> BoxFuture<Response<Bytes>> {
        let answer = if is_this_machine(&request) { respond(page(&config)) } else { elsewhere() };
        Box::pin(async move { answer })
    };
    Mount { prefix: "/".to_owned(), handler: Arc::new(handler) }
}

/// The page has a moderator's token. A site whose name leads to this machine must not read it.
fn is_this_machine(request: &Request<Bytes>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

fn elsewhere() -> Response<Bytes> {
    let mut response = Response::new("This page is shown at 127.0.0.1 and localhost only.".into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Its tokens are signed at each request, so that a page that is reloaded has valid ones.
fn page(config: &Config) -> Result<String, NoSecret> {
    let [(_, member), (_, moderator)] = sample_tokens(config)?;
    let page = PAGE.replace("{prefix}", &config.api_prefix);
    Ok(page.replace("{type}", &config.types[0]).replace("{member}", &member).replace("{moderator}", &moderator))
}

fn respond(page: Result<String, NoSecret>) -> Response<Bytes> {
    let page = page.unwrap_or_else(|error| error.to_string());
    let mut response = Response::new(page.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_shown_at_names_of_this_machine_alone() {
        let at = |host: &str| is_this_machine(&Request::builder().header(HOST, host).body(Bytes::new()).unwrap());
        assert!(at("127.0.0.1:3000") && at("localhost:3000") && at("localhost") && at("[::1]:3000"));
        assert!(!at("rebound.example:3000") && !at("127.0.0.1.example") && !at(""));
    }
}
