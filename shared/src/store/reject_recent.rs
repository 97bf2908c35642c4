//! Rejects a banned writer's recent comments. The first walk covers the comments from newest to oldest, and a second walk
//! covers comments that the index hadn't listed yet. Both stop when the ban is lifted, and skip comments that a moderator has
//! decided on since the ban began.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::comments::{Changed, Plan};
use super::jobs::Rest;
use super::keys::{self, Span};
use super::log::By;
use super::schema::{network_ban, user};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, bans, number};
use crate::domain::author::Author;
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, IdSource, Random};
use crate::domain::job::{Job, RejectRecent};
use crate::domain::list::Order;
use crate::domain::rejection::{Grounds, Rejection};
use crate::domain::time::{Clock, Timestamp};
use crate::domain::trust::Decided;
use crate::domain::user::Ban;
use crate::error::Fault;

/// A ban rejects comments written within this time before it, and comments of any age that await a moderator.
const RECENT: Duration = Duration::from_hours(7 * 24);
/// Maximum comments that each walk rejects. Another ban continues with older comments.
const MAX_REJECTED: usize = 1_000;
/// Maximum comments to examine. It exceeds [`MAX_REJECTED`], because comments may already be rejected, or be older than
/// [`RECENT`].
const MAX_SEEN: usize = 20_000;
/// Late comments are expected for this long after the ban: a request that began before the ban may still write one, and the
/// index may not list it yet.
const LATE: Duration = Duration::from_secs(30);
/// Maximum comments rejected concurrently. Decisions in the same thread conflict, and are retried.
const AT_ONCE: usize = 5;

