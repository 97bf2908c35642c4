//! Checks that no unkeyed hashes of email addresses are stored while Gravatars aren't shown. A guest's hash is replaced
//! with a keyed one. Name fragments are checked with the directory.

use shared::domain::avatar::Avatar;
use shared::store::addresses::Addresses;
use shared::store::keys::{self, Key};
use shared::store::schema::{comment, report, user};
use shared::store::text;
use shared::store::transaction::Write;

use super::Finding;
use super::snapshot::Snapshot;

const PROBLEM: &str = "has the hash of an address, although no Gravatars are shown";

pub(super) fn check(snapshot: &Snapshot, addresses: &Addresses) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, stored) in &snapshot.comments {
        let comment = &stored.comment;
        let Some(hash) = comment.avatar.hash() else { continue };
        let is_found = comment.user.is_some() || comment.address.is_some();
        let keyed = if is_found { None } else { addresses.keyed(hash) };
        if !is_found && keyed.is_none() {
            let problem = format!("{PROBLEM}; set SVC_VISITOR_SALT to repair it");
            findings.push(Finding::of_comment(*id, problem, Vec::new()));
            continue;
        }
        let update = having(keys::comment(*id), comment::AVATAR, &comment.avatar).remove(comment::AVATAR);
        let update = keyed.into_iter().fold(update, |update, keyed| update.set(comment::ADDRESS, text(keyed)));
        findings.push(Finding::of_comment(*id, PROBLEM, vec![update]));
    }
    for user in snapshot.users.values().filter(|user| user.avatar.hash().is_some()) {
        let update = having(keys::user(user.id), user::AVATAR, &user.avatar).set(user::AVATAR, text(""));
        findings.push(Finding::new(format_args!("user {}", user.id), PROBLEM, vec![update]));
    }
    for (id, reports) in &snapshot.reports {
        for report in reports.values().filter(|report| report.avatar.hash().is_some()) {
            let update = having(keys::report(*id, report.id), report::AVATAR, &report.avatar).remove(report::AVATAR);
            findings.push(Finding::of_comment(*id, format_args!("report {} {PROBLEM}", report.id), vec![update]));
        }
    }
    findings
}

/// An update that succeeds only if the item still has this avatar.
fn having(key: Key, attribute: &'static str, avatar: &Avatar) -> Write {
    Write::update(key).still(attribute, Some(text(avatar.clone())))
}
