//! Decides a comment's index keys, without I/O. No other module makes these decisions.
//!
//! A top-level comment is in its thread's partition. A reply is in one of two places:
//!
//! - *Inline* replies are in the thread's partition too, right after their parent, so that one Query reads a page of
//!   comments with their embedded replies.
//! - *Separate* replies are in their parent's own partition.
//!
//! The rules:
//!
//! - Only replies of top-level comments are inline. One setting (`SVC_REPLIES_PER_PARENT`) is the maximum number of both
//!   embedded and inline replies.
//! - Every inline reply is older than every separate one. The parent's item lists its inline replies (`ld`), and records
//!   whether it may have separate replies (`tr`).
//! - A reply that becomes visible to everyone is inline if there is room and no reply is separate, or if it is older than some
//!   inline reply. If there is no room for the reply, the youngest inline reply is *demoted*: it becomes separate.
//! - After deletions, the oldest separate replies are *promoted*: they become inline. The oldest are known only when an index
//!   lists exactly the replies that the parent counts.
//! - When the parent is rejected, all its inline replies become separate.
//! - An unapproved comment is in its writer's partitions. An unapproved reply is inline while the writer has fewer
//!   than [`OWN_INLINE`] unapproved replies in the thread.
//!
//! Each decision is based on items that may have changed since they were read. The returned writes include conditions that fail
//! if the decision is no longer right.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;

use super::keys::{self, Scope};
use super::schema::{comment, visitor_state};
use super::transaction::Write;
use super::{id_set, number, number_set, text, yes};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, ThreadId, Visitor};
use crate::domain::thread::VisitorThreadState;

/// Maximum inline unapproved replies per visitor and thread. Further ones are separate, so that they never crowd out parents.
pub const OWN_INLINE: u64 = 100;
/// The amount that one like or reply adds to a rank.
const RANK_STEP: i128 = 10_000_000_000_000_000;

/// The sort key of the indexes `likes` and `replied`: ordered by the count, then by the id.
pub fn rank(count: u64, id: CommentId) -> AttributeValue {
    number(i128::from(count) * RANK_STEP + i128::from(id.0))
}

pub fn rank_change(change: i64) -> AttributeValue {
    number(i128::from(change) * RANK_STEP)
}

pub fn scope<'a>(comment: &Comment, visitor: &'a Visitor) -> Scope<'a> {
    if comment.is_approved() { Scope::Everyone } else { Scope::Own(visitor) }
}

