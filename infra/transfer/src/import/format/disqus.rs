//! Disqus: `thread` elements, and `post` elements that name their thread and parent by `dsq:id`.

use jiff::tz::TimeZone;

use super::super::markdown;
use super::super::record::{Author, BodyFormat, Comment, Record, RecordState, Thread};
use super::super::source::{ReadError, Reader};
use super::super::time;
use super::xml::{Element, Xml, XmlEvent};
use super::{Sink, comment_record, created};

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut xml = Xml::open(input, "disqus")?;
    while let XmlEvent::Start(tag) = xml.next_event()? {
        let element = xml.element(tag)?;
        if matches!(element.tag.name.as_str(), "category" | "thread") {
            sink(Record::of_site(element.text("forum")))?;
        }
        let owner = || id(Some(&element)).unwrap_or_else(|| element.text("id"));
        element.missing(owner).map_or(Ok(()), &mut *sink)?;
        match element.tag.name.as_str() {
            "thread" => sink(Record::Thread(thread(&element)))?,
            "post" => sink(comment_record(post(&element, zone), element.is_oversized()))?,
            _ => {}
        }
    }
    xml.end()
}

fn thread(element: &Element) -> Thread {
    Thread {
        key: id(Some(element)).unwrap_or_default(),
        // The title of the page, still escaped as HTML.
        title: element.optional("title").map(|title| markdown::text(&title)),
        url: element.optional("link"),
        aliases: element.optional("id").into_iter().collect(),
        deleted: element.text("isDeleted") == "true",
        ..Thread::default()
    }
}

fn post(element: &Element, zone: &TimeZone) -> Comment {
    Comment {
        // The element `id` is often empty, and the attribute may be missing.
        source_id: id(Some(element)).unwrap_or_else(|| element.text("id")),
        thread: id(element.child("thread")).unwrap_or_default(),
        parent: id(element.child("parent")),
        author: element.child("author").map_or_else(Author::default, author),
        body: element.text("message"),
        format: BodyFormat::Html,
        state: state(element),
        ..created(zone, |zone| time::parse(&element.text("createdAt"), zone))
    }
}

fn id(element: Option<&Element>) -> Option<String> {
    let id = element?.tag.attribute("id")?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn author(element: &Element) -> Author {
    Author {
        key: element.text("username"),
        name: element.text("name"),
        email: element.text("email"),
        ..Author::default()
    }
}

fn state(element: &Element) -> RecordState {
    let is = |name: &str, value: &str| element.text(name) == value;
    if is("isDeleted", "true") {
        RecordState::Deleted
    } else if is("isSpam", "true") {
        RecordState::Spam
    } else if is("isApproved", "false") {
        RecordState::Pending
    } else {
        RecordState::Approved
    }
}
