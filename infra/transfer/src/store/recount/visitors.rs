//! Checks visitors' states: each like and report is in one item, every report is in its visitor's state, and the counts
//! of the visitor's own unapproved comments are right.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId, Visitor};
use shared::store::keys::{self, Item, Key, Scope};
use shared::store::schema::{comment, visitor_state};
use shared::store::transaction::Write;
use shared::store::{id_set, text, yes};

use super::Finding;
use super::repair::{absent, recounted};
use super::snapshot::{Snapshot, StoredVisitorState};
use crate::store::import::Hidden;
use crate::store::person::erase::without_entry;

/// A visitor, and a thread's id as text.
type VisitorThread = (Visitor, String);

/// Checks likes and reports. Entries of deleted comments, including placeholders, may stay. Entries of comments that an
/// interrupted import hasn't written are removed, because another import may write the comments without these likes.
pub(super) fn check_entries(snapshot: &Snapshot) -> Vec<Finding> {
    let mut liked = BTreeSet::new();
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for StoredVisitorState { key, visitor, thread, state, .. } in &snapshot.visitor_states {
        if snapshot.importing.contains(thread) {
            findings.extend(of_unwritten(snapshot, key, visitor_state::LIKED, &state.liked));
            findings.extend(of_unwritten(snapshot, key, visitor_state::REPORTED, &state.reported));
        }
        let standing = |ids: &BTreeSet<u64>| -> Vec<CommentId> {
            ids.iter().map(|id| CommentId(*id)).filter(|id| present(snapshot, *id).is_some()).collect()
        };
        for id in standing(&state.liked) {
            if !liked.insert((visitor, id)) {
                let problem = format!("visitor {visitor} likes it twice");
                findings.push(Finding::of_comment(id, problem, vec![without_entry(key, visitor_state::LIKED, id)]));
            }
        }
        for id in standing(&state.reported) {
            let has_report = snapshot.reports.get(&id).is_some_and(|reports| reports.contains_key(visitor));
            let problem = if !reported.insert((visitor, id)) {
                format!("visitor {visitor} reported it twice")
            } else if !has_report {
                format!("no report by visitor {visitor} exists")
            } else {
                continue;
            };
            findings.push(Finding::of_comment(id, problem, vec![without_entry(key, visitor_state::REPORTED, id)]));
        }
    }
    let reports = snapshot.reports.iter().flat_map(|(id, reports)| {
        reports.iter().filter(|(_, report)| report.has_reporter()).map(|(visitor, _)| (visitor, *id))
    });
    for (visitor, id) in reports.filter(|report| !reported.contains(report)) {
        let Some(comment) = present(snapshot, id) else { continue };
        let key = entry_key(snapshot, visitor, comment);
        let entry = Write::update(key).add(visitor_state::REPORTED, id_set(id));
        let problem = format!("the report by visitor {visitor} is missing from the visitor's state");
        findings.push(Finding::of_comment(id, problem, vec![entry]));
    }
    findings
}

/// The comment, if visitors may like and report it.
fn present(snapshot: &Snapshot, id: CommentId) -> Option<&Comment> {
    snapshot.comments.get(&id).map(|stored| &stored.comment).filter(|comment| !comment.is_placeholder)
}

/// Finds entries of comments that don't exist.
fn of_unwritten(snapshot: &Snapshot, key: &Key, set: &'static str, ids: &BTreeSet<u64>) -> Vec<Finding> {
    let ids = ids.iter().map(|id| CommentId(*id)).filter(|id| !snapshot.comments.contains_key(id));
    let finding = |id| {
        let problem = format!("{} lists it in {set}, but it was never imported", key.pk);
        Finding::of_comment(id, problem, vec![without_entry(key, set, id), absent(id)])
    };
    ids.map(finding).collect()
}

/// The key of the visitor's item to which an entry for this comment is added.
fn entry_key(snapshot: &Snapshot, visitor: &Visitor, comment: &Comment) -> Key {
    let of_thread = |stored: &&StoredVisitorState| stored.visitor == *visitor && stored.thread == comment.thread;
    if snapshot.visitor_states.iter().filter(of_thread).any(|stored| stored.state.full) {
        keys::visitor_overflow(visitor, &comment.thread, comment.parent().unwrap_or(comment.id))
    } else {
        keys::visitor_state(visitor, &comment.thread)
    }
}

pub(super) fn check_hidden_counts(snapshot: &Snapshot) -> Vec<Finding> {
    let mut hidden = count_hidden(snapshot);
    let mut stored: BTreeMap<VisitorThread, &StoredVisitorState> = BTreeMap::new();
    for state in &snapshot.visitor_states {
        if state.key == keys::visitor_state(&state.visitor, &state.thread) {
            let pair = (state.visitor.clone(), state.thread.to_string());
            hidden.entry(pair.clone()).or_default();
            stored.insert(pair, state);
        }
    }
    let mut findings = Vec::new();
    for (pair, counted) in hidden {
        let Ok(thread) = ThreadId::try_from(pair.1.clone()) else { continue };
        let key = keys::visitor_state(&pair.0, &thread);
        let subject = format!("visitor {} in {thread}", pair.0);
        let stored = stored.get(&pair);
        let nothing = Item::new();
        let item = stored.map_or(&nothing, |stored| &stored.item);
        for (name, counted) in
            [(visitor_state::HIDDEN_PARENTS, counted.parents), (visitor_state::HIDDEN_REPLIES, counted.replies)]
        {
            if let Some((stored, repair)) = recounted(key.clone(), name, counted, item) {
                let problem = format!("{name} is {stored}, recounted {counted}");
                findings.push(Finding::new(&subject, problem, vec![repair]));
            }
        }
        if counted.has_separate && !stored.is_some_and(|stored| stored.state.hidden_separate) {
            let set = Write::update(key).set(visitor_state::HIDDEN_SEPARATE, yes());
            findings.push(Finding::new(&subject, "ut is unset, though an unapproved reply is separate", vec![set]));
        }
    }
    findings
}

/// Counts visitors' own unapproved comments in each thread, including those below a missing comment.
fn count_hidden(snapshot: &Snapshot) -> BTreeMap<VisitorThread, Hidden> {
    let mut hidden: BTreeMap<VisitorThread, Hidden> = BTreeMap::new();
    for stored in snapshot.comments.values().filter(|stored| !stored.comment.is_approved()) {
        let comment = &stored.comment;
        let visitor = comment.visitor();
        let separate = comment.parent().map(|parent| text(keys::replies(parent, Scope::Own(&visitor))));
        let is_separate = separate.is_some() && stored.item.get(comment::THREAD_KEY) == separate.as_ref();
        let counted = hidden.entry((visitor, comment.thread.to_string())).or_default();
        if comment.is_top_level() {
            counted.parents += 1;
        } else {
            counted.replies += 1;
        }
        counted.has_separate |= is_separate;
    }
    hidden
}
