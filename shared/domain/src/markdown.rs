//! Renders comment bodies to HTML that is safe to embed. Bodies are `CommonMark` with mentions and GitHub's tables,
//! strikethrough and task lists. Also extracts the visible text of a body. The caller specifies which mentioned handles
//! exist.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, LinkType, Tag, TagEnd, TextMergeWithOffset, html};
use pulldown_cmark_escape::{escape_href, escape_html, escape_html_body_text};

use crate::address;
use crate::mention::{self, Mention, Try};
pub use crate::source::MAX_NESTING;
use crate::source::Source;
use crate::visible;

/// Maximum bytes of rendered HTML. A body whose HTML would be longer is shown as plain text.
pub const MAX_HTML: usize = 64 * 1024;

/// Maximum mentions that count in a body.
pub const MAX_MENTIONS: usize = 20;

const LINK_SCHEMES: &[&str] = &["http", "https", "mailto"];
const IMAGE_SCHEMES: &[&str] = &["http", "https"];

/// The mentions in a body, each as the handles that the mention may refer to, longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions(Vec<Vec<String>>);

impl Mentions {
    /// All candidate handles of all mentions, without duplicates.
    #[must_use]
    pub fn tries(&self) -> Vec<String> {
        let mut tries = self.0.concat();
        let mut seen = HashSet::new();
        tries.retain(|handle| seen.insert(handle.clone()));
        tries
    }

    /// The longest known handle of each mention, in order and without duplicates. `known` are the handles that exist.
    #[must_use]
    pub fn meant(&self, known: &[String]) -> Vec<String> {
        let longest = |tries: &Vec<String>| tries.iter().find(|handle| known.contains(handle)).cloned();
        let mut seen = HashSet::new();
        self.0.iter().filter_map(longest).filter(|handle| seen.insert(handle.clone())).collect()
    }
}

/// The first [`MAX_MENTIONS`] different mentions in `body`.
#[must_use]
pub fn mentions(body: &str) -> Mentions {
    let mut mentions = Mentions::default();
    safe_events(&Source::of(&without_nul(body)), |tries| {
        let handles: Vec<String> = tries.iter().map(|each| each.handle.clone()).collect();
        if mentions.0.len() < MAX_MENTIONS && !mentions.0.contains(&handles) {
            mentions.0.push(handles);
        }
        None
    });
    mentions
}

/// The HTML of `body`, at most [`MAX_HTML`] bytes. `known` are the handles to link, in lower case.
#[must_use]
pub fn render(body: &str, users_route_prefix: &str, known: &[impl AsRef<str>]) -> String {
    if body.trim().is_empty() {
        return String::new();
    }
    let body = without_nul(body);
    to_html(&body, users_route_prefix, known).unwrap_or_else(|| plain(&body).0)
}

/// Whether [`render`] shows all of `body`, provided that it mentions no known handle.
#[must_use]
pub fn is_shown_whole(body: &str) -> bool {
    let body = without_nul(body);
    to_html(&body, "", &[] as &[&str]).is_some() || plain(&body).1
}

/// Whether [`render`] may show `body` as plain text, because its HTML would be too long if all its mentions were known.
#[must_use]
pub fn may_be_plain(body: &str, users_route_prefix: &str) -> bool {
    let mentions = mentions(body);
    to_html(&without_nul(body), users_route_prefix, &mentions.meant(&mentions.tries())).is_none()
}

/// The HTML of `body`; `None` if it would be longer than [`MAX_HTML`].
fn to_html(body: &str, users_route_prefix: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let prefix = users_route_prefix.trim_matches('/');
    let (source, mut links) = (Source::of(body), 0);
    let events = safe_events(&source, |tries| {
        let is_known = |each: &&Try| known.iter().any(|known| known.as_ref() == each.handle);
        let found = tries.iter().find(is_known).filter(|_| links < MAX_MENTIONS)?;
        links += 1;
        Some((format!("/{prefix}/{}", found.handle), found.end))
    });
    let mut html = String::with_capacity(body.len() * 3 / 2);
    let mut own = OwnHtml::default();
    html::push_html(&mut html, events.into_iter().map(|event| own.of(event)));
    (html.len() <= MAX_HTML).then_some(html)
}

