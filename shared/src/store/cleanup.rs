//! What follows from a change and is done behind the table's stream: clean-up below a deleted comment, replies that move up,
//! a user's new name on old comments. All of it is safe to do twice.

use std::time::Duration;

use aws_smithy_types::DateTime;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::comments::{ids, same_inline, same_state, state_text, unhide, with_inline};
use super::keys::{self, Key, Scope, Span};
use super::lists::walk::Window;
use super::transaction::{Outcome, Write};
use super::{ATTEMPTS, Index, Query, Reading, Store, number, text};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, fingerprint};
use crate::domain::list::Order;
use crate::domain::time::Timestamp;
use crate::domain::user::User;
use crate::error::Fault;

/// Between two looks at an index that lags.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Replies of one parent that an index is compared with. Below a parent with more, none moves up.
const MAX_COMPARED: usize = 10_000;
/// Replies of one parent that are read to see whether an index names them all, where no fingerprint tells.
const MAX_READ: usize = 1_000;
/// Comments worked on at once.
const AT_ONCE: usize = 25;

impl Store {
    /// Removes all that hangs on a comment that was deleted. Each reply removed is deleted in turn, and so brings the next
    /// level down. `lag` is how long the index may still be without replies that the comment had.
    pub async fn sweep_below(&self, comment: &Comment, lag: Duration) -> Result<(), Fault> {
        let queues = super::comments::queues(comment).map(|state| self.remove(keys::queue(state, comment.id)));
        try_join_all(queues).await?;
        let (until, mut swept) = (Instant::now() + lag, 0);
        loop {
            let replies = Query {
                index: Index::Time,
                partition: keys::replies(comment.id, Scope::Everyone),
                bounds: Some(Span::ALL.numbers()),
                order: Order::OldestFirst,
                limit: AT_ONCE,
            };
            let replies = self.query_all(replies).await?;
            let replies: Vec<CommentId> = replies.iter().filter_map(keys::comment_of).collect();
            // The index may still name what the last round removed.
            let removed = try_join_all(replies.iter().map(|reply| self.sweep(*reply))).await?;
            let removed = removed.iter().filter(|removed| **removed).count();
            swept += removed as u64;
            if removed == 0 && (swept >= comment.replies || Instant::now() >= until) {
                break;
            }
            if removed == 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        loop {
            let partition = keys::comment_partition(comment.id);
            let index = Index::Table(Reading::Consistent);
            let rest = Query { index, partition, bounds: None, order: Order::OldestFirst, limit: AT_ONCE };
            let rest: Vec<Key> = self.query_all(rest).await?.iter().filter_map(Key::of).collect();
            if rest.is_empty() {
                return Ok(());
            }
            try_join_all(rest.into_iter().map(|key| self.sweep_row(key))).await?;
        }
    }

    async fn sweep_row(&self, key: Key) -> Result<(), Fault> {
        if let Some(reply) = keys::hidden_reply_of(&key.sk) {
            self.sweep(reply).await?;
        }
        self.remove(key).await
    }

    async fn remove(&self, key: Key) -> Result<(), Fault> {
        self.transact(vec![Write::delete(key)]).await.map(drop)
    }

    /// Removes a comment whose parent is gone, with nothing to count but its writer's own. False when it was gone already.
    async fn sweep(&self, id: CommentId) -> Result<bool, Fault> {
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            let Some(comment) = self.get::<Comment>(&keys::comment(id), Reading::Consistent).await? else {
                return Ok(false);
            };
            let mut delete = Write::delete(keys::comment(id)).when(same_state(comment.state));
            if let Some(state) = state_text(comment.state) {
                delete = delete.with(":state", text(state));
            }
            let mut writes = vec![delete];
            if !comment.is_approved() {
                writes.push(unhide(&comment));
            }
            if self.transact(writes).await? == Outcome::Done {
                return Ok(true);
            }
        }
        Err(Fault::transient("removing a comment below one that is gone"))
    }

    /// Moves replies up that should lead below `parent`, as it stands in the stream, after others were deleted.
    ///
    /// Those that lead must be the oldest, and an index that lags may not name the oldest yet. So nothing moves until the
    /// index names exactly the replies that the parent counts. Lists are right meanwhile, as they read the trailing replies
    /// too. The parent's next change looks again.
    pub async fn promote_below(&self, parent: &Comment, embedded: usize) -> Result<(), Fault> {
        if due(parent, embedded) == 0 {
            return Ok(());
        }
        // What the stream tells is a moment old.
        let Some(parent) = self.get::<Comment>(&keys::comment(parent.id), Reading::Consistent).await? else {
            return Ok(());
        };
        let due = due(&parent, embedded);
        let count = usize::try_from(parent.replies).unwrap_or(usize::MAX);
        if due == 0 || count > MAX_COMPARED {
            return Ok(());
        }
        let replies = self
            .positions(keys::replies(parent.id, Scope::Everyone), Window::first(Order::OldestFirst, count + 1))
            .await?;
        if replies.len() != count {
            return Ok(());
        }
        let fingerprint = fingerprint(replies.iter().copied());
        if fingerprint != parent.fingerprint && !self.are_replies(&replies).await? {
            return Ok(());
        }
        let separate = replies.into_iter().filter(|reply| !parent.inline.contains(&reply.0));
        // Where a condition fails, the parent has changed, and that change looks again.
        self.transact(promotion(&parent, separate.take(due).collect(), fingerprint)).await.map(drop)
    }

