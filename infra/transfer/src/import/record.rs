//! The intermediate form that every parser produces. It's also the native format: JSON Lines, each an object with one
//! key that names the kind of record.
//!
//! ```json
//! {"head":{"format":"comments","version":1,"source":"disqus"}}
//! {"thread":{"key":"https://example.org/hello/","title":"Hello"}}
//! {"user":{"id":"42","name":"Ada"}}
//! {"comment":{"source_id":"558","thread":"https://example.org/hello/","created_at":"2020-01-02T03:04:05Z","author":{"name":"Ada"},"body":"Hi","format":"markdown","state":"approved"}}
//! ```
//!
//! Records may come in any order. An optional attribute that is missing has its default value. `docs/native-format.md`
//! documents all of them.

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use shared::config::is_type;
use shared::domain::comment::{HeldFor, State};
use shared::domain::ids::{CommentId, Provenance, SourceId, UserId};
use shared::domain::report::{ReportStatus, bare_reason, nobody};

use super::report::Missing;
use super::thread_key::NO_TYPE;
use super::time;

pub const FORMAT: &str = "comments";
pub const VERSION: u32 = 1;
/// Maximum bytes of a value. No person types a longer one.
pub(super) const MAX_VALUE: usize = 1 << 20;
/// The source name of an export.
pub const NATIVE: &str = "native";

/// The source assigned to an exported comment that was written in the exported table, not imported into it.
#[must_use]
pub fn own_source(id: CommentId) -> SourceId {
    SourceId(format!("{NATIVE}:{id}"))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Head(Head),
    Thread(Thread),
    User(User),
    Comment(Box<Comment>),
    Like(Like),
    Report(Report),
    GuestBound(GuestBound),
    Tombstone(Tombstone),
    /// A source's statement about its completeness. A native file never contains one.
    #[serde(skip)]
    Part(Part),
    #[serde(skip)]
    Missing(Missing),
}

/// Describes a native file. Parsers also use it to name the site of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub format: String,
    pub version: u32,
    /// The system that the comments come from.
    #[serde(default)]
    pub source: String,
    /// The site, if the source names it. Other sites in the same system may have the same ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The fingerprint of the salt that an export's hashes use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
    /// The number of records that follow in an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

impl Record {
    /// The head of a source that names its site.
    #[must_use]
    pub fn of_site(site: String) -> Self {
        let (format, source) = (FORMAT.to_owned(), String::new());
        Self::Head(Head { format, version: VERSION, source, site: Some(site), salt: None, records: None })
    }
}

/// A part of a list whose other parts may be in other files, such as one page of a discussion's comments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The id of the list in the source.
    pub of: String,
    /// The id of an element that was read.
    pub element: Option<String>,
    /// The number of elements in the list.
    pub total: Option<u64>,
    /// Whether the list has parts before this one, and whether it has parts after this one.
    pub is_continued: Option<[bool; 2]>,
}

/// A page with comments. If several records have the same key, the first value of each attribute wins, except that the
/// aliases are combined, and the page is deleted if any of the records is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The name by which comments refer to the page.
    pub key: String,
    #[serde(rename = "type", default, deserialize_with = "kind", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The record's id in the host application, if the source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// An absolute URL, or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A user id of the host application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<u64>,
    /// Whether moderators closed the thread; `None` if they neither closed nor opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Other names of the page, which lines of `--map` may use too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: bool,
}

