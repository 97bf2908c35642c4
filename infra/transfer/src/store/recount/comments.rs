//! Checks comments: their counts, ranks, index keys and flags.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, Visitor, fingerprint};
use shared::domain::report::{Report, ReportExcerpt, ReportStatus, newest};
use shared::domain::thread::Thread;
use shared::store::comments::{in_state, queues};
use shared::store::deletion::{leave, tombstone};
use shared::store::keys::{self, Item, Scope};
use shared::store::placeholder::LOST;
use shared::store::schema::comment;
use shared::store::transaction::Write;
use shared::store::{number, number_set, placement, text};

use super::Finding;
use super::repair::{Wanted, absent, correct};
use super::snapshot::{Orphans, Snapshot, StoredComment};

/// Finds comments below a missing comment. The repair deletes them. Imported ones get a tombstone, unless the comment
/// above is missing because an import was interrupted.
pub(super) fn check_orphans(snapshot: &Snapshot, orphans: &Orphans) -> Vec<Finding> {
    let orphans = orphans.iter().map(|(id, missing)| {
        let comment = &snapshot.comments[id].comment;
        let delete = in_state(Write::delete(keys::comment(*id)), comment.state);
        let mut repair = vec![delete, absent(*missing)];
        if !comment.is_approved() {
            repair.push(placement::lose_own(comment));
            repair.extend(comment.parent().map(|parent| Write::delete(keys::hidden_reply(parent, *id))));
        }
        repair.extend(queues(comment).map(|state| Write::delete(keys::queue(state, *id))));
        let was_deleted = snapshot.deleted.contains(missing) || !snapshot.importing.contains(&comment.thread);
        repair.extend(if was_deleted {
            tombstone(comment)
        } else {
            comment.source.as_ref().map(|source| Write::delete(keys::source(source)))
        });
        Finding::of_comment(*id, format_args!("its ancestor {missing} is gone"), repair)
    });
    orphans.collect()
}

/// Finds placeholders without replies. Skips threads with an unfinished import that writes comments one by one, because
/// it writes the replies when it continues. Removing the placeholder would leave a tombstone, which would keep the
/// replies out.
pub(super) fn check_empty(snapshot: &Snapshot, orphans: &Orphans) -> Vec<Finding> {
    let comments = || snapshot.comments.values().map(|stored| &stored.comment);
    let answered: BTreeSet<CommentId> = comments().filter_map(Comment::parent).collect();
    let is_empty = |comment: &&Comment| comment.is_placeholder && !answered.contains(&comment.id);
    let is_due = |comment: &&Comment| !orphans.contains_key(&comment.id) && !snapshot.growing.contains(&comment.thread);
    let empty = comments().filter(is_empty).filter(is_due);
    let findings = empty.map(|comment| {
        let parent = comment.parent().and_then(|parent| snapshot.comments.get(&parent)).map(|stored| &stored.comment);
        let mut repair = leave(comment, parent, &Thread::default());
        repair.extend(tombstone(comment));
        Finding::of_comment(comment.id, "is a placeholder without replies", repair)
    });
    findings.collect()
}

pub(super) fn check(snapshot: &Snapshot, orphans: &Orphans) -> Vec<Finding> {
    let recount = Recount::of(snapshot);
    let others = snapshot.comments.iter().filter(|(id, _)| !orphans.contains_key(id));
    let findings = others.filter_map(|(id, stored)| {
        let item = &stored.item;
        let mut wrong = recount.wanted(*id, stored);
        wrong.retain(|(name, wanted)| !agree(item.get(*name), wanted.as_ref()));
        (!wrong.is_empty()).then(|| Finding::of_comment(*id, describe(item, &wrong), vec![correct(*id, item, &wrong)]))
    });
    findings.collect()
}

/// Data computed once for all comments.
struct Recount<'a> {
    snapshot: &'a Snapshot,
    likes: BTreeMap<u64, u64>,
    /// The approved replies of each comment.
    replies: BTreeMap<CommentId, BTreeSet<u64>>,
    /// The replies that should be inline.
    inline: BTreeMap<CommentId, BTreeSet<u64>>,
    /// Comments that have unapproved replies.
    has_hidden: BTreeSet<CommentId>,
}

