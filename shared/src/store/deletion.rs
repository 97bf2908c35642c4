//! Deletes comments. A comment with a live reply (one that isn't rejected) becomes a placeholder. Any other comment is removed,
//! in one transaction with the placeholders above it that would be left without a live reply. No reply can become live below a
//! removed comment, because any transaction that makes a reply live requires its parent to exist. Rejected replies to removed
//! comments become unreachable immediately, and a job removes them and everything below them.
//!
//! The transaction requires that the comments are unchanged since they were read. It detects changes of their replies by a
//! count (`comment::REPLIES`), which changes with approved replies, and by a guard (`comment::DELETION_GUARD`), which changes
//! when
//!
//! - an unapproved reply is added, or a reply loses its approval;
//! - an unapproved reply below a placeholder is removed;
//! - the comment's parent becomes a placeholder because the comment is a pending reply.
//!
//! While the guard is 0, all replies are approved, so none needs to be read.

use super::comments::{CommentWithAncestors, Plan, in_state, leave_thread, queues};
use super::keys::{self, Key};
use super::schema::{comment, source};
use super::transaction::{Outcome, Write};
use super::{Index, Query, Reading, Store, number, placement, read, yes};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, SourceId};
use crate::domain::list::Order;
use crate::domain::thread::Thread;
use crate::error::Fault;

/// Maximum unapproved replies read to find a live one. If there are more, one of them is assumed to be live.
const MAX_READ: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveReply {
    None,
    Approved,
    /// A reply that waits for a moderator.
    Pending(CommentId),
    /// The comment has more than `MAX_READ` unapproved replies, so one is assumed to be live.
    Unknown,
}

impl Store {
    /// Deletes a comment. Returns false if it no longer exists or is already a placeholder.
    pub async fn delete(&self, mut found: CommentWithAncestors) -> Result<bool, Fault> {
        // Doesn't use `change`, because another attempt also reads the ancestors again.
        let mut attempts = self.attempts("deleting a comment");
        loop {
            if attempts.next().await? {
                let Some(now) = self.comment_with_ancestors(found.comment.id, Reading::Consistent).await? else {
                    return Ok(false);
                };
                found = now;
            }
            if found.comment.is_placeholder {
                return Ok(false);
            }
            let plan = match self.live_reply(&found.comment, None).await? {
                LiveReply::None => Plan::Together(self.removal(&found).await?),
                live => self.placeholder_above(&found.comment, live).await?,
            };
            if let Plan::Together(writes) = plan
                && self.transact(writes).await? == Outcome::Done
            {
                return Ok(true);
            }
        }
    }

    /// A live reply of the comment other than `going`, which is being removed.
    pub async fn live_reply(&self, comment: &Comment, going: Option<&Comment>) -> Result<LiveReply, Fault> {
        if comment.replies > u64::from(going.is_some_and(Comment::is_approved)) {
            return Ok(LiveReply::Approved);
        }
        if comment.deletion_guard == 0 {
            return Ok(LiveReply::None);
        }
        let hidden = Query {
            index: Index::Table(Reading::Consistent),
            partition: keys::comment_partition(comment.id),
            bounds: Some(keys::hidden_replies()),
            order: Order::OldestFirst,
            limit: MAX_READ + 2,
        };
        let hidden: Vec<Key> = self.query_all(hidden).await?.iter().filter_map(Key::of).collect();
        let hidden = hidden.iter().filter_map(|key| keys::hidden_reply_of(&key.sk));
        let hidden: Vec<CommentId> = hidden.filter(|id| going.is_none_or(|going| going.id != *id)).collect();
        if hidden.len() > MAX_READ {
            return Ok(LiveReply::Unknown);
        }
        let replies = self.batch_get(hidden.into_iter().map(keys::comment).collect(), Reading::Consistent).await?;
        let replies: Vec<Comment> = replies.into_values().map(read).collect::<Result<_, _>>()?;
        let pending = replies.iter().filter(|reply| reply.state == State::Pending).map(|reply| reply.id);
        Ok(pending.min().map_or(LiveReply::None, LiveReply::Pending))
    }

