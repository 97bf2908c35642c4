//! Jobs: walks over many items, in parts of bounded length. A job may run twice, even concurrently.

use std::future::ready;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::comments::{Changed, Plan, in_state};
use super::counts::RecountTrigger;
use super::deletion::tombstone;
use super::keys::{self, Key, Scope, Span};
use super::lists::walk::Window;
use super::schema::{comment, user};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, meter, number, placement, text};
use crate::domain::comment::Comment;
use crate::domain::ids::CommentId;
use crate::domain::job::{CleanUp, CountBelow, CountReplies, ForgetReactions, Job, MAX_INCOMPLETE, Rename};
use crate::domain::list::Order;
use crate::domain::time::Timestamp;
use crate::domain::user::{RENAME_PAUSE, User};
use crate::error::Fault;

/// Maximum time until an index lists all replies of a comment. If replies are still missing then, the comment's count
/// of replies is too high.
const MAX_INDEX_LAG: Duration = Duration::from_mins(1);
/// Time after a rename during which requests may still write comments with the old name, or the index may not list such
/// comments yet.
const LATE_NAMES: Duration = Duration::from_secs(90);
/// The shortest delay before an index is read again.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Average write units per second that a member's renames may cost: sixty writes per minute, of twenty units each.
const UNITS_A_SECOND: f64 = 20.0;
/// Maximum comments changed concurrently.
const AT_ONCE: usize = 25;

/// The remaining part of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Rest {
    pub job: Job,
    pub delay: Duration,
}

impl Store {
    /// Runs a job until it is done or the deadline has passed, but for at least one step. Returns the rest; `None` if the job
    /// is done.
    pub async fn run_job(&self, job: Job, now: Timestamp, deadline: Instant) -> Result<Option<Rest>, Fault> {
        match job {
            Job::CleanUp(job) => self.clean_up(job, now, deadline).await,
            Job::ForgetReactions(job) => self.forget_reactions(job, deadline).await,
            Job::CountBelow(job) => self.count_below(job, now, deadline).await,
            Job::Rename(job) => self.rename(job, now, deadline).await,
            // The job ends if the moderator has been erased.
            Job::RejectRecent(job) => match self.log_entry(job.ban).await? {
                Some(entry) if entry.moderator.is_none() => Ok(None),
                _ => self.reject_recent(job, now, deadline).await,
            },
        }
    }

    /// Removes the replies to a deleted comment, its reports and its counters of guests. Each removal of a reply has its own
    /// deletion event, which starts a job for the next level.
    async fn clean_up(&self, mut job: CleanUp, now: Timestamp, deadline: Instant) -> Result<Option<Rest>, Fault> {
        loop {
            let items = self.items_of(job.comment, None).await?;
            if items.contains(&keys::comment(job.comment)) {
                // The comment exists again, so the record of its deletion was out of date.
                return Ok(None);
            }
            let removed = self.remove_replies(job.comment).await?;
            job.replies = job.replies.saturating_sub(removed);
            if removed == 0 && items.is_empty() {
                break;
            }
            try_join_all(items.into_iter().map(|key| self.remove_item(key))).await?;
            if Instant::now() >= deadline {
                return Ok(Some(Rest { job: Job::CleanUp(job), delay: Duration::ZERO }));
            }
        }
        let age = now.since(job.deleted_at);
        let is_done = job.replies == 0 || age >= MAX_INDEX_LAG;
        // The delay equals the age, so it doubles each time.
        Ok((!is_done).then(|| Rest { job: Job::CleanUp(job), delay: age.max(FIRST_DELAY) }))
    }

    /// Removes some of the approved replies that an index lists, and returns how many it removed. The index may still list
    /// replies that no longer exist.
    async fn remove_replies(&self, parent: CommentId) -> Result<u64, Fault> {
        let replies = keys::replies(parent, Scope::Everyone);
        let replies = self.positions(replies, Window::first(Order::OldestFirst, AT_ONCE)).await?;
        let removed = try_join_all(replies.into_iter().map(|reply| self.remove_comment(reply))).await?;
        Ok(removed.into_iter().filter(|removed| *removed).count() as u64)
    }

    async fn forget_reactions(&self, job: ForgetReactions, deadline: Instant) -> Result<Option<Rest>, Fault> {
        while self.remove_reactions(job.comment).await? {
            if Instant::now() >= deadline {
                return Ok(Some(Rest { job: Job::ForgetReactions(job), delay: Duration::ZERO }));
            }
        }
        Ok(None)
    }

