//! The text that `cargo local` prints once it's ready: URLs, HTML for a page, and tokens for the API.

use std::fmt::Write as _;
use std::net::SocketAddr;

use server::token::NoSecret;
use shared::config::Config;

use super::sample_tokens;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";
const WIDTH: usize = 10;

/// Composes the text, with colors that the printer strips if the terminal doesn't support them. The tokens come last
/// because they are long. The last line is the moderator's token, which scripts wait for.
pub(super) fn greeting(config: &Config, address: SocketAddr) -> Result<String, NoSecret> {
    let [(_, member), (_, moderator)] = sample_tokens(config)?;
    let site = format!("http://{address}");
    let api = format!("{site}/{}", config.api_prefix);
    let mut text = format!("listening on {site}\n\n");
    let mut line = |label: &str, value: &str| {
        // Writing to a string can't fail.
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
