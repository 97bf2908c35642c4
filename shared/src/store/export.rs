//! Reads a whole table, page by page, for an export. Functions are built without this file.

use std::collections::HashMap;

use super::keys::{self, Item, ItemKind, Key};
use super::schema::{guest_bound, import_journal, imported_salt};
use super::sources::SourceRow;
use super::{Reading, Store, fault, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, SourceId, ThreadId, Visitor};
use crate::domain::report::Report;
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::user::User;
use crate::error::Fault;

/// An item that does not follow from others, and does not expire.
#[derive(Debug)]
pub enum StoredItem {
    Comment(Box<Comment>),
    Report(CommentId, Report),
    GuestBound(GuestCount),
    Thread(ThreadId, Thread),
    /// One of the items of a visitor in a thread.
    VisitorThreadState(Visitor, ThreadId, VisitorThreadState),
    User(User),
    Source(SourceId, SourceRow),
    /// An import into this thread is not finished, and what is there has not been counted.
    Importing(ThreadId),
}

/// How many likes, or reports, of a comment are by guests of one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestCount {
    pub comment: CommentId,
    /// Keyed hash.
    pub network: String,
    pub count: i64,
}

/// The place up to which a table was read.
#[derive(Debug)]
pub struct ScanPosition(HashMap<String, aws_sdk_dynamodb::types::AttributeValue>);

impl Store {
    /// Some items of the table, in no order, and the place where the next page begins; `None` at the end. Fails when an item
    /// is not what its key says.
    pub async fn scan_page(
        &self,
        start: Option<ScanPosition>,
    ) -> Result<(Vec<StoredItem>, Option<ScanPosition>), Fault> {
        #[expect(clippy::disallowed_methods, reason = "an export reads everything")]
        let scan = self.client.scan().table_name(&self.table).consistent_read(true);
        let page = scan.set_exclusive_start_key(start.map(|start| start.0)).send().await;
        let page = page.map_err(|error| fault("scanning the table", error))?;
        let items = page.items.unwrap_or_default().into_iter().map(stored).filter_map(Result::transpose);
        let items = items.map(|item| item.map(|item| self.kept_item(item)));
        let next = page.last_evaluated_key.filter(|key| !key.is_empty());
        Ok((items.collect::<Result<_, _>>()?, next.map(ScanPosition)))
    }

    /// An item as it may be exported.
    fn kept_item(&self, item: StoredItem) -> StoredItem {
        match item {
            StoredItem::Comment(comment) => StoredItem::Comment(Box::new(self.kept_comment(*comment))),
            StoredItem::Report(comment, report) => StoredItem::Report(comment, self.kept_report(report)),
            StoredItem::User(user) => StoredItem::User(self.kept_user(user)),
            other => other,
        }
    }

    /// The fingerprint of another salt under which imported hashes were made.
    pub async fn imported_salt(&self) -> Result<Option<String>, Fault> {
        let item = self.one_item(&keys::imported_salt(), Reading::Consistent).await?;
        Ok(item.and_then(|item| item.get(imported_salt::FINGERPRINT)?.as_s().ok().cloned()))
    }
}

/// `None` for what an export leaves out.
fn stored(item: Item) -> Result<Option<StoredItem>, Fault> {
    let Some(key) = Key::of(&item) else { return Ok(None) };
    of_kind(&key, item).map_err(|error| Fault::new("reading an item", format!("{}: {}", key.pk, error.chain())))
}

pub(super) fn of_kind(key: &Key, item: Item) -> Result<Option<StoredItem>, Fault> {
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
        // One that writes comments one by one leaves the table in order at every step.
        ItemKind::ImportJournal(thread) if !item.contains_key(import_journal::LAST) => StoredItem::Importing(thread),
        ItemKind::HiddenReply { .. }
        | ItemKind::Guest(_)
        | ItemKind::Counted(..)
        | ItemKind::Count(_)
        | ItemKind::Handle(_)
        | ItemKind::NameFragment(_)
        | ItemKind::Queue { .. }
        | ItemKind::Log
        | ItemKind::Banned(_)
        | ItemKind::NetworkBan(_)
        | ItemKind::Forgotten
        | ItemKind::Erasure
        | ItemKind::ErasedComment(_)
        | ItemKind::ImportJournal(_)
        | ItemKind::ImportLease
        | ItemKind::ImportedSalt
        | ItemKind::Limiter(_)
        | ItemKind::Repeat(_)
        | ItemKind::Idempotency(_)
        | ItemKind::NotificationState(_)
        | ItemKind::Inbox(_)
        | ItemKind::Sessions(_)
        | ItemKind::PublicKeys
        | ItemKind::ModeratorNames
        | ItemKind::Endpoint
        | ItemKind::EndpointCount
        | ItemKind::Delivery
        | ItemKind::Unknown => return Ok(None),
    }))
}

fn number<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
