//! Checks that each moderation queue has exactly the comments in its state. Entries of new comments aren't checked,
//! because they expire, and the queue doesn't show an entry without a comment.

use std::collections::BTreeSet;

use shared::store::comments::queues;
use shared::store::keys;
use shared::store::queue::QueueState;
use shared::store::transaction::Write;

use super::Finding;
use super::repair::{absent, unchanged};
use super::snapshot::{Orphans, QueueEntry, Snapshot};

pub(super) fn check(snapshot: &Snapshot, orphans: &Orphans) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut queued = BTreeSet::new();
    let is_checked =
        |entry: &&QueueEntry| entry.state != QueueState::All.name() && !orphans.contains_key(&entry.comment);
    for QueueEntry { key, state, comment: id } in snapshot.queue.iter().filter(is_checked) {
        let stored = snapshot.comments.get(id);
        let belongs = stored.is_some_and(|stored| queues(&stored.comment).any(|queue| queue == state));
        if belongs && *key == keys::queue(state, *id) {
            queued.insert((state.as_str(), *id));
        } else {
            let comment = stored.map_or_else(|| absent(*id), |stored| unchanged(*id, &stored.item));
            let problem = format!("does not belong in the queue {}", key.pk);
            findings.push(Finding::of_comment(*id, problem, vec![Write::delete(key.clone()), comment]));
        }
    }
    for (id, stored) in snapshot.comments.iter().filter(|(id, _)| !orphans.contains_key(id)) {
        for state in queues(&stored.comment).filter(|state| !queued.contains(&(*state, *id))) {
            let repair = vec![Write::put(keys::queue(state, *id).item()), unchanged(*id, &stored.item)];
            findings.push(Finding::of_comment(*id, format!("is missing from the queue {state}"), repair));
        }
    }
    findings
}
