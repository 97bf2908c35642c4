//! Reports of comments, and what moderators decided about them.

use serde::{Deserialize, Serialize};

use crate::domain::comment::{Avatar, Comment};
use crate::domain::ids::{UserId, Visitor};

/// A report as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Ordered by time; the store gives it.
    #[serde(rename = "id")]
    pub id: u64,
    /// The reason, and the details after a colon when there are any.
    #[serde(rename = "r")]
    pub reason: String,
    /// Unix milliseconds.
    #[serde(rename = "c")]
    pub created_at: i64,
    /// Who reported.
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
    /// What moderators made of it.
    #[must_use]
    pub fn status(&self, comment: &Comment) -> ReportStatus {
        let settled = comment.resolutions.iter().find(|resolution| self.created_at <= resolution.until);
        settled.map_or(ReportStatus::Pending, |resolution| resolution.status)
    }
}

/// Reports made up to and including a moment (Unix milliseconds) have this status, unless an earlier settlement had them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
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
