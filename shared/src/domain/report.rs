//! Reports of comments, and the decisions of moderators about them.

use serde::{Deserialize, Serialize};

use crate::domain::comment::{Avatar, Comment};
use crate::domain::ids::{UserId, Visitor};

/// A report as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// In order of time. The store sets it.
    #[serde(rename = "id")]
    pub id: u64,
    /// The reason, and the details after a colon when there are any.
    #[serde(rename = "r")]
    pub reason: String,
    /// Unix milliseconds.
    #[serde(rename = "c")]
    pub created_at: i64,
    #[serde(rename = "v")]
    pub visitor: Visitor,
    /// `None` for guests.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    #[serde(rename = "n", default)]
    pub name: String,
    #[serde(rename = "av", default)]
    pub avatar: Avatar,
}

impl Report {
    /// The moderators' decision about it.
    #[must_use]
    pub fn status(&self, comment: &Comment) -> ReportStatus {
        let resolved = comment.resolutions.iter().find(|resolution| self.created_at <= resolution.until);
        resolved.map_or(ReportStatus::Pending, |resolution| resolution.status)
    }
}

/// One decision about all reports up to and including a moment, except those of earlier decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// Unix milliseconds.
    #[serde(rename = "u")]
    pub until: i64,
    #[serde(rename = "s")]
    pub status: ReportStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    Pending,
    Reviewed,
    Dismissed,
}
