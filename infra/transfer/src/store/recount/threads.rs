//! Checks threads: the number of approved top-level comments, the pin, and the time when the thread was opened.

use std::collections::BTreeMap;

use shared::domain::ids::ThreadId;
use shared::domain::thread::Pin;
use shared::domain::time::Timestamp;
use shared::store::keys::{self, Item};
use shared::store::number;
use shared::store::schema::{maps, thread};
use shared::store::transaction::Write;

use super::Finding;
use super::repair::recounted;
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, Parents { count: counted, first }) in count_parents(snapshot) {
        let Ok(id) = ThreadId::try_from(name.clone()) else { continue };
        let stored = snapshot.threads.get(&name);
        let nothing = Item::new();
        let item = stored.map_or(&nothing, |stored| &stored.item);
        if let Some((found, repair)) = recounted(keys::thread(&id), thread::PARENTS, counted, item) {
            findings.push(of_thread(&id, format!("n is {found}, recounted {counted}"), vec![repair]));
        }
        if let Some(first) = first.filter(|_| !item.contains_key(thread::OPENED_AT)) {
            let opened = Write::update(keys::thread(&id)).set_once(thread::OPENED_AT, number(first.0));
            findings.push(of_thread(&id, "op is unset despite a public top-level comment".to_owned(), vec![opened]));
        }
        let pin = stored.and_then(|stored| stored.thread.pin);
        if let Some(pin) = pin.filter(|pin| !may_be_pinned(snapshot, &id, *pin)) {
            let unpin = Write::update(keys::thread(&id)).remove(thread::PIN).when(format!(
                "{0}.{1} = :id",
                thread::PIN,
                maps::pin::COMMENT
            ));
            let problem = format!("comment {} is pinned, but can't be", pin.comment);
            findings.push(of_thread(&id, problem, vec![unpin.with(":id", number(pin.comment.0))]));
        }
    }
    findings
}

/// The approved top-level comments of a thread.
#[derive(Default)]
struct Parents {
    count: u64,
    /// The time of the first comment.
    first: Option<Timestamp>,
}

/// Counts the approved top-level comments of each thread. Threads without any have 0.
fn count_parents(snapshot: &Snapshot) -> BTreeMap<String, Parents> {
    let mut parents: BTreeMap<String, Parents> =
        snapshot.threads.keys().map(|name| (name.clone(), Parents::default())).collect();
    for comment in snapshot.comments.values().map(|stored| &stored.comment) {
        if comment.is_top_level() && comment.is_approved() {
            let parents = parents.entry(comment.thread.to_string()).or_default();
            let written = comment.id.created_at();
            parents.count += 1;
            parents.first = Some(parents.first.map_or(written, |first| first.min(written)));
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
