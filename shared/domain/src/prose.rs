//! Makes rendered HTML look as its writer typed it: soft line breaks become `<br />`, and addresses become links. Pages
//! and feeds show comments this way, and emails show moderators' notes this way. The API's `html` stays as the parser
//! renders it, and the widget makes the same changes to it.

use std::ops::Range;

use pulldown_cmark_escape::{escape_href, escape_html_body_text};

use crate::address;
use crate::markdown::MAX_HTML;

/// Elements that begin and end on their own lines.
const BLOCKS: &[&str] = &[
    "p",
    "ul",
    "ol",
    "li",
    "pre",
    "blockquote",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
];

/// Returns HTML with a `<br />` for each soft line break and a link for each address. `html` is the result of
/// [`crate::markdown::render`], or escaped text. Returns `html` unchanged if the result would be longer than [`MAX_HTML`].
#[must_use]
pub fn as_typed(html: &str) -> String {
    let mut shown = String::with_capacity(html.len() * 5 / 4);
    // The numbers of open elements for code and for links.
    let (mut code, mut links) = (0_usize, 0_usize);
    let mut follows_block = true;
    let mut rest = html;
    while !rest.is_empty() {
        let text = &rest[..rest.find('<').unwrap_or(rest.len())];
        let tag = &rest[text.len()..];
        let tag = &tag[..tag.find('>').map_or(tag.len(), |end| end + 1)];
        rest = &rest[text.len() + tag.len()..];
        let name = name(tag);
        let precedes_block = tag.is_empty() || BLOCKS.contains(&name);
        if code > 0 {
            shown.push_str(text);
        } else {
            push_lines(&mut shown, text, follows_block, precedes_block, links == 0);
        }
        shown.push_str(tag);
        let change = |open: &mut usize| if tag.starts_with("</") { *open = open.saturating_sub(1) } else { *open += 1 };
        match name {
            "code" | "pre" => change(&mut code),
            "a" => change(&mut links),
            _ => {}
        }
        follows_block = precedes_block;
    }
    if shown.len() <= MAX_HTML { shown } else { html.to_owned() }
}

fn name(tag: &str) -> &str {
    let name = tag.trim_start_matches(['<', '/']);
    &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())]
}

/// Pushes the text between two tags, with a `<br />` for each line feed. Line feeds next to blocks stay as they are.
fn push_lines(shown: &mut String, text: &str, follows_block: bool, precedes_block: bool, may_link: bool) {
    let body = if follows_block { text.trim_start_matches('\n') } else { text };
    let before = &text[..text.len() - body.len()];
    let inner = if precedes_block { body.trim_end_matches('\n') } else { body };
    shown.push_str(before);
    for (place, line) in inner.split('\n').enumerate() {
        if place > 0 {
            shown.push_str("<br />\n");
        }
        if may_link { push_linked(shown, line) } else { shown.push_str(line) }
    }
    shown.push_str(&body[inner.len()..]);
}

fn push_linked(shown: &mut String, line: &str) {
    if !line.contains("://") {
        shown.push_str(line);
        return;
    }
    let text = unescaped(line);
    shown.push_str(&linked(&text, address::find(&text).into_iter().map(|found| (found.clone(), &text[found]))));
}

/// Renders a text as HTML, with the given ranges, in order, as links to the given addresses.
#[must_use]
pub fn linked(text: &str, links: impl IntoIterator<Item = (Range<usize>, impl AsRef<str>)>) -> String {
    let (mut html, mut written) = (String::new(), 0);
    // Writing to a `String` does not fail.
    for (Range { start, end }, address) in links {
        let _ = escape_html_body_text(&mut html, &text[written..start]);
        html.push_str("<a href=\"");
        push_href(&mut html, address.as_ref());
        html.push_str("\" rel=\"nofollow ugc noopener\">");
        let _ = escape_html_body_text(&mut html, &text[start..end]);
        html.push_str("</a>");
        written = end;
    }
    let _ = escape_html_body_text(&mut html, &text[written..]);
    html
}

/// Pushes an address into an attribute. Brackets and backslashes stay as typed, because percent-encoding them would change or
/// break the address.
fn push_href(shown: &mut String, address: &str) {
    const KEPT: [char; 3] = ['[', ']', '\\'];
    for part in address.split_inclusive(KEPT) {
        let encoded = part.trim_end_matches(KEPT);
        let _ = escape_href(&mut *shown, encoded);
        shown.push_str(&part[encoded.len()..]);
    }
}

