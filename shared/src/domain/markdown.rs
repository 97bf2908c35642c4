//! Comment bodies to html: `CommonMark` with mentions. What comes out is safe to embed as it is. And what of a body
//! readers see. Nothing here reads the table: who is known is the caller's to say.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeWithOffset, html};
use pulldown_cmark_escape::{escape_href, escape_html, escape_html_body_text};

use crate::domain::visible;

/// In bytes. A body whose html would be longer shows as plain text.
pub const MAX_HTML: usize = 64 * 1024;

/// Levels of quotes, lists, emphasis and links inside one another. Deeper markup shows as it was typed.
pub const MAX_NESTING: usize = 16;

/// Distinct handles a body may mention.
pub const MAX_MENTIONS: usize = 20;

const MAX_HANDLE: usize = 50;
const LINK_SCHEMES: &[&str] = &["http", "https", "mailto"];
const IMAGE_SCHEMES: &[&str] = &["http", "https"];

/// The distinct handles that `body` mentions, in lower case and in order, at most [`MAX_MENTIONS`].
#[must_use]
pub fn mentions(body: &str) -> Vec<String> {
    let mut handles: Vec<String> = Vec::new();
    safe_events(&without_nul(body), |handle| {
        if handles.len() < MAX_MENTIONS && !handles.contains(&handle) {
            handles.push(handle);
        }
        None
    });
    handles
}

/// The html of `body`, at most [`MAX_HTML`] bytes. `known` are the handles to link, in lower case.
#[must_use]
pub fn render(body: &str, users_route_prefix: &str, known: &[impl AsRef<str>]) -> String {
    if body.trim().is_empty() {
        return String::new();
    }
    let body = without_nul(body);
    to_html(&body, users_route_prefix, known).unwrap_or_else(|| plain(&body))
}

/// Whether [`render`] may show `body` as plain text, which depends on who is known.
#[must_use]
pub fn may_be_plain(body: &str, users_route_prefix: &str) -> bool {
    to_html(&without_nul(body), users_route_prefix, &mentions(body)).is_none()
}

/// `None` when it would be longer than [`MAX_HTML`].
fn to_html(body: &str, users_route_prefix: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let prefix = users_route_prefix.trim_matches('/');
    let known = &known[..known.len().min(MAX_MENTIONS)];
    let events = safe_events(body, |handle| {
        let is_known = known.iter().any(|known| known.as_ref() == handle);
        is_known.then(|| format!("/{prefix}/{handle}"))
    });
    let mut html = String::with_capacity(body.len() * 3 / 2);
    html::push_html(&mut html, events.into_iter().map(link_to_html));
    (html.len() <= MAX_HTML).then_some(html)
}

/// What readers see of a body.
#[derive(Debug, Default)]
pub struct Shown {
    /// Without markup, with entities and escapes resolved. Code and the texts in place of images are part of it.
    pub text: String,
    /// Images too.
    pub links: Vec<Link>,
    has_picture: bool,
}

/// A link or an image that is shown as one.
#[derive(Debug)]
pub struct Link {
    pub address: String,
    pub title: String,
    /// Where its text stands in the text of the body.
    pub text: Range<usize>,
}

impl Shown {
    /// Of a body that shows as plain text.
    #[must_use]
    pub fn plain(body: &str) -> Self {
        Self { text: body.to_owned(), ..Self::default() }
    }

    /// Whether there is neither text nor an image nor a rule to be seen.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.has_picture && visible::shows_nothing(&self.text)
    }
}

/// What readers see of `body` where it does not show as plain text.
#[must_use]
pub fn shown(body: &str) -> Shown {
    let body = without_nul(body);
    let mut shown = Shown::default();
    // Places in `links`.
    let mut open = Vec::new();
    for event in safe_events(&body, |_| None) {
        shown.has_picture |= matches!(event, Event::Rule | Event::Start(Tag::Image { .. }));
        match event {
            Event::Text(text) | Event::Code(text) => shown.text.push_str(&text),
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                let start = shown.text.len();
                open.push(shown.links.len());
                shown.links.push(Link {
                    address: dest_url.into_string(),
                    title: title.into_string(),
                    text: start..start,
                });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some(place) = open.pop() {
                    shown.links[place].text.end = shown.text.len();
                }
            }
            Event::Start(tag) if is_inline(tag.to_end()) => {}
            Event::End(tag) if is_inline(tag) => {}
            _ => shown.text.push('\n'),
        }
    }
    shown
}

