//! giscus: discussions with their comments and replies, as GitHub's GraphQL API answers them. A discussion is a page.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, RawHtml};
use super::super::record::{Author, Comment, Record, RecordState, Thread};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes, Path, may_be_cut};
use super::{Sink, comment_record};

const DISCUSSIONS: &[Path] = &[
    &["data", "repository", "discussions", "nodes"],
    &["data", "repository", "discussion"],
    &["data", "search", "nodes"],
    ERRORS,
];
const ERRORS: Path = &["errors"];

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, DISCUSSIONS, &mut |path, discussion, cut| {
        if path == ERRORS {
            let message = discussion.text("message");
            return Err(ReadError::whole(format_args!("an answer has an error, and so is not whole: {message}")));
        }
        let thread = thread(&discussion);
        let key = thread.key.clone();
        sink(Record::Thread(thread))?;
        for value in nodes(&discussion, "comments") {
            let parent = comment(value, &key, None, zone);
            let id = parent.source_id.clone();
            let own = value.as_object().into_iter().flatten().filter(|(name, _)| *name != "replies");
            sink(comment_record(parent, cut && own.map(|(_, value)| value).any(may_be_cut)))?;
            for reply in nodes(value, "replies") {
                sink(comment_record(comment(reply, &key, Some(id.clone()), zone), cut && may_be_cut(reply)))?;
            }
        }
        Ok(())
    })
}

fn nodes<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.attribute(name).attribute("nodes").as_array().map_or(&[], Vec::as_slice)
}

/// giscus writes the page's address into the body of the discussion. The title is a path, an address or a term.
fn thread(value: &Value) -> Thread {
    let title = value.text("title");
    let body = value.text("body");
    let address =
        body.lines().rev().map(str::trim).find(|line| line.starts_with("http://") || line.starts_with("https://"));
    Thread {
        key: title.clone(),
        url: Some(address.map_or_else(|| title.clone(), str::to_owned)).filter(|url| !url.is_empty()),
        title: Some(title).filter(|title| !title.is_empty()),
        aliases: value.optional("number").into_iter().collect(),
        ..Thread::default()
    }
}

fn comment(value: &Value, thread: &str, parent: Option<String>, zone: &TimeZone) -> Comment {
    Comment {
        source_id: value.text("id"),
        thread: thread.to_owned(),
        parent,
        created_at: value.time("createdAt", zone),
        edited_at: value.time("lastEditedAt", zone),
        author: author(value),
        body: markdown::from_dialect(&value.body("body"), RawHtml::Markup),
        state: state(value),
        likes: value.count("upvoteCount"),
        ..Comment::default()
    }
}

/// The author of a deleted account is null.
fn author(value: &Value) -> Author {
    let author = value.attribute("author");
    Author {
        key: author.text("login"),
        name: author.optional("login").unwrap_or_else(|| "ghost".to_owned()),
        avatar: author.text("avatarUrl"),
        moderator: matches!(value.text("authorAssociation").as_str(), "OWNER" | "MEMBER" | "COLLABORATOR"),
        ..Author::default()
    }
}

fn state(value: &Value) -> RecordState {
    if !value.attribute("deletedAt").is_null() {
        return RecordState::Deleted;
    }
    match value.text("minimizedReason").to_lowercase().as_str() {
        "spam" => RecordState::Spam,
        "abuse" => RecordState::Rejected,
        _ => RecordState::Approved,
    }
}
