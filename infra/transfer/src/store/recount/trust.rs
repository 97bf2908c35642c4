//! Checks trust, if comments of new writers are held. Comments that were public before this setting was turned on, or
//! that were imported for a known user, count as approved.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::ids::{UserId, Visitor};
use shared::domain::trust::Trust;
use shared::error::Fault;
use shared::store::schema::{guest, user};
use shared::store::transaction::Write;
use shared::store::{Store, keys, number, number_set};

use super::Finding;
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut shown: BTreeMap<Visitor, BTreeSet<u64>> = BTreeMap::new();
    for comment in snapshot.comments.values().map(|stored| &stored.comment).filter(|comment| comment.earns_trust()) {
        shown.entry(comment.visitor()).or_default().insert(comment.id.0);
    }
    let nothing = Trust::default();
    let findings = shown.into_iter().filter_map(|(writer, comments)| {
        let of_user = |id| snapshot.users.get(&id).map(|user| &user.trust);
        let known = writer.user().map_or_else(|| snapshot.guests.get(&writer), of_user).unwrap_or(&nothing);
        let missing = known.without_decision(&comments);
        let update = count(&writer, &missing)?.still(guest::APPROVED, number_set(known.approved()));
        let repair = update.still(guest::REJECTED, number_set(known.rejected()));
        let problem = format!("public comments not counted as approved: {}", missing.len());
        Some(Finding::new(format_args!("writer {writer}"), problem, vec![repair]))
    });
    findings.collect()
}

/// Counts a user's comments as approved before they become visible, up to the maximum.
pub async fn note_shown(store: &Store, user: UserId, known: &Trust, comments: &BTreeSet<u64>) -> Result<(), Fault> {
    let Some(update) = count(&user.into(), &known.without_decision(comments)) else { return Ok(()) };
    store.update("counting comments as approved", update).await.map(drop)
}

/// A write that counts comments as approved. `None` if there are none, and for guests without a `Comment-Key`.
fn count(writer: &Visitor, comments: &BTreeSet<u64>) -> Option<Write> {
    let update = Write::update(keys::trust(writer)?).add(guest::APPROVED, number_set(comments)?);
    // A user's item always has the id, even if the user has never signed in.
    Some(writer.user().into_iter().fold(update, |update, id| update.set(user::ID, number(id.0))))
}