/// The parts of a body that readers see.
#[derive(Debug, Default)]
pub struct Shown {
    /// The text without markup, with entities and escapes resolved. It includes code and the alternative texts of images.
    pub text: String,
    /// Links and images, ordered by their start.
    pub links: Vec<Link>,
    /// The ranges of `text` outside links, images and code.
    prose: Vec<Range<usize>>,
    /// The byte offsets in `text` where markup begins or ends.
    joints: Vec<usize>,
    has_picture: bool,
}

/// A link or an image that is shown as such, not as text.
#[derive(Debug)]
pub struct Link {
    pub address: String,
    pub title: String,
    /// The range of the link's text in [`Shown::text`].
    pub text: Range<usize>,
    is_image: bool,
}

impl Shown {
    #[must_use]
    pub fn plain(body: &str) -> Self {
        Self { text: body.to_owned(), ..Self::default() }
    }

    /// The ranges of the web addresses in prose, which the page turns into links.
    pub fn bare_addresses(&self) -> impl Iterator<Item = Range<usize>> {
        self.prose.iter().flat_map(|prose| {
            let found = address::find(&self.text[prose.clone()]).into_iter();
            found.map(|found| prose.start + found.start..prose.start + found.end)
        })
    }

    /// The parts of the text that lead to web addresses: links, and addresses in prose. Maps the start of each part to its
    /// range and its address. The ranges don't overlap.
    #[must_use]
    pub fn web_links(&self) -> BTreeMap<usize, (Range<usize>, String)> {
        let is_web = |link: &&Link| !link.is_image && address::next_start(&link.address, 0) == Some(0);
        // Encodes these characters as the parser does. A bare address keeps them, because encoding them would change its
        // destination.
        let href = |link: &Link| link.address.replace('\\', "%5C").replace('[', "%5B").replace(']', "%5D");
        let links = self.links.iter().filter(is_web).map(|link| (link.text.clone(), href(link)));
        let bare = self.bare_addresses().map(|range| (range.clone(), self.text[range].to_owned()));
        let links = links.chain(bare).filter(|(range, _)| !range.is_empty());
        links.map(|link| (link.0.start, link)).collect()
    }

    /// The byte offsets in the text where an email client would extend an address into text that is separate on the page.
    /// `links` are [`Self::web_links`]. Offsets within links are left out, so that link labels aren't split.
    #[must_use]
    pub fn run_ons(&self, links: &BTreeMap<usize, (Range<usize>, String)>) -> Vec<usize> {
        let is_in_link = |at: &usize| links.range(..at).next_back().is_some_and(|(_, (range, _))| *at < range.end);
        let joints: BTreeSet<usize> = self.joints.iter().copied().collect();
        let found = address::find_loosely(&self.text);
        let inside = found.iter().flat_map(|range| joints.range(range.start + 1..range.end)).copied();
        let ends = found.iter().map(|range| range.end).filter(|end| address::runs_on(&self.text[*end..]));
        inside.chain(ends).filter(|at| !is_in_link(at)).collect()
    }

    /// Whether readers see neither text nor an image nor a horizontal rule.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.has_picture && visible::shows_nothing(&self.text)
    }
}

/// The parts of `body` that readers see, provided that it isn't shown as plain text.
#[must_use]
pub fn shown(body: &str) -> Shown {
    let body = without_nul(body);
    let source = Source::of(&body);
    let mut shown = Shown::default();
    // The indexes in `shown.links` of links and images that are open.
    let mut open = Vec::new();
    let (mut in_code_block, mut follows_text) = (false, false);
    for event in safe_events(&source, |_| None) {
        shown.has_picture |= is_picture(&event);
        in_code_block = matches!(event, Event::Start(Tag::CodeBlock(_)))
            || in_code_block && !matches!(event, Event::End(TagEnd::CodeBlock));
        let start = shown.text.len();
        shown.joints.push(start);
        let is_text = matches!(event, Event::Text(_));
        match event {
            Event::Text(text) => {
                shown.text.push_str(&text);
                let end = shown.text.len();
                match shown.prose.last_mut() {
                    _ if !open.is_empty() || in_code_block => {}
                    // A link or an image that isn't allowed has no element on the page, so the text around it is one run of
                    // prose.
                    Some(before) if follows_text => before.end = end,
                    _ => shown.prose.push(start..end),
                }
            }
            Event::Code(text) => shown.text.push_str(&text),
            Event::Start(tag @ (Tag::Link { .. } | Tag::Image { .. })) => {
                let is_image = matches!(tag, Tag::Image { .. });
                let (Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) = tag else { continue };
                open.push(shown.links.len());
                shown.links.push(Link {
                    address: dest_url.into_string(),
                    title: title.into_string(),
                    text: start..start,
                    is_image,
                });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some(place) = open.pop() {
                    shown.links[place].text.end = shown.text.len();
                }
            }
            Event::End(TagEnd::TableCell) => shown.text.push(' '),
            Event::Start(tag) if is_inline(tag.to_end()) || tag == Tag::TableCell => {}
            Event::End(tag) if is_inline(tag) => {}
            _ => shown.text.push('\n'),
        }
        follows_text = is_text;
    }
    shown
}

