//! Turns the HTML of other systems into Markdown that renders to the same text, links and images.
//!
//! Their Markdown becomes HTML first where it shows something else than ours: `dialect`.
//!
//! `tree` reads the HTML, `block` turns it into blocks, `write` writes these as Markdown. What is written is rendered at
//! once and compared with the source; if it differs, plainer Markdown is written. What Markdown cannot have (colours,
//! tables, videos) is dropped, its text is kept.

mod block;
mod dialect;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use shared::domain::markdown;

use self::block::Content;
pub(super) use self::dialect::RawHtml;
use self::write::Style;

/// The Markdown of a body in HTML.
pub(super) fn from_html(html: &str) -> String {
    let blocks = block::blocks(&tree::parse(html));
    let expected = Content::of(&blocks);
    let mut written = String::new();
    for style in Style::ALL {
        written = write::write(&blocks, style);
        if rendered(&written) == expected {
            break;
        }
    }
    written
}

/// What another system shows of Markdown, in Markdown. A text that shows the same here stays as it was typed.
pub(super) fn from_dialect(markdown: &str, raw_html: RawHtml) -> String {
    dialect::to_html(markdown, raw_html).map_or_else(|| markdown.to_owned(), |html| from_html(&html))
}

/// What readers see of Markdown.
fn rendered(markdown: &str) -> Content {
    let shown = markdown::shown(markdown);
    let mut content = Content::default();
    content.add_text(&shown.text);
    for link in &shown.links {
        content.add_address(&link.address);
    }
    content
}

/// Text in which HTML's entities stand for characters.
pub(super) fn decode(text: &str) -> String {
    let decoded = tree::text(&tree::parse(&text.replace('<', "&lt;")));
    decoded.trim().to_owned()
}

/// HTML in which a line feed is a line break, as `WordPress` shows it: outside of tags and of `pre`.
pub(super) fn with_breaks(html: &str) -> String {
    let mut out = String::with_capacity(html.len() + 16);
    let mut rest = html;
    let mut is_verbatim = false;
    while let Some(start) = rest.find('<') {
        push_lines(&mut out, &rest[..start], is_verbatim);
        let tag = &rest[start..];
        let end = tag.find('>').map_or(tag.len(), |end| end + 1);
        let lower = tag[..end].to_ascii_lowercase();
        if lower.starts_with("<pre") {
            is_verbatim = true;
        } else if lower.starts_with("</pre") {
            is_verbatim = false;
        }
        out.push_str(&tag[..end]);
        rest = &tag[end..];
    }
    push_lines(&mut out, rest, is_verbatim);
    out
}

fn push_lines(out: &mut String, text: &str, is_verbatim: bool) {
    if is_verbatim {
        out.push_str(text);
    } else {
        out.push_str(&text.replace("\r\n", "\n").replace(['\r', '\n'], "<br>"));
    }
}
