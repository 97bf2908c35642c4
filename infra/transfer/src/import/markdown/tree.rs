//! Parses HTML into a tree. An element that isn't closed, or is closed out of order, ends at the latest with its
//! parent.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::{Attribute, QualName, local_name, ns};
use shared::domain::address;

/// Maximum levels of elements with content. Deeper ones are left out, but their content is kept.
const MAX_DEPTH: usize = 100;
const VOID: &str = "area base br col embed hr img input link meta param source track wbr";
/// Elements that end an open paragraph.
const BLOCKS: &str = "address article aside blockquote center dd details div dl dt fieldset figcaption figure footer form \
    h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul";
const INLINE: &str = "a abbr b bdi bdo big br caption cite code col colgroup data del dfn em font i img ins kbd mark picture q \
    rp rt ruby s samp small source span strike strong sub sup time tt u var wbr";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Text(String),
    Element(Element),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<Attribute>,
    pub(super) children: Vec<Node>,
}

impl Element {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|each| &*each.name.local == name).map(|each| &*each.value)
    }
}

pub(super) fn is_block(name: &str) -> bool {
    is_in(BLOCKS, name)
}

/// Escapes every `<` that doesn't begin a tag of an element in `BLOCKS` or `INLINE`.
pub(super) fn with_known_tags(html: &str) -> String {
    let mut parts = html.split('<');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(if begins_known_tag(part) { "<" } else { "&lt;" });
        out.push_str(part);
    }
    out
}

/// Whether the text after a `<` begins a tag of an element in `BLOCKS` or `INLINE`.
pub(super) fn begins_known_tag(rest: &str) -> bool {
    let tag = rest.strip_prefix('/').unwrap_or(rest);
    let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let is_tag = tag[name.len()..].starts_with(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/');
    is_tag && (is_block(&name) || is_in(INLINE, &name))
}

fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|each| each == name)
}

pub(super) fn parse(html: &str) -> Vec<Node> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    // The tokenizer pauses only if its sink requests it, and this one never does.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.builder.into_inner().finish()
}

/// Replaces line feeds with breaks, and turns addresses into links if `may_link` is set. Leaves every `pre` in the
/// nodes unchanged, and adds no links in links and code. Drops a line feed after a break, and white space between the
/// tags of a table.
pub(super) fn with_breaks_and_links(nodes: Vec<Node>, may_link: bool) -> Vec<Node> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Element(element) if element.name == "pre" => out.push(Node::Element(element)),
            Node::Element(mut element) => {
                let may_link = may_link && !matches!(element.name.as_str(), "a" | "code");
                if matches!(element.name.as_str(), "table" | "thead" | "tbody" | "tfoot" | "tr") {
                    element.children.retain(|node| !matches!(node, Node::Text(text) if text.trim().is_empty()));
                }
                element.children = with_breaks_and_links(element.children, may_link);
                out.push(Node::Element(element));
            }
            Node::Text(text) => {
                let text = if is_break(out.last()) { without_line_feed(&text) } else { &text };
                for (index, line) in text.replace("\r\n", "\n").split(['\n', '\r']).enumerate() {
                    if index > 0 {
                        out.push(Node::Element(Element::named("br")));
                    }
                    push_line(&mut out, line, may_link);
                }
            }
        }
    }
    out
}

fn push_line(out: &mut Vec<Node>, line: &str, may_link: bool) {
    let addresses = if may_link { address::find(line) } else { Vec::new() };
    let mut written = 0;
    for range in addresses {
        let address = &line[range.clone()];
        let name = QualName::new(None, ns!(), local_name!("href"));
        let attributes = vec![Attribute { name, value: address.into() }];
        out.push(Node::Text(line[written..range.start].to_owned()));
        let children = vec![Node::Text(address.to_owned())];
        out.push(Node::Element(Element { attributes, children, ..Element::named("a") }));
        written = range.end;
    }
    out.push(Node::Text(line[written..].to_owned()));
}

fn is_break(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::Element(element)) if element.name == "br")
}

fn without_line_feed(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', '\t']);
    rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\n', '\r'])).unwrap_or(text)
}

/// The text of nodes, with a line feed for each break.
pub(super) fn text(nodes: &[Node]) -> String {
    lines(nodes, true)
}

/// The text of code. Outside `pre`, a line feed right after a break is dropped.
pub(super) fn code(element: &Element) -> String {
    lines(&element.children, element.name == "pre")
}

