//! Comentario 3: pages, comments and commenters, with UUIDs.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, BodyFormat, Comment, Record, RecordState, Thread, User};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes};
use super::{Sink, comment_record, created};

/// The user id on comments whose author wasn't signed in. As the id of a parent, it means that there is none.
const ANONYMOUS: &str = "00000000-0000-0000-0000-000000000000";

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, &[&["pages"], &["comments"], &["commenters"]], &mut |path, value| match path {
        ["pages"] => json::send([], Record::Thread(page(&value)), &value, sink),
        ["commenters"] => json::send([], Record::User(commenter(&value)), &value, sink),
        _ => {
            let comment = comment_record(comment(&value, zone), value.is_oversized());
            json::send([Record::Thread(thread(&value))], comment, &value, sink)
        }
    })
}

fn page(value: &Value) -> Thread {
    Thread { key: value.text("id"), url: value.optional("path"), title: value.optional("title"), ..Thread::default() }
}

fn commenter(value: &Value) -> User {
    User {
        id: value.text("id"),
        name: value.text("name"),
        email: value.text("email"),
        picture: value.text("avatarUrl"),
        moderator: value.flag("isModerator"),
        ..User::default()
    }
}

/// The thread of a comment. A comment's URL includes the host, unlike the paths in `pages`.
fn thread(value: &Value) -> Thread {
    let url = value.text("url");
    let page = url.split('#').next().unwrap_or_default();
    Thread { key: value.text("pageId"), aliases: vec![page.to_owned()], ..Thread::default() }
}

fn comment(value: &Value, zone: &TimeZone) -> Comment {
    let (body, format) = match value.body("markdown") {
        typed if typed.trim().is_empty() => (value.body("html"), BodyFormat::Html),
        typed => (markdown::from_dialect(&typed, Dialect::COMENTARIO), BodyFormat::Markdown),
    };
    Comment {
        source_id: value.text("id"),
        thread: value.text("pageId"),
        parent: value.optional("parentId").filter(|parent| parent != ANONYMOUS),
        edited_at: value.time("editedTime", zone),
        author: Author {
            key: Some(value.text("userCreated")).filter(|key| key != ANONYMOUS).unwrap_or_default(),
            name: value.text("authorName"),
            ..Author::default()
        },
        body,
        format,
        state: if value.flag("isDeleted") {
            RecordState::Deleted
        } else if value.flag("isPending") {
            RecordState::Pending
        } else if value.flag("isApproved") {
            RecordState::Approved
        } else {
            RecordState::Rejected
        },
        likes: value.count("score"),
        pinned: value.flag("isSticky"),
        ..created(zone, |zone| value.time("createdTime", zone))
    }
}