/// The index keys of a comment in its place.
pub fn index_keys(comment: &Comment, is_inline: bool) -> [(&'static str, AttributeValue); 3] {
    let visitor = comment.visitor();
    let scope = scope(comment, &visitor);
    let parents = keys::parents(&comment.thread, scope);
    let ((tk, ts), ok) = match comment.parent() {
        None => ((parents.clone(), keys::sort_key(comment.id)), parents),
        Some(parent) => {
            let keys = reply_keys(&comment.thread, parent, comment.id, scope, is_inline);
            (keys, keys::replies(parent, scope))
        }
    };
    [(comment::THREAD_KEY, text(tk)), (comment::THREAD_SORT, text(ts)), (comment::ORDER_KEY, text(ok))]
}

/// The index keys `tk` and `ts` of a reply.
fn reply_keys(
    thread: &ThreadId,
    parent: CommentId,
    reply: CommentId,
    scope: Scope<'_>,
    is_inline: bool,
) -> (String, String) {
    if is_inline {
        (keys::parents(thread, scope), keys::inline_sort_key(parent, reply))
    } else {
        (keys::replies(parent, scope), keys::sort_key(reply))
    }
}

/// The id that a new reply's id must exceed, even if this instance's clock is behind.
pub fn newest_above(parent: &Comment) -> CommentId {
    parent.inline.last().map_or(parent.id, |last| parent.id.max(CommentId(*last)))
}

/// Whether the next unapproved reply of a visitor is inline below `parent`.
pub fn own_is_inline(parent: &Comment, visitor_state: &VisitorThreadState) -> bool {
    parent.is_top_level() && visitor_state.hidden_replies < OWN_INLINE
}

/// The number of the parent's replies that should be inline.
pub fn expected_inline(parent: &Comment, embedded: usize) -> usize {
    embedded.min(usize::try_from(parent.replies).unwrap_or(usize::MAX))
}

/// The number of separate replies that should be inline instead. They are promoted once the parent is approved.
pub fn missing_inline(parent: &Comment, embedded: usize) -> usize {
    let may_miss = parent.is_top_level() && parent.has_separate;
    if may_miss { expected_inline(parent, embedded).saturating_sub(parent.inline.len()) } else { 0 }
}

/// The number of separate replies that may be promoted now.
pub fn promotable(parent: &Comment, embedded: usize) -> usize {
    if parent.is_approved() { missing_inline(parent, embedded) } else { 0 }
}

/// The replies that a recount expects to be inline: the oldest ones, as many as are inline now.
pub fn oldest_inline(parent: &Comment, replies: Option<&BTreeSet<u64>>) -> BTreeSet<u64> {
    let Some(replies) = replies.filter(|_| parent.is_top_level() && parent.is_approved()) else {
        return BTreeSet::new();
    };
    let count = parent.inline.intersection(replies).count();
    replies.iter().take(count).copied().collect()
}

/// The place of a reply that becomes visible to everyone, because it is new or was approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyPlace {
    pub is_inline: bool,
    /// The inline reply that becomes separate instead.
    demoted: Option<CommentId>,
}

impl ReplyPlace {
    pub fn below(parent: &Comment, reply: CommentId, embedded: usize) -> Self {
        if !parent.is_top_level() || !parent.is_approved() {
            return Self { is_inline: false, demoted: None };
        }
        let has_room = parent.inline.len() < embedded;
        if has_room && !parent.has_separate {
            return Self { is_inline: true, demoted: None };
        }
        let youngest = parent.inline.last().copied().map(CommentId);
        let is_inline = youngest.is_some_and(|youngest| reply < youngest);
        Self { is_inline, demoted: youngest.filter(|_| is_inline && !has_room) }
    }

    /// Adds the reply to its parent, and demotes another reply if necessary. Fails if the parent has become a placeholder since
    /// it was read.
    pub fn gain(self, parent: &Comment, reply: CommentId, embedded: usize) -> Vec<Write> {
        let gain = Write::update(keys::comment(parent.id))
            .exists()
            .still(comment::PLACEHOLDER, parent.is_placeholder.then(yes));
        let gain = count(gain, parent.is_top_level(), reply, 1);
        let gain = if !self.is_inline {
            // Requires that no younger reply has become inline in the meantime.
            set_separate(gain, parent).still(comment::INLINE, number_set(&parent.inline))
        } else if parent.has_separate || self.demoted.is_some() {
            let mut inline = parent.inline.clone();
            inline.insert(reply.0);
            if let Some(demoted) = self.demoted {
                inline.remove(&demoted.0);
            }
            // Requires that the parent isn't rejected, because a rejected parent has no inline replies.
            set_separate(gain, parent)
                .assign(comment::INLINE, number_set(&inline))
                .still(comment::INLINE, number_set(&parent.inline))
                .still(comment::STATE, None)
        } else {
            // Allows other replies to become inline at the same time, while there is room.
            gain.add(comment::INLINE, id_set(reply))
                .still(comment::STATE, None)
                .still(comment::HAS_SEPARATE, None)
                .when(format!("attribute_not_exists({0}) OR size({0}) < :embedded", comment::INLINE))
                .with(":embedded", number(embedded))
        };
        let demotion = self.demoted.map(|demoted| move_reply(parent, demoted, false));
        std::iter::once(gain).chain(demotion).collect()
    }
}

