//! Commento: comments and commenters, with hexadecimal ids. Comments without a parent have the parent `root`.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, BodyFormat, Comment, Record, RecordState, Thread, User};
use super::super::source::{ReadError, Reader};
use super::super::thread_key::{has_host, is_on_host};
use super::json::{self, Attributes};
use super::{Sink, comment_record, created};

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, &[&["comments"], &["commenters"]], &mut |path, value| {
        if path == ["commenters"] {
            return json::send([], Record::User(commenter(&value)), &value, sink);
        }
        let thread = thread(&value);
        let comment = comment(&value, thread.key.clone(), zone);
        json::send([Record::Thread(thread)], comment_record(comment, value.is_oversized()), &value, sink)
    })
}

fn commenter(value: &Value) -> User {
    User {
        id: value.text("commenterHex"),
        name: value.text("name"),
        email: value.text("email"),
        picture: Some(value.text("photo")).filter(|photo| photo != "undefined").unwrap_or_default(),
        moderator: value.flag("isModerator"),
        ..User::default()
    }
}

/// The thread of a comment. `domain` is a host. `url` is a path, or a URL that includes the host.
fn thread(value: &Value) -> Thread {
    let (domain, path) = (value.text("domain"), value.text("url"));
    let url = match (domain.as_str(), path.as_str()) {
        ("", "") => None,
        (_, address) if has_host(address) => Some(address.to_owned()),
        ("", path) => Some(path.to_owned()),
        // A path may begin with the host, as in `example.org/a`.
        (domain, path) if is_on_host(&format!("//{path}"), domain) => Some(format!("//{path}")),
        (domain, path) => Some(format!("//{domain}/{}", path.trim_start_matches('/'))),
    };
    Thread { key: url.clone().unwrap_or_default(), url, aliases: vec![path], ..Thread::default() }
}

fn comment(value: &Value, thread: String, zone: &TimeZone) -> Comment {
    let (body, format) = match value.body("markdown") {
        typed if typed.trim().is_empty() => (value.body("html"), BodyFormat::Html),
        typed => (markdown::from_dialect(&typed, Dialect::COMMENTO), BodyFormat::Markdown),
    };
    // Exports leave out the flag of a deleted comment.
    let is_deleted = value.text("markdown") == "[deleted]" && value.text("commenterHex") == "anonymous";
    Comment {
        source_id: value.text("commentHex"),
        thread,
        parent: value.optional("parentHex").filter(|parent| parent != "root"),
        author: Author {
            key: Some(value.text("commenterHex")).filter(|key| key != "anonymous").unwrap_or_default(),
            ..Author::default()
        },
        body,
        format,
        state: match value.text("state").as_str() {
            _ if value.flag("deleted") || is_deleted => RecordState::Deleted,
            "" | "approved" => RecordState::Approved,
            _ => RecordState::Pending,
        },
        likes: value.count("score"),
        ..created(zone, |zone| value.time("creationDate", zone))
    }
}
