//! Markdown as other comment systems render it: line feeds may break lines, addresses become links, and HTML may be
//! allowed.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, Options, Tag, TagEnd, TextMergeStream, html};
use shared::domain::address;
use shared::domain::markdown::task_box;
use shared::domain::source::Source;

use super::tree::{self, Node};

/// A system's treatment of HTML in Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Html {
    Markup,
    /// Tags of unknown elements and scripts are text.
    Known,
    /// Tags are dropped. Their content is kept.
    Dropped,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::import) struct Dialect {
    html: Html,
    breaks_lines: bool,
    /// Whether shortcodes such as `:rocket:` are shown as emoji.
    has_shortcodes: bool,
    /// The GitHub extensions that the system supports.
    extensions: Options,
}

impl Dialect {
    pub(in crate::import) const ARTALK: Self =
        Self { html: Html::Markup, breaks_lines: true, has_shortcodes: false, extensions: Options::all() };
    pub(in crate::import) const GITHUB: Self = Self { has_shortcodes: true, ..Self::ARTALK };
    pub(in crate::import) const REMARK42: Self =
        Self { extensions: Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH), ..Self::ARTALK };
    pub(in crate::import) const COMENTARIO: Self = Self { extensions: Options::ENABLE_STRIKETHROUGH, ..Self::ARTALK };
    pub(in crate::import) const ISSO: Self = Self { html: Html::Known, ..Self::COMENTARIO };
    pub(in crate::import) const COMMENTO: Self = Self { html: Html::Dropped, breaks_lines: false, ..Self::COMENTARIO };

    /// Whether the dialect supports the syntax that our parser reported as this event.
    fn has(self, event: &Event<'_>) -> bool {
        self.extensions.contains(match event {
            Event::Start(Tag::Table(_)) => Options::ENABLE_TABLES,
            Event::Start(Tag::Strikethrough) => Options::ENABLE_STRIKETHROUGH,
            Event::TaskListMarker(_) => Options::ENABLE_TASKLISTS,
            _ => return true,
        })
    }
}

/// Renders `markdown` as HTML, and parses it. `None` if our renderer shows the same.
pub(super) fn nodes(markdown: &str, dialect: Dialect) -> Option<Vec<Node>> {
    let differs = !Source::of(markdown).events().all(|(event, _)| dialect.has(&event));
    let source = Source::of_other_system(markdown, dialect.extensions);
    let mut reader =
        Reader { dialect, verbatim: 0, notes: Vec::new(), is_note: false, block: None, differs, events: Vec::new() };
    for event in TextMergeStream::new(source.events().map(|(event, _)| event)) {
        reader.read(event);
    }
    reader.end();
    reader.differs.then(|| {
        let mut out = String::with_capacity(markdown.len() * 3 / 2);
        html::push_html(&mut out, reader.events.into_iter());
        let mut nodes = tree::parse(&out);
        if dialect.has_shortcodes {
            show_emoji(&mut nodes);
        }
        nodes
    })
}

