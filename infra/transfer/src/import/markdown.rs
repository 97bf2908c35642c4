//! Turns the HTML of other systems into Markdown that renders to the same text, links and images.
//!
//! Their Markdown is first converted to HTML (`dialect`) if it renders differently from ours.
//!
//! `tree` parses the HTML, `block` turns it into blocks, and `write` writes the blocks as Markdown. The result is
//! rendered and compared with the plainest Markdown for the same blocks. If readers would see a difference, plainer
//! Markdown is used. Markup that Markdown lacks (colors, tables without a head, videos) is dropped, but its text is
//! kept.

mod block;
mod dialect;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use shared::domain::markdown;

pub(super) use self::dialect::Dialect;
use self::tree::Node;
use super::record::MAX_VALUE;

pub(super) fn from_html(html: &str) -> String {
    from_nodes(&tree::parse(html))
}

/// The Markdown of a body in `WordPress`, which breaks lines at line feeds and links addresses.
pub(super) fn from_wordpress(html: &str) -> String {
    // The import refuses a comment with a longer body.
    if html.len() > MAX_VALUE {
        return String::new();
    }
    from_nodes(&tree::with_breaks_and_links(tree::parse(html), true))
}

/// Converts another system's Markdown into Markdown that looks the same here. Returns text that already looks the same
/// unchanged.
pub(super) fn from_dialect(markdown: &str, dialect: Dialect) -> String {
    // The import refuses a comment with a longer body.
    if markdown.len() > MAX_VALUE {
        return String::new();
    }
    dialect::nodes(markdown, dialect).map_or_else(|| markdown.to_owned(), |nodes| from_nodes(&nodes))
}

fn from_nodes(nodes: &[Node]) -> String {
    let plain = block::blocks(nodes, false);
    let plainest = write::write(&plain, true);
    let expected = rendered(&plainest);
    // Next to letters and punctuation, emphasis marks may have another meaning in Markdown.
    let full = write::write(&block::blocks(nodes, true), false);
    if rendered(&full) == expected {
        return full;
    }
    let without_emphasis = write::write(&plain, false);
    if rendered(&without_emphasis) == expected { without_emphasis } else { plainest }
}

/// The visible part of Markdown: the text without white space, and the addresses of links and images.
fn rendered(markdown: &str) -> (String, Vec<String>) {
    let shown = markdown::shown(markdown);
    let text = shown.text.split_whitespace().collect();
    (text, shown.links.into_iter().map(|link| link.address).collect())
}

/// The text of HTML, such as that of a title, on one line.
pub(super) fn text(html: &str) -> String {
    tree::text(&tree::parse(html)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Decodes HTML entities in a text, and trims it.
pub(super) fn decode(text: &str) -> String {
    let decoded = tree::text(&tree::parse(&text.replace('<', "&lt;")));
    decoded.trim().to_owned()
}
