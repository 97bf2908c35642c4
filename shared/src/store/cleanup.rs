//! Work that follows from events of the table's stream: the clean-up below a deleted comment, the promotion of replies, a
//! user's new name on old comments. All of it is safe to do twice.

use std::future::ready;
use std::time::Duration;

use aws_smithy_types::DateTime;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::comments::{Changed, Plan, in_state, queues};
use super::keys::{self, Key, Scope};
use super::lists::walk::Window;
use super::transaction::Write;
use super::{Index, Query, Reading, Store, placement, text};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, fingerprint};
use crate::domain::list::Order;
use crate::domain::time::Timestamp;
use crate::domain::user::User;
use crate::error::Fault;

/// The pause between two reads of an index that lags.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Replies of one parent that are compared with an index. Below a parent with more, none is promoted.
const MAX_COMPARED: usize = 10_000;
/// Replies of a parent without a fingerprint that are read to see whether an index lists them all.
const MAX_READ: usize = 1_000;
/// Comments changed concurrently.
const AT_ONCE: usize = 25;

impl Store {
    /// Removes all items below a deleted comment. Each removed reply is a deletion in turn, whose event removes the next
    /// level. `lag` is how long the index may still be without replies that the comment had.
    pub async fn clean_up_below(&self, comment: &Comment, lag: Duration) -> Result<(), Fault> {
        let queues = queues(comment).map(|state| self.remove(keys::queue(state, comment.id)));
        try_join_all(queues).await?;
        self.remove_replies(comment, lag).await?;
        self.remove_items(comment.id).await
    }

    /// Removes the approved replies, which an index lists.
    async fn remove_replies(&self, parent: &Comment, lag: Duration) -> Result<(), Fault> {
        let (until, mut total) = (Instant::now() + lag, 0);
        loop {
            let replies = keys::replies(parent.id, Scope::Everyone);
            let replies = self.positions(replies, Window::first(Order::OldestFirst, AT_ONCE)).await?;
            let removed = try_join_all(replies.into_iter().map(|reply| self.remove_comment(reply))).await?;
            // The index may still list replies that the last round removed.
            let removed = removed.into_iter().filter(|removed| *removed).count();
            total += removed as u64;
            if removed > 0 {
                continue;
            }
            if total >= parent.replies || Instant::now() >= until {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Removes the items in a deleted comment's partition, and the unapproved replies that they name.
    async fn remove_items(&self, comment: CommentId) -> Result<(), Fault> {
        loop {
            let partition = keys::comment_partition(comment);
            let index = Index::Table(Reading::Consistent);
            let rest = Query { index, partition, bounds: None, order: Order::OldestFirst, limit: AT_ONCE };
            let rest: Vec<Key> = self.query_all(rest).await?.iter().filter_map(Key::of).collect();
            if rest.is_empty() {
                return Ok(());
            }
            try_join_all(rest.into_iter().map(|key| self.remove_item(key))).await?;
        }
    }

    async fn remove_item(&self, key: Key) -> Result<(), Fault> {
        if let Some(reply) = keys::hidden_reply_of(&key.sk) {
            self.remove_comment(reply).await?;
        }
        self.remove(key).await
    }

    async fn remove(&self, key: Key) -> Result<(), Fault> {
        self.transact(vec![Write::delete(key)]).await.map(drop)
    }

    /// Removes a comment whose parent no longer exists. Only its writer's counts change. False when it no longer exists.
    async fn remove_comment(&self, id: CommentId) -> Result<bool, Fault> {
        let Some(comment) = self.get::<Comment>(&keys::comment(id), Reading::Consistent).await? else {
            return Ok(false);
        };
        let plan = |comment: Comment| {
            let mut writes = vec![in_state(Write::delete(keys::comment(id)), comment.state)];
            writes.extend((!comment.is_approved()).then(|| placement::lose_own(&comment)));
            ready(Ok(Plan::Together(writes)))
        };
        let changed = self.try_plans("removing a reply to a deleted comment", comment, plan).await?;
        Ok(matches!(changed, Changed::Done))
    }

    /// Promotes separate replies of `parent`, as the event has it, after inline ones were deleted.
    ///
    /// Inline replies must be the oldest, and an index that lags may not list the oldest yet. So nothing is promoted until
    /// the index lists exactly the replies that the parent counts. The parent's next change tries again.
    /// Until then lists are still correct, because they read separate replies too.
    pub async fn promote_below(&self, parent: &Comment) -> Result<(), Fault> {
        if placement::promotable(parent, self.embedded) == 0 {
            return Ok(());
        }
        // The event may be out of date.
        let Some(parent) = self.get::<Comment>(&keys::comment(parent.id), Reading::Consistent).await? else {
            return Ok(());
        };
        let count = usize::try_from(parent.replies).unwrap_or(usize::MAX);
        if placement::promotable(&parent, self.embedded) == 0 || count > MAX_COMPARED {
            return Ok(());
        }
        let replies = self
            .positions(keys::replies(parent.id, Scope::Everyone), Window::first(Order::OldestFirst, count + 1))
            .await?;
        if replies.len() != count {
            return Ok(());
        }
        if fingerprint(replies.iter().copied()) != parent.fingerprint && !self.are_replies(&replies).await? {
            return Ok(());
        }
        // Where a condition fails, the parent has changed, and the event of that change tries again.
        self.transact(placement::promotion(&parent, &replies, self.embedded)).await.map(drop)
    }

    /// Whether all of them exist and are approved. Reads them all: for parents that were written before there were
    /// fingerprints.
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

    /// Writes a user's new name and picture to all comments of the user and to the search. When they have changed again
    /// since, it only deletes the old search entries: another event follows.
    pub async fn rename(&self, before: &User, after: &User) -> Result<(), Fault> {
        let Some(user) = self.user(before.id, Reading::Consistent).await? else { return Ok(()) };
        if !user.looks_like(after) {
            return self.forget_directory(before, &user).await;
        }
        self.refresh_directory(Some(before), &user).await?;
        let query = Query {
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
            try_join_all(written.map(|comment| self.rename_author(comment, &user))).await?;
            if next.is_none() {
                return Ok(());
            }
            start = next;
        }
    }

    async fn rename_author(&self, comment: CommentId, user: &User) -> Result<(), Fault> {
        let rename = Write::update(keys::comment(comment))
            .set("n", text(user.name.clone()))
            .set("av", text(user.avatar.clone()))
            .exists()
            .when("n <> :n OR attribute_not_exists(av) OR av <> :av");
        self.transact(vec![rename]).await.map(drop)
    }
}

/// A record of the table's stream that work follows from.
#[derive(Debug)]
pub enum Event {
    /// The comment, and the time to the second.
    CommentRemoved(Comment, Timestamp),
    CommentChanged(Comment),
    /// A user's name or picture changed: the user before and after.
    UserRenamed(User, User),
}

impl Event {
    /// Reads one element of `Records`; `None` when no work follows from it.
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
                // A user without a name was banned before the first sign-in.
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
