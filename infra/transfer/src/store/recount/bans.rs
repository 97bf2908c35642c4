//! Checks that the list of bans has exactly the users and networks with a ban. The item of an ended ban expires, so it
//! may be missing.

use shared::domain::ids::UserId;
use shared::domain::time::Timestamp;
use shared::domain::user::{Ban, User};
use shared::store::bans::{network_row, row};
use shared::store::schema::{banned, maps, network_ban, user};
use shared::store::transaction::Write;
use shared::store::{keys, number};

use super::Finding;
use super::snapshot::Snapshot;

pub(super) fn check(snapshot: &Snapshot, now: Timestamp) -> Vec<Finding> {
    let mut stale = snapshot.banned.clone();
    let mut findings = Vec::new();
    for user in snapshot.users.values() {
        let Some(ban) = &user.ban else {
            findings
                .extend(user.ban_id.map(|id| of_user(user.id, "has a ban id but no ban", vec![forget(user.id, id)])));
            continue;
        };
        let id = user.ban_id.unwrap_or_else(|| fallback(user.id));
        let Ok(wanted) = row(id, user.id, ban) else { continue };
        let found = stale.remove(&id);
        let has_expired = found.is_none() && !ban.holds(now);
        if !has_expired && (found.as_ref() != Some(&wanted) || user.ban_id.is_none()) {
            let repair = vec![Write::put(wanted), with_id(user, ban, id)];
            findings.push(of_user(user.id, "has a missing or wrong entry in the list of bans", repair));
        }
    }
    for ban in &snapshot.network_bans {
        let Ok(wanted) = network_row(ban) else { continue };
        let found = stale.remove(&ban.id);
        if found.as_ref() != Some(&wanted) && ban.ban.holds(now) {
            let unchanged = Write::unchanged(keys::network_ban(&ban.network));
            let repair = vec![Write::put(wanted), unchanged.still(network_ban::ID, Some(number(ban.id)))];
            findings.push(Finding::new(
                format_args!("network {}", ban.network),
                "has a missing or wrong entry in the list of bans",
                repair,
            ));
        }
    }
    for (id, item) in stale {
        let network = item.get(banned::NETWORK).and_then(|network| network.as_s().ok());
        let network = network.map(|network| {
            let condition = format!("attribute_not_exists({0}) OR {0} <> :ban", network_ban::ID);
            Write::check(keys::network_ban(network), condition).with(":ban", number(id))
        });
        let user = item.get(banned::USER).and_then(|user| user.as_n().ok()?.parse().ok()).map(UserId);
        let other = user.map(|user| {
            let condition = format!("attribute_not_exists({0}) OR {0} <> :ban", user::BAN_ID);
            Write::check(keys::user(user), condition).with(":ban", number(id))
        });
        let repair = std::iter::once(Write::delete(keys::banned(id))).chain(other).chain(network).collect();
        findings.push(Finding::new(format_args!("ban {id}"), "belongs to no user or network", repair));
    }
    findings
}

/// The id for a ban that was stored without one: the user's id. Unlike other ids of bans, it doesn't contain a time.
fn fallback(user: UserId) -> u64 {
    user.0
}

/// Sets the id of a ban, if the ban is unchanged since it was read.
fn with_id(user: &User, ban: &Ban, id: u64) -> Write {
    let update =
        Write::update(keys::user(user.id)).set(user::BAN_ID, number(id)).still(user::BAN_ID, user.ban_id.map(number));
    match ban.until {
        Some(until) => {
            update.when(format!("{0}.{1} = :until", user::BAN, maps::ban::UNTIL)).with(":until", number(until.0))
        }
        None => {
            update.when(format!("attribute_exists({0}) AND attribute_not_exists({0}.{1})", user::BAN, maps::ban::UNTIL))
        }
    }
}

fn forget(user: UserId, id: u64) -> Write {
    Write::update(keys::user(user))
        .remove(user::BAN_ID)
        .still(user::BAN_ID, Some(number(id)))
        .when(format!("attribute_not_exists({0})", user::BAN))
}

fn of_user(id: UserId, problem: &str, repair: Vec<Write>) -> Finding {
    Finding::new(format_args!("user {id}"), problem, repair)
}
