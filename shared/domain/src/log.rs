//! The log of moderators' actions.

use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::ids::{CommentId, ThreadId, UserId};
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Approve,
    Reject,
    Dismiss,
    Pin,
    Unpin,
    Ban,
    Unban,
    RemoveImage,
    Close,
    Open,
    AddWebhook,
    ChangeWebhook,
    RemoveWebhook,
    SignIn,
}

/// A log entry, as stored. It is kept when its comment is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Ids are in chronological order.
    #[serde(rename = "id")]
    pub id: u64,
    /// `None` for a moderator whose data was erased.
    #[serde(rename = "mo", default, skip_serializing_if = "Option::is_none")]
    pub moderator: Option<UserId>,
    /// The moderator's name at the time of the action.
    #[serde(rename = "n", default)]
    pub name: String,
    #[serde(rename = "ac")]
    pub action: Action,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentId>,
    /// The user whose ban began or ended, or the comment's writer. `None` for guests, their networks, and entries about
    /// anything else.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The author whose recent comments a ban rejects.
    #[serde(rename = "rr", default, skip_serializing_if = "Option::is_none")]
    pub rejects: Option<Author>,
}

impl LogEntry {
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        CommentId(self.id).created_at()
    }
}
