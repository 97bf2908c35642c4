//! The text that `cargo local` prints once it is ready: where to look, what to put on a page, and tokens to call the API
//! with.

use std::fmt::Write as _;
use std::net::SocketAddr;

use server::token::NoSecret;
use shared::config::Config;

use super::sample_tokens;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";
/// Labels are in a column of this width.
const WIDTH: usize = 10;

/// The text has colors, which the printer strips where they are not supported. Lines with tokens are long and come last, the
/// moderator's at the end.
pub(super) fn greeting(config: &Config, address: SocketAddr) -> Result<String, NoSecret> {
    let [(_, member), (_, moderator)] = sample_tokens(config)?;
    let site = format!("http://{address}");
    let api = format!("{site}/{}", config.api_prefix);
    let mut text = format!("listening on {site}\n\n");
    let mut line = |label: &str, value: &str| {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{BOLD}{label:<WIDTH$}{RESET} {value}");
    };
    line("demo", &format!("{site}/"));
    if config.mail.as_ref().is_some_and(|mail| mail.smtp_url.is_none()) {
        line("mails", &format!("{site}/_mail"));
    }
    let guests = if config.guests.allowed { "on" } else { "off; SVC_ALLOW_GUESTS=true cargo local turns them on" };
    line("guests", guests);
    line("embed", &format!("<script type=\"module\" src=\"{api}/embed.js\"></script>"));
    line("", &format!("<comment-thread type=\"{}\" record=\"42\"></comment-thread>", config.types[0]));
    line("API", &format!("{api}\n"));
    line("moderate", &format!("{api}/moderate{DIM}#token={moderator}{RESET}"));
    line("member", &format!("{DIM}{member}{RESET}"));
    line("moderator", &format!("{DIM}{moderator}{RESET}\n"));
    Ok(text)
}
