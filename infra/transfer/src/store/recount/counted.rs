//! Checks the items for counted comments, and each thread's count of these items.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::ids::{CommentId, ThreadId};
use shared::store::counts;
use shared::store::keys::{self, Item};
use shared::store::schema::count;
use shared::store::transaction::Write;

use super::Finding;
use super::repair::{absent, recounted, unchanged};
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let wanted = counting_comments(snapshot);
    let names: BTreeSet<&String> = wanted.keys().chain(snapshot.counted.keys()).chain(snapshot.counts.keys()).collect();
    let nothing = BTreeSet::new();
    let mut findings = Vec::new();
    for name in names {
        let Ok(thread) = ThreadId::try_from(name.clone()) else { continue };
        let wanted = wanted.get(name).unwrap_or(&nothing);
        let counted = snapshot.counted.get(name).unwrap_or(&nothing);
        for id in wanted.difference(counted) {
            let repair = [counts::count(&thread, *id), conditions(snapshot, *id)].concat();
            findings.push(Finding::of_comment(*id, "is not counted", repair));
        }
        for id in counted.difference(wanted) {
            let repair = [counts::discount(&thread, *id), conditions(snapshot, *id)].concat();
            findings.push(Finding::of_comment(*id, "is counted, although it is not shown", repair));
        }
        findings.extend(check_count(snapshot, &thread, counted.len() as u64));
    }
    findings
}

/// Compares the count with the existing items, because repairing an item also changes the count.
fn check_count(snapshot: &Snapshot, thread: &ThreadId, rows: u64) -> Option<Finding> {
    let nothing = Item::new();
    let item = snapshot.counts.get(&thread.to_string()).unwrap_or(&nothing);
    let (stored, repair) = recounted(keys::count(thread), count::COUNT, rows, item)?;
    let problem = format!("counts {stored} comments, recounted {rows}");
    Some(Finding::new(format_args!("thread {thread}"), problem, vec![repair]))
}

/// The comments that everyone may see, without placeholders, by thread.
fn counting_comments(snapshot: &Snapshot) -> BTreeMap<String, BTreeSet<CommentId>> {
    let mut counting: BTreeMap<String, BTreeSet<CommentId>> = BTreeMap::new();
    for comment in snapshot.comments.values().map(|stored| &stored.comment) {
        if comment.may_count() && comment.ancestors.iter().all(|id| is_approved(snapshot, *id)) {
            counting.entry(comment.thread.to_string()).or_default().insert(comment.id);
        }
    }
    counting
}

fn is_approved(snapshot: &Snapshot, id: CommentId) -> bool {
    snapshot.comments.get(&id).is_some_and(|stored| stored.comment.is_approved())
}

/// Conditions that the comment and its ancestors are unchanged since they were read.
fn conditions(snapshot: &Snapshot, id: CommentId) -> Vec<Write> {
    let comment = snapshot.comments.get(&id).map(|stored| &stored.comment);
    let ancestors = comment.map(|comment| comment.ancestors.as_slice()).unwrap_or_default();
    let condition = |id: &CommentId| match snapshot.comments.get(id) {
        Some(stored) => unchanged(*id, &stored.item),
        None => absent(*id),
    };
    ancestors.iter().chain([&id]).map(condition).collect()
}