/// Whether the event draws something other than text. An image whose address is empty or a fragment draws nothing, because the
/// address refers to the page itself.
fn is_picture(event: &Event<'_>) -> bool {
    match event {
        Event::Rule => true,
        Event::Start(Tag::Image { dest_url, .. }) => !dest_url.is_empty() && !dest_url.starts_with('#'),
        _ => false,
    }
}

/// Replaces NUL with U+FFFD, as `CommonMark` requires.
fn without_nul(body: &str) -> Cow<'_, str> {
    if body.contains('\0') { body.replace('\0', "\u{fffd}").into() } else { body.into() }
}

/// The events of a body. Everything that isn't allowed, including raw HTML, becomes text. `link_of` returns the address that a
/// mention links to and where the mention's text ends, or `None` if the mention isn't linked.
fn safe_events<'a>(source: &'a Source<'_>, link_of: impl FnMut(&[Try]) -> Option<(String, usize)>) -> Vec<Event<'a>> {
    let body = source.text();
    let plain = source.events().map(|(event, range)| (handle_to_text(shown_as_text(event), body, &range), range));
    let events = TextMergeWithOffset::new(plain);
    let sanitizer = Sanitizer {
        source,
        events,
        link_of,
        safe: Vec::with_capacity(body.len() / 16),
        depth: 0,
        open_links: Vec::new(),
        in_code_block: false,
        before: None,
    };
    sanitizer.run()
}

/// Reads the events of a body one by one and keeps the safe ones.
struct Sanitizer<'a, E, F> {
    source: &'a Source<'a>,
    /// Events, each with the byte range of `source` that it represents.
    events: E,
    link_of: F,
    safe: Vec<Event<'a>>,
    depth: usize,
    /// Whether each open link is kept. Markdown allows an autolink in the text of a link, but links can't nest in HTML.
    open_links: Vec<bool>,
    in_code_block: bool,
    /// The character that readers see just before the next text.
    before: Option<char>,
}

