//! The rejection of a comment: the moderator who rejected it, the reason and the note.

use serde::{Deserialize, Serialize};

use crate::ids::UserId;
use crate::time::{Timestamp, stored};

/// Maximum characters in a note.
pub const MAX_NOTE: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionReason {
    Spam,
    OffTopic,
    Offensive,
    Illegal,
    Other,
}

impl RejectionReason {
    /// The key of the reason's label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Spam => "spam",
            Self::OffTopic => "off_topic",
            Self::Offensive => "offensive",
            Self::Illegal => "illegal",
            Self::Other => "other",
        }
    }
}

/// The moderator's reason and note, which the writer can read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RejectionReason>,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A rejection, as stored with its comment. An approval removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    #[serde(flatten)]
    pub grounds: Grounds,
    /// `None` for a moderator whose data was erased.
    #[serde(rename = "mo", default, skip_serializing_if = "Option::is_none")]
    pub moderator: Option<UserId>,
    /// The moderator's name at the time of the rejection.
    #[serde(rename = "nm", default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(rename = "at", serialize_with = "stored::time")]
    pub at: Timestamp,
    /// Whether the rejection follows from a ban. The writer isn't notified of such a rejection.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_silent: bool,
}

impl Rejection {
    #[must_use]
    pub fn without_moderator(self) -> Self {
        Self { moderator: None, name: String::new(), ..self }
    }
}