impl<'a> Recount<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut likes: BTreeMap<u64, u64> = BTreeMap::new();
        for id in snapshot.visitor_states.iter().flat_map(|stored| &stored.state.liked) {
            *likes.entry(*id).or_default() += 1;
        }
        let mut replies: BTreeMap<CommentId, BTreeSet<u64>> = BTreeMap::new();
        let comments = || snapshot.comments.values().map(|stored| &stored.comment);
        for comment in comments().filter(|comment| comment.is_approved()) {
            if let Some(parent) = comment.parent() {
                replies.entry(parent).or_default().insert(comment.id.0);
            }
        }
        let inline = comments()
            .map(|comment| (comment.id, placement::oldest_inline(comment, replies.get(&comment.id))))
            .collect();
        let hidden = comments().filter(|comment| !comment.is_approved());
        let has_hidden = hidden.filter_map(Comment::parent).collect();
        Self { snapshot, likes, replies, inline, has_hidden }
    }

    /// The expected values of a comment's derived attributes.
    fn wanted(&self, id: CommentId, stored: &StoredComment) -> Vec<Wanted> {
        let StoredComment { comment, item } = stored;
        let replies = self.replies.get(&id);
        let count = replies.map_or(0, BTreeSet::len) as u64;
        let inline = &self.inline[&id];
        let likes = self.likes(comment);
        let reports = self.snapshot.reports.get(&id);
        let reported = reports.is_some_and(|reports| {
            reports.values().any(|report| report.status(&comment.resolutions) == ReportStatus::Pending)
        });
        let marks = fingerprint(replies.into_iter().flatten().map(|id| CommentId(*id)));
        let rank = |count: u64| comment.is_top_level().then(|| placement::rank(count, id));
        let [(_, tk), (_, ts), (_, ok)] = self.placed(comment, item);
        let mut wanted = vec![
            (comment::ID, Some(number(id.0))),
            (comment::ORDER_KEY, Some(ok)),
            (comment::THREAD_KEY, Some(tk)),
            (comment::THREAD_SORT, Some(ts)),
            (comment::AUTHOR_KEY, comment.author().map(|author| text(keys::author(&author)))),
            (comment::LIKES, Some(number(likes))),
            (comment::LIKES_RANK, rank(likes)),
            (comment::REPLIES, Some(number(count))),
            (comment::REPLIES_RANK, rank(count)),
            (comment::FINGERPRINT, comment.is_top_level().then(|| number(marks))),
            (comment::INLINE, number_set(inline)),
            // Never unset, so it can be true without any separate reply.
            (comment::HAS_SEPARATE, Some(AttributeValue::Bool(comment.has_separate || count > inline.len() as u64))),
            // An edit of an unapproved comment needs no review.
            (comment::IN_REVIEW, Some(AttributeValue::Bool(comment.in_review && comment.is_approved()))),
            (comment::REPORTS, Some(number(reports.map_or(0, BTreeMap::len)))),
            (comment::NEWEST_REPORTS, newest_reports(reports)),
            (comment::REPORTED, Some(AttributeValue::Bool(reported))),
            // Never reset, so it can be set without any unapproved reply.
            (
                comment::DELETION_GUARD,
                Some(number(comment.deletion_guard.max(u64::from(self.has_hidden.contains(&id))))),
            ),
        ];
        if comment.state != State::Rejected {
            wanted.push((comment::REJECTION, None));
        }
        if comment.is_placeholder {
            wanted.retain(|(name, _)| !LOST.contains(name));
            wanted.extend(LOST.map(|name| (name, None)));
        }
        wanted
    }

    /// The likes of a comment. Placeholders have none, even if visitors' items contain some.
    fn likes(&self, comment: &Comment) -> u64 {
        let likes = comment.imported_likes + self.likes.get(&comment.id.0).copied().unwrap_or_default();
        if comment.is_placeholder { 0 } else { likes }
    }

    /// The expected index keys of a comment. An unapproved reply may be inline or separate, so its current place
    /// decides.
    fn placed(&self, comment: &Comment, item: &Item) -> [(&'static str, AttributeValue); 3] {
        let visitor = comment.visitor();
        let scope = placement::scope(comment, &visitor);
        let is_inline = match comment.parent() {
            None => false,
            Some(parent) if scope == Scope::Everyone => self.inline[&parent].contains(&comment.id.0),
            Some(parent) => {
                let above = self.snapshot.comments.get(&parent).is_some_and(|parent| parent.comment.is_top_level());
                above && item.get(comment::THREAD_KEY) == Some(&text(keys::parents(&comment.thread, scope)))
            }
        };
        placement::index_keys(comment, is_inline)
    }
}

fn newest_reports(reports: Option<&BTreeMap<Visitor, Report>>) -> Option<AttributeValue> {
    let newest = newest(reports?.values().map(ReportExcerpt::from));
    serde_dynamo::to_attribute_value(newest).ok()
}

/// Whether two values are equivalent. A missing attribute means 0 or false.
fn agree(stored: Option<&AttributeValue>, wanted: Option<&AttributeValue>) -> bool {
    let meaning = |value: Option<&AttributeValue>| match value {
        None | Some(AttributeValue::Bool(false)) => None,
        Some(AttributeValue::N(digits)) => match digits.parse::<u128>() {
            Ok(0) => None,
            Ok(number) => Some(AttributeValue::N(number.to_string())),
            Err(_) => Some(AttributeValue::N(digits.clone())),
        },
        Some(AttributeValue::Ns(numbers)) => {
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            Some(AttributeValue::Ns(numbers))
        }
        Some(other) => Some(other.clone()),
    };
    meaning(stored) == meaning(wanted)
}

fn describe(item: &Item, wrong: &[Wanted]) -> String {
    let show = |value: Option<&AttributeValue>| match value {
        None => "unset".to_owned(),
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.clone(),
        Some(AttributeValue::Ns(numbers)) => format!("{{{}}}", numbers.join(", ")),
        Some(AttributeValue::Bool(value)) => value.to_string(),
        Some(other) => format!("{other:?}"),
    };
    let each = wrong
        .iter()
        .map(|(name, wanted)| format!("{name} is {}, should be {}", show(item.get(*name)), show(wanted.as_ref())));
    each.collect::<Vec<_>>().join("; ")
}
