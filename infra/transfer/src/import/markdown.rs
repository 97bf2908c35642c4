//! Turns the HTML of other systems into Markdown that renders to the same text, links and images.
//!
//! Their Markdown becomes HTML first where it shows something else than ours: `dialect`.
//!
//! `tree` reads the HTML, `block` turns it into blocks, `write` writes these as Markdown. The result is rendered and
//! compared with the plainest Markdown for the same blocks; if readers would see something else, plainer Markdown replaces
//! it. What Markdown cannot have (colours, tables without a head, videos) is dropped, its text is kept.

mod block;
mod dialect;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use shared::domain::markdown;

pub(super) use self::dialect::Dialect;
use super::bounded::MAX_VALUE;

/// The Markdown of a body in HTML.
pub(super) fn from_html(html: &str) -> String {
    let nodes = tree::parse(html);
    let plain = block::blocks(&nodes, false);
    let plainest = write::write(&plain, true);
    let expected = rendered(&plainest);
    // Emphasis next to letters and punctuation may mean something else in Markdown.
    let full = write::write(&block::blocks(&nodes, true), false);
    if rendered(&full) == expected {
        return full;
    }
    let without_emphasis = write::write(&plain, false);
    if rendered(&without_emphasis) == expected { without_emphasis } else { plainest }
}

/// Markdown that shows here what another system shows. A text that shows the same here stays as it was typed.
pub(super) fn from_dialect(markdown: &str, dialect: Dialect) -> String {
    // It is refused.
    if markdown.len() >= MAX_VALUE {
        return String::new();
    }
    dialect::to_html(markdown, dialect).map_or_else(|| markdown.to_owned(), |html| from_html(&html))
}

/// What readers see of Markdown: the text without white space, and the addresses of links and images.
fn rendered(markdown: &str) -> (String, Vec<String>) {
    let shown = markdown::shown(markdown);
    let text = shown.text.split_whitespace().collect();
    (text, shown.links.into_iter().map(|link| link.address).collect())
}

/// Text in which HTML's entities represent characters.
pub(super) fn decode(text: &str) -> String {
    let decoded = tree::text(&tree::parse(&text.replace('<', "&lt;")));
    decoded.trim().to_owned()
}

/// HTML in which line feeds are line breaks and addresses are links, as `WordPress` shows it: outside of tags and of `pre`,
/// addresses also outside of links and code.
pub(super) fn with_breaks_and_links(html: &str) -> String {
    if html.len() >= MAX_VALUE {
        return String::new();
    }
    let mut out = String::with_capacity(html.len() + 16);
    let mut verbatim: Option<&str> = None;
    let mut after_break = false;
    for part in tags_and_texts(html) {
        // The line feed after a break is part of it.
        let part = if after_break && verbatim != Some("pre") { without_line_feed(part) } else { part };
        after_break = tag_name(part).is_some_and(|name| name.trim_end_matches('/').eq_ignore_ascii_case("br"));
        match (tag_name(part), verbatim) {
            (Some(name), None) => {
                verbatim = ["pre", "a", "code"].into_iter().find(|each| name.eq_ignore_ascii_case(each));
                out.push_str(part);
            }
            (Some(name), Some(open)) => {
                let is_end = name.strip_prefix('/').is_some_and(|name| name.eq_ignore_ascii_case(open));
                verbatim = verbatim.filter(|_| !is_end);
                out.push_str(part);
            }
            (None, Some("pre")) => out.push_str(part),
            (None, Some(_)) => out.push_str(&lines(part)),
            (None, None) => out.push_str(&lines(&dialect::with_links(part))),
        }
    }
    out
}

fn tags_and_texts(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        let end = if rest.starts_with('<') { rest.find('>').map(|end| end + 1) } else { rest.find('<') };
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The name of a tag, with `/` in front if it ends an element. `None` for text.
fn tag_name(part: &str) -> Option<&str> {
    part.strip_prefix('<')?.split(|c: char| c.is_whitespace() || c == '>').next()
}

fn without_line_feed(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', '\t']);
    rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\n', '\r'])).unwrap_or(text)
}

fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace(['\r', '\n'], "<br>")
}