/// Removes an approved reply from its parent.
pub fn lose(parent: CommentId, reply: &Comment) -> Write {
    let parent_is_top_level = reply.ancestors.len() == 1;
    let lose = count(Write::update(keys::comment(parent)), parent_is_top_level, reply.id, -1);
    lose.subtract(comment::INLINE, id_set(reply.id)).exists()
}

/// Adds an unapproved reply to its parent. Fails if the parent has become a placeholder since it was read.
pub fn gain_hidden(parent: &Comment) -> Write {
    let gain = Write::update(keys::comment(parent.id)).add(comment::DELETION_GUARD, number(1));
    gain.exists().still(comment::PLACEHOLDER, parent.is_placeholder.then(yes))
}

/// Records that an approved reply of the parent becomes unapproved.
pub fn lose_to_hidden(parent: CommentId, reply: &Comment) -> Write {
    lose(parent, reply).add(comment::DELETION_GUARD, number(1))
}

/// Counts an approved reply in its parent's item; `change` is 1 or -1. Only top-level comments have a rank, and a
/// fingerprint of their replies.
fn count(write: Write, parent_is_top_level: bool, reply: CommentId, change: i64) -> Write {
    let write = write.add(comment::REPLIES, number(change));
    if !parent_is_top_level {
        return write;
    }
    write.add(comment::REPLIES_RANK, rank_change(change)).add(comment::FINGERPRINT, number(change * reply.mark()))
}

fn set_separate(write: Write, parent: &Comment) -> Write {
    if parent.has_separate { write } else { write.set(comment::HAS_SEPARATE, yes()) }
}

/// Demotes all inline replies of a parent that is being rejected. `rejection` is the write of the parent's item.
pub fn demote_all(parent: &Comment, rejection: Write) -> Vec<Write> {
    let rejection = rejection.still(comment::INLINE, number_set(&parent.inline));
    let rejection = if parent.inline.is_empty() {
        rejection
    } else {
        rejection.remove(comment::INLINE).set(comment::HAS_SEPARATE, yes())
    };
    let demoted = parent.inline.iter().map(|reply| move_reply(parent, CommentId(*reply), false));
    std::iter::once(rejection).chain(demoted).collect()
}

/// Promotes the oldest separate replies, if the parent still counts the same replies. `replies` lists all of the parent's
/// replies, oldest first.
pub fn promotion(parent: &Comment, replies: &[CommentId], embedded: usize) -> Vec<Write> {
    let separate = replies.iter().copied().filter(|reply| !parent.inline.contains(&reply.0));
    let promoted: Vec<CommentId> = separate.take(promotable(parent, embedded)).collect();
    let inline = parent.inline.iter().copied().chain(promoted.iter().map(|reply| reply.0)).collect();
    let change = Write::update(keys::comment(parent.id))
        .assign(comment::INLINE, number_set(&inline))
        .exists()
        .still(comment::STATE, None)
        .still(comment::REPLIES, Some(number(parent.replies)))
        .still(comment::FINGERPRINT, Some(number(parent.fingerprint)))
        .still(comment::INLINE, number_set(&parent.inline));
    let moved = promoted.into_iter().map(|reply| move_reply(parent, reply, true));
    std::iter::once(change).chain(moved).collect()
}

/// Moves an approved reply of `parent` to its inline or its separate place.
fn move_reply(parent: &Comment, reply: CommentId, is_inline: bool) -> Write {
    let (tk, ts) = reply_keys(&parent.thread, parent.id, reply, Scope::Everyone, is_inline);
    Write::update(keys::comment(reply))
        .set(comment::THREAD_KEY, text(tk))
        .set(comment::THREAD_SORT, text(ts))
        .exists()
        .still(comment::STATE, None)
}