fn lines(nodes: &[Node], are_verbatim: bool) -> String {
    let (mut out, mut after_break) = (String::new(), false);
    for node in nodes {
        match node {
            Node::Text(text) if after_break && !are_verbatim => out.push_str(without_line_feed(text)),
            Node::Text(text) => out.push_str(text),
            Node::Element(element) if element.name == "br" => out.push('\n'),
            Node::Element(element) => out.push_str(&lines(&element.children, are_verbatim)),
        }
        after_break = is_break(Some(node));
    }
    out
}

/// Whether the nodes contain a link or an image.
pub(super) fn has_links(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) => false,
        Node::Element(element) => matches!(element.name.as_str(), "a" | "img") || has_links(&element.children),
    })
}

#[derive(Default)]
struct Sink {
    builder: RefCell<Builder>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut builder = self.builder.borrow_mut();
        match token {
            Token::CharacterTokens(text) => builder.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let raw = raw_kind(&tag.name);
                builder.start(tag);
                return raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            Token::TagToken(tag) => builder.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The tokenizer's state for the content of an element; `None` if the content is HTML.
fn raw_kind(name: &str) -> Option<RawKind> {
    match name {
        "script" => Some(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "textarea" | "title" => Some(RawKind::Rcdata),
        _ => None,
    }
}

#[derive(Default)]
struct Builder {
    /// The open elements, innermost last.
    open: Vec<Element>,
    done: Vec<Node>,
    /// The attributes of an open link, which continues after the end of the paragraph that it began in.
    link: Option<Vec<Attribute>>,
}

impl Builder {
    fn text(&mut self, text: &str) {
        self.reopen_link();
        let siblings = self.siblings();
        match siblings.last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ => siblings.push(Node::Text(text.to_owned())),
        }
    }

    fn siblings(&mut self) -> &mut Vec<Node> {
        match self.open.last_mut() {
            Some(element) => &mut element.children,
            None => &mut self.done,
        }
    }

    fn start(&mut self, tag: Tag) {
        let name = tag.name.to_string();
        match name.as_str() {
            "li" => self.close_up_to("li", &["ul", "ol"]),
            "a" => self.end_link(),
            "td" | "th" => {
                self.close_up_to("td", &["tr", "table"]);
                self.close_up_to("th", &["tr", "table"]);
            }
            "tr" => self.close_up_to("tr", &["table"]),
            _ => {}
        }
        if is_block(&name) {
            self.close_up_to("p", &["blockquote", "li", "td", "div"]);
        } else {
            self.reopen_link();
        }
        let element = Element { attributes: tag.attrs, name, children: Vec::new() };
        if element.name == "a" {
            self.link = Some(element.attributes.clone());
        }
        if is_in(VOID, &element.name) {
            self.siblings().push(Node::Element(element));
        } else if self.open.len() < MAX_DEPTH {
            self.open.push(element);
        }
    }

    fn reopen_link(&mut self) {
        if let Some(attributes) = &self.link
            && !self.is_open("a")
            && self.open.len() < MAX_DEPTH
        {
            self.open.push(Element { attributes: attributes.clone(), ..Element::named("a") });
        }
    }

    fn end_link(&mut self) {
        self.link = None;
        self.close_up_to("a", &[]);
    }

    fn end(&mut self, name: &str) {
        match name {
            "a" => self.end_link(),
            // Browsers insert a break or an empty paragraph for an end tag without a start tag.
            "br" | "p" if !self.is_open(name) => {
                self.siblings().push(Node::Element(Element::named(name)));
            }
            _ => self.close_up_to(name, &[]),
        }
    }

    fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|element| element.name == name)
    }

    /// Closes the innermost element of this name and everything in it, unless one of `bounds` is in between.
    fn close_up_to(&mut self, name: &str, bounds: &[&str]) {
        let found =
            self.open.iter().rev().position(|element| element.name == name || bounds.contains(&element.name.as_str()));
        let Some(above) = found else { return };
        if self.open[self.open.len() - 1 - above].name == name {
            for _ in 0..=above {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        if let Some(element) = self.open.pop() {
            self.siblings().push(Node::Element(element));
        }
    }

    fn finish(mut self) -> Vec<Node> {
        while !self.open.is_empty() {
            self.close();
        }
        self.done
    }
}
