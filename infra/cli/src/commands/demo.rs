//! The demo page at `/`: a post with the widget, for trying out the service on this machine.

mod conversation;
mod filling;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response};
use server::gateway::Mount;
use server::token::NoSecret;
use shared::config::Config;
use shared::domain::ids::ThreadId;

pub(super) use self::filling::Filling;
use super::sample_tokens;

const PAGE: &str = include_str!("demo/page.html");
/// The post's title. Emails and the moderation page show it too.
const TITLE: &str = "A short history of writing in the margin";
const GUESTS_READ: &str =
    "<p>Guests can only read here. To let them write, start with <code>SVC_ALLOW_GUESTS=true cargo local</code>.</p>";

/// Mounts the page for this machine only, because it contains a moderator's token. The first GET fills the thread if
/// `filling` is given.
pub(super) fn mount(config: &Config, filling: Option<Filling>) -> Mount {
    let (config, filling) = (Arc::new(config.clone()), filling.map(Arc::new));
    Mount::for_this_machine("/", move |request| {
        let (config, filling) = (Arc::clone(&config), filling.clone().filter(|_| request.method() == Method::GET));
        async move {
            if let Some(filling) = filling {
                filling.ensure().await;
            }
            respond(page(&config))
        }
    })
}

fn thread(config: &Config) -> Result<ThreadId, &'static str> {
    ThreadId::new(&config.types[0], "demo").ok_or("demo is not a valid id of a record")
}

/// Signs new tokens for each request, so that a reload gets valid ones.
fn page(config: &Config) -> Result<String, NoSecret> {
    let [(_, member), (_, moderator)] = sample_tokens(config)?;
    let has_outbox = config.mail.as_ref().is_some_and(|mail| mail.smtp_url.is_none());
    let signs_in = config.sign_in.is_some();
    let guests = config.guests.allowed || signs_in;
    let parts = [
        ("{title}", TITLE),
        ("{prefix}", &config.api_prefix),
        ("{type}", &config.types[0]),
        ("{member}", &member),
        ("{moderator}", &moderator),
        ("{mails}", if has_outbox { "<a href=\"/_mail\">Emails</a>" } else { "" }),
        ("{guest_checked}", if guests { "checked" } else { "" }),
        ("{member_checked}", if guests { "" } else { "checked" }),
        ("{sign_in}", if signs_in { "true" } else { "false" }),
        ("{guests_read}", if guests { "" } else { GUESTS_READ }),
    ];
    Ok(parts.iter().fold(PAGE.to_owned(), |page, (name, value)| page.replace(name, value)))
}

fn respond(page: Result<String, NoSecret>) -> Response<Bytes> {
    let page = page.unwrap_or_else(|error| error.to_string());
    let mut response = Response::new(page.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
