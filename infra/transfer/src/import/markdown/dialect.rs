//! Markdown as other comment systems show it: a line feed breaks the line, an address is a link, and HTML may count.

use linkify::{LinkFinder, LinkKind};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream, html};

/// What HTML in Markdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum RawHtml {
    Markup,
    Text,
}

/// The HTML of `markdown`. `None` when our Markdown shows the same.
pub(super) fn to_html(markdown: &str, raw_html: RawHtml) -> Option<String> {
    let mut reader = Reader { raw_html, verbatim: 0, differs: false, events: Vec::new() };
    for event in TextMergeStream::new(Parser::new_ext(markdown, Options::empty())) {
        reader.read(event);
    }
    reader.differs.then(|| {
        let mut out = String::with_capacity(markdown.len() * 3 / 2);
        html::push_html(&mut out, reader.events.into_iter());
        out
    })
}

struct Reader<'a> {
    raw_html: RawHtml,
    /// How many links, images and code blocks are open. An address in these is no link.
    verbatim: usize,
    differs: bool,
    events: Vec<Event<'a>>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, event: Event<'a>) {
        match event {
            Event::SoftBreak => {
                self.differs = true;
                self.events.push(Event::HardBreak);
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(html),
            Event::Text(text) if self.verbatim == 0 => self.text(text),
            Event::Start(tag) => {
                self.verbatim += usize::from(is_verbatim(tag.to_end()));
                self.events.push(Event::Start(self.without_html_block(tag)));
            }
            Event::End(TagEnd::HtmlBlock) if self.raw_html == RawHtml::Text => {
                self.events.push(Event::End(TagEnd::Paragraph));
            }
            Event::End(tag) => {
                self.verbatim = self.verbatim.saturating_sub(usize::from(is_verbatim(tag)));
                self.events.push(Event::End(tag));
            }
            event => self.events.push(event),
        }
    }

    fn without_html_block(&self, tag: Tag<'a>) -> Tag<'a> {
        match (self.raw_html, tag) {
            (RawHtml::Text, Tag::HtmlBlock) => Tag::Paragraph,
            (_, tag) => tag,
        }
    }

    fn html(&mut self, html: CowStr<'a>) {
        if self.raw_html == RawHtml::Text {
            self.events.push(Event::Text(html));
            return;
        }
        self.differs = true;
        let tag = html.to_ascii_lowercase();
        if tag.starts_with("<a ") {
            self.verbatim += 1;
        } else if tag.starts_with("</a>") {
            self.verbatim = self.verbatim.saturating_sub(1);
        }
        self.events.push(Event::InlineHtml(html));
    }

    fn text(&mut self, text: CowStr<'a>) {
        if finder().links(&text).next().is_none() {
            self.events.push(Event::Text(text));
            return;
        }
        self.differs = true;
        for span in finder().spans(&text) {
            let part: CowStr<'a> = span.as_str().to_owned().into();
            if span.kind().is_some() {
                let address = part.clone();
                let link =
                    Tag::Link { link_type: LinkType::Autolink, dest_url: address, title: "".into(), id: "".into() };
                self.events.extend([Event::Start(link), Event::Text(part), Event::End(TagEnd::Link)]);
            } else {
                self.events.push(Event::Text(part));
            }
        }
    }
}

/// Addresses in a text of HTML as links.
pub(super) fn push_links(out: &mut String, html: &str) {
    for span in finder().spans(html) {
        let part = span.as_str();
        match span.kind() {
            Some(_) => out.extend(["<a href=\"", part, "\">", part, "</a>"]),
            None => out.push_str(part),
        }
    }
}

fn finder() -> LinkFinder {
    let mut finder = LinkFinder::new();
    finder.kinds(&[LinkKind::Url]);
    finder
}

fn is_verbatim(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock)
}
