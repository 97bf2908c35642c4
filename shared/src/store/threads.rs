//! What is known of a thread as a whole, and of a visitor in it.

use std::collections::BTreeSet;

use super::keys::{self, Key};
use super::{Reading, Store, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::error::Fault;

/// Entries of a visit's own item; past them it goes on in one item a parent.
pub(super) const VISITOR_STATE_BOUND: usize = 100;

/// Which of a visitor's items holds an entry: the visit itself until it is full, then the one of the comment's group.
#[derive(Clone, Debug)]
pub(super) struct VisitorSlot {
    pub(super) key: Key,
    /// The visit itself, and this entry is the last it takes.
    pub(super) fills: bool,
    /// The condition under which an entry may still be put here.
    pub(super) open: &'static str,
}

impl VisitorSlot {
    /// For a new entry.
    pub(super) fn next(visitor_state: &VisitorThreadState, visitor: &Visitor, comment: &Comment) -> Self {
        let thread = &comment.thread;
        if visitor_state.full {
            let group = comment.parent().unwrap_or(comment.id);
            return Self { key: keys::visitor_overflow(visitor, thread, group), fills: false, open: "" };
        }
        let fills = visitor_state.liked.len() + visitor_state.reported.len() + 1 >= VISITOR_STATE_BOUND;
        Self { key: keys::visitor_state(visitor, thread), fills, open: " AND attribute_not_exists(fl)" }
    }
}

impl Store {
    /// Both in one trip.
    pub async fn thread_and_visitor_state(
        &self,
        thread: &ThreadId,
        visitor: &Visitor,
    ) -> Result<(Thread, VisitorThreadState), Fault> {
        let (thread, visitor_state) = (keys::thread(thread), keys::visitor_state(visitor, thread));
        let mut items = self.batch_get(vec![thread.clone(), visitor_state.clone()], Reading::Eventual).await?;
        let thread = items.remove(&thread).map(read).transpose()?;
        let visitor_state = items.remove(&visitor_state).map(read).transpose()?;
        Ok((thread.unwrap_or_default(), visitor_state.unwrap_or_default()))
    }

    pub async fn thread(&self, thread: &ThreadId, reading: Reading) -> Result<Thread, Fault> {
        Ok(self.get(&keys::thread(thread), reading).await?.unwrap_or_default())
    }

    /// Adds to `visit` what a heavy visitor's own item has no room for, of these parents and their replies.
    pub async fn complete_visitor_state(
        &self,
        visitor_state: &mut VisitorThreadState,
        visitor: &Visitor,
        thread: &ThreadId,
        parents: impl IntoIterator<Item = CommentId>,
    ) -> Result<(), Fault> {
        if !visitor_state.full {
            return Ok(());
        }
        let parents: BTreeSet<CommentId> = parents.into_iter().collect();
        let keys = parents.into_iter().map(|parent| keys::visitor_overflow(visitor, thread, parent)).collect();
        for item in self.batch_get(keys, Reading::Eventual).await?.into_values() {
            let more: VisitorThreadState = read(item)?;
            visitor_state.liked.extend(more.liked);
            visitor_state.reported.extend(more.reported);
        }
        Ok(())
    }
}
