//! Checks the other items in a comment's partition: a missing comment has none, a placeholder has no reports or guest
//! counts, and exactly the unapproved replies have an item.

use shared::store::keys;
use shared::store::transaction::Write;

use super::Finding;
use super::repair::{absent, unchanged};
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, key) in &snapshot.dependents {
        let (problem, condition) = match snapshot.comments.get(id) {
            None => ("is gone, but still has", absent(*id)),
            Some(stored) if stored.comment.is_placeholder && keys::hidden_reply_of(&key.sk).is_none() => {
                ("is a placeholder, but has", unchanged(*id, &stored.item))
            }
            Some(_) => continue,
        };
        let repair = vec![Write::delete(key.clone()), condition];
        findings.push(Finding::of_comment(*id, format!("{problem} {}", key.sk), repair));
    }
    for (parent, id) in &snapshot.hidden_replies {
        let reply = snapshot.comments.get(id);
        let is_hidden =
            reply.is_some_and(|reply| !reply.comment.is_approved() && reply.comment.parent() == Some(*parent));
        if !is_hidden && snapshot.comments.contains_key(parent) {
            let reply = reply.map_or_else(|| absent(*id), |reply| unchanged(*id, &reply.item));
            let repair = vec![Write::delete(keys::hidden_reply(*parent, *id)), reply];
            findings.push(Finding::of_comment(*parent, format!("{id} isn't a hidden reply to it"), repair));
        }
    }
    for (id, stored) in snapshot.comments.iter().filter(|(_, stored)| !stored.comment.is_approved()) {
        let parent = stored.comment.parent().filter(|parent| snapshot.comments.contains_key(parent));
        if let Some(parent) = parent.filter(|parent| !snapshot.hidden_replies.contains(&(*parent, *id))) {
            let item = Write::put(keys::hidden_reply(parent, *id).item());
            let problem = format!("is missing from the hidden replies of {parent}");
            findings.push(Finding::of_comment(*id, problem, vec![item, unchanged(*id, &stored.item)]));
        }
    }
    findings
}