    /// Whether all of them are there, and everyone may see them. Reads them all: for parents that have no fingerprint because
    /// they were written before there was one.
    async fn are_replies(&self, replies: &[CommentId]) -> Result<bool, Fault> {
        if replies.len() > MAX_READ {
            return Ok(false);
        }
        for replies in replies.chunks(AT_ONCE) {
            let found = replies.iter().map(|id| async { self.get(&keys::comment(*id), Reading::Consistent).await });
            let found: Vec<Option<Comment>> = try_join_all(found).await?;
            if !found.iter().all(|found| found.as_ref().is_some_and(Comment::is_approved)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts a user's new name and picture on all that the user wrote, and where the name is searched. When they are no
    /// longer the present ones, only the name before is forgotten: another event follows.
    pub async fn rename(&self, before: &User, after: &User) -> Result<(), Fault> {
        let Some(user) = self.user(before.id, Reading::Consistent).await? else { return Ok(()) };
        if !user.looks_like(after) {
            return self.forget_directory(before, &user).await;
        }
        self.refresh_directory(Some(before), &user).await?;
        let mut query = Query {
            index: Index::Author,
            partition: keys::author(user.id),
            bounds: None,
            order: Order::NewestFirst,
            limit: AT_ONCE,
        };
        let mut start = None;
        loop {
            let (written, next) = self.query(&query, start).await?;
            let written = written.iter().filter_map(keys::comment_of);
            try_join_all(written.map(|comment| self.sign(comment, &user))).await?;
            if next.is_none() {
                return Ok(());
            }
            query.limit = AT_ONCE;
            start = next;
        }
    }

    async fn sign(&self, comment: CommentId, user: &User) -> Result<(), Fault> {
        let sign = Write::update(keys::comment(comment), "SET n = :name, av = :avatar")
            .when("attribute_exists(pk) AND (n <> :name OR attribute_not_exists(av) OR av <> :avatar)")
            .with(":name", text(user.name.clone()))
            .with(":avatar", text(user.avatar.clone()));
        self.transact(vec![sign]).await.map(drop)
    }
}

/// Lets these replies lead below `parent`, if it still counts the same replies.
fn promotion(parent: &Comment, replies: Vec<CommentId>, fingerprint: i64) -> Vec<Write> {
    let mut inline = parent.inline.clone();
    inline.extend(replies.iter().map(|reply| reply.0));
    let condition = format!(
        "attribute_exists(pk) AND attribute_not_exists(s) AND rc = :replies \
         AND (attribute_not_exists(fp) OR fp = :before) AND {}",
        same_inline(parent)
    );
    let lead = Write::update(keys::comment(parent.id), "SET ld = :leading, fp = :fingerprint").when(condition);
    let lead = with_inline(lead, parent)
        .with(":leading", ids(&inline))
        .with(":fingerprint", number(fingerprint))
        .with(":before", number(parent.fingerprint))
        .with(":replies", number(parent.replies));
    let moved = replies.into_iter().map(|reply| {
        Write::update(keys::comment(reply), "SET tk = :tk, ts = :ts")
            .when("attribute_exists(pk) AND attribute_not_exists(s)")
            .with(":tk", text(keys::parents(&parent.thread, Scope::Everyone)))
            .with(":ts", text(keys::inline_sort_key(parent.id, reply)))
    });
    std::iter::once(lead).chain(moved).collect()
}

/// How many replies should move up.
fn due(parent: &Comment, embedded: usize) -> usize {
    let wanted = embedded.min(usize::try_from(parent.replies).unwrap_or(usize::MAX));
    let open = parent.is_top_level() && parent.is_approved() && parent.has_separate;
    if open { wanted.saturating_sub(parent.inline.len()) } else { 0 }
}

/// What a record of the table's stream tells.
#[derive(Debug)]
pub enum Event {
    /// And when, to the second.
    CommentRemoved(Comment, Timestamp),
    CommentChanged(Comment),
    /// A user's name or picture is another: as it was before, and since.
    UserRenamed(User, User),
}

impl Event {
    /// Reads one element of `Records`; `None` when nothing follows from it.
    pub fn read(record: &serde_json::Value) -> Result<Option<Self>, Fault> {
        let change = &record["dynamodb"];
        match (change["Keys"]["sk"]["S"].as_str(), record["eventName"].as_str()) {
            (Some("C"), Some("REMOVE")) => {
                let seconds = change["ApproximateCreationDateTime"].as_f64().unwrap_or_default();
                let at = Timestamp(DateTime::from_secs_f64(seconds).secs() * 1000);
                Ok(image(change, "OldImage")?.map(|comment| Self::CommentRemoved(comment, at)))
            }
            (Some("C"), Some("MODIFY")) => Ok(image(change, "NewImage")?.map(Self::CommentChanged)),
            (Some("U"), Some("MODIFY")) => {
                let (old, new): (Option<User>, Option<User>) = (image(change, "OldImage")?, image(change, "NewImage")?);
                // Without a name, a user was banned before anything was heard of them.
                let known = old.filter(|old| !old.name.is_empty()).zip(new);
                Ok(known.filter(|(old, new)| !old.looks_like(new)).map(|(old, new)| Self::UserRenamed(old, new)))
            }
            _ => Ok(None),
        }
    }
}

fn image<T: serde::de::DeserializeOwned>(change: &serde_json::Value, name: &str) -> Result<Option<T>, Fault> {
    let doing = "reading a record of the stream";
    match change.get(name) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(image) => {
            let item: serde_dynamo::Item =
                serde_json::from_value(image.clone()).map_err(|error| Fault::new(doing, error))?;
            serde_dynamo::from_item(item).map(Some).map_err(|error| Fault::new(doing, error))
        }
    }
}
