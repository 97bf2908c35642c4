//! Counts a thread's approved comments that have no hidden ancestor. Placeholders don't count, but replies to them do.
//!
//! Each counted comment has an item. The transaction that changes the count also writes the item on condition that it
//! is missing, or deletes it on condition that it exists. So a comment is counted once, even if its events arrive late
//! or repeatedly. Whether a comment counts depends on its current state and that of its ancestors, never on an event.
//! The transaction checks that the ancestors are unchanged since they were read, and [`RecountTrigger`] determines
//! whether it also checks the comment.

use aws_sdk_dynamodb::types::AttributeValue;

use super::keys::{self, Item};
use super::schema::comment::{PLACEHOLDER, STATE};
use super::schema::{PK, count, counted};
use super::transaction::{Label, Outcome, Write, absent};
use super::{Reading, Store, number, read, stored_number};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId};
use crate::domain::thread::from_stored;
use crate::error::Fault;

/// Whether a comment counts, and the transaction's checks that this is still true.
struct Verdict {
    counts: bool,
    checks: Vec<Write>,
}

/// The reason for recounting a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecountTrigger {
    /// The comment's own event. Events arrive in order, so if the comment changes meanwhile, its next event corrects the count.
    Event,
    /// A walk over replies, during which the comment may change.
    Walk,
    /// A walk below a comment that is shown for the first time. It marks the items that it writes, so that they can be
    /// recognized in the stream.
    FirstShown,
}

#[derive(Clone, Debug)]
pub struct Recounted {
    /// The comment in its current state.
    pub comment: Comment,
    /// Whether the comment counts: everyone sees it, and it isn't a placeholder.
    pub counts: bool,
}

impl Store {
    /// Counts a comment or stops counting it, depending on its current state. Safe to repeat. `None` if it doesn't exist.
    pub async fn recount_comment(
        &self,
        thread: &ThreadId,
        id: CommentId,
        trigger: RecountTrigger,
    ) -> Result<Option<Recounted>, Fault> {
        let mut attempts = self.attempts("counting a comment");
        loop {
            attempts.next().await?;
            let comment: Option<Comment> = self.get(&keys::comment(id), Reading::Consistent).await?;
            let Verdict { counts, mut checks } = self.judge(comment.as_ref()).await?;
            if trigger != RecountTrigger::Event {
                checks.push(unchanged(id, comment.as_ref()));
            }
            let mut writes = match trigger {
                _ if !counts => discount(thread, id),
                RecountTrigger::FirstShown => count_first(thread, id),
                RecountTrigger::Event | RecountTrigger::Walk => count(thread, id),
            };
            writes.extend(checks);
            match self.transact(writes).await? {
                Outcome::Failed(failed) if !failed.is_only(Label::Counted) => {}
                // If only the item's condition failed, the item already has the desired state.
                Outcome::Done | Outcome::Failed(_) => {
                    return Ok(comment.map(|comment| Recounted { comment, counts }));
                }
            }
        }
    }

    async fn judge(&self, comment: Option<&Comment>) -> Result<Verdict, Fault> {
        let Some(comment) = comment.filter(|comment| comment.may_count()) else {
            return Ok(Verdict { counts: false, checks: Vec::new() });
        };
        let ancestors: Vec<_> = comment.ancestors.iter().map(|id| keys::comment(*id)).collect();
        let mut found = self.batch_get(ancestors, Reading::Consistent).await?;
        let mut checks = Vec::new();
        for id in &comment.ancestors {
            let ancestor: Option<Comment> = found.remove(&keys::comment(*id)).map(read).transpose()?;
            let check = unchanged(*id, ancestor.as_ref());
            if !ancestor.is_some_and(|ancestor| ancestor.is_approved()) {
                return Ok(Verdict { counts: false, checks: vec![check] });
            }
            checks.push(check);
        }
        Ok(Verdict { counts: true, checks })
    }
}

/// Checks that a comment's state is unchanged since it was read: missing, hidden, shown, or a placeholder.
fn unchanged(id: CommentId, comment: Option<&Comment>) -> Write {
    let condition = match comment {
        None => absent(),
        Some(comment) if comment.is_placeholder => format!("attribute_exists({PLACEHOLDER})"),
        Some(comment) if comment.is_approved() => {
            format!("attribute_exists({PK}) AND attribute_not_exists({STATE}) AND attribute_not_exists({PLACEHOLDER})")
        }
        Some(_) => format!("attribute_exists({STATE})"),
    };
    Write::check(keys::comment(id), condition)
}

/// Counts a comment, unless it is already counted.
pub fn count(thread: &ThreadId, id: CommentId) -> Vec<Write> {
    count_by(thread, keys::counted(thread, id).item())
}

/// Like [`count()`], for a comment that was never shown before.
fn count_first(thread: &ThreadId, id: CommentId) -> Vec<Write> {
    let mut row = keys::counted(thread, id).item();
    row.insert(counted::IS_FIRST.to_owned(), AttributeValue::Bool(true));
    count_by(thread, row)
}

fn count_by(thread: &ThreadId, row: Item) -> Vec<Write> {
    let row = Write::put(row).when(absent());
    vec![row.label(Label::Counted), Write::update(keys::count(thread)).add(count::COUNT, number(1))]
}

/// Stops counting a comment, if it is counted.
pub fn discount(thread: &ThreadId, id: CommentId) -> Vec<Write> {
    let row = Write::delete(keys::counted(thread, id)).exists();
    vec![row.label(Label::Counted), Write::update(keys::count(thread)).add(count::COUNT, number(-1))]
}

pub(super) fn count_of(item: &Item) -> u64 {
    from_stored(stored_number(item, count::COUNT))
}
