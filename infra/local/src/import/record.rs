//! The intermediate form, which every parser produces and which is the native format as well: JSON Lines, each an object
//! with one key that names the kind of record.
//!
//! ```json
//! {"head":{"format":"comments","version":1,"source":"disqus"}}
//! {"thread":{"key":"https://example.org/hello/","title":"Hello"}}
//! {"user":{"id":"42","name":"Ada"}}
//! {"comment":{"source_id":"558","thread":"https://example.org/hello/","created_at":"2020-01-02T03:04:05Z","author":{"name":"Ada"},"body":"Hi","format":"markdown","state":"approved"}}
//! ```
//!
//! Records may come in any order. Attributes that are missing have their default.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::time;

pub const FORMAT: &str = "comments";
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Head(Head),
    Thread(Thread),
    User(User),
    Comment(Box<Comment>),
}

/// The first record of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub format: String,
    pub version: u32,
    /// The system that the comments were written in.
    #[serde(default)]
    pub source: String,
}

/// A page that was commented on. Of several records with one key, the first value of each attribute counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The name by which comments refer to it.
    pub key: String,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The record's id in the host application, if the source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Absolute, or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A user id of the host application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<u64>,
    /// Other names of the page, which a line of `--map` may have too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: bool,
}

/// An author to whom comments refer by [`Author::key`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Only its hash is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub picture: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub moderator: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comment {
    /// Unique in the source. When it is empty, a hash of the comment takes its place.
    #[serde(default)]
    pub source_id: String,
    /// [`Thread::key`].
    pub thread: String,
    /// The `source_id` of the comment that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `None` when the source has no valid time.
    #[serde(default, deserialize_with = "lenient_time")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient_time", skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    #[serde(default)]
    pub author: Author,
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub format: BodyFormat,
    #[serde(default)]
    pub state: State,
    #[serde(default, skip_serializing_if = "is_default")]
    pub likes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pinned: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Author {
    /// A user id of the host application; `None` for guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u64>,
    /// The author's id in the source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Only its hash is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// The address of a picture, or `g:` and a Gravatar hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub avatar: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub moderator: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    #[default]
    Markdown,
    Html,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Approved,
    Pending,
    Rejected,
    Deleted,
    Spam,
    Trash,
    Pingback,
    /// Not a comment of a reader, such as a note on an order.
    Other,
}

/// A time that is not valid is `None`, so that it costs its own record alone.
fn lenient_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| time::parse_utc(&text)))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
