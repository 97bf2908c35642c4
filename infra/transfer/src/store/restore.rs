//! Writes records that only an export of a table contains: users with their bans, likes, reports and tombstones.
//!
//! Likes and reports are written to their visitors' items before the comment. No one can like or report the comment
//! until it's written, so its counts are right from the start. All functions here are safe to repeat.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use shared::domain::ids::{CommentId, SourceId, ThreadId, Visitor};
use shared::domain::thread::VisitorThreadState;
use shared::domain::user::User;
use shared::error::Fault;
use shared::store::keys::{self, Item};
use shared::store::schema::{native_import, user, visitor_state};
use shared::store::threads::MAX_ENTRIES;
use shared::store::transaction::{Outcome, Write};
use shared::store::users::versions;
use shared::store::{Reading, Store, bans, number, number_set, read, text, yes};

use crate::store::import::{occupants, put_all};
use crate::store::sources::{SourceRow, rows_of};

/// Maximum users or visitors written concurrently.
const AT_ONCE: usize = 25;

/// A like or a report in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub comment: CommentId,
    /// The parent of the comment, or the comment itself if it's top-level.
    pub group: CommentId,
    pub is_report: bool,
}

#[derive(Clone, Debug)]
pub struct VisitorEntries {
    pub visitor: Visitor,
    pub entries: Vec<Entry>,
}

/// Writes likes and reports of comments that don't exist yet.
pub async fn restore_entries(store: &Store, thread: &ThreadId, all: &[VisitorEntries]) -> Result<(), Fault> {
    for some in all.chunks(AT_ONCE) {
        try_join_all(some.iter().map(|of_visitor| restore_entries_of(store, thread, of_visitor))).await?;
    }
    Ok(())
}

async fn restore_entries_of(store: &Store, thread: &ThreadId, of: &VisitorEntries) -> Result<(), Fault> {
    let doing = "importing likes";
    let key = keys::visitor_state(&of.visitor, thread);
    let mut attempts = store.attempts(doing);
    loop {
        attempts.next().await?;
        let item = store.one_item(&key, Reading::Consistent).await?;
        let state: VisitorThreadState = item.map(read).transpose()?.unwrap_or_default();
        let (own, rest, fills) = divide(&state, &of.entries);
        if !own.is_empty() || fills {
            let update = enter(Write::update(key.clone()), &own).still(visitor_state::FULL, None);
            let update = if fills { update.set(visitor_state::FULL, yes()) } else { update };
            if store.update(doing, update).await?.is_none() {
                continue;
            }
        }
        let mut overflow: BTreeMap<CommentId, Vec<Entry>> = BTreeMap::new();
        for entry in rest {
            overflow.entry(entry.group).or_default().push(entry);
        }
        for (group, entries) in overflow {
            let update = Write::update(keys::visitor_overflow(&of.visitor, thread, group));
            store.update(doing, enter(update, &entries)).await?;
        }
        return Ok(());
    }
}

/// Adds missing users. Existing users keep their names. An existing user without a ban gets the imported ban, but each
/// ban only once.
pub async fn restore_users(store: &Store, users: &[User]) -> Result<(), Fault> {
    for some in users.chunks(AT_ONCE) {
        let keys = some.iter().map(|user| keys::user(user.id)).collect();
        let mut stored = store.batch_get(keys, Reading::Consistent).await?;
        let each = some.iter().map(|user| (user, stored.remove(&keys::user(user.id))));
        try_join_all(each.map(|(user, stored)| restore_user(store, user, stored))).await?;
    }
    Ok(())
}

async fn restore_user(store: &Store, user: &User, mut stored: Option<Item>) -> Result<(), Fault> {
    let user = &store.kept_user(user.clone());
    let mut attempts = store.attempts("importing a user");
    loop {
        if attempts.next().await? {
            stored = store.one_item(&keys::user(user.id), Reading::Consistent).await?;
        }
        let Some((after, writes)) = restoration(user, stored.take())? else { return Ok(()) };
        if !after.name.is_empty() {
            store.refresh_directory(&after).await?;
        }
        if store.transact(writes).await? == Outcome::Done {
            return Ok(());
        }
        if let Some(now) = store.user(user.id, Reading::Consistent).await? {
            store.forget_directory(&after, &now).await?;
        }
    }
}

/// Adds tombstones, except for existing comments.
pub async fn restore_tombstones(store: &Store, tombstones: &[(SourceId, SourceRow)]) -> Result<(), Fault> {
    let sources: Vec<SourceId> = tombstones.iter().map(|(source, _)| source.clone()).collect();
    let rows = rows_of(store, &sources).await?;
    let ids: BTreeSet<CommentId> =
        tombstones.iter().map(|(_, row)| row).chain(rows.values()).map(|row| row.comment).collect();
    let there: HashMap<_, _> = occupants(store, &ids.into_iter().collect::<Vec<_>>()).await?;
    let is_there = |source: &SourceId, row: &SourceRow| {
        there.get(&row.comment).is_some_and(|occupant| occupant.source.as_ref() == Some(source))
    };
    let gone = tombstones
        .iter()
        .filter(|(source, row)| !is_there(source, row) && !rows.get(source).is_some_and(|row| is_there(source, row)));
    put_all(store, gone.map(|(source, row)| row.item(source))).await
}

