//! Waline: an export with tables, an array of comments, or the lines of `LeanCloud` after `#filetype:JSON-streaming`.

use std::io::BufRead;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, Comment, Record, RecordState, User};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes, Path};
use super::{Sink, comment_record, created, page};

/// Paths in an export from the management page, in a response of `GET /api/db`, which wraps such an export, and in an
/// export from `LeanCloud`.
const TABLES: &[Path] =
    &[&["data", "Comment"], &["data", "Users"], &["data", "data", "Comment"], &["data", "data", "Users"], &["results"]];
const ALONE: &[Path] = &[&[]];

pub(super) fn read(mut input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let first = input.peek().map_err(ReadError::whole)?;
    if first == Some(b'#') {
        input.skip_until(b'\n').map_err(ReadError::whole)?;
    }
    let paths = if first == Some(b'{') { TABLES } else { ALONE };
    json::read(input, paths, &mut |path, value| {
        if path.last() == Some(&"Users") {
            return json::send([], Record::User(user(&value)), &value, sink);
        }
        let comment = comment(&value, zone);
        let page = page(&comment.thread, None);
        json::send([page], comment_record(comment, value.is_oversized()), &value, sink)
    })
}

/// Replaces the link to the parent at the beginning of a reply, `[@nick](#objectId): `, with the name, because the link
/// would be broken here.
fn without_link_to_parent(body: String) -> String {
    let link = body.strip_prefix("[@").and_then(|rest| rest.split_once("](#"));
    let parts = link.and_then(|(name, rest)| Some((name, rest.split_once(')')?)));
    match parts {
        Some((name, (id, rest)))
            if !name.contains('\n') && !name.contains("](") && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            format!("@{name}{rest}")
        }
        _ => body,
    }
}

/// The id. The attribute's name depends on Waline's database.
fn id(value: &Value) -> String {
    ["objectId", "_id", "id"].into_iter().find_map(|name| value.optional(name)).unwrap_or_default()
}

fn user(value: &Value) -> User {
    User {
        id: id(value),
        name: value.text("display_name"),
        email: value.text("email"),
        picture: value.text("avatar"),
        moderator: value.text("type") == "administrator",
        ..User::default()
    }
}

fn comment(value: &Value, zone: &TimeZone) -> Comment {
    Comment {
        source_id: id(value),
        thread: value.text("url"),
        // `rid` is the top-level comment. In old versions, so is `pid`.
        parent: value.optional("pid").or_else(|| value.optional("rid")),
        author: Author {
            key: value.text("user_id"),
            name: value.text("nick"),
            email: value.text("mail"),
            ..Author::default()
        },
        // The Markdown may contain HTML: many imported comments begin with a tag, and emoji are images.
        body: without_link_to_parent(markdown::from_dialect(&value.body("comment"), Dialect::GITHUB)),
        state: match value.text("status").as_str() {
            "" | "approved" => RecordState::Approved,
            "spam" => RecordState::Spam,
            _ => RecordState::Pending,
        },
        likes: value.count("like"),
        pinned: value.flag("sticky"),
        ..created(zone, |zone| value.time("insertedAt", zone).or_else(|| value.time("createdAt", zone)))
    }
}