impl<'a, E, F> Sanitizer<'a, E, F>
where
    E: Iterator<Item = (Event<'a>, Range<usize>)>,
    F: FnMut(&[Try]) -> Option<(String, usize)>,
{
    fn run(mut self) -> Vec<Event<'a>> {
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(tag) if self.depth == MAX_NESTING && nests(tag.to_end()) => {
                    self.show_source(tag.to_end(), range);
                }
                Event::Start(Tag::Link { link_type: LinkType::Email, dest_url, title, .. }) => {
                    self.open_link(format!("mailto:{dest_url}").into(), title);
                }
                Event::Start(Tag::Link { dest_url, title, .. }) => self.open_link(dest_url, title),
                Event::End(TagEnd::Link) => self.close_link(),
                Event::Start(image @ Tag::Image { .. }) => self.image(image),
                Event::Start(tag) => self.open(tag),
                Event::End(tag) => self.close(tag),
                Event::Text(text) => self.text(text),
                Event::Code(code) => {
                    self.before = mention::last_seen(&code, self.before);
                    self.safe.push(Event::Code(code));
                }
                other => {
                    self.before = None;
                    self.safe.push(other);
                }
            }
        }
        self.safe
    }

    /// Shows an element that nests too deeply as it was typed.
    fn show_source(&mut self, tag: TagEnd, range: Range<usize>) {
        skip_element(&mut self.events);
        let text = Event::Text(self.source.typed(range).trim_end().to_owned().into());
        if is_inline(tag) {
            self.safe.push(text);
        } else {
            self.safe.extend([Event::Start(Tag::Paragraph), text, Event::End(TagEnd::Paragraph)]);
        }
        self.before = None;
    }

    fn open_link(&mut self, address: CowStr<'a>, title: CowStr<'a>) {
        self.depth += 1;
        let keep = !self.open_links.contains(&true) && is_allowed(&address, LINK_SCHEMES);
        self.open_links.push(keep);
        if keep {
            self.safe.push(link_start(address, title));
        }
    }

    fn close_link(&mut self) {
        self.depth -= 1;
        if self.open_links.pop() == Some(true) {
            self.safe.push(Event::End(TagEnd::Link));
        }
    }

    /// Keeps an image whose address is allowed, and replaces any other image with its alternative text.
    fn image(&mut self, image: Tag<'a>) {
        let alt = Event::Text(skip_element(&mut self.events).into());
        if matches!(&image, Tag::Image { dest_url, .. } if is_allowed(dest_url, IMAGE_SCHEMES)) {
            self.safe.extend([Event::Start(image), alt, Event::End(TagEnd::Image)]);
        } else {
            self.safe.push(alt);
        }
        self.before = None;
    }

    fn open(&mut self, tag: Tag<'a>) {
        self.in_code_block |= matches!(tag, Tag::CodeBlock(_));
        self.depth += usize::from(nests(tag.to_end()));
        if !is_inline(tag.to_end()) {
            self.before = None;
        }
        self.safe.push(Event::Start(with_one_language(tag)));
    }

    fn close(&mut self, tag: TagEnd) {
        self.in_code_block &= tag != TagEnd::CodeBlock;
        self.depth -= usize::from(nests(tag));
        self.safe.push(Event::End(tag));
    }

    fn text(&mut self, text: CowStr<'a>) {
        let last = mention::last_seen(&text, self.before);
        if self.in_code_block || !self.open_links.is_empty() || !mention::has_sign(&text) {
            self.safe.push(Event::Text(text));
        } else {
            self.link_mentions(text);
        }
        self.before = last;
    }

    fn link_mentions(&mut self, text: CowStr<'a>) {
        let mut written = 0;
        for Mention { start, tries } in mention::find(&text, self.before) {
            if let Some((address, end)) = (self.link_of)(&tries) {
                self.safe.extend([
                    Event::Text(text[written..start].to_owned().into()),
                    link_start(address.into(), "".into()),
                    Event::Text(text[start..end].to_owned().into()),
                    Event::End(TagEnd::Link),
                ]);
                written = end;
            }
        }
        self.safe.push(match written {
            0 => Event::Text(text),
            _ => Event::Text(text[written..].to_owned().into()),
        });
    }
}

/// Turns raw HTML into text, so that everything typed is shown and nothing runs. Checkboxes of task lists become text too,
/// because readers couldn't tick them.
fn shown_as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::TaskListMarker(is_done) => Event::Text(task_box(is_done).into()),
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    }
}

/// The character for a checkbox in a task list, with a space after it.
#[must_use]
pub fn task_box(is_done: bool) -> &'static str {
    if is_done { "☑ " } else { "☐ " }
}

/// Turns an emphasis delimiter back into text if it consists of underscores at the start of a handle.
fn handle_to_text<'a>(event: Event<'a>, body: &str, range: &Range<usize>) -> Event<'a> {
    let underscores = match event {
        Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis) => "_",
        Event::Start(Tag::Strong) | Event::End(TagEnd::Strong) => "__",
        other => return other,
    };
    if body[range.start..].starts_with('_') && mention::begins_handle(&body[..range.start]) {
        return Event::Text(underscores.into());
    }
    event
}

/// Whether an element counts as a level of nesting. Paragraphs, headings, tables and code don't, because they can't contain
/// themselves. A list item counts with its list.
fn nests(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::BlockQuote(_) | TagEnd::List(_)) || is_inline(tag)
}

fn is_inline(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link)
}

