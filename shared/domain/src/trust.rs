//! Trust in a writer, for holding new writers' comments (`SVC_REQUIRE_APPROVAL=new`). It consists of moderators'
//! decisions about the writer's comments, and of comments that earn trust without a decision. They are stored as sets
//! of comment ids, so that each comment counts once, regardless of the order of decisions and deletions.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::CommentId;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// Maximum ids in each set.
pub const MAX_TRUSTED_IDS: usize = 20;
/// A rejected comment counts against its writer for this long after its creation.
const REJECTION_WINDOW: Duration = Duration::from_hours(30 * 24);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Comments whose latest decision is an approval, or that earn trust without one
    /// ([`crate::comment::Comment::earns_trust`]).
    #[serde(rename = "ap", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    approved: BTreeSet<u64>,
    /// The newest comments whose latest decision is a rejection.
    #[serde(rename = "np", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    rejected: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    Approved,
    Rejected,
}

impl Trust {
    /// The trust after a decision. Once the set is full, further approved comments aren't added.
    #[must_use]
    pub fn after(&self, comment: CommentId, decided: Decided) -> Self {
        let mut after = self.clone();
        after.approved.remove(&comment.0);
        after.rejected.remove(&comment.0);
        match decided {
            Decided::Approved if after.approved.len() < MAX_TRUSTED_IDS => drop(after.approved.insert(comment.0)),
            Decided::Approved => {}
            Decided::Rejected => drop(after.rejected.insert(comment.0)),
        }
        if after.rejected.len() > MAX_TRUSTED_IDS {
            after.rejected.pop_first();
        }
        after
    }

    #[must_use]
    pub fn approved(&self) -> &BTreeSet<u64> {
        &self.approved
    }

    #[must_use]
    pub fn rejected(&self) -> &BTreeSet<u64> {
        &self.rejected
    }

    /// The comments without a decision, oldest first, at most as many as still fit into the set of approved comments.
    #[must_use]
    pub fn without_decision(&self, comments: &BTreeSet<u64>) -> BTreeSet<u64> {
        let room = MAX_TRUSTED_IDS.saturating_sub(self.approved.len());
        let decided = |id: &&u64| self.approved.contains(id) || self.rejected.contains(id);
        comments.iter().filter(|id| !decided(id)).take(room).copied().collect()
    }

    /// The number of the writer's recent comments that were rejected.
    #[must_use]
    pub fn recently_rejected(&self, now: Timestamp) -> usize {
        let counts = |id: &&u64| CommentId(**id).created_at().is_within(REJECTION_WINDOW, now);
        self.rejected.iter().filter(counts).count()
    }

    /// The reasons to hold the writer's comments; empty if the writer is trusted.
    #[must_use]
    pub fn doubts(&self, now: Timestamp) -> Vec<Verdict> {
        let rejected = self.recently_rejected(now);
        let first = self.approved.is_empty().then(Verdict::first_comment);
        let rejections = (rejected > 0).then(|| Verdict::rejections(rejected));
        first.into_iter().chain(rejections).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn written_on(day: u32) -> CommentId {
        CommentId::slots(Timestamp(1_700_000_000_000) + day * DAY, 0).unwrap().next().unwrap()
    }

    fn after(decisions: &[(u32, Decided)]) -> Trust {
        decisions.iter().fold(Trust::default(), |trust, (day, decided)| trust.after(written_on(*day), *decided))
    }

    /// The names of the rules that hold a comment on this day.
    fn doubts(trust: &Trust, day: u32) -> Vec<&'static str> {
        trust.doubts(written_on(day).created_at()).into_iter().map(|verdict| verdict.rule.name()).collect()
    }

    #[test]
    fn a_writer_is_trusted_after_an_approval_unless_a_comment_of_the_last_30_days_is_rejected() {
        use Decided::{Approved, Rejected};
        for (decisions, day, expected) in [
            (&[][..], 0, vec!["first_comment"]),
            (&[(0, Approved)], 1, vec![]),
            (&[(0, Rejected)], 1, vec!["first_comment", "rejections"]),
            (&[(0, Rejected)], 30, vec!["first_comment"]),
            (&[(0, Approved), (1, Rejected)], 30, vec!["rejections"]),
            (&[(0, Approved), (1, Rejected)], 31, vec![]),
            (&[(0, Approved), (0, Rejected)], 1, vec!["first_comment", "rejections"]),
            (&[(0, Rejected), (0, Approved)], 1, vec![]),
        ] {
            assert_eq!(doubts(&after(decisions), day), expected, "{decisions:?} on day {day}");
        }
    }

    #[test]
    fn trust_sets_have_twenty_ids_and_keep_the_newest_rejected_comments() {
        let both = |decided| after(&(0..30).rev().map(|day| (day, decided)).collect::<Vec<_>>());
        assert_eq!(both(Decided::Approved).approved.len(), 20);
        let newest: BTreeSet<u64> = (10..30).map(|day| written_on(day).0).collect();
        assert_eq!(both(Decided::Rejected).rejected, newest);
    }
}
