//! What threads should be: the number of their approved top-level comments, and a pin on one of these.

use std::collections::BTreeMap;

use super::Finding;
use super::repair::recounted;
use super::snapshot::Snapshot;
use crate::domain::ids::ThreadId;
use crate::domain::thread::Pin;
use crate::store::keys::{self, Item};
use crate::store::number;
use crate::store::schema::{maps, thread};
use crate::store::transaction::Write;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, counted) in count_parents(snapshot) {
        let Ok(id) = ThreadId::try_from(name.clone()) else { continue };
        let stored = snapshot.threads.get(&name);
        let nothing = Item::new();
        let item = stored.map_or(&nothing, |stored| &stored.item);
        if let Some((found, repair)) = recounted(keys::thread(&id), thread::PARENTS, counted, item) {
            findings.push(of_thread(&id, format!("n is {found}, recounted {counted}"), vec![repair]));
        }
        let pin = stored.and_then(|stored| stored.thread.pin);
        if let Some(pin) = pin.filter(|pin| !may_be_pinned(snapshot, &id, *pin)) {
            let unpin = Write::update(keys::thread(&id)).remove(thread::PIN).when(format!(
                "{0}.{1} = :id",
                thread::PIN,
                maps::pin::COMMENT
            ));
            let problem = format!("comment {} is pinned, which cannot be", pin.comment);
            findings.push(of_thread(&id, problem, vec![unpin.with(":id", number(pin.comment))]));
        }
    }
    findings
}

/// Approved top-level comments by thread. Threads without any have 0.
fn count_parents(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut parents: BTreeMap<String, u64> = snapshot.threads.keys().map(|name| (name.clone(), 0)).collect();
    for comment in snapshot.comments.values().map(|stored| &stored.comment) {
        if comment.is_top_level() && comment.is_approved() {
            *parents.entry(comment.thread.to_string()).or_default() += 1;
        }
    }
    parents
}

fn may_be_pinned(snapshot: &Snapshot, thread: &ThreadId, pin: Pin) -> bool {
    let pinned = snapshot.comments.get(&pin.comment).map(|stored| &stored.comment);
    pinned.is_some_and(|comment| comment.may_count() && comment.is_top_level() && comment.thread == *thread)
}

fn of_thread(id: &ThreadId, problem: String, repair: Vec<Write>) -> Finding {
    Finding::new(format_args!("thread {id}"), problem, repair)
}