/// Skips the rest of an element whose start has been read, including its end. Returns the element's text.
fn skip_element<'a>(events: &mut impl Iterator<Item = (Event<'a>, Range<usize>)>) -> String {
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

/// Keeps the first word of the info string, which names the language. `push_html` splits the info string at spaces only, so a
/// tab would let a body set several classes.
fn with_one_language(tag: Tag<'_>) -> Tag<'_> {
    match tag {
        Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
            let language = info.split_whitespace().next().unwrap_or_default();
            Tag::CodeBlock(CodeBlockKind::Fenced(language.to_owned().into()))
        }
        other => other,
    }
}

/// Whether an address has one of these schemes, or none. An address without a scheme is relative or, like `//host`, leads to
/// http or https. An address with control characters isn't allowed, because browsers ignore some of them in a scheme.
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

/// Writes the HTML that must differ from the output of `push_html`. Links have a `rel`. Table cells are aligned like GitHub's,
/// without a style, because the host page's content security policy may forbid styles.
#[derive(Default)]
struct OwnHtml {
    alignments: Vec<Alignment>,
    /// The column of the next cell.
    column: usize,
    /// The element name of a cell: `th` or `td`.
    cell: &'static str,
    /// The number of table rows after the head.
    rows: usize,
}

impl OwnHtml {
    fn of<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        let html = match event {
            Event::Start(Tag::Link { dest_url, title, .. }) => return link_to_html(&dest_url, &title),
            Event::Start(Tag::Table(alignments)) => {
                *self = Self { alignments, ..Self::default() };
                "<table>\n"
            }
            Event::Start(Tag::TableHead) => {
                self.cell = "th";
                "<thead>\n<tr>\n"
            }
            Event::Start(Tag::TableRow) => {
                (self.cell, self.column, self.rows) = ("td", 0, self.rows + 1);
                if self.rows == 1 { "<tbody>\n<tr>\n" } else { "<tr>\n" }
            }
            Event::Start(Tag::TableCell) => return Event::InlineHtml(self.cell().into()),
            Event::End(TagEnd::TableCell) => return Event::InlineHtml(format!("</{}>\n", self.cell).into()),
            Event::End(TagEnd::TableRow) => "</tr>\n",
            Event::End(TagEnd::TableHead) => "</tr>\n</thead>\n",
            Event::End(TagEnd::Table) if self.rows == 0 => "</table>\n",
            Event::End(TagEnd::Table) => "</tbody>\n</table>\n",
            other => return other,
        };
        Event::InlineHtml(html.into())
    }

    fn cell(&mut self) -> String {
        let alignment = match self.alignments.get(self.column) {
            Some(Alignment::Left) => " align=\"left\"",
            Some(Alignment::Center) => " align=\"center\"",
            Some(Alignment::Right) => " align=\"right\"",
            Some(Alignment::None) | None => "",
        };
        self.column += 1;
        format!("<{}{alignment}>", self.cell)
    }
}

fn link_to_html<'a>(address: &str, title: &str) -> Event<'a> {
    let mut html = String::from("<a href=\"");
    // Writing to a `String` does not fail.
    let _ = escape_href(&mut html, address);
    if !title.is_empty() {
        html.push_str("\" title=\"");
        let _ = escape_html(&mut html, title);
    }
    html.push_str("\" rel=\"nofollow ugc noopener\">");
    Event::InlineHtml(html.into())
}

/// Renders `body` as typed, in paragraphs, and returns whether all of it is shown: an ellipsis replaces text that doesn't fit
/// in [`MAX_HTML`]. Bodies of 10,000 characters always fit, since a character takes at most 6 bytes on average: an escape takes
/// at most 5, and `<br />` with its line feed takes 7 and has at least one character of text before it.
fn plain(body: &str) -> (String, bool) {
    const END: &str = "</p>\n";
    const ELLIPSIS: &str = "…";

    let mut html = String::from("<p>");
    // The last length of `html` that leaves room for an ellipsis.
    let mut room = html.len();
    let mut separator = "";
    for line in body.lines().map(str::trim) {
        if line.is_empty() {
            if !separator.is_empty() {
                separator = "</p>\n<p>";
            }
            continue;
        }
        html.push_str(separator);
        separator = "<br />\n";
        for character in line.chars() {
            let _ = escape_html_body_text(&mut html, character.encode_utf8(&mut [0; 4]));
            if html.len() + END.len() > MAX_HTML {
                html.truncate(room);
                return (html + ELLIPSIS + END, false);
            }
            if html.len() + ELLIPSIS.len() + END.len() <= MAX_HTML {
                room = html.len();
            }
        }
    }
    (html + END, true)
}