/// Records that the table contains hashes under another salt. If there are several, the first one stays recorded.
pub async fn keep_imported_salt(store: &Store, fingerprint: &str) -> Result<(), Fault> {
    let note = Write::update(keys::native_import())
        .set(native_import::SALT, text(fingerprint))
        .when(format!("attribute_not_exists({0})", native_import::SALT));
    store.update("noting a salt", note).await.map(drop)
}

/// The last import of a native file into the table.
pub struct NativeImport {
    /// A hash of the file.
    pub file: String,
    pub is_unfinished: bool,
}

pub async fn native_import(store: &Store) -> Result<Option<NativeImport>, Fault> {
    let item = store.one_item(&keys::native_import(), Reading::Consistent).await?;
    Ok(item.and_then(|item| {
        let file = item.get(native_import::FILE)?.as_s().ok()?.clone();
        Some(NativeImport { file, is_unfinished: item.contains_key(native_import::UNFINISHED) })
    }))
}

/// Records that an import of the native file with this hash begins. The table counts as incomplete until
/// [`end_native`].
pub async fn begin_native(store: &Store, file: &str) -> Result<(), Fault> {
    let note =
        Write::update(keys::native_import()).set(native_import::FILE, text(file)).set(native_import::UNFINISHED, yes());
    store.update("noting an import", note).await.map(drop)
}

pub async fn end_native(store: &Store) -> Result<(), Fault> {
    let note = Write::update(keys::native_import()).remove(native_import::UNFINISHED);
    store.update("noting an import", note).await.map(drop)
}

/// The entries of the visitor's item for the thread, those of overflow items, and whether the visitor's item becomes
/// full. Skips entries that the visitor's item already has. Doesn't read overflow items, so their entries are added
/// again, which is harmless.
fn divide(state: &VisitorThreadState, entries: &[Entry]) -> (Vec<Entry>, Vec<Entry>, bool) {
    let has = |entry: &Entry| {
        let set = if entry.is_report { &state.reported } else { &state.liked };
        set.contains(&entry.comment.0)
    };
    let mut own: Vec<Entry> = entries.iter().copied().filter(|entry| !has(entry)).collect();
    let count = state.liked.len() + state.reported.len();
    let room = if state.full { 0 } else { MAX_ENTRIES.saturating_sub(count) };
    let rest = own.split_off(room.min(own.len()));
    let fills = !state.full && count + own.len() + rest.len() >= MAX_ENTRIES;
    (own, rest, fills)
}

fn enter(update: Write, entries: &[Entry]) -> Write {
    let set = |is_report| {
        let chosen = entries.iter().filter(|entry| entry.is_report == is_report);
        number_set(&chosen.map(|entry| entry.comment.0).collect())
    };
    let add = |update: Write, name, set: Option<AttributeValue>| match set {
        Some(set) => update.add(name, set),
        None => update,
    };
    add(add(update, visitor_state::LIKED, set(false)), visitor_state::REPORTED, set(true))
}

/// The user afterwards, and the writes to get there. `None` if nothing changes.
fn restoration(user: &User, stored: Option<Item>) -> Result<Option<(User, Vec<Write>)>, Fault> {
    let brought = stored.as_ref().and_then(|item| item.get(user::IMPORTED_BAN).cloned());
    let known: Option<User> = stored.map(read).transpose()?;
    let is_new = known.is_none();
    let names = !user.name.is_empty() && known.as_ref().is_none_or(|known| known.name.is_empty());
    let standing = known.as_ref().and_then(|known| known.ban.clone().map(|ban| (ban, known.ban_id)));
    let ban = user.ban.clone().zip(user.ban_id);
    let ban = ban.filter(|(_, id)| standing.is_none() && brought != Some(number(*id)));
    if !is_new && !names && ban.is_none() {
        return Ok(None);
    }
    let mut after = known.filter(|_| !names).unwrap_or_else(|| user.clone());
    let mut update = Write::update(keys::user(user.id)).set(user::ID, number(user.id.0));
    if names {
        update = update
            .set(user::NAME, text(user.name.clone()))
            .set(user::AVATAR, text(user.avatar.clone()))
            .still(user::NAME, None);
        for (attribute, value) in versions(Some(user)) {
            update = value.into_iter().fold(update, |update, value| update.set(attribute, value));
        }
    }
    let mut writes = Vec::new();
    if let Some((ban, id)) = &ban {
        let stored = serde_dynamo::to_attribute_value(ban).map_err(|error| Fault::new("serializing a ban", error))?;
        update = update.set(user::BAN, stored).set(user::BAN_ID, number(*id)).set(user::IMPORTED_BAN, number(*id));
        update = update.when(format!("attribute_not_exists({0})", user::BAN));
        writes.push(Write::put(bans::row(*id, user.id, ban)?));
    }
    writes.push(update);
    (after.ban, after.ban_id) = match ban.map(|(ban, id)| (ban, Some(id))).or(standing) {
        Some((ban, id)) => (Some(ban), id),
        None => (None, None),
    };
    Ok(Some((after, writes)))
}
