//! The moderators' queues: pending, reported, rejected, and all new comments. A change of a comment updates its entries
//! in the first three queues in the same transaction. The function `events` adds new comments to the last queue, where
//! entries expire after 30 days.

use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use serde::Serialize;

use super::comments::{CommentWithAncestors, queues, read_units};
use super::keys::{self, Item};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window, merge};
use super::meter::measure;
use super::schema::{SK, queue};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, number};
use crate::domain::author::Author;
use crate::domain::comment::Comment;
use crate::domain::ids::CommentId;
use crate::domain::list::{Cursor, Order};
use crate::domain::time::Timestamp;
use crate::error::Fault;

/// Maximum age of a new comment.
const NEW: Duration = Duration::from_hours(30 * 24);
/// Maximum entries of a queue that are counted. A queue with this count may have more.
const MAX_COUNTED: usize = 100;

/// Maximum comments that a filtered page reads.
const MAX_FILTERED: usize = 200;
/// A filtered page ends before its comments may take more read units than this. Reading their ancestors may take more.
const MAX_FILTERED_UNITS: f64 = 300.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    Pending,
    Reported,
    Rejected,
    /// Comments of the last 30 days, whatever their state.
    All,
}

impl QueueState {
    const EVERY: [Self; 4] = [Self::Pending, Self::Reported, Self::Rejected, Self::All];

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|state| state.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Reported => "reported",
            Self::Rejected => "rejected",
            Self::All => "all",
        }
    }
}

/// The numbers of pending and reported comments; 100 means 100 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    pub pending: usize,
    pub reported: usize,
}

impl Store {
    /// A page of a queue, newest first. Leaves out comments that no longer exist, or that have a missing ancestor, because
    /// their entries stay until the deletion's event is handled.
    pub async fn queue(
        &self,
        state: QueueState,
        cursor: Option<Cursor>,
        per_page: usize,
        now: Timestamp,
    ) -> Result<(Vec<CommentWithAncestors>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let ids = self.queued(state, walk.window(per_page + 1), now).await?;
        self.page_of(walk, ids, per_page).await
    }

    /// A page of the comments in a queue that were written at `since` or later and satisfy `passes`. It ends after
    /// `MAX_FILTERED` comments, and before it reads more than `MAX_FILTERED_UNITS`, so a page with few or no comments may still
    /// have a next page.
    pub async fn filtered_queue(
        &self,
        state: QueueState,
        cursor: Option<Cursor>,
        per_page: usize,
        now: Timestamp,
        since: Option<Timestamp>,
        passes: impl Fn(&Comment) -> bool,
    ) -> Result<(Vec<CommentWithAncestors>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let mut window = walk.window(MAX_FILTERED + 1);
        if let Some(since) = since {
            window.span.low = window.span.low.max(CommentId::last_of(Timestamp(since.0.saturating_sub(1))).0 + 1);
        }
        let (ids, cost) = measure(self.queued(state, window, now)).await;
        let (ids, mut units) = (ids?, cost.read_units);
        let (mut page, mut read) = (Vec::new(), 0);
        let limit = ids.len().min(MAX_FILTERED);
        while page.len() < per_page && read < limit {
            let batch = affordable(units).min(limit - read);
            if batch == 0 {
                break;
            }
            let batch = &ids[read..read + batch];
            let (found, cost) = measure(self.find_passing(batch, per_page - page.len(), &passes)).await;
            units += cost.read_units;
            let (found, last) = found?;
            page.extend(found);
            read += last;
        }
        let more = read < ids.len();
        let mut edges = [ids.first().copied(), ids[..read].last().copied()];
        if walk.goes_back() {
            page.reverse();
            edges.reverse();
        }
        Ok((page, walk.cursors(edges[0], edges[1], more)))
    }

    /// The first `most` of these comments that satisfy `passes`, and the number of ids searched.
    async fn find_passing(
        &self,
        ids: &[CommentId],
        most: usize,
        passes: impl Fn(&Comment) -> bool,
    ) -> Result<(Vec<CommentWithAncestors>, usize), Fault> {
        let mut comments = self.comments_by_id(ids.to_vec(), Reading::Consistent).await?;
        comments.retain(|comment| !comment.is_placeholder && passes(comment));
        comments.truncate(most);
        let last = comments.last().filter(|_| comments.len() == most).map(|comment| comment.id);
        let taken = last.and_then(|last| ids.iter().position(|id| *id == last)).map_or(ids.len(), |last| last + 1);
        Ok((self.load_ancestors(comments).await?, taken))
    }

