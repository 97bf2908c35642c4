//! Reads XML as other systems write it: with control characters, HTML's entities, attributes without quotes and text
//! around the root.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use encoding_rs::{Encoding, UTF_8};
use quick_xml::Reader as Events;
use quick_xml::escape::resolve_html5_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use super::super::record::{MAX_VALUE, Record};
use super::super::report::Missing;
use super::super::source::{ReadError, Reader};

const GOES_ON: &str =
    "the file continues after its root element; if several files were joined, pass them as separate files";
/// Maximum levels of nested elements.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Tag {
    /// The name without the prefix of its namespace.
    pub(super) name: String,
    /// The attributes' names, without the prefixes of their namespaces, and their values.
    attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str())
    }
}

/// An element with its whole content.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Element {
    pub(super) tag: Tag,
    text: String,
    children: Vec<Element>,
    /// The number of characters that replace undecodable bytes, including those in the children.
    replaced: u64,
}

impl Element {
    /// A record that reports the element's owner as incomplete. `None` if no characters were replaced.
    pub(super) fn missing(&self, id: impl FnOnce() -> String) -> Option<Record> {
        let total = self.characters();
        let missing =
            || Missing { id: id(), read: total.saturating_sub(self.replaced), total: Some(total), is_text: true };
        (self.replaced > 0).then(|| Record::Missing(missing()))
    }

    pub(super) fn add(&mut self, child: Self) {
        self.replaced += child.replaced;
        self.children.push(child);
    }

    /// Whether any value in the element is longer than [`MAX_VALUE`].
    pub(super) fn is_oversized(&self) -> bool {
        let attributes = self.tag.attributes.iter().map(|(_, value)| value);
        attributes.chain([&self.text]).any(|text| text.len() > MAX_VALUE)
            || self.children.iter().any(Self::is_oversized)
    }

    fn characters(&self) -> u64 {
        self.text.chars().count() as u64 + self.children.iter().map(Self::characters).sum::<u64>()
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.tag.name == name)
    }

    /// The text of a child, trimmed; empty if the child is missing.
    pub(super) fn text(&self, name: &str) -> String {
        self.child(name).map_or_else(String::new, Self::own_text)
    }

    pub(super) fn optional(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(super) fn own_text(&self) -> String {
        self.text.trim().to_owned()
    }
}

pub(super) enum XmlEvent {
    Start(Tag),
    End,
    /// The end of the root element, or of a file without one.
    Done,
}

pub(super) struct Xml {
    events: Events<Reader>,
    /// UTF-8 if most of the file's characters beyond ASCII are valid in it, and otherwise the encoding that the file
    /// declares. A single text isn't enough to decide, because a short one may be valid in both.
    encoding: &'static Encoding,
    /// The number of characters that replace undecodable bytes since the last whole element.
    replaced: Cell<u64>,
    buffer: Vec<u8>,
    /// The names of the open elements.
    open: Vec<String>,
    /// Whether the last start tag was of an empty element, whose end is the next event.
    is_empty: bool,
}

impl Xml {
    /// Reads up to the root element, and skips anything before it.
    pub(super) fn open(input: Reader, root: &str) -> Result<Self, ReadError> {
        let mut events = Events::from_reader(input);
        events.config_mut().allow_dangling_amp = true;
        let (replaced, buffer, open) = (Cell::new(0), Vec::new(), Vec::new());
        let mut xml = Self { events, encoding: UTF_8, replaced, buffer, open, is_empty: false };
        match xml.next_event() {
            Ok(XmlEvent::Start(tag)) if tag.name == root => Ok(xml),
            Ok(XmlEvent::Start(tag)) => Err(ReadError::whole(format!("begins with <{}>, not with <{root}>", tag.name))),
            Ok(_) => Err(ReadError::whole(format!("has no <{root}>"))),
            Err(error) => Err(error),
        }
    }

    /// The next start or end tag. Skips text.
    pub(super) fn next_event(&mut self) -> Result<XmlEvent, ReadError> {
        self.next_in(None)
    }

    /// Reads the rest of the element whose start tag was read last.
    pub(super) fn element(&mut self, tag: Tag) -> Result<Element, ReadError> {
        let mut open = vec![Element { tag, ..Element::default() }];
        loop {
            match self.next_in(open.last_mut())? {
                XmlEvent::Start(tag) => open.push(Element { tag, ..Element::default() }),
                XmlEvent::End | XmlEvent::Done => {
                    let Some(mut done) = open.pop() else {
                        return Err(self.broken("a closing tag without an opening tag"));
                    };
                    match open.last_mut() {
                        Some(parent) => parent.children.push(done),
                        None => {
                            done.replaced = self.replaced.take();
                            return Ok(done);
                        }
                    }
                }
            }
        }
    }

    /// The next start or end tag. Adds the text before it to `element`, or skips the text if that's `None`.
    fn next_in(&mut self, mut element: Option<&mut Element>) -> Result<XmlEvent, ReadError> {
        if self.is_empty {
            return Ok(self.close());
        }
        loop {
            let text = match self.event()? {
                Event::Start(start) => return self.start(&start, false),
                Event::Empty(start) => return self.start(&start, true),
                Event::End(_) => return Ok(self.close()),
                Event::Eof => return self.end_of_file(),
                _ if element.is_none() => continue,
                Event::Text(text) => clean(&self.decode(&text)),
                Event::CData(text) => clean(&self.decode(&text)),
                Event::GeneralRef(reference) => resolve(&reference),
                _ => continue,
            };
            if let Some(element) = &mut element {
                element.text.push_str(&text);
            }
        }
    }

