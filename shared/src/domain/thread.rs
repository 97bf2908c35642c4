//! Threads, and the state of a visitor in a thread.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::ids::{CommentId, UserId};

/// The default is a thread that the table has no item for: without comments, and without data about its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Approved top-level comments.
    #[serde(rename = "n", default, deserialize_with = "count")]
    pub parents: u64,
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// The author of the commented record.
    #[serde(rename = "au", default, skip_serializing_if = "Option::is_none")]
    pub author: Option<UserId>,
    #[serde(rename = "ti", default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(rename = "url", default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    #[serde(rename = "c")]
    pub comment: CommentId,
    /// Unix milliseconds.
    #[serde(rename = "at")]
    pub at: i64,
}

/// A visitor's likes and reports in a thread, and the counts of their own unapproved comments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VisitorThreadState {
    #[serde(rename = "lk", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub liked: BTreeSet<u64>,
    #[serde(rename = "rd", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub reported: BTreeSet<u64>,
    /// Whether further likes and reports go to overflow items. Never unset, so that none is in two items.
    #[serde(rename = "fl", default)]
    pub full: bool,
    /// Own top-level comments that are not approved.
    #[serde(rename = "up", default, deserialize_with = "count")]
    pub hidden_parents: u64,
    /// Own replies that are not approved.
    #[serde(rename = "ur", default, deserialize_with = "count")]
    pub hidden_replies: u64,
    /// Whether any of these replies is or was separate. Never unset.
    #[serde(rename = "ut", default)]
    pub hidden_separate: bool,
}

/// A stored count as it is used. It is below zero while an import has written comments, and has not added them to the
/// counts, and some of them are deleted.
#[must_use]
pub fn from_stored(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    i64::deserialize(deserializer).map(from_stored)
}

impl VisitorThreadState {
    pub fn has_hidden(&self) -> bool {
        self.hidden_parents + self.hidden_replies > 0
    }

    /// Whether the visitor sees the thread as everyone does.
    pub fn is_plain(&self) -> bool {
        self.liked.is_empty() && self.reported.is_empty() && !self.full && !self.has_hidden()
    }
}