/// `CommonMark` asks for this replacement.
fn without_nul(body: &str) -> Cow<'_, str> {
    if body.contains('\0') { body.replace('\0', "\u{fffd}").into() } else { body.into() }
}

/// The events of `body` with everything that is not allowed turned into text; there is no html among them.
/// `address_of` is asked for the address of each handle mentioned.
fn safe_events(body: &str, mut address_of: impl FnMut(String) -> Option<String>) -> Vec<Event<'_>> {
    let parser = Parser::new_ext(body, Options::empty()).into_offset_iter();
    let mut events = TextMergeWithOffset::new(parser.map(|(event, range)| (html_to_text(event), range)));
    let mut safe = Vec::with_capacity(body.len() / 16);
    let mut depth = 0;
    // Whether each is written. An autolink may stand in a link's text, and html does not nest them.
    let mut open_links = Vec::new();
    let mut in_code_block = false;
    // The character on the page before the next text.
    let mut before = None;

    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(tag) if depth == MAX_NESTING && nests(tag.to_end()) => {
                drain(&mut events);
                push_source(&mut safe, tag.to_end(), &body[range]);
                before = None;
            }
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) => {
                depth += 1;
                let address = match link_type {
                    LinkType::Email => format!("mailto:{dest_url}").into(),
                    _ => dest_url,
                };
                let written = !open_links.contains(&true) && is_allowed(&address, LINK_SCHEMES);
                open_links.push(written);
                if written {
                    safe.push(link_start(address, title));
                }
            }
            Event::End(TagEnd::Link) => {
                depth -= 1;
                if open_links.pop() == Some(true) {
                    safe.push(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let alt = Event::Text(drain(&mut events).into());
                if is_allowed(&dest_url, IMAGE_SCHEMES) {
                    safe.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                    safe.push(alt);
                    safe.push(Event::End(TagEnd::Image));
                } else {
                    safe.push(alt);
                }
                before = None;
            }
            Event::Text(text) => {
                let last = text.chars().next_back();
                if in_code_block || !open_links.is_empty() || !text.contains('@') {
                    safe.push(Event::Text(text));
                } else {
                    push_text(&mut safe, text, before, &mut address_of);
                }
                before = last;
            }
            Event::Code(code) => {
                before = code.chars().next_back();
                safe.push(Event::Code(code));
            }
            Event::Start(tag) => {
                in_code_block |= matches!(tag, Tag::CodeBlock(_));
                depth += usize::from(nests(tag.to_end()));
                if !is_inline(tag.to_end()) {
                    before = None;
                }
                safe.push(Event::Start(with_one_language(tag)));
            }
            Event::End(tag) => {
                in_code_block &= tag != TagEnd::CodeBlock;
                depth -= usize::from(nests(tag));
                safe.push(Event::End(tag));
            }
            other => {
                before = None;
                safe.push(other);
            }
        }
    }
    safe
}

/// Raw html is text like any other: nothing that was typed is lost, and nothing runs.
fn html_to_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    }
}

/// Paragraphs, headings and code hold nothing that nests; an item belongs to its list.
fn nests(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::BlockQuote(_) | TagEnd::List(_)) || is_inline(tag)
}

fn is_inline(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link)
}