/// Adds an unapproved comment to its writer's count.
pub fn gain_own(comment: &Comment, is_inline: bool) -> Write {
    let gain = count_own(comment, 1);
    if comment.is_top_level() || is_inline { gain } else { gain.set(visitor_state::HIDDEN_SEPARATE, yes()) }
}

pub fn lose_own(comment: &Comment) -> Write {
    count_own(comment, -1)
}

fn count_own(comment: &Comment, change: i64) -> Write {
    let counter = if comment.is_top_level() { visitor_state::HIDDEN_PARENTS } else { visitor_state::HIDDEN_REPLIES };
    Write::update(keys::visitor_state(&comment.visitor(), &comment.thread)).add(counter, number(change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::comment::State;
    use crate::domain::ids::UserId;

    const EMBEDDED: usize = 3;

    fn thread() -> ThreadId {
        ThreadId::new("post", "1").unwrap()
    }

    fn parent(inline: &[u64], has_separate: bool) -> Comment {
        let replies = inline.len() as u64 + u64::from(has_separate);
        let inline = inline.iter().copied().collect();
        Comment { id: CommentId(10), user: Some(UserId(7)), inline, has_separate, replies, ..Comment::blank(thread()) }
    }

    fn place(parent: &Comment, reply: u64) -> (bool, Option<u64>) {
        let place = ReplyPlace::below(parent, CommentId(reply), EMBEDDED);
        (place.is_inline, place.demoted.map(|demoted| demoted.0))
    }

    #[test]
    fn a_new_reply_is_inline_while_there_is_room_and_no_reply_is_separate() {
        assert_eq!(place(&parent(&[], false), 20), (true, None));
        assert_eq!(place(&parent(&[11, 12], false), 20), (true, None));
        assert_eq!(place(&parent(&[11, 12, 13], false), 20), (false, None));
        assert_eq!(place(&parent(&[11, 12], true), 20), (false, None));
        assert_eq!(place(&parent(&[], true), 20), (false, None));
    }

    #[test]
    fn an_approved_reply_that_is_older_than_an_inline_one_takes_the_place_of_the_youngest() {
        assert_eq!(place(&parent(&[12, 14, 16], false), 13), (true, Some(16)));
        assert_eq!(place(&parent(&[12, 14, 16], true), 13), (true, Some(16)));
        assert_eq!(place(&parent(&[12, 14], true), 13), (true, None));
        assert_eq!(place(&parent(&[12, 14], true), 15), (false, None));
    }

    #[test]
    fn replies_are_separate_below_a_reply_and_below_an_unapproved_parent() {
        let reply = Comment { ancestors: vec![CommentId(1)], ..parent(&[], false) };
        assert_eq!(place(&reply, 20), (false, None));
        for state in [State::Pending, State::Rejected] {
            assert_eq!(place(&Comment { state, ..parent(&[], false) }, 20), (false, None));
        }
    }

    #[test]
    fn a_reply_becomes_inline_only_if_its_parent_is_not_rejected_meanwhile() {
        let inline = [(parent(&[11], false), 20), (parent(&[12, 14, 16], false), 13), (parent(&[12, 14], true), 13)];
        for (parent, reply) in inline {
            let place = ReplyPlace::below(&parent, CommentId(reply), EMBEDDED);
            assert!(place.is_inline);
            let gain = &place.gain(&parent, CommentId(reply), EMBEDDED)[0];
            assert!(gain.expressions().1.contains("(attribute_not_exists(s))"), "{gain:?}");
        }
        let full = parent(&[11, 12, 13], false);
        let separate = &ReplyPlace::below(&full, CommentId(20), EMBEDDED).gain(&full, CommentId(20), EMBEDDED)[0];
        assert!(!separate.expressions().1.contains("attribute_not_exists(s)"), "{separate:?}");
    }

    #[test]
    fn a_reply_becomes_separate_only_if_the_inline_replies_stay_the_same() {
        let full = parent(&[11, 12, 13], false);
        let gain = &ReplyPlace::below(&full, CommentId(20), EMBEDDED).gain(&full, CommentId(20), EMBEDDED)[0];
        let (expression, condition) = gain.expressions();
        assert_eq!(expression, "SET tr = :tr ADD rc :rc, d :d, fp :fp");
        assert_eq!(condition, "(attribute_exists(pk)) AND (attribute_not_exists(ph)) AND (ld = :was_ld)");
    }

    #[test]
    fn inline_replies_are_older_than_separate_ones_in_whatever_order_they_are_approved() {
        let ids = [20, 11, 18, 13, 16, 12, 19, 14, 17, 15];
        for rotation in 0..ids.len() {
            let (mut parent, mut separate) = (parent(&[], false), BTreeSet::new());
            for id in ids.iter().cycle().skip(rotation).take(ids.len()) {
                let place = ReplyPlace::below(&parent, CommentId(*id), EMBEDDED);
                if place.is_inline {
                    parent.inline.insert(*id)
                } else {
                    separate.insert(*id)
                };
                if let Some(CommentId(demoted)) = place.demoted {
                    parent.inline.remove(&demoted);
                    separate.insert(demoted);
                }
                parent.has_separate |= !separate.is_empty();
                assert!(parent.inline.len() <= EMBEDDED);
                assert!(parent.inline.last() < separate.first() || separate.is_empty(), "{parent:?} {separate:?}");
            }
        }
    }

    #[test]
    fn the_oldest_separate_replies_are_promoted_into_the_places_that_are_free() {
        let replies = [11, 12, 13, 14, 15].map(CommentId);
        let parent = Comment { replies: 5, ..parent(&[11], true) };
        assert_eq!(promotable(&parent, EMBEDDED), 2);
        let writes = promotion(&parent, &replies, EMBEDDED);
        let moved = [12, 13].map(|reply| move_reply(&parent, CommentId(reply), true));
        assert_eq!(writes[1..], moved);
        assert!(writes[0].expressions().1.contains("(rc = :was_rc)"));
    }

    #[test]
    fn nothing_is_promoted_without_need() {
        for full in [parent(&[11, 12, 13], true), parent(&[11], false), Comment { replies: 1, ..parent(&[11], true) }] {
            assert_eq!(promotable(&full, EMBEDDED), 0);
        }
        let rejected = Comment { state: State::Rejected, replies: 5, ..parent(&[], true) };
        assert_eq!((promotable(&rejected, EMBEDDED), missing_inline(&rejected, EMBEDDED)), (0, 3));
    }

    #[test]
    fn index_keys_follow_from_state_parent_and_place() {
        let keys = |comment: &Comment, is_inline| {
            index_keys(comment, is_inline).map(|(_, value)| value.as_s().unwrap().clone()).join(" ")
        };
        let top = parent(&[], false);
        assert_eq!(keys(&top, false), "T#post#1 0000000000000010 T#post#1");
        let reply = Comment { id: CommentId(11), ancestors: vec![CommentId(10)], ..top.clone() };
        assert_eq!(keys(&reply, true), "T#post#1 0000000000000010#0000000000000011 C#10");
        assert_eq!(keys(&reply, false), "C#10 0000000000000011 C#10");
        let own = |comment: &Comment| Comment { state: State::Pending, ..comment.clone() };
        assert_eq!(keys(&own(&top), false), "T#post#1#u7 0000000000000010 T#post#1#u7");
        assert_eq!(keys(&own(&reply), true), "T#post#1#u7 0000000000000010#0000000000000011 C#10#u7");
        assert_eq!(keys(&own(&reply), false), "C#10#u7 0000000000000011 C#10#u7");
    }

    #[test]
    fn a_rank_orders_by_count_and_then_by_id() {
        assert_eq!(rank(2, CommentId(7)), number(20_000_000_000_000_007_i64));
        assert_eq!(rank_change(-1), number(-10_000_000_000_000_000_i64));
    }
}