    /// Removes some of a placeholder's reports and guest counts. Returns false if there are none.
    pub async fn remove_reactions(&self, comment: CommentId) -> Result<bool, Fault> {
        let mut found = false;
        for bounds in [keys::reports(), keys::guest_bounds()] {
            let items = self.items_of(comment, Some(bounds)).await?;
            found |= !items.is_empty();
            try_join_all(items.into_iter().map(|key| self.transact(vec![Write::delete(key)]))).await?;
        }
        Ok(found)
    }

    /// Up to [`AT_ONCE`] keys in the partition of a comment.
    async fn items_of(
        &self,
        comment: CommentId,
        bounds: Option<(AttributeValue, AttributeValue)>,
    ) -> Result<Vec<Key>, Fault> {
        let partition = keys::comment_partition(comment);
        let index = Index::Table(Reading::Consistent);
        let items = Query { index, partition, bounds, order: Order::OldestFirst, limit: AT_ONCE };
        Ok(self.query_all(items).await?.iter().filter_map(Key::of).collect())
    }

    /// Removes up to `AT_ONCE` items in the partition of a deleted comment, and the unapproved replies that they refer to.
    /// Returns false if there were none.
    pub async fn remove_items(&self, comment: CommentId) -> Result<bool, Fault> {
        let rest = self.items_of(comment, None).await?;
        let found = !rest.is_empty();
        try_join_all(rest.into_iter().map(|key| self.remove_item(key))).await?;
        Ok(found)
    }

    async fn remove_item(&self, key: Key) -> Result<(), Fault> {
        if let Some(reply) = keys::hidden_reply_of(&key.sk) {
            self.remove_comment(reply).await?;
        }
        self.transact(vec![Write::delete(key)]).await.map(drop)
    }

    /// Removes a comment below a deleted one, without updating its parent, which is gone or also about to be removed.
    /// Returns false if the comment no longer exists.
    pub async fn remove_comment(&self, id: CommentId) -> Result<bool, Fault> {
        let Some(comment) = self.get::<Comment>(&keys::comment(id), Reading::Consistent).await? else {
            return Ok(false);
        };
        let plan = |comment: Comment| {
            let source = comment.source.as_ref().map(|source| text(&source.0));
            let mut writes =
                vec![in_state(Write::delete(keys::comment(id)), comment.state).still(comment::SOURCE, source)];
            writes.extend((!comment.is_approved()).then(|| placement::lose_own(&comment)));
            writes.extend(tombstone(&comment));
            ready(Ok(Plan::Together(writes)))
        };
        let changed = self.try_plans("removing a reply to a deleted comment", comment, plan).await?;
        Ok(matches!(changed, Changed::Done))
    }

    /// Counts everything below a comment, depth first. Replies that the index doesn't list yet are counted once it does.
    async fn count_below(&self, mut job: CountBelow, now: Timestamp, deadline: Instant) -> Result<Option<Rest>, Fault> {
        let age = now.since(job.changed_at);
        let may_lag = age < MAX_INDEX_LAG;
        if !may_lag {
            job.incomplete.clear();
        }
        while job.incomplete.len() < MAX_INCOMPLETE
            && let Some(walk) = job.walks.pop()
        {
            let incomplete = self.count_replies(&mut job, walk).await?;
            job.incomplete.extend(incomplete.filter(|_| may_lag));
            if Instant::now() >= deadline {
                return Ok(Some(Rest { job: Job::CountBelow(job), delay: Duration::ZERO }));
            }
        }
        if job.incomplete.is_empty() {
            return Ok(None);
        }
        job.walks.extend(job.incomplete.drain(..).map(CountReplies::of));
        Ok(Some(Rest { job: Job::CountBelow(job), delay: age.max(FIRST_DELAY) }))
    }

    /// Counts some replies of one comment, and adds the remaining work to the job. Returns the comment if the index doesn't list
    /// all of its replies.
    async fn count_replies(&self, job: &mut CountBelow, mut walk: CountReplies) -> Result<Option<CommentId>, Fault> {
        let window = match walk.after {
            None => Window::first(Order::OldestFirst, AT_ONCE),
            Some(after) => Window::beyond(after, Order::OldestFirst, AT_ONCE),
        };
        let replies = self.positions(keys::replies(walk.comment, Scope::Everyone), window).await?;
        let Some(newest) = replies.last().copied() else {
            let parent: Option<Comment> = self.get(&keys::comment(walk.comment), Reading::Consistent).await?;
            return Ok(parent.filter(|parent| parent.replies > walk.seen).map(|parent| parent.id));
        };
        walk.after = Some(newest);
        walk.seen += replies.len() as u64;
        job.walks.push(walk);
        let trigger = if job.is_first { RecountTrigger::FirstShown } else { RecountTrigger::Walk };
        // Recounts one reply at a time, because each recount changes the thread's count.
        for reply in replies {
            let recounted = self.recount_comment(&job.thread, reply, trigger).await?;
            if recounted.is_some_and(|recounted| recounted.comment.replies > 0) {
                job.walks.push(CountReplies::of(reply));
            }
        }
        Ok(None)
    }

