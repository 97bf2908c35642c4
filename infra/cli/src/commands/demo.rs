//! The page at `/`: a post with the widget, for whoever tries the service on this machine.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use local::gateway::Mount;
use local::token::NoSecret;
use shared::config::Config;

use super::sample_tokens;

const PAGE: &str = include_str!("demo.html");

/// The page has a moderator's token.
pub(super) fn mount(config: &Config) -> Mount {
    let config = config.clone();
    Mount::for_this_machine("/", move || respond(page(&config)))
}

/// Its tokens are signed at each request, so that a page that is reloaded has valid ones.
fn page(config: &Config) -> Result<String, NoSecret> {
    let [(_, member), (_, moderator)] = sample_tokens(config)?;
    let has_mailbox = config.mail.as_ref().is_some_and(|mail| mail.smtp_url.is_none());
    let mails = if has_mailbox { "<a href=\"/_mail\">Mails</a>" } else { "" };
    let page = PAGE.replace("{prefix}", &config.api_prefix).replace("{mails}", mails);
    Ok(page.replace("{type}", &config.types[0]).replace("{member}", &member).replace("{moderator}", &moderator))
}

fn respond(page: Result<String, NoSecret>) -> Response<Bytes> {
    let page = page.unwrap_or_else(|error| error.to_string());
    let mut response = Response::new(page.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