    /// The plan that turns the comment into a placeholder, on condition that it still has a live reply. There is no
    /// such condition for [`LiveReply::Unknown`].
    async fn placeholder_above(&self, comment: &Comment, live: LiveReply) -> Result<Plan, Fault> {
        let is_approved = live == LiveReply::Approved;
        let answered = |write: Write| {
            if is_approved {
                write.when(format!("{} > :none", comment::REPLIES)).with(":none", number(0))
            } else {
                write
            }
        };
        let plan = self.placeholder_plan(comment, answered).await?;
        Ok(match (plan, live) {
            (Plan::Together(mut writes), LiveReply::Pending(reply)) => {
                writes.push(
                    in_state(Write::update(keys::comment(reply)), State::Pending)
                        .add(comment::DELETION_GUARD, number(1)),
                );
                Plan::Together(writes)
            }
            (plan, _) => plan,
        })
    }

    /// The writes that remove the comment, and the placeholders above it that would be left without a live reply.
    async fn removal(&self, found: &CommentWithAncestors) -> Result<Vec<Write>, Fault> {
        let mut above = found.ancestors.iter().rev().peekable();
        let (mut top, mut below) = (&found.comment, Vec::new());
        while let Some(parent) = above.peek()
            && parent.is_placeholder
            && self.live_reply(parent, Some(top)).await? == LiveReply::None
        {
            below.push(top);
            top = parent;
            above.next();
        }
        let may_be_pinned = top.is_top_level() && top.may_count();
        let thread =
            if may_be_pinned { self.thread(&top.thread, Reading::Consistent).await? } else { Thread::default() };
        let mut writes = leave(top, above.next(), &thread);
        // The deletion event and its job remove the queue entries and hidden-reply items of these comments.
        writes.extend(below.iter().copied().flat_map(remove));
        writes.extend(below.into_iter().chain([top]).filter_map(tombstone));
        Ok(writes)
    }
}

/// The writes that delete a comment without a live reply, on condition that its replies are unchanged since it was
/// read.
pub fn leave(comment: &Comment, parent: Option<&Comment>, thread: &Thread) -> Vec<Write> {
    let mut writes: Vec<Write> = remove(comment).collect();
    match (comment.is_approved(), parent) {
        (true, None) => writes.push(leave_thread(comment, thread)),
        (true, Some(parent)) => {
            let lose = placement::lose(parent.id, comment);
            writes.push(if parent.is_placeholder {
                as_answered(lose, parent)
            } else {
                lose.still(comment::PLACEHOLDER, None)
            });
        }
        (false, parent) => {
            let placeholder = parent.filter(|parent| parent.is_placeholder);
            let lose =
                |parent: &Comment| Write::update(keys::comment(parent.id)).add(comment::DELETION_GUARD, number(1));
            writes.extend(placeholder.map(|parent| as_answered(lose(parent), parent)));
            writes.extend(parent.map(|parent| Write::delete(keys::hidden_reply(parent.id, comment.id))));
        }
    }
    writes.extend(queues(comment).map(|state| Write::delete(keys::queue(state, comment.id))));
    writes
}

/// Deletes the comment if it is unchanged since it was read. If it is unapproved, also decrements its writer's count.
fn remove(comment: &Comment) -> impl Iterator<Item = Write> {
    let delete = as_answered(in_state(Write::delete(keys::comment(comment.id)), comment.state), comment);
    std::iter::once(delete).chain((!comment.is_approved()).then(|| placement::lose_own(comment)))
}

/// Requires that the comment's replies, and whether it is a placeholder, are unchanged since it was read.
fn as_answered(write: Write, comment: &Comment) -> Write {
    let guard = Some(comment.deletion_guard).filter(|guard| *guard > 0);
    let write = write.still(comment::PLACEHOLDER, comment.is_placeholder.then(yes));
    let write = write.still(comment::DELETION_GUARD, guard.map(number));
    match comment.replies {
        0 => write.when(format!("attribute_not_exists({0}) OR {0} = :none", comment::REPLIES)).with(":none", number(0)),
        replies => write.still(comment::REPLIES, Some(number(replies))),
    }
}

/// Turns a deleted comment's source item into a tombstone, so that later imports don't restore the comment. `None` if the
/// comment wasn't imported.
pub fn tombstone(comment: &Comment) -> Option<Write> {
    comment.source.as_ref().map(|source| tombstone_of(source, comment.id))
}

pub fn tombstone_of(source: &SourceId, id: CommentId) -> Write {
    Write::update(keys::source(source)).set(source::COMMENT, number(id.0)).set(source::DELETED, yes())
}
