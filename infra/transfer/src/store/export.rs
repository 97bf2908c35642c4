//! Reads a whole table, page by page, for an export.

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, Visitor};
use shared::domain::report::Report;
use shared::domain::thread::{Thread, VisitorThreadState};
use shared::domain::user::User;
use shared::error::Fault;
use shared::store::keys::{self, Item, ItemKind, Key};
use shared::store::schema::{guest_bound, import_journal, native_import};
use shared::store::{Reading, Store, read};

use crate::store::for_each_item;
use crate::store::sources::SourceRow;

/// An item that exports include, or that prevents an export.
#[derive(Debug)]
pub enum StoredItem {
    Comment(Box<Comment>),
    Report(CommentId, Report),
    GuestBound(GuestCount),
    Thread(ThreadId, Thread),
    /// One of a visitor's items in a thread.
    VisitorThreadState(Visitor, ThreadId, VisitorThreadState),
    User(User),
    Source(SourceId, SourceRow),
    /// An unfinished import, whose comments haven't been counted: its thread, or `None` for the whole table.
    Importing(Option<ThreadId>),
}

/// The number of likes or reports of a comment by guests in one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestCount {
    pub comment: CommentId,
    /// A keyed hash of the network, the comment and the kind of reaction.
    pub network: String,
    pub count: i64,
}

/// Calls `each` with every [`StoredItem`] of the table, in no particular order, until it fails. Fails if an item
/// doesn't match the kind in its key.
pub async fn for_each_stored<E: From<Fault>>(
    store: &Store,
    mut each: impl FnMut(StoredItem) -> Result<(), E>,
) -> Result<(), E> {
    for_each_item(store, |item| stored(item)?.map_or(Ok(()), |item| each(kept_item(store, item)))).await
}

/// Removes data that the settings don't allow to be stored.
fn kept_item(store: &Store, item: StoredItem) -> StoredItem {
    match item {
        StoredItem::Comment(comment) => StoredItem::Comment(Box::new(store.kept_comment(*comment))),
        StoredItem::Report(comment, report) => StoredItem::Report(comment, store.kept_report(report)),
        StoredItem::User(user) => StoredItem::User(store.kept_user(user)),
        other => other,
    }
}

/// The fingerprint of the salt that imported hashes use, if it isn't the table's salt.
pub async fn imported_salt(store: &Store) -> Result<Option<String>, Fault> {
    let item = store.one_item(&keys::native_import(), Reading::Consistent).await?;
    Ok(item.and_then(|item| item.get(native_import::SALT)?.as_s().ok().cloned()))
}

/// Parses an item. `None` if exports leave it out.
fn stored(item: Item) -> Result<Option<StoredItem>, Fault> {
    let Some(key) = Key::of(&item) else { return Ok(None) };
    of_kind(&key, item).map_err(|error| Fault::new("reading an item", format!("{}: {}", key.pk, error.chain())))
}

fn of_kind(key: &Key, item: Item) -> Result<Option<StoredItem>, Fault> {
    Ok(Some(match ItemKind::of(key) {
        ItemKind::Comment(_) => StoredItem::Comment(Box::new(read(item)?)),
        ItemKind::Report(comment) => StoredItem::Report(comment, read(item)?),
        ItemKind::GuestBound { comment, network } => {
            let count = number(&item, guest_bound::COUNT).unwrap_or_default();
            StoredItem::GuestBound(GuestCount { comment, network, count })
        }
        ItemKind::Thread(id) => StoredItem::Thread(id, read(item)?),
        ItemKind::VisitorState(visitor, thread) | ItemKind::VisitorOverflow(visitor, thread) => {
            StoredItem::VisitorThreadState(visitor, thread, read(item)?)
        }
        ItemKind::User(_) => StoredItem::User(read(item)?),
        ItemKind::Source(source) => StoredItem::Source(source, read(item)?),
        // An import that writes comments one by one leaves the table consistent at every step.
        ItemKind::ImportJournal(thread) if !item.contains_key(import_journal::LAST) => {
            StoredItem::Importing(Some(thread))
        }
        ItemKind::NativeImport if item.contains_key(native_import::UNFINISHED) => StoredItem::Importing(None),
        _ => return Ok(None),
    }))
}

fn number<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use shared::store::schema::{Export, KINDS};

    use super::*;

    #[test]
    fn an_export_includes_the_kinds_of_items_that_the_schema_marks() {
        for schema in KINDS {
            let filled = |part: &str| part.replace("id", "12").replace("parent", "12").replace("type#record", "post#a");
            let key = Key { pk: filled(schema.pk), sk: filled(schema.sk) };
            assert_eq!(ItemKind::of(&key).schema().map(|of| of.name), Some(schema.name), "{key:?}");
            // A journal with this attribute belongs to an import that writes comments one by one.
            let item = Item::from([(import_journal::LAST.to_owned(), shared::store::number(1))]);
            // The item is otherwise empty, which is an error for most kinds that are exported.
            let is_left_out = matches!(of_kind(&key, item), Ok(None));
            assert_eq!(is_left_out, schema.export != Export::Record, "{}", schema.name);
        }
    }
}