struct Reader<'a> {
    dialect: Dialect,
    /// The number of open links, images and code blocks. An address inside isn't a link.
    verbatim: usize,
    /// Footnotes of a single word, which our parser mistakes for the addresses of links.
    notes: Vec<String>,
    /// Whether the open link is a reference to a footnote.
    is_note: bool,
    /// The open block of HTML, if its tags may be text.
    block: Option<String>,
    differs: bool,
    events: Vec<Event<'a>>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, event: Event<'a>) {
        if let Event::Text(text) = &event {
            self.differs |= self.dialect.has_shortcodes && matches!(with_emoji(text), Cow::Owned(_));
        }
        if let (Some(block), Event::Html(html)) = (&mut self.block, &event) {
            return block.push_str(html);
        }
        match event {
            Event::Start(Tag::HtmlBlock) if self.dialect.html == Html::Known => self.block = Some(String::new()),
            Event::End(TagEnd::HtmlBlock) if self.dialect.html == Html::Known => self.html_block(),
            Event::SoftBreak if self.dialect.breaks_lines => {
                self.differs = true;
                self.events.push(Event::HardBreak);
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(html),
            Event::TaskListMarker(is_done) => self.events.push(Event::Text(task_box(is_done).into())),
            Event::Text(text) if self.verbatim == 0 => self.text(&text),
            Event::Start(Tag::HtmlBlock) if self.dialect.html == Html::Dropped => {
                self.events.push(Event::Start(Tag::Paragraph));
            }
            Event::Start(Tag::Link { link_type: LinkType::Shortcut, id, dest_url, .. })
                if id.starts_with('^') && self.dialect.extensions.contains(Options::ENABLE_FOOTNOTES) =>
            {
                let note = format!("[{id}]: {dest_url}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                self.is_note = true;
                self.events.push(Event::Text("[".into()));
            }
            Event::End(TagEnd::Link) if mem::take(&mut self.is_note) => self.events.push(Event::Text("]".into())),
            Event::Start(tag) => {
                self.verbatim += usize::from(is_verbatim(tag.to_end()));
                self.events.push(Event::Start(tag));
            }
            Event::End(TagEnd::HtmlBlock) if self.dialect.html == Html::Dropped => {
                self.events.push(Event::End(TagEnd::Paragraph));
            }
            Event::End(tag) => {
                self.verbatim = self.verbatim.saturating_sub(usize::from(is_verbatim(tag)));
                self.events.push(Event::End(tag));
            }
            event => self.events.push(event),
        }
    }

    /// Adds the footnotes at the end.
    fn end(&mut self) {
        self.differs |= !self.notes.is_empty();
        for note in mem::take(&mut self.notes) {
            self.events.push(Event::Start(Tag::Paragraph));
            self.text(&note);
            self.events.push(Event::End(TagEnd::Paragraph));
        }
    }

    /// Adds the block of HTML that has ended. If its first tag counts as text, the block is read as Markdown instead.
    fn html_block(&mut self) {
        let block = self.block.take().unwrap_or_default();
        self.differs = true;
        let is_text =
            |line: &str| line.trim_start().strip_prefix('<').is_some_and(|rest| !tree::begins_known_tag(rest));
        if !is_text(&block) {
            return self.events.push(Event::Html(tree::with_known_tags(&block).into()));
        }
        let lines = block.split_inclusive('\n');
        let escaped =
            lines.map(|line| if is_text(line) { format!("\\{}", line.trim_start()) } else { line.to_owned() });
        let text: String = escaped.collect();
        let source = Source::of_other_system(&text, self.dialect.extensions);
        for event in TextMergeStream::new(source.events().map(|(event, _)| event)) {
            self.read(event.into_static());
        }
    }

    fn html(&mut self, html: CowStr<'a>) {
        self.differs = true;
        let html = match self.dialect.html {
            Html::Dropped => return self.text(&tree::text(&tree::parse(&html))),
            Html::Known => tree::with_known_tags(&html).into(),
            Html::Markup => html,
        };
        let tag = html.to_ascii_lowercase();
        if tag.starts_with("<a ") {
            self.verbatim += 1;
        } else if tag.starts_with("</a>") {
            self.verbatim = self.verbatim.saturating_sub(1);
        }
        self.events.push(Event::InlineHtml(html));
    }

    fn text(&mut self, text: &str) {
        let mut written = 0;
        let part = |range: Range<usize>| Event::Text(text[range].to_owned().into());
        for range in address::find(text) {
            self.events.push(part(written..range.start));
            let dest_url = text[range.clone()].to_owned().into();
            let link = Tag::Link { link_type: LinkType::Autolink, dest_url, title: "".into(), id: "".into() };
            self.events.extend([Event::Start(link), part(range.clone()), Event::End(TagEnd::Link)]);
            self.differs = true;
            written = range.end;
        }
        self.events.push(part(written..text.len()));
    }
}

/// Replaces shortcodes with emoji, except in code and in links whose text is their address.
fn show_emoji(nodes: &mut [Node]) {
    for node in nodes {
        match node {
            Node::Text(text) => {
                if let Cow::Owned(shown) = with_emoji(text) {
                    *text = shown;
                }
            }
            Node::Element(element) => {
                let is_code = matches!(element.name.as_str(), "code" | "pre" | "tt");
                if !is_code && element.attribute("href") != Some(tree::text(&element.children).as_str()) {
                    show_emoji(&mut element.children);
                }
            }
        }
    }
}

/// Replaces GitHub's shortcodes with emoji. Leaves unknown ones unchanged.
fn with_emoji(text: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(':') {
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-')));
        let emoji = end.filter(|end| after[*end..].starts_with(':')).and_then(|end| {
            let emoji = emojis::get_by_shortcode(&after[..end])?;
            Some((emoji, &after[end + 1..]))
        });
        out.push_str(before);
        rest = match emoji {
            Some((emoji, rest)) => {
                out.push_str(emoji.as_str());
                rest
            }
            None => {
                out.push(':');
                after
            }
        };
    }
    out.push_str(rest);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

fn is_verbatim(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock)
}