fn unescaped(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown;

    fn typed(body: &str) -> String {
        as_typed(&markdown::render(body, "users", &["ada"]))
    }

    fn link(address: &str) -> String {
        format!("<a href=\"{address}\" rel=\"nofollow ugc noopener\">{address}</a>")
    }

    #[test]
    fn soft_breaks_show_as_breaks_and_hard_ones_not_twice() {
        for (body, html) in [
            ("a\nb", "<p>a<br />\nb</p>\n"),
            ("a  \nb\\\nc", "<p>a<br />\nb<br />\nc</p>\n"),
            ("*a*\n*b*", "<p><em>a</em><br />\n<em>b</em></p>\n"),
            ("a\n\nb", "<p>a</p>\n<p>b</p>\n"),
            ("- a\n  b\n- c", "<ul>\n<li>a<br />\nb</li>\n<li>c</li>\n</ul>\n"),
            ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>\n"),
            ("- a\n\n- b", "<ul>\n<li>\n<p>a</p>\n</li>\n<li>\n<p>b</p>\n</li>\n</ul>\n"),
            ("> a\n> b\n\n---", "<blockquote>\n<p>a<br />\nb</p>\n</blockquote>\n<hr />\n"),
            ("[a\nb](/x)", "<p><a href=\"/x\" rel=\"nofollow ugc noopener\">a<br />\nb</a></p>\n"),
            (
                "|a|\n|-|\n|https://a.example|",
                "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td><a href=\"https://a.example\" \
                 rel=\"nofollow ugc noopener\">https://a.example</a></td>\n</tr>\n</tbody>\n</table>\n",
            ),
            ("- [x] a\n  b", "<ul>\n<li>☑ a<br />\nb</li>\n</ul>\n"),
            ("<i>\na\n</i>", "<p>&lt;i&gt;<br />\na<br />\n&lt;/i&gt;</p>\n"),
        ] {
            assert_eq!(typed(body), html, "{body:?}");
        }
    }

    #[test]
    fn code_stays_as_it_is() {
        let block = "```\na\nhttp://a.example\n```";
        assert_eq!(typed(block), "<pre><code>a\nhttp://a.example\n</code></pre>\n");
        assert_eq!(typed("`a\nhttp://a.example`"), "<p><code>a http://a.example</code></p>\n");
        assert_eq!(typed("`a`\nb"), "<p><code>a</code><br />\nb</p>\n");
    }

    #[test]
    fn addresses_in_text_become_the_same_links_as_in_the_api() {
        let https = link("https://a.example/b_c(d)");
        for (body, html) in [
            ("See https://a.example/b_c(d).", format!("<p>See {https}.</p>\n")),
            ("(https://a.example/b_c(d)), and", format!("<p>({https}), and</p>\n")),
            ("HTTP://a.example?!", format!("<p>{}?!</p>\n", link("HTTP://a.example"))),
            ("https://a.example/?b=1&c=2", format!("<p>{}</p>\n", link("https://a.example/?b=1&amp;c=2"))),
            ("https://a.example<b", format!("<p>{}&lt;b</p>\n", link("https://a.example"))),
            ("https://a.example/&lt;b", format!("<p>{}</p>\n", link("https://a.example/&amp;lt;b"))),
            ("https://a.example/__b__", format!("<p>{}</p>\n", link("https://a.example/__b__"))),
            ("https://a.example\"b", format!("<p>{}\"b</p>\n", link("https://a.example"))),
            ("*https://a.example*", format!("<p><em>{}</em></p>\n", link("https://a.example"))),
            ("https://a.example https://b.example", {
                format!("<p>{} {}</p>\n", link("https://a.example"), link("https://b.example"))
            }),
        ] {
            assert_eq!(typed(body), html, "{body:?}");
        }
        for body in
            ["xhttps://a.example", "_http://a.example", "https://", "https://.", "ftp://a.example", "://", "http://[a"]
        {
            assert!(!typed(body).contains("<a "), "{body:?}: {}", typed(body));
        }
        assert_eq!(typed("[https://a.example](/x)").matches("<a ").count(), 1);
        assert_eq!(typed("<https://a.example> @ada").matches("<a ").count(), 2);
    }

    #[test]
    fn a_link_cannot_break_out_of_its_attribute() {
        let html = typed("https://a.example/'onclick='alert(1)");
        assert!(html.contains("href=\"https://a.example/&#x27;onclick=&#x27;alert(1)\""), "{html}");
    }

    #[test]
    fn a_link_has_the_address_that_was_typed() {
        for address in ["http://[::1]:3000/x", "https://a.example\\b", "https://a.example/?q[]=1&r[0]=["] {
            let href = address.replace('&', "&amp;");
            assert!(typed(&format!("See {address}")).contains(&format!("<a href=\"{href}\"")), "{}", typed(address));
        }
    }

    #[test]
    fn html_that_would_become_too_long_stays_without_links() {
        let html = format!("<p>{}</p>\n", "http://a ".repeat(MAX_HTML / 16));
        assert_eq!(as_typed(&html), html);
    }
}
