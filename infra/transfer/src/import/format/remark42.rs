//! remark42: a backup, which is an object about users and posts, followed by an object for each comment.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, BodyFormat, Comment, Record, RecordState};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes};
use super::{Sink, comment_record, created, page};

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, &[&[]], &mut |_, value| {
        if is_about_users(&value) {
            return Ok(());
        }
        let site = Record::of_site(value.attribute("locator").text("site"));
        let comment = comment(&value, zone);
        let title = value.optional("title").map(|title| markdown::text(&title));
        let page = page(&comment.thread, title);
        json::send([site, page], comment_record(comment, value.is_oversized()), &value, sink)
    })
}

/// Whether this is the first object of a backup, which describes users and posts instead of a comment.
fn is_about_users(value: &Value) -> bool {
    let mut names = value.as_object().into_iter().flat_map(|object| object.keys());
    value.get("version").is_some() && names.all(|name| matches!(name.as_str(), "version" | "users" | "posts"))
}

fn comment(value: &Value, zone: &TimeZone) -> Comment {
    let user = value.attribute("user");
    // `orig` is the text as typed. Comments imported from another system have only HTML.
    let (body, format) = match value.body("orig") {
        typed if typed.trim().is_empty() => (value.body("text"), BodyFormat::Html),
        typed => (markdown::from_dialect(&typed, Dialect::REMARK42), BodyFormat::Markdown),
    };
    Comment {
        source_id: value.text("id"),
        thread: value.attribute("locator").text("url"),
        parent: value.optional("pid"),
        edited_at: value.attribute("edit").time("time", zone),
        author: Author {
            key: user.text("id"),
            // remark42 escapes names and titles when it stores them.
            name: markdown::decode(&user.text("name")),
            avatar: user.text("picture"),
            moderator: user.flag("admin"),
            ..Author::default()
        },
        body,
        format,
        state: if value.flag("delete") { RecordState::Deleted } else { RecordState::Approved },
        likes: likes(value),
        pinned: value.flag("pin"),
        ..created(zone, |zone| value.time("time", zone))
    }
}

/// The number of upvotes. If the individual votes are missing, the score: upvotes minus downvotes.
fn likes(value: &Value) -> u64 {
    match value.attribute("votes").as_object().filter(|votes| !votes.is_empty()) {
        Some(votes) => votes.values().filter(|vote| **vote == Value::Bool(true)).count() as u64,
        None => value.count("score"),
    }
}