    /// Updates the name and picture in the user's comments. Ends the job if the user was renamed again, because another
    /// job follows. Waits until the cost of the previous rename has been spread over time.
    async fn rename(&self, mut job: Rename, now: Timestamp, deadline: Instant) -> Result<Option<Rest>, Fault> {
        let Some(user) = self.user(job.user, Reading::Consistent).await? else { return Ok(None) };
        if user.renamed_at != job.renamed_at {
            return Ok(None);
        }
        let begins = job.before.is_none();
        let wait = user.comments_due(now).map_or(Duration::ZERO, |at| at.since(now.start_of_second()));
        if begins && !job.again && !wait.is_zero() {
            return Ok(Some(Rest { job: Job::Rename(job), delay: wait }));
        }
        let (is_done, cost) = meter::measure(self.rename_comments(&mut job, &user, deadline)).await;
        let is_done = is_done?;
        let pause = time_for(cost.write_units);
        // `RENAME_PAUSE` follows every rename anyway, and is long enough for a short walk.
        if pause > RENAME_PAUSE || !(begins && is_done) {
            self.put_off_next_name(&user, now.start_of_second(), pause).await?;
        }
        if !is_done {
            return Ok(Some(Rest { job: Job::Rename(job), delay: Duration::ZERO }));
        }
        let changed_at = user.renamed_at.filter(|_| !job.again);
        Ok(changed_at.map(|then| Rest {
            job: Job::Rename(Rename { before: None, again: true, ..job }),
            delay: LATE_NAMES.saturating_sub(now.since(then)),
        }))
    }

    /// Delays the next rename in comments until the cost of this one has been spread over time.
    async fn put_off_next_name(&self, user: &User, now: Timestamp, pause: Duration) -> Result<(), Fault> {
        let next = user.comments_at.unwrap_or(now).max(now) + pause;
        let put_off = Write::update(keys::user(user.id))
            .set(user::COMMENTS_AT, number(next.seconds()))
            .exists()
            .when(format!("attribute_not_exists({0}) OR {0} < :{0}", user::COMMENTS_AT));
        self.update("delaying the next rename", put_off).await.map(drop)
    }

    /// Updates the name in comments until the deadline, newest first. The second walk updates only the newest comments. Returns
    /// whether all are updated.
    async fn rename_comments(&self, job: &mut Rename, user: &User, deadline: Instant) -> Result<bool, Fault> {
        let is_earlier =
            |comment: CommentId| user.renamed_at.is_some_and(|then| then.since(comment.created_at()) > LATE_NAMES);
        loop {
            let written = Query {
                index: Index::Author,
                partition: keys::author(&user.id.into()),
                bounds: job.before.map(|before| Span::below(before).numbers()),
                order: Order::NewestFirst,
                limit: AT_ONCE,
            };
            let written: Vec<CommentId> = self.query_all(written).await?.iter().filter_map(keys::comment_of).collect();
            try_join_all(written.iter().map(|comment| self.rename_author(*comment, user))).await?;
            job.before = written.last().copied();
            if job.before.is_none_or(|oldest| job.again && is_earlier(oldest)) {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    async fn rename_author(&self, comment: CommentId, user: &User) -> Result<(), Fault> {
        let rename = Write::update(keys::comment(comment))
            .set(comment::NAME, text(user.name.clone()))
            .set(comment::AVATAR, text(self.kept_picture(user.avatar.clone())))
            .exists()
            .still(comment::USER, Some(number(user.id.0)))
            .when(format!("{0} <> :{0} OR attribute_not_exists({1}) OR {1} <> :{1}", comment::NAME, comment::AVATAR));
        self.transact(vec![rename]).await.map(drop)
    }
}

/// The time, in whole seconds, that these write units take at [`UNITS_A_SECOND`].
fn time_for(units: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, positive, and saturating")]
    let seconds = (units / UNITS_A_SECOND).ceil() as u64;
    Duration::from_secs(seconds)
}