    /// The ids in a window of a queue, nearest to the cursor first.
    async fn queued(&self, state: QueueState, mut window: Window, now: Timestamp) -> Result<Vec<CommentId>, Fault> {
        if state == QueueState::All {
            // `DynamoDB` may not have removed expired entries yet.
            window.span.low = window.span.low.max(last_old(now).0 + 1);
        }
        Ok(merge(self.queue_entries(state, window).await?, window.order, |id| *id))
    }

    pub async fn queue_counts(&self) -> Result<QueueCounts, Fault> {
        let count = async |state| {
            let entries = self.queue_entries(state, Window::first(Order::NewestFirst, MAX_COUNTED)).await?;
            Ok(entries.iter().map(Vec::len).sum::<usize>().min(MAX_COUNTED))
        };
        let (pending, reported) = try_join(count(QueueState::Pending), count(QueueState::Reported)).await?;
        Ok(QueueCounts { pending, reported })
    }

    /// The entries in a window of a queue, by shard.
    async fn queue_entries(&self, state: QueueState, window: Window) -> Result<Vec<Vec<CommentId>>, Fault> {
        let Window { span, order, limit } = window;
        if span.low > span.high {
            return Ok(Vec::new());
        }
        let shards = (0..keys::QUEUE_SHARDS).map(|shard| {
            let partition = keys::queue_partition(state.name(), shard);
            let index = Index::Table(Reading::Eventual);
            self.query_all(Query { index, partition, bounds: Some(span.texts()), order, limit })
        });
        let id = |entry: &Item| keys::queued_comment(entry.get(SK)?.as_s().ok()?);
        let entries = try_join_all(shards).await?;
        Ok(entries.iter().map(|entries| entries.iter().filter_map(id).collect()).collect())
    }

    /// A page of everything that an author wrote, newest first, in any state.
    pub async fn written_by(
        &self,
        author: &Author,
        cursor: Option<Cursor>,
        per_page: usize,
    ) -> Result<(Vec<CommentWithAncestors>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(per_page + 1);
        let partition = keys::author(author);
        let query = Query { index: Index::Author, partition, bounds: Some(span.numbers()), order, limit };
        let ids = self.query_all(query).await?.iter().filter_map(keys::comment_of).collect();
        self.page_of(walk, ids, per_page).await
    }

    /// Builds the page of a walk from the ids that it read.
    async fn page_of(
        &self,
        walk: Walk,
        mut ids: Vec<CommentId>,
        per_page: usize,
    ) -> Result<(Vec<CommentWithAncestors>, PageCursors), Fault> {
        let more = walk.cut(&mut ids, per_page);
        let cursors = walk.cursors(ids.first().copied(), ids.last().copied(), more);
        let mut page = self.comments_with_ancestors(ids).await?;
        // A lagging index may still list a comment that has become a placeholder.
        page.retain(|found| !found.comment.is_placeholder);
        Ok((page, cursors))
    }

    /// Adds a comment to the queue of new comments.
    pub async fn join_new(&self, comment: &Comment) -> Result<(), Fault> {
        self.transact(vec![Write::put(new_entry(comment.id))]).await.map(drop)
    }

    /// Removes a comment that is gone, or has become a placeholder, from all queues.
    pub async fn leave_queues(&self, comment: &Comment) -> Result<(), Fault> {
        let states = queues(comment).chain([QueueState::All.name()]);
        let deletes = states.map(|state| Write::delete(keys::queue(state, comment.id)));
        try_join_all(deletes.map(|delete| self.transact(vec![delete]))).await?;
        Ok(())
    }
}

/// The number of comments of maximum size that a filtered page may still read.
fn affordable(spent: f64) -> usize {
    let fits = |count: &usize| spent + f64::from(read_units(*count, Reading::Consistent)) <= MAX_FILTERED_UNITS;
    (1..=MAX_FILTERED).take_while(fits).count()
}

/// The entry of an imported comment in the queue of new comments; `None` if the comment isn't new or is a placeholder. `events`
/// writes the entries of other comments.
pub fn imported_entry(comment: &Comment, now: Timestamp) -> Option<Item> {
    (comment.id > last_old(now) && !comment.is_placeholder).then(|| new_entry(comment.id))
}

/// The highest id of a comment that is no longer new.
fn last_old(now: Timestamp) -> CommentId {
    CommentId::last_of(now - NEW)
}

fn new_entry(id: CommentId) -> Item {
    let mut entry = keys::queue(QueueState::All.name(), id).item();
    let expires = (id.created_at() + NEW).seconds();
    entry.insert(queue::EXPIRES.to_owned(), number(expires));
    entry
}
