//! Reads the comments that count (see `counts`): their number per thread, and the newest ones.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join_all};

use super::keys::{self, Span};
use super::{Index, Query, Reading, Store, counts, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::list::Order;
use crate::domain::thread::Thread;
use crate::error::Fault;

/// Number of newest comments that `changes` and `feed` read.
pub const NEWEST: usize = 20;
/// Maximum comments of a thread, and of each user, that are searched to find the thread's writers.
const SEARCHED: usize = 1_000;

#[derive(Debug)]
pub struct Newest {
    /// The number of the thread's comments that count.
    pub count: u64,
    /// Newest first, including replies.
    pub ids: Vec<CommentId>,
}

/// The newest comments, before it is known whether all comments above them are shown.
#[derive(Debug)]
pub struct Candidates {
    thread: Thread,
    /// Newest first.
    ids: Vec<CommentId>,
    approved: BTreeMap<CommentId, Comment>,
}

impl Candidates {
    /// Ancestors of the candidates that aren't candidates themselves.
    #[must_use]
    pub fn above(&self) -> BTreeSet<CommentId> {
        let ancestors = self.approved.values().flat_map(|comment| &comment.ancestors);
        ancestors.filter(|id| !self.approved.contains_key(id)).copied().collect()
    }
}

#[derive(Debug)]
pub struct NewestComments {
    pub thread: Thread,
    /// Newest first, including replies.
    pub comments: Vec<Comment>,
}

impl Store {
    /// Reads the data for `counts`: one count for each of at most 100 different threads, in the order of `threads`.
    pub async fn counts(&self, threads: &[ThreadId]) -> Result<Vec<u64>, Fault> {
        let keys: Vec<_> = threads.iter().map(keys::count).collect();
        let found = self.batch_get(keys.clone(), Reading::Eventual).await?;
        Ok(keys.iter().map(|key| found.get(key).map_or(0, counts::count_of)).collect())
    }

    /// Reads the data for `changes` in one round trip.
    pub async fn newest(&self, thread: &ThreadId) -> Result<Newest, Fault> {
        let key = keys::count(thread);
        let (count, ids) = try_join(self.one_item(&key, Reading::Eventual), self.newest_ids(thread, NEWEST)).await?;
        Ok(Newest { count: count.as_ref().map_or(0, counts::count_of), ids })
    }

    /// Reads the newest comments for `feed` in two round trips. Comments that seem to be absent or hidden are read once more.
    pub async fn newest_candidates(&self, thread: &ThreadId) -> Result<Candidates, Fault> {
        let key = keys::thread(thread);
        let (thread, ids) = try_join(self.one_item(&key, Reading::Eventual), self.newest_ids(thread, NEWEST)).await?;
        let approved = self.approved(ids.clone()).await?;
        Ok(Candidates { thread: thread.map(read).transpose()?.unwrap_or_default(), ids, approved })
    }

    /// Completes the comments for `feed`. Ancestors that aren't among the newest comments are read in the same way, in one more
    /// round trip.
    pub async fn newest_comments(&self, candidates: Candidates) -> Result<NewestComments, Fault> {
        let above = candidates.above();
        let Candidates { thread, ids, mut approved } = candidates;
        approved.extend(self.approved(above.into_iter().collect()).await?);
        // Comments that were just hidden or deleted, and the replies below them, may still be counted.
        let is_shown =
            |comment: &&Comment| comment.may_count() && comment.ancestors.iter().all(|id| approved.contains_key(id));
        let comments = ids.iter().filter_map(|id| approved.get(id)).filter(is_shown).cloned().collect();
        Ok(NewestComments { thread, comments })
    }

    /// The approved comments among `ids`. Comments that an eventual read misses or shows as hidden are read again consistently.
    async fn approved(&self, mut ids: Vec<CommentId>) -> Result<BTreeMap<CommentId, Comment>, Fault> {
        let mut approved = BTreeMap::new();
        for reading in [Reading::Eventual, Reading::Consistent] {
            let found = self.batch_get(ids.iter().copied().map(keys::comment).collect(), reading).await?;
            for item in found.into_values() {
                let comment: Comment = read(item)?;
                if comment.is_approved() {
                    approved.insert(comment.id, comment);
                }
            }
            ids.retain(|id| !approved.contains_key(id));
        }
        Ok(approved)
    }

    /// The `users` who wrote one of the thread's `SEARCHED` newest comments that count. Searches only the `SEARCHED` newest
    /// comments of each user.
    pub async fn writers_in(&self, thread: &ThreadId, users: &[UserId]) -> Result<BTreeSet<UserId>, Fault> {
        let ids: BTreeSet<CommentId> = self.newest_ids(thread, SEARCHED).await?.into_iter().collect();
        let Some(oldest) = ids.first() else { return Ok(BTreeSet::new()) };
        let is_writer = users.iter().map(|user| async {
            let query = Query {
                index: Index::Author,
                partition: keys::author(&(*user).into()),
                bounds: Some(Span::from(*oldest).numbers()),
                order: Order::NewestFirst,
                limit: SEARCHED,
            };
            let own = self.query_all(query).await?;
            let is_one = own.iter().filter_map(keys::comment_of).any(|id| ids.contains(&id));
            Ok::<_, Fault>(is_one.then_some(*user))
        });
        Ok(try_join_all(is_writer).await?.into_iter().flatten().collect())
    }

    async fn newest_ids(&self, thread: &ThreadId, limit: usize) -> Result<Vec<CommentId>, Fault> {
        let query = Query {
            index: Index::Table(Reading::Eventual),
            partition: keys::count(thread).pk,
            bounds: Some(keys::all_counted()),
            order: Order::NewestFirst,
            limit,
        };
        Ok(self.query_all(query).await?.iter().filter_map(keys::counted_of).collect())
    }
}
