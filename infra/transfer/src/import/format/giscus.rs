//! giscus: discussions with their comments and replies, as GitHub's GraphQL API returns them. A discussion is a page.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, Comment, Part, Record, RecordState, Thread};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes, Path};
use super::{Sink, comment_record};

const PATHS: &[Path] = &[
    &["data", "repository", "discussions"],
    &["data", "repository", "discussion"],
    &["data", "search"],
    &["data", "node"],
    ERRORS,
];
const ERRORS: Path = &["errors"];
/// The name that the report uses for the list of all discussions.
const ALL: &str = "discussions";
const NO_ID: &str = "a comment has no id; query the field id of all comments and replies";
const NO_LIST: &str = "a node has neither comments nor replies";

pub(super) fn read(input: Reader, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    json::read(input, PATHS, &mut |path, value| match path {
        ERRORS => {
            let message = value.text("message");
            Err(ReadError::whole(format_args!("a response has an error, so it is incomplete: {message}")))
        }
        [.., "discussion"] => {
            sink(element(ALL, id(&value)))?;
            discussion(value, zone, sink)
        }
        [.., "node"] => node(value, zone, sink),
        _ => {
            let discussions = elements(value, ALL, |value| Ok(id(value)), sink)?;
            discussions.into_iter().try_for_each(|value| discussion(value, zone, sink))
        }
    })
}

/// Reads a further page of a discussion's comments, or of a comment's replies.
fn node(mut value: Value, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let id = known_id(&value)?;
    if value.attribute("comments").is_object() {
        return discussion(value, zone, sink);
    }
    match take(&mut value, "replies") {
        // The replies belong to the thread of their comment, which may be in another file.
        list @ Value::Object(_) => replies(list, &id, "", zone, sink),
        _ => Err(ReadError::whole(NO_LIST)),
    }
}

fn discussion(mut value: Value, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let comments = take(&mut value, "comments");
    let thread = thread(&value);
    let key = thread.key.clone();
    json::send([], Record::Thread(thread), &value, sink)?;
    for mut value in elements(comments, &id(&value), known_id, sink)? {
        let list = take(&mut value, "replies");
        let comment = comment(&value, &key, None, zone);
        let id = comment.source_id.clone();
        json::send([], comment_record(comment, value.is_oversized()), &value, sink)?;
        replies(list, &id, &key, zone, sink)?;
    }
    Ok(())
}

fn replies(list: Value, parent: &str, thread: &str, zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    for value in elements(list, parent, known_id, sink)? {
        let reply = comment(&value, thread, Some(parent.to_owned()), zone);
        json::send([], comment_record(reply, value.is_oversized()), &value, sink)?;
    }
    Ok(())
}

/// Returns the elements of a GitHub connection, and passes their ids and their total number to `sink`.
fn elements(
    mut connection: Value,
    of: &str,
    id: fn(&Value) -> Result<String, ReadError>,
    sink: &mut Sink<'_>,
) -> Result<Vec<Value>, ReadError> {
    sink(list(of, &connection))?;
    let mut all = match (take(&mut connection, "nodes"), take(&mut connection, "edges")) {
        (Value::Array(nodes), _) => nodes,
        (_, Value::Array(edges)) => edges.into_iter().map(|mut edge| take(&mut edge, "node")).collect(),
        _ => Vec::new(),
    };
    all.retain(|element| !element.is_null());
    all.iter().try_for_each(|value| sink(element(of, id(value)?)))?;
    Ok(all)
}

fn take(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

fn id(discussion: &Value) -> String {
    ["id", "number", "title"].into_iter().find_map(|name| discussion.optional(name)).unwrap_or_default()
}

/// The id of an element. Without ids, comments can't be counted, and replies can't be assigned to comments.
fn known_id(value: &Value) -> Result<String, ReadError> {
    value.optional("id").ok_or_else(|| ReadError::whole(NO_ID))
}

fn element(of: &str, id: String) -> Record {
    Record::Part(Part { of: of.to_owned(), element: Some(id), ..Part::default() })
}

/// The record of a connection's page. A query in one direction omits the flag for the other direction.
fn list(of: &str, connection: &Value) -> Record {
    let total = ["totalCount", "discussionCount"].into_iter().find_map(|name| connection.attribute(name).as_u64());
    let info = connection.attribute("pageInfo");
    let is_continued = info.is_object().then(|| [info.flag("hasPreviousPage"), info.flag("hasNextPage")]);
    Record::Part(Part { of: of.to_owned(), total, is_continued, ..Part::default() })
}

/// The thread of a discussion. giscus writes the page's URL into the discussion's body. The title is a path, a URL or a
/// term.
fn thread(value: &Value) -> Thread {
    let title = value.text("title");
    let body = value.text("body");
    let address =
        body.lines().rev().map(str::trim).find(|line| line.starts_with("http://") || line.starts_with("https://"));
    Thread {
        // A further page of the comments may have no title.
        key: value.optional("id").unwrap_or_else(|| title.clone()),
        url: Some(address.map_or_else(|| title.clone(), str::to_owned)).filter(|url| !url.is_empty()),
        title: Some(title).filter(|title| !title.is_empty()),
        aliases: ["title", "number"].into_iter().filter_map(|name| value.optional(name)).collect(),
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
