//! Checks that the directory has the handle and the name fragments of every user, and nothing else.

use shared::domain::user::User;
use shared::store::keys::{self, ItemKind, Key};
use shared::store::schema::user;
use shared::store::text;
use shared::store::transaction::{Write, absent};
use shared::store::users::directory;

use super::Finding;
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot) -> Vec<Finding> {
    let mut stale = snapshot.directory.clone();
    let mut findings = Vec::new();
    for user in snapshot.users.values().filter(|user| !user.name.is_empty()) {
        for ((pk, sk), item) in directory(user).unwrap_or_default() {
            let subject = format!("{pk} {sk}");
            if stale.remove(&(pk, sk)).as_ref() != Some(&item) {
                let repair = vec![Write::put(item), same_profile(user)];
                findings.push(Finding::new(subject, format!("differs from user {}", user.id), repair));
            }
        }
    }
    for ((pk, sk), _) in stale {
        let subject = format!("{pk} {sk}");
        let key = Key { pk, sk };
        let same_user = match ItemKind::of(&key) {
            ItemKind::Handle(id) | ItemKind::NameFragment(id) => Some(match snapshot.users.get(&id) {
                Some(user) => Write::check(keys::user(id), format!("{0} = :name", user::NAME))
                    .with(":name", text(user.name.clone())),
                None => Write::check(keys::user(id), absent()),
            }),
            _ => None,
        };
        let repair = std::iter::once(Write::delete(key)).chain(same_user).collect();
        findings.push(Finding::new(subject, "matches no user of that name", repair));
    }
    findings
}

fn same_profile(user: &User) -> Write {
    Write::check(keys::user(user.id), format!("{0} = :name AND {1} = :avatar", user::NAME, user::AVATAR))
        .with(":name", text(user.name.clone()))
        .with(":avatar", text(user.avatar.clone()))
}