/// An author that comments refer to by [`Author::key`], or a user of the host application if `user_id` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct User {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(default, deserialize_with = "user_id", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Only a hash of the address is stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// The address of a picture, or `g:` and a Gravatar hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub picture: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub moderator: bool,
    /// The newest `iat` of the user's tokens. This attribute and the following ones apply only if `user_id` is set.
    #[serde(rename = "told_at", default, skip_serializing_if = "Option::is_none")]
    pub token_issued_at: Option<Timestamp>,
    /// The time when the name was read from a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_at: Option<Timestamp>,
    /// The hash of the token's subject, if the id is a hash too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ban: Option<Ban>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ban {
    /// Ids sort by time, except for the user's id, which replaces a missing one.
    pub id: u64,
    /// `None` means forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comment {
    /// The id that an exported comment keeps. The attributes from `source` to `resolutions` require it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Unique in the source. If it's empty, the id or a hash of the comment replaces it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_id: String,
    /// The [`Thread::key`] of the comment's page.
    pub thread: String,
    /// The `source_id` of the comment that this one replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `None` if the source has no valid time.
    #[serde(default, deserialize_with = "lenient_time")]
    pub created_at: Option<Timestamp>,
    /// [`Self::created_at`] as parsed with `--zone UTC`, if the source may have times without a zone.
    #[serde(skip)]
    pub written_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "exact_time", skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    #[serde(default)]
    pub author: Author,
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub format: BodyFormat,
    #[serde(default)]
    pub state: RecordState,
    /// Likes without a known voter.
    #[serde(default, deserialize_with = "saturating", skip_serializing_if = "is_default")]
    pub likes: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pinned: bool,
    /// The source that the comment was imported from, such as `disqus:558` or `disqus@blog:558`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Distinguishes the comment from a comment of another site with the same source.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<Timestamp>,
    /// Why the comment waits for a moderator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for: Option<HeldFor>,
    /// Handles that belonged to users when the body was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// Whether the writer wants to be notified of replies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub subscribed: bool,
    /// Whether a report waits for a moderator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reported: bool,
    /// Decisions about reports, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolutions: Vec<Resolution>,
    /// Whether a value is longer than `MAX_VALUE` bytes.
    #[serde(skip)]
    pub is_oversized: bool,
}

/// A decision about all reports up to a moment, except those that earlier decisions cover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    pub until: Timestamp,
    pub status: ReportStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Author {
    /// A user id of the host application; `None` for guests.
    #[serde(default, deserialize_with = "user_id", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u64>,
    /// The guest: `k` and the hash of their key, or `g` and the hash of their network and user agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visitor: Option<String>,
    /// The author's id in the source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Only a hash of the address is stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// The address of a picture, or `g:` and a Gravatar hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub avatar: String,
    /// A keyed hash of a guest's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub moderator: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Like {
    pub comment: u64,
    /// `u` and a user id, or a guest in the form of [`Author::visitor`].
    pub visitor: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub comment: u64,
    /// Ids sort by time.
    pub id: u64,
    /// The reason, followed by a colon and the details if there are any.
    pub reason: String,
    pub created_at: Timestamp,
    /// The reporter, in the form of [`Like::visitor`], or a hyphen and the report's id if the reporter was erased.
    pub visitor: String,
    #[serde(default, deserialize_with = "user_id", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub avatar: String,
}

impl Report {
    /// The part of the report that remains after its reporter is erased.
    #[must_use]
    pub fn without_reporter(self) -> Self {
        let (reason, visitor) = (bare_reason(&self.reason).to_owned(), nobody(self.id).0);
        Self { reason, visitor, user_id: None, name: String::new(), avatar: String::new(), ..self }
    }
}

/// The number of likes or reports of this comment by guests in one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestBound {
    pub comment: u64,
    /// A keyed hash of the network, the comment and the kind of reaction.
    pub network: String,
    pub count: i64,
}

/// A deleted comment, with its source and the id that it had. Later imports skip it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tombstone {
    pub source: String,
    pub id: u64,
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
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
pub enum RecordState {
    #[default]
    Approved,
    Pending,
    Rejected,
    Deleted,
    Spam,
    Trash,
    Pingback,
    /// Not a reader's comment, such as a note on an order.
    Other,
}

impl RecordState {
    /// The state in the table.
    pub(super) fn stored(self) -> State {
        match self {
            Self::Pending => State::Pending,
            Self::Rejected => State::Rejected,
            _ => State::Approved,
        }
    }
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let kind = Option::<String>::deserialize(deserializer)?;
    if kind.as_deref().is_none_or(is_type) { Ok(kind) } else { Err(D::Error::custom(NO_TYPE)) }
}

fn user_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let id = Option::<u64>::deserialize(deserializer)?;
    match id.filter(|id| id.to_string().parse::<UserId>().is_err()) {
        Some(id) => Err(D::Error::custom(format_args!("{id} isn't a user id"))),
        None => Ok(id),
    }
}

/// Parses a time. Returns `None` for an invalid one, so that only this record is lost.
fn lenient_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| time::parse_utc(&text)))
}

/// Parses a time with its fraction of a second.
fn exact_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok().or_else(|| time::parse_utc(&text))))
}

/// Parses a count. A count that is too large saturates, and its comment is refused.
fn saturating<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    let is_beyond = || number.as_f64().is_some_and(|number| number >= 2_f64.powi(64));
    let count = number.as_u64().or_else(|| is_beyond().then_some(u64::MAX));
    count.ok_or_else(|| D::Error::custom(format_args!("{number} isn't a valid count")))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
