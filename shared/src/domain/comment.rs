//! A comment as it is stored. Its keys are the store's, its shape in answers is `resource`'s.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::ids::{CommentId, ThreadId, UserId, Visitor};
use crate::domain::report::Resolution;
use crate::domain::time::Timestamp;

/// Replies to replies go this deep; a top-level comment is at 0 (decisions, section 4).
pub const MAX_DEPTH: usize = 10;

/// Attribute names are short because a page reads forty of these, and is paid by the byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comment {
    #[serde(rename = "i")]
    pub id: CommentId,
    #[serde(rename = "t")]
    pub thread: ThreadId,
    /// From the top-level comment down to the direct parent; empty for a top-level comment.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<CommentId>,
    /// `None` for guests.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Of a guest only: a user's visitor follows from the id.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Visitor>,
    #[serde(rename = "n")]
    pub name: String,
    #[serde(rename = "av", default, skip_serializing_if = "Avatar::is_neutral")]
    pub avatar: Avatar,
    /// Whether the writer was a moderator.
    #[serde(rename = "mo", default, skip_serializing_if = "is_false")]
    pub by_moderator: bool,
    #[serde(rename = "b")]
    pub body: String,
    /// Handles that belonged to somebody when the body was written.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// Unix milliseconds.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<i64>,
    #[serde(rename = "s", default, skip_serializing_if = "State::is_approved")]
    pub state: State,
    /// Approved, but a moderator should look at an edit.
    #[serde(rename = "rv", default, skip_serializing_if = "is_false")]
    pub in_review: bool,
    #[serde(rename = "lc", default, skip_serializing_if = "is_zero")]
    pub likes: u64,
    /// Direct replies that everyone may see.
    #[serde(rename = "rc", default, skip_serializing_if = "is_zero")]
    pub replies: u64,
    /// Of the replies that are counted: tells whether an index names them all. Of a top-level comment only.
    #[serde(rename = "fp", default, skip_serializing_if = "is_nothing")]
    pub fingerprint: i64,
    /// Which replies lead, that is stand in the thread's index beside this comment: always the oldest ones.
    #[serde(rename = "ld", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub inline: BTreeSet<u64>,
    /// Some reply trails, that is stands in this comment's own index partition. Never unset.
    #[serde(rename = "tr", default, skip_serializing_if = "is_false")]
    pub has_separate: bool,
    /// Reports of it, whatever became of them.
    #[serde(rename = "rp", default, skip_serializing_if = "is_zero")]
    pub reports: u64,
    /// Some report waits for a moderator.
    #[serde(rename = "ro", default, skip_serializing_if = "is_false")]
    pub reported: bool,
    /// What moderators decided about reports so far, oldest first.
    #[serde(rename = "rs", default, skip_serializing_if = "Vec::is_empty")]
    pub resolutions: Vec<Resolution>,
    /// The writer wants to hear of replies.
    #[serde(rename = "sb", default, skip_serializing_if = "is_false")]
    pub subscribed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Approved,
    /// Waits for a moderator.
    Pending,
    Rejected,
}

impl State {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
    fn is_approved(&self) -> bool {
        *self == Self::Approved
    }
}

/// Where a picture of the writer is, kept short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Avatar {
    /// Gravatar's picture for nobody.
    #[default]
    Neutral,
    /// The hash of an e-mail address.
    Gravatar(String),
    Picture(String),
}

impl Avatar {
    fn is_neutral(&self) -> bool {
        *self == Self::Neutral
    }

    #[must_use]
    pub fn url(&self) -> String {
        const BASE: &str = "https://www.gravatar.com/avatar/";
        match self {
            Self::Neutral => format!("{BASE}?d=mp"),
            Self::Gravatar(hash) => format!("{BASE}{hash}?d=mp"),
            Self::Picture(url) => url.clone(),
        }
    }
}

impl From<String> for Avatar {
    fn from(text: String) -> Self {
        match text.strip_prefix("g:") {
            Some(hash) => Self::Gravatar(hash.to_owned()),
            None if text.is_empty() => Self::Neutral,
            None => Self::Picture(text),
        }
    }
}

impl From<Avatar> for String {
    fn from(avatar: Avatar) -> Self {
        match avatar {
            Avatar::Neutral => Self::new(),
            Avatar::Gravatar(hash) => format!("g:{hash}"),
            Avatar::Picture(url) => url,
        }
    }
}

impl Comment {
    /// To be filled in; the store gives the id.
    #[must_use]
    pub fn blank(thread: ThreadId) -> Self {
        Self {
            id: CommentId(0),
            thread,
            ancestors: Vec::new(),
            user: None,
            guest: None,
            name: String::new(),
            avatar: Avatar::Neutral,
            by_moderator: false,
            body: String::new(),
            mentions: Vec::new(),
            edited_at: None,
            state: State::Approved,
            in_review: false,
            likes: 0,
            replies: 0,
            fingerprint: 0,
            inline: BTreeSet::new(),
            has_separate: false,
            reports: 0,
            reported: false,
            resolutions: Vec::new(),
            subscribed: false,
        }
    }

    #[must_use]
    pub fn parent(&self) -> Option<CommentId> {
        self.ancestors.last().copied()
    }

    #[must_use]
    pub fn is_top_level(&self) -> bool {
        self.ancestors.is_empty()
    }

    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.state == State::Approved
    }

    /// Who wrote it.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        match (self.user, &self.guest) {
            (Some(user), _) => user.into(),
            (None, Some(guest)) => guest.clone(),
            (None, None) => Visitor(String::new()),
        }
    }

    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.edited_at.map_or_else(|| self.id.created_at(), Timestamp)
    }

    /// Waits in the moderators' queue, as new or as edited.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.state == State::Pending || self.in_review
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
fn is_nothing(fingerprint: &i64) -> bool {
    *fingerprint == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
