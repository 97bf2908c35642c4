//! giscus: discussions with their comments and replies, as GitHub's GraphQL API returns them. A discussion is a page.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, Comment, Part, Record, RecordState, Thread};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes, Path};
use super::{Sink, comment_record};

const PATHS: &[Path] = &[
    &["data", "repository", "discussions", "nodes"],
    &["data", "repository", "discussions", "totalCount"],
    &["data", "repository", "discussions", "pageInfo"],
    &["data", "repository", "discussion"],
    &["data", "search", "nodes"],
    &["data", "search", "discussionCount"],
    &["data", "search", "pageInfo"],
    ERRORS,
];
const ERRORS: Path = &["errors"];
/// The name that the report uses for the list of all discussions.
const ALL: &str = "discussions";
const NO_ID: &str = "a comment has no id; query the field id of all comments and replies";

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, PATHS, &mut |path, value| {
        let discussion = match path {
            ERRORS => {
                let message = value.text("message");
                return Err(ReadError::whole(format_args!("a response has an error, so it is incomplete: {message}")));
            }
            [.., "totalCount" | "discussionCount"] => return sink(total(ALL, &value)),
            [.., "pageInfo"] => return sink(page_info(ALL, &value)),
            _ => value,
        };
        let thread = thread(&discussion);
        let key = thread.key.clone();
        let id = ["id", "number", "title"].into_iter().find_map(|name| discussion.optional(name)).unwrap_or_default();
        sink(Record::Part(Part { of: ALL.to_owned(), element: Some(id.clone()), ..Part::default() }))?;
        sink(Record::Thread(thread))?;
        parts(&discussion, "comments", &id, sink)?;
        for value in nodes(&discussion, "comments") {
            let parent = comment(value, &key, None, zone);
            let id = parent.source_id.clone();
            let mut own = value.as_object().into_iter().flatten().filter(|(name, _)| *name != "replies");
            sink(comment_record(parent, own.any(|(_, value)| value.is_oversized())))?;
            parts(value, "replies", &id, sink)?;
            for reply in nodes(value, "replies") {
                sink(comment_record(comment(reply, &key, Some(id.clone()), zone), reply.is_oversized()))?;
            }
        }
        Ok(())
    })
}

fn nodes<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let nodes = value.attribute(name).attribute("nodes").as_array();
    nodes.into_iter().flatten().filter(|node| !node.is_null())
}

/// Passes the elements and the length of a GitHub connection to `sink`. Fails if an element has no id, because elements
/// couldn't be counted, nor replies assigned to their comments.
fn parts(value: &Value, name: &str, of: &str, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let connection = value.attribute(name);
    for node in nodes(value, name) {
        let element = node.optional("id").ok_or_else(|| ReadError::whole(NO_ID))?;
        sink(Record::Part(Part { of: of.to_owned(), element: Some(element), ..Part::default() }))?;
    }
    sink(total(of, connection.attribute("totalCount")))?;
    sink(page_info(of, connection.attribute("pageInfo")))
}

fn total(of: &str, count: &Value) -> Record {
    Record::Part(Part { of: of.to_owned(), total: count.as_u64(), ..Part::default() })
}

/// The record of a connection's page. A query in one direction omits the flag for the other direction.
fn page_info(of: &str, info: &Value) -> Record {
    let is_continued = info.is_object().then(|| [info.flag("hasPreviousPage"), info.flag("hasNextPage")]);
    Record::Part(Part { of: of.to_owned(), is_continued, ..Part::default() })
}

/// The thread of a discussion. giscus writes the page's URL into the discussion's body. The title is a path, a URL or a
/// term.
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
        body: markdown::from_dialect(&value.body("body"), Dialect::GITHUB),
        state: state(value),
        likes: value.count("upvoteCount"),
        ..Comment::default()
    }
}

/// The author of a comment, which is null if the account was deleted.
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
