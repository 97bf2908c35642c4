//! The whole table in memory, by kind of item.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, SourceId, ThreadId, UserId, Visitor};
use shared::domain::log::LogEntry;
use shared::domain::report::Report;
use shared::domain::thread::{Thread, VisitorThreadState};
use shared::domain::trust::Trust;
use shared::domain::user::{NetworkBan, User};
use shared::error::Fault;
use shared::store::bans::network;
use shared::store::keys::{Item, ItemKind, Key};
use shared::store::schema::{comment, import_journal, native_import};
use shared::store::{read, text};

use crate::store::sources::SourceRow;

pub(super) struct StoredComment {
    /// The comment without its body.
    pub(super) comment: Comment,
    pub(super) item: Item,
}

pub(super) struct StoredThread {
    pub(super) thread: Thread,
    pub(super) item: Item,
}

/// A visitor's state in a thread, or its overflow for one parent.
pub(super) struct StoredVisitorState {
    pub(super) key: Key,
    pub(super) visitor: Visitor,
    pub(super) thread: ThreadId,
    pub(super) state: VisitorThreadState,
    pub(super) item: Item,
}

pub(super) struct QueueEntry {
    pub(super) key: Key,
    pub(super) state: String,
    pub(super) comment: CommentId,
}

/// Comments below a missing comment, each with its highest missing ancestor.
pub(super) type Orphans = BTreeMap<CommentId, CommentId>;

#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) comments: BTreeMap<CommentId, StoredComment>,
    pub(super) reports: BTreeMap<CommentId, BTreeMap<Visitor, Report>>,
    /// Pairs of a parent and an unapproved reply.
    pub(super) hidden_replies: BTreeSet<(CommentId, CommentId)>,
    /// Items in the partition of a comment, other than the comment itself.
    pub(super) dependents: Vec<(CommentId, Key)>,
    /// Threads, by their ids as text.
    pub(super) threads: BTreeMap<String, StoredThread>,
    /// Threads with an unfinished import in batches.
    pub(super) importing: Vec<ThreadId>,
    /// Threads with an unfinished import of comments one by one.
    pub(super) growing: Vec<ThreadId>,
    pub(super) is_importing_native: bool,
    /// The counted comments of each thread, and its stored count, by the thread's id as text.
    pub(super) counted: BTreeMap<String, BTreeSet<CommentId>>,
    pub(super) counts: BTreeMap<String, Item>,
    pub(super) visitor_states: Vec<StoredVisitorState>,
    pub(super) users: BTreeMap<UserId, User>,
    /// Trust in guests who have a `Comment-Key`.
    pub(super) guests: BTreeMap<Visitor, Trust>,
    /// Entries of the list of bans, by the id of the ban.
    pub(super) banned: BTreeMap<u64, Item>,
    pub(super) network_bans: Vec<NetworkBan>,
    /// Handles and name fragments, by partition and sort key.
    pub(super) directory: BTreeMap<(String, String), Item>,
    pub(super) queue: Vec<QueueEntry>,
    pub(super) sources: BTreeMap<SourceId, SourceRow>,
    /// The comments with a tombstone.
    pub(super) deleted: BTreeSet<CommentId>,
    /// Items that can't be parsed as the kind in their key.
    pub(super) unreadable: Vec<Key>,
}

impl Snapshot {
    pub(super) fn add(&mut self, item: Item) {
        let Some(key) = Key::of(&item) else { return };
        if self.sort_in(key.clone(), item).is_err() {
            self.unreadable.push(key);
        }
    }

    fn sort_in(&mut self, key: Key, mut item: Item) -> Result<(), Fault> {
        match ItemKind::of(&key) {
            ItemKind::Comment(id) => {
                // Empties the body. Bodies make up most of a table, and no check reads them.
                item.entry(comment::BODY.to_owned()).and_modify(|body| *body = text(""));
                let comment = Comment { id, ..read(item.clone())? };
                self.comments.insert(id, StoredComment { comment, item });
            }
            ItemKind::Report(id) => {
                let report: Report = read(item)?;
                self.reports.entry(id).or_default().insert(report.visitor.clone(), report);
                self.dependents.push((id, key));
            }
            ItemKind::HiddenReply { parent, id } => {
                self.hidden_replies.insert((parent, id));
                self.dependents.push((parent, key));
            }
            ItemKind::GuestBound { comment: id, .. } => self.dependents.push((id, key)),
            ItemKind::Thread(id) => {
                let thread = read(item.clone())?;
                self.threads.insert(id.to_string(), StoredThread { thread, item });
            }
            ItemKind::Counted(thread, id) => {
                self.counted.entry(thread.to_string()).or_default().insert(id);
            }
            ItemKind::Count(thread) => {
                self.counts.insert(thread.to_string(), item);
            }
            ItemKind::VisitorState(visitor, thread) | ItemKind::VisitorOverflow(visitor, thread) => {
                let state = read(item.clone())?;
                self.visitor_states.push(StoredVisitorState { key, visitor, thread, state, item });
            }
            ItemKind::User(id) => {
                self.users.insert(id, read(item)?);
            }
            ItemKind::Guest(visitor) => {
                self.guests.insert(visitor, read(item)?);
            }
            ItemKind::Handle(_) | ItemKind::NameFragment(_) => {
                self.directory.insert((key.pk, key.sk), item);
            }
            // An import that writes comments one by one leaves the table consistent at every step, but may not have
            // written the replies to a placeholder yet.
            ItemKind::ImportJournal(thread) if item.contains_key(import_journal::LAST) => self.growing.push(thread),
            ItemKind::ImportJournal(thread) => self.importing.push(thread),
            ItemKind::NativeImport => self.is_importing_native = item.contains_key(native_import::UNFINISHED),
            ItemKind::Banned(id) => {
                self.banned.insert(id, item);
            }
            ItemKind::NetworkBan(name) => self.network_bans.push(network(&name, item)?),
            // The log isn't derived, and nothing is derived from it.
            ItemKind::Log => drop(read::<LogEntry>(item)?),
            ItemKind::Queue { state, id } => self.queue.push(QueueEntry { key, state, comment: id }),
            ItemKind::Source(source) => {
                let row: SourceRow = read(item)?;
                self.deleted.extend(row.is_deleted.then_some(row.comment));
                self.sources.insert(source, row);
            }
            // No check reads the other kinds, such as items about erasures, limits, emails and webhooks.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn orphans(&self) -> Orphans {
        let missing = |stored: &StoredComment| {
            stored.comment.ancestors.iter().find(|id| !self.comments.contains_key(id)).copied()
        };
        self.comments.iter().filter_map(|(id, stored)| Some((*id, missing(stored)?))).collect()
    }
}