/// Takes the events of an element that has just begun, its end included, and returns their text.
fn drain<'a>(events: &mut impl Iterator<Item = (Event<'a>, Range<usize>)>) -> String {
    let mut text = String::new();
    let mut open = 1;
    while open > 0
        && let Some((event, _)) = events.next()
    {
        match event {
            Event::Start(_) => open += 1,
            Event::End(_) => open -= 1,
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    text
}

fn push_source<'a>(safe: &mut Vec<Event<'a>>, tag: TagEnd, source: &'a str) {
    let text = Event::Text(source.trim_end().into());
    if is_inline(tag) {
        safe.push(text);
    } else {
        safe.extend([Event::Start(Tag::Paragraph), text, Event::End(TagEnd::Paragraph)]);
    }
}

/// The info string's first word names the language. `push_html` cuts at spaces only, and a tab would make
/// of one class many.
fn with_one_language(tag: Tag<'_>) -> Tag<'_> {
    match tag {
        Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
            let language = info.split_whitespace().next().unwrap_or_default();
            Tag::CodeBlock(CodeBlockKind::Fenced(language.to_owned().into()))
        }
        other => other,
    }
}

/// An address without a scheme is relative, `//host` too, which leads to where http and https lead. Browsers
/// ignore some control characters in a scheme, so an address that has any is refused.
fn is_allowed(address: &str, schemes: &[&str]) -> bool {
    let scheme = match address.find([':', '/', '?', '#']) {
        Some(end) if address[end..].starts_with(':') => Some(&address[..end]),
        _ => None,
    };
    !address.contains(char::is_control)
        && scheme.is_none_or(|scheme| schemes.iter().any(|s| s.eq_ignore_ascii_case(scheme)))
}

fn link_start<'a>(dest_url: CowStr<'a>, title: CowStr<'a>) -> Event<'a> {
    Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id: "".into() })
}

/// Links are written here, for their `rel`.
fn link_to_html(event: Event<'_>) -> Event<'_> {
    let Event::Start(Tag::Link { dest_url, title, .. }) = event else { return event };
    let mut html = String::from("<a href=\"");
    // Writing to a `String` does not fail.
    let _ = escape_href(&mut html, &dest_url);
    if !title.is_empty() {
        html.push_str("\" title=\"");
        let _ = escape_html(&mut html, &title);
    }
    html.push_str("\" rel=\"nofollow ugc noopener\">");
    Event::InlineHtml(html.into())
}

fn push_text<'a>(
    safe: &mut Vec<Event<'a>>,
    text: CowStr<'a>,
    before: Option<char>,
    address_of: &mut impl FnMut(String) -> Option<String>,
) {
    let mut written = 0;
    for Range { start, end } in find_mentions(&text, before) {
        if let Some(address) = address_of(text[start + 1..end].to_ascii_lowercase()) {
            safe.extend([
                Event::Text(text[written..start].to_owned().into()),
                link_start(address.into(), "".into()),
                Event::Text(text[start..end].to_owned().into()),
                Event::End(TagEnd::Link),
            ]);
            written = end;
        }
    }
    safe.push(match written {
        0 => Event::Text(text),
        _ => Event::Text(text[written..].to_owned().into()),
    });
}

/// Where `text` mentions someone, `@` included. A letter or digit of any script, `_` or another `@` at
/// either end makes it none, and so does an address typed as text, such as `https://host/@ada`.
fn find_mentions(text: &str, before: Option<char>) -> impl Iterator<Item = Range<usize>> {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
    words(text)
        .filter(|(_, word)| word.contains('@'))
        .flat_map(|(word_start, word)| {
            let typed_address = word.find("://").unwrap_or(word.len());
            let before_it = &word[..typed_address];
            before_it.match_indices('@').map(move |(at, _)| word_start + at)
        })
        .filter_map(move |start| {
            let name = start + 1;
            let length =
                text[name..].bytes().take(MAX_HANDLE).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            let end = name + length;
            let left = text[..start].chars().next_back().or(before);
            let right = text[end..].chars().next();
            (length > 0 && !left.is_some_and(joins) && !right.is_some_and(joins)).then_some(start..end)
        })
}

/// The words of `text` with the byte each begins at.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive(char::is_whitespace).scan(0, |start, word| {
        let this = *start;
        *start += word.len();
        Some((this, word))
    })
}

/// `body` as it was typed. A character costs at most 6 bytes (`&amp;`, and `<br />` with its line feed only
/// ever before another character), so that a body cut at this many characters keeps [`MAX_HTML`].
fn plain(body: &str) -> String {
    const MAX_CHARS: usize = MAX_HTML / 6 - 2;

    let end = body.char_indices().nth(MAX_CHARS).map_or(body.len(), |(end, _)| end);
    let mut html = String::from("<p>");
    let mut separator = "";
    for line in body[..end].lines().map(str::trim) {
        if line.is_empty() {
            if !separator.is_empty() {
                separator = "</p>\n<p>";
            }
        } else {
            html.push_str(separator);
            // Writing to a `String` does not fail.
            let _ = escape_html_body_text(&mut html, line);
            separator = "<br />\n";
        }
    }
    html.push_str("</p>\n");
    html
}
