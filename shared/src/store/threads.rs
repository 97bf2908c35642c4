//! What is known of a thread as a whole, and of a visitor in it.

use std::collections::BTreeSet;

use super::keys::{self, Key};
use super::{Reading, Store, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::thread::{Thread, Visit};
use crate::error::Fault;

/// Entries of a visit's own item; past them it goes on in one item a parent.
pub(super) const VISIT_BOUND: usize = 100;

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