    /// Reads the part after the root element, so that a compressed file is verified to its end. Fails if that part
    /// contains more than comments, processing instructions, white space and control characters, because it could be
    /// another file.
    pub(super) fn end(mut self) -> Result<(), ReadError> {
        let end = self.events.buffer_position();
        loop {
            self.buffer.clear();
            let is_blank = |text: &[u8]| text.iter().all(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
            match self.events.read_event_into(&mut self.buffer) {
                Ok(Event::Eof) => return Ok(()),
                Ok(Event::Comment(_) | Event::PI(_)) => {}
                Ok(Event::Text(text)) if is_blank(&text) => {}
                Err(quick_xml::Error::Io(error)) => return Err(self.broken(error)),
                _ => return Err(ReadError::at_byte(end, GOES_ON)),
            }
        }
    }

    fn event(&mut self) -> Result<Event<'static>, ReadError> {
        self.buffer.clear();
        match self.events.read_event_into(&mut self.buffer) {
            Ok(Event::Decl(declaration)) => {
                let declaration = declaration.into_owned();
                let declared = encoding(&declaration)?;
                let is_utf_8 =
                    declared == UTF_8 || self.events.get_mut().is_utf_8().map_err(|error| self.broken(error))?;
                self.encoding = if is_utf_8 { UTF_8 } else { declared };
                Ok(Event::Decl(declaration))
            }
            Ok(event) => Ok(event.into_owned()),
            Err(error) => Err(ReadError::at_byte(self.events.error_position(), error)),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, is_empty: bool) -> Result<XmlEvent, ReadError> {
        if self.open.len() == MAX_DEPTH {
            return Err(self.broken("elements are nested too deeply"));
        }
        let tag = self.tag(start);
        self.open.push(tag.name.clone());
        self.is_empty = is_empty;
        Ok(XmlEvent::Start(tag))
    }

    fn tag(&self, start: &BytesStart<'_>) -> Tag {
        let mut attributes = start.html_attributes();
        let attributes = attributes.with_checks(false).flatten().map(|attribute| {
            let value = self.decode(&attribute.value);
            let value =
                quick_xml::escape::unescape(&value).map_or_else(|_| value.to_string(), |value| value.to_string());
            (self.decode(attribute.key.local_name().as_ref()).into_owned(), value.trim().to_owned())
        });
        Tag { attributes: attributes.collect(), name: self.decode(start.local_name().as_ref()).into_owned() }
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        let (text, has_errors) = self.encoding.decode_without_bom_handling(bytes);
        if has_errors {
            let replaced = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
            self.replaced.set(self.replaced.get() + replaced as u64);
        }
        text
    }

    fn close(&mut self) -> XmlEvent {
        self.is_empty = false;
        self.open.pop();
        if self.open.is_empty() { XmlEvent::Done } else { XmlEvent::End }
    }

    fn end_of_file(&self) -> Result<XmlEvent, ReadError> {
        match self.open.last() {
            Some(name) => Err(self.broken(format_args!("the file ends inside <{name}>"))),
            None => Ok(XmlEvent::Done),
        }
    }

    fn broken(&self, why: impl fmt::Display) -> ReadError {
        ReadError::at_byte(self.events.buffer_position(), why)
    }
}

fn encoding(declaration: &BytesDecl<'_>) -> Result<&'static Encoding, ReadError> {
    let Some(Ok(name)) = declaration.encoding() else { return Ok(UTF_8) };
    let known = Encoding::for_label(&name).filter(|encoding| encoding.is_ascii_compatible());
    let name = String::from_utf8_lossy(&name);
    known.ok_or_else(|| {
        ReadError::whole(format_args!("is in {name}; convert it to UTF-8, and declare that in its first line"))
    })
}

/// The text without control characters other than line feeds and tabs.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn resolve(reference: &BytesRef<'_>) -> String {
    let name = String::from_utf8_lossy(reference);
    if reference.is_char_ref() {
        let character = reference.resolve_char_ref().ok().flatten();
        return character
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .map_or_else(String::new, String::from);
    }
    resolve_html5_entity(&name).map_or_else(|| format!("&{name};"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(text: &str) -> Result<Vec<Element>, String> {
        let read = || {
            let mut xml = Xml::open(Reader::of(text), "root")?;
            let mut found = Vec::new();
            while let XmlEvent::Start(tag) = xml.next_event()? {
                found.push(xml.element(tag)?);
            }
            Ok(found)
        };
        read().map_err(|error: ReadError| error.to_string())
    }

    #[test]
    fn an_element_is_oversized_if_a_text_inside_is_too_long() {
        for (before, letter, after) in [("", "x", ""), ("", "&lt;", ""), ("<![CDATA[", "<", "]]>")] {
            let read = |times| children(&format!("<root><x><y>{before}{}{after}</y></x></root>", letter.repeat(times)));
            let is_oversized = |times| read(times).unwrap()[0].is_oversized();
            assert_eq!([MAX_VALUE, MAX_VALUE + 1].map(is_oversized), [false, true], "{letter}");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_an_error_with_its_offset() {
        for (text, expected) in [
            ("<root><x><y>text", "byte 16: the file ends inside <y>"),
            ("<root><x/>", "byte 10: the file ends inside <root>"),
            ("<root><x><![CDATA[abc", "byte 9: "),
            ("<root><x></y></root>", "byte 9: "),
            ("<other/>", "begins with <other>, not with <root>"),
            ("<o\u{1b}[31m\u{7}/>", "begins with <o [31m >, not with <root>"),
            ("nothing", "has no <root>"),
        ] {
            let error = children(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
