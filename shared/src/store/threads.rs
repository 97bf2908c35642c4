//! What is known of a thread as a whole, and of a visitor in it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::keys::{self, Key};
use super::{Reading, Store, read};
use crate::comment::Comment;
use crate::error::Fault;
use crate::ids::{CommentId, ThreadId, UserId, Visitor};

/// Entries of a visit's own item; past them it goes on in one item a parent.
pub(super) const VISIT_BOUND: usize = 100;

/// A thread nobody has written to, or said anything of, is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Approved top-level comments.
    #[serde(rename = "n", default)]
    pub parents: u64,
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// Of the commented record.
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

/// What a visitor did in a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    #[serde(rename = "lk", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub liked: BTreeSet<u64>,
    #[serde(rename = "rd", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub reported: BTreeSet<u64>,
    /// No further entry goes into this item. Never unset, so that no entry can be in two places.
    #[serde(rename = "fl", default)]
    pub full: bool,
    /// Own top-level comments that are not approved.
    #[serde(rename = "up", default)]
    pub hidden_parents: u64,
    /// Own replies that are not approved.
    #[serde(rename = "ur", default)]
    pub hidden_replies: u64,
    /// Some of them trail. Never unset.
    #[serde(rename = "ut", default)]
    pub hidden_trailing: bool,
}

impl Visit {
    pub fn has_hidden(&self) -> bool {
        self.hidden_parents + self.hidden_replies > 0
    }

    /// Nothing in it makes the thread look different from what everyone sees.
    pub fn is_plain(&self) -> bool {
        self.liked.is_empty() && self.reported.is_empty() && !self.full && !self.has_hidden()
    }
}

/// Which of a visitor's items holds an entry: the visit itself until it is full, then the one of the comment's group.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub(super) key: Key,
    /// The visit itself, and this entry is the last it takes.
    pub(super) fills: bool,
    /// The condition under which an entry may still be put here.
    pub(super) open: &'static str,
}

impl Shelf {
    /// For a new entry.
    pub(super) fn next(visit: &Visit, visitor: &Visitor, comment: &Comment) -> Self {
        let thread = &comment.thread;
        if visit.full {
            let group = comment.parent().unwrap_or(comment.id);
            return Self { key: keys::visit_overflow(visitor, thread, group), fills: false, open: "" };
        }
        let fills = visit.liked.len() + visit.reported.len() + 1 >= VISIT_BOUND;
        Self { key: keys::visit(visitor, thread), fills, open: " AND attribute_not_exists(fl)" }
    }
}

impl Store {
    /// Both in one trip.
    pub async fn thread_and_visit(&self, thread: &ThreadId, visitor: &Visitor) -> Result<(Thread, Visit), Fault> {
        let (thread, visit) = (keys::thread(thread), keys::visit(visitor, thread));
        let mut items = self.batch_get(vec![thread.clone(), visit.clone()], Reading::Eventual).await?;
        let thread = items.remove(&thread).map(read).transpose()?;
        let visit = items.remove(&visit).map(read).transpose()?;
        Ok((thread.unwrap_or_default(), visit.unwrap_or_default()))
    }

    pub async fn thread(&self, thread: &ThreadId, reading: Reading) -> Result<Thread, Fault> {
        Ok(self.get(&keys::thread(thread), reading).await?.unwrap_or_default())
    }

    /// Adds to `visit` what a heavy visitor's own item has no room for, of these parents and their replies.
    pub async fn complete_visit(
        &self,
        visit: &mut Visit,
        visitor: &Visitor,
        thread: &ThreadId,
        parents: impl IntoIterator<Item = CommentId>,
    ) -> Result<(), Fault> {
        if !visit.full {
            return Ok(());
        }
        let parents: BTreeSet<CommentId> = parents.into_iter().collect();
        let keys = parents.into_iter().map(|parent| keys::visit_overflow(visitor, thread, parent)).collect();
        for item in self.batch_get(keys, Reading::Eventual).await?.into_values() {
            let more: Visit = read(item)?;
            visit.liked.extend(more.liked);
            visit.reported.extend(more.reported);
        }
        Ok(())
    }
}
