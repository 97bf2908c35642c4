//! `WordPress` WXR 1.0 to 1.2: an RSS feed whose items have `wp:comment` elements.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::markdown;
use super::super::record::{Author, Comment, Record, RecordState, Thread};
use super::super::source::{ReadError, Reader};
use super::super::time;
use super::xml::{Element, Tag, Xml, XmlEvent};
use super::{Sink, comment_record, created};

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut xml = Xml::open(input, "rss")?;
    loop {
        match xml.next_event()? {
            XmlEvent::Start(tag) => match tag.name.as_str() {
                "channel" => {}
                "item" => item(&mut xml, zone, sink)?,
                "base_blog_url" => {
                    let url = xml.element(tag)?;
                    url.missing(|| url.own_text()).map_or(Ok(()), &mut *sink)?;
                    sink(Record::of_site(url.own_text()))?;
                }
                _ => skip(&mut xml, tag)?,
            },
            XmlEvent::End => {}
            XmlEvent::Done => return xml.end(),
        }
    }
}

fn skip(xml: &mut Xml, tag: Tag) -> Result<(), ReadError> {
    xml.element(tag).map(drop)
}

/// Reads an item. Its comments come after its other elements.
fn item(xml: &mut Xml, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut item = Element::default();
    let mut is_thread_sent = false;
    while let XmlEvent::Start(tag) = xml.next_event()? {
        let element = xml.element(tag)?;
        match element.tag.name.as_str() {
            "title" | "link" | "post_id" => item.add(element),
            "comment" => {
                if !is_thread_sent {
                    item.missing(|| key(&item)).map_or(Ok(()), &mut *sink)?;
                    sink(Record::Thread(thread(&item)))?;
                    is_thread_sent = true;
                }
                element.missing(|| element.text("comment_id")).map_or(Ok(()), &mut *sink)?;
                sink(comment_record(comment(&element, key(&item), zone), element.is_oversized()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn key(item: &Element) -> String {
    item.optional("post_id").unwrap_or_else(|| item.text("link"))
}

fn thread(item: &Element) -> Thread {
    let url = item.optional("link");
    Thread {
        key: key(item),
        id: item.optional("post_id").or_else(|| query_id(url.as_deref()?)),
        title: item.optional("title").map(|title| markdown::text(&title)),
        url,
        ..Thread::default()
    }
}

/// The post's id in a URL such as `https://example.org/?p=4`.
fn query_id(link: &str) -> Option<String> {
    let (_, query) = link.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("p="))?;
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then(|| id.to_owned())
}

fn comment(element: &Element, thread: String, zone: &TimeZone) -> Comment {
    let parent = element.text("comment_parent");
    Comment {
        source_id: element.text("comment_id"),
        thread,
        parent: (!parent.is_empty() && parent != "0").then_some(parent),
        author: author(element),
        body: markdown::from_wordpress(&element.text("comment_content")),
        state: state(element),
        ..created(zone, |zone| created_at(element, zone))
    }
}

/// The time of a comment. `comment_date_gmt` is in UTC. If it's missing or all zeros, as in old exports, the local time
/// is used.
fn created_at(element: &Element, zone: &TimeZone) -> Option<Timestamp> {
    match element.text("comment_date_gmt").as_str() {
        "" => time::parse(&element.text("comment_date"), zone),
        zeros if zeros.starts_with("0000-") => time::parse(&element.text("comment_date"), zone),
        utc => time::parse_utc(utc),
    }
}

/// The author of a comment. `WordPress` stores names as HTML.
fn author(element: &Element) -> Author {
    let user = element.text("comment_user_id");
    Author {
        key: if user == "0" { String::new() } else { user },
        name: markdown::decode(&element.text("comment_author")),
        email: element.text("comment_author_email"),
        ..Author::default()
    }
}

fn state(element: &Element) -> RecordState {
    match element.text("comment_type").as_str() {
        "" | "comment" | "review" => {}
        "pingback" | "trackback" => return RecordState::Pingback,
        _ => return RecordState::Other,
    }
    match element.text("comment_approved").as_str() {
        "1" => RecordState::Approved,
        "spam" => RecordState::Spam,
        "trash" | "post-trashed" => RecordState::Trash,
        _ => RecordState::Pending,
    }
}
