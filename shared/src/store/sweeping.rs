//! What follows from a change and is done behind the table's stream: clean-up below a deleted comment, replies that move up,
//! a user's new name on old comments. All of it is safe to do twice.

use std::time::Duration;

use aws_smithy_types::DateTime;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::comments::{id_set, same_state, state_text, unhide};
use super::keys::{self, Key, Scope, Span};
use super::transaction::{Outcome, Write};
use super::users::User;
use super::{Index, Query, Reading, Store, number, text};
use crate::comment::Comment;
use crate::error::Fault;
use crate::ids::CommentId;
use crate::time::Timestamp;

/// Between two looks at an index that lags.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
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
                descending: false,
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
            let rest = Query { index: Index::Table, partition, bounds: None, descending: false, limit: AT_ONCE };
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
        // Changed since: the event is handled again, or the loop comes by.
        Ok(self.transact(writes).await? == Outcome::Done)
    }

    /// Moves replies up that should lead below `parent`, as it stands in the stream, after others were deleted.
    pub async fn promote_below(&self, parent: &Comment, embedded: usize) -> Result<(), Fault> {
        let due = |parent: &Comment| {
            let wanted = embedded.min(usize::try_from(parent.replies).unwrap_or(usize::MAX));
            let open = parent.is_top_level() && parent.is_approved() && parent.trailing;
            if open { wanted.saturating_sub(parent.leading.len()) } else { 0 }
        };
        if due(parent) == 0 {
            return Ok(());
        }
        // What the stream tells is a moment old.
        let Some(parent) = self.get::<Comment>(&keys::comment(parent.id), Reading::Consistent).await? else {
            return Ok(());
        };
        let after = parent.leading.last().map_or(Span::ALL, |last| Span::above(CommentId(*last)));
        let next = self.trailing(parent.id, Scope::Everyone, after, false, due(&parent).max(1)).await?;
        for reply in next.iter().take(due(&parent)) {
            let writes = vec![
                Write::update(keys::comment(reply.id), "SET tk = :tk, ts = :ts")
                    .when("attribute_exists(pk) AND attribute_not_exists(s)")
                    .with(":tk", text(keys::parents(&parent.thread, Scope::Everyone)))
                    .with(":ts", text(keys::leading_sort_key(parent.id, reply.id))),
                Write::update(keys::comment(parent.id), "ADD ld :reply")
                    .when(
                        "attribute_exists(pk) AND attribute_not_exists(s) AND rc = :replies \
                         AND (attribute_not_exists(ld) OR (size(ld) < :embedded AND NOT contains(ld, :id)))",
                    )
                    .with(":reply", id_set(reply.id))
                    .with(":id", number(reply.id))
                    // One approved meanwhile may be older than those about to lead.
                    .with(":replies", number(parent.replies))
                    .with(":embedded", number(embedded)),
            ];
            self.transact(writes).await?;
        }
        Ok(())
    }

    /// Puts a user's present name and picture on all that the user wrote, and where the name is searched.
    pub async fn rename(&self, before: &User) -> Result<(), Fault> {
        let Some(user) = self.user(before.id, Reading::Consistent).await? else { return Ok(()) };
        self.refresh_directory(Some(before), &user).await?;
        let mut query = Query {
            index: Index::Author,
            partition: keys::author(user.id),
            bounds: None,
            descending: true,
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

/// What a record of the table's stream tells.
#[derive(Debug)]
pub enum Event {
    /// And when, to the second.
    CommentRemoved(Comment, Timestamp),
    CommentChanged(Comment),
    /// A user's name or picture is another than it was before.
    UserRenamed(User),
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
                let changed = |(old, new): &(User, User)| old.name != new.name || old.avatar != new.avatar;
                // Without a name, a user was banned before anything was heard of them.
                let renamed = old.filter(|old| !old.name.is_empty()).zip(new).filter(changed);
                Ok(renamed.map(|(old, _)| Self::UserRenamed(old)))
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