impl Store {
    pub(super) async fn reject_recent(
        &self,
        mut job: RejectRecent,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<Option<Rest>, Fault> {
        // Dates log entries after the ban's entry, even if the clocks of instances differ.
        let banned_at = job.banned_at();
        let now = now.max(banned_at + Duration::from_millis(1));
        let clock = Clock::new(move || now);
        let ids = IdSource::new(clock.clone(), Random::system());
        let name = job.name.clone();
        let by = By { id: job.moderator, name: &name, ids: &ids, clock: &clock };
        loop {
            if self.ban_behind(&job).await?.is_none() {
                return Ok(None);
            }
            let mut written = self.written_before(&job).await?;
            let listed = written.len();
            written.retain(|id| !job.again || banned_at.since(id.created_at()) <= LATE);
            let is_past = listed == 0 || written.len() < listed;
            let decisions = written.iter().map(|comment| self.reject_if_recent(*comment, &job, by));
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
        let delay = LATE.saturating_sub(now.since(banned_at));
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

    /// The id and the data of an author's latest ban, unless it was lifted.
    async fn ban_of(&self, author: &Author) -> Result<Option<(u64, Ban)>, Fault> {
        Ok(match author {
            Author::User(id) => self.user(*id, Reading::Consistent).await?.and_then(|user| user.ban_id.zip(user.ban)),
            Author::Network(name) => {
                let item = self.one_item(&keys::network_ban(name), Reading::Consistent).await?;
                item.map(|item| bans::network(name, item)).transpose()?.map(|of| (of.id, of.ban))
            }
        })
    }

    /// The id and the data of the ban that started the walk, or of a ban that has replaced it without a gap.
    async fn ban_behind(&self, job: &RejectRecent) -> Result<Option<(u64, Ban)>, Fault> {
        let ban = self.ban_of(&job.author).await?;
        Ok(ban.filter(|(id, ban)| continues(job.ban, *id, ban)))
    }

    /// The id of the writer's ban if it is later than the latest decision about the comment. A walk may then reject the
    /// comment.
    pub(super) async fn ban_since_decided(&self, comment: &Comment) -> Result<Option<u64>, Fault> {
        let Some(author) = comment.author() else { return Ok(None) };
        Ok(self.ban_of(&author).await?.map(|(id, _)| id).filter(|id| *id > comment.decided))
    }

    /// Rejects the comment if it is recent. Returns whether the walk has rejected it, now or in an earlier run.
    async fn reject_if_recent(&self, id: CommentId, job: &RejectRecent, by: By<'_>) -> Result<bool, Fault> {
        let Some(comment) = self.comment(id, Reading::Consistent).await? else { return Ok(false) };
        let plan = |comment: Comment| self.plan_rejection(comment, job, by);
        Ok(match self.try_plans("rejecting a comment of a banned writer", comment, plan).await? {
            Changed::Done => true,
            Changed::Now(comment) => was_rejected(&comment, job),
            Changed::Edited | Changed::Gone => false,
        })
    }

    /// The plan for a rejection without a reason, on condition that the writer is still banned.
    async fn plan_rejection(&self, comment: Comment, job: &RejectRecent, by: By<'_>) -> Result<Plan, Fault> {
        let behind = self.ban_behind(job).await?;
        let Some((ban, _)) = behind.filter(|(_, ban)| !comment.is_placeholder && is_recent(&comment, job, ban)) else {
            return Ok(Plan::Nothing);
        };
        let noted = self.note_decision(&comment, Decided::Rejected).await?;
        let rejection = Rejection { is_silent: true, ..by.rejection(&Grounds::default()) };
        Ok(match self.reject(comment, rejection, by).await? {
            Plan::Together(mut writes) => {
                let ban = Some(number(ban));
                match &job.author {
                    // A member's trust and ban are in the same item.
                    Author::User(_) => writes.extend(noted.map(|noted| noted.still(user::BAN_ID, ban))),
                    Author::Network(name) => {
                        writes.extend(noted);
                        writes.push(Write::unchanged(keys::network_ban(name)).still(network_ban::ID, ban));
                    }
                }
                Plan::Together(writes)
            }
            plan => plan,
        })
    }
}

/// Whether a ban with this id is the one that started the walk, or has replaced it without a gap. If clocks differ, the
/// replacement may have a lower id than the ban that it replaced.
fn continues(started: u64, id: u64, ban: &Ban) -> bool {
    id == started || ban.first.is_some_and(|first| (first.min(id)..=first.max(id)).contains(&started))
}

/// Whether the ban rejects the comment: it is recent or awaits a moderator, it was written before the ban or by a
/// request that began before the ban, it isn't rejected yet, and no moderator has decided about it since the ban.
fn is_recent(comment: &Comment, job: &RejectRecent, ban: &Ban) -> bool {
    let (banned_at, written) = (job.banned_at(), comment.id.created_at());
    let is_new = written.since(banned_at) > LATE || ban.until.is_some_and(|until| written >= until);
    let is_listed = comment.is_queued() || banned_at.since(written) <= RECENT;
    is_listed && !is_new && comment.state != State::Rejected && comment.decided < job.ban
}

/// Whether the walk has rejected the comment in an earlier run.
fn was_rejected(comment: &Comment, job: &RejectRecent) -> bool {
    let is_silent = comment.rejection.as_ref().is_some_and(|rejection| rejection.is_silent);
    is_silent && comment.state == State::Rejected && comment.decided > job.ban
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{ThreadId, UserId};

    fn id_at(time: Timestamp) -> CommentId {
        CommentId::slots(time, 0).unwrap().next().unwrap()
    }

    fn job(banned_at: Timestamp) -> RejectRecent {
        RejectRecent {
            author: Author::User(UserId(7)),
            moderator: UserId(1),
            name: "Mod".to_owned(),
            ban: id_at(banned_at).0,
            before: None,
            seen: 0,
            rejected: 0,
            again: false,
        }
    }

    fn comment(written: Timestamp) -> Comment {
        Comment { id: id_at(written), ..Comment::blank(ThreadId::new("posts", "1").unwrap()) }
    }

    #[test]
    fn pending_comments_and_those_from_the_week_before_the_ban_are_rejected() {
        let now = Timestamp(1_800_000_000_000);
        let for_good = Ban { until: None, reason: None, first: None };
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
            let comment = Comment { state, in_review, ..comment(written) };
            assert_eq!(is_recent(&comment, &job(now), &for_good), expected, "{comment:?}");
        }
    }

    #[test]
    fn a_walk_continues_under_its_ban_and_those_that_replaced_it() {
        for (first, id, expected) in [
            (None, 5, true),
            (Some(3), 7, true),
            (Some(5), 7, true),
            (Some(9), 5, true),
            (Some(5), 3, true),
            (Some(7), 3, true),
            (None, 7, false),
            (Some(6), 7, false),
        ] {
            assert_eq!(continues(5, id, &Ban { until: None, reason: None, first }), expected, "{first:?} {id}");
        }
    }

    #[test]
    fn comments_decided_since_the_ban_or_written_after_its_end_are_not_rejected() {
        let now = Timestamp(1_800_000_000_000);
        let second = Duration::from_secs(1);
        let ban = Ban { until: Some(now + 10 * second), reason: None, first: None };
        for (written, decided, expected) in [
            (now + 9 * second, None, true),
            (now + 10 * second, None, false),
            (now - second, Some(now - second), true),
            (now - second, Some(now + second), false),
        ] {
            let decided = decided.map_or(0, |at| id_at(at).0);
            let comment = Comment { decided, ..comment(written) };
            assert_eq!(is_recent(&comment, &job(now), &ban), expected, "{comment:?}");
        }
    }
}
