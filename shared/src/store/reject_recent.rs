//! Rejects what a banned writer wrote lately. A walk from the newest comment to the oldest, and another one over those that the
//! index had not listed.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::jobs::Rest;
use super::keys::{self, Span};
use super::log::Moderator;
use super::moderation::Verdict;
use super::{Index, Query, Reading, Store};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, IdSource, Random};
use crate::domain::job::{Job, RejectRecent};
use crate::domain::list::Order;
use crate::domain::time::{Clock, Timestamp};
use crate::error::Fault;

/// What was written within this time before the ban is rejected, and what waits.
const RECENT: Duration = Duration::from_hours(7 * 24);
/// Comments that a ban rejects. Another ban goes on with older ones.
const MAX_REJECTED: usize = 1_000;
/// Comments that are looked at. Most of them were rejected by earlier bans, or are older than [`RECENT`].
const MAX_SEEN: usize = 20_000;
/// Until so long after the ban, requests that began before it may write, and the index may not list what they wrote.
const LATE: Duration = Duration::from_secs(30);
/// Comments decided about concurrently. Those of one thread conflict, and are tried again.
const AT_ONCE: usize = 5;

impl Store {
    pub(super) async fn reject_recent(
        &self,
        mut job: RejectRecent,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<Option<Rest>, Fault> {
        let clock = Clock::new(move || now);
        let ids = IdSource::new(clock.clone(), Random::system());
        let name = job.name.clone();
        let by = Moderator { id: job.moderator, name: &name, ids: &ids, clock: &clock };
        loop {
            let mut written = self.written_before(&job).await?;
            let listed = written.len();
            written.retain(|id| !job.again || job.banned_at.since(id.created_at()) <= LATE);
            let is_past = listed == 0 || written.len() < listed;
            let decisions = written.iter().map(|comment| self.reject_if_recent(*comment, job.banned_at, by));
            let decided = try_join_all(decisions).await?;
            job.before = written.last().copied();
            job.seen += written.len();
            job.rejected += decided.into_iter().filter(|decided| *decided).count();
            if is_past || job.rejected >= MAX_REJECTED || job.seen >= MAX_SEEN {
                break;
            }
            if Instant::now() >= deadline {
                return Ok(Some(Rest { job: Job::RejectRecent(job), delay: Duration::ZERO }));
            }
        }
        if job.again {
            return Ok(None);
        }
        let delay = LATE.saturating_sub(now.since(job.banned_at));
        let again = RejectRecent { before: None, seen: 0, rejected: 0, again: true, ..job };
        Ok(Some(Rest { job: Job::RejectRecent(again), delay }))
    }

    /// The next comments of the walk, newest first.
    async fn written_before(&self, job: &RejectRecent) -> Result<Vec<CommentId>, Fault> {
        let written = Query {
            index: Index::Author,
            partition: keys::author(&job.author),
            bounds: job.before.map(|before| Span::below(before).numbers()),
            order: Order::NewestFirst,
            limit: AT_ONCE.min(MAX_REJECTED - job.rejected),
        };
        Ok(self.query_all(written).await?.iter().filter_map(keys::comment_of).collect())
    }

    /// Whether it is one to be rejected.
    async fn reject_if_recent(&self, id: CommentId, banned_at: Timestamp, by: Moderator<'_>) -> Result<bool, Fault> {
        let comment = self.comment(id, Reading::Consistent).await?;
        let Some(comment) = comment.filter(|comment| is_recent(comment, banned_at)) else { return Ok(false) };
        self.decide(comment, &Verdict::RejectSilently, None, by).await?;
        Ok(true)
    }
}

/// Whether a ban at this time rejects the comment.
fn is_recent(comment: &Comment, banned_at: Timestamp) -> bool {
    let written = comment.id.created_at();
    let is_new = written.since(banned_at) > LATE;
    let is_listed = comment.is_queued() || banned_at.since(written) <= RECENT;
    comment.state != State::Rejected && !comment.is_placeholder && !is_new && is_listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ThreadId;

    #[test]
    fn what_waits_and_what_was_written_within_a_week_before_the_ban_is_rejected() {
        let now = Timestamp(1_800_000_000_000);
        let days = |days: u64| now - Duration::from_hours(days * 24);
        for (written, state, in_review, expected) in [
            (days(0), State::Approved, false, true),
            (days(7), State::Approved, false, true),
            (days(8), State::Approved, false, false),
            (days(8), State::Approved, true, true),
            (days(8), State::Pending, false, true),
            (days(1), State::Rejected, false, false),
            (now + Duration::from_secs(31), State::Approved, false, false),
        ] {
            let id = CommentId::slots(written, 0).unwrap().next().unwrap();
            let comment = Comment { id, state, in_review, ..Comment::blank(ThreadId::new("posts", "1").unwrap()) };
            assert_eq!(is_recent(&comment, now), expected, "{comment:?}");
        }
    }
}
