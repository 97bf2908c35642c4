//! The content of an export, sorted in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::iter;

use jiff::Timestamp;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, Provenance, SourceId, ThreadId, UserId, Visitor};
use shared::domain::report::Report;
use shared::domain::thread::{Pin, Thread};
use shared::domain::user::User;

use super::ExportError;
use super::records::{self, thread_key};
use crate::import::record::Record;
use crate::store::export::{GuestCount, StoredItem};
use crate::store::sources::SourceRow;

#[derive(Default)]
pub(super) struct Sorted {
    /// Threads that have comments or a description, or that a moderator closed or reopened.
    threads: BTreeMap<String, (ThreadId, Thread)>,
    users: BTreeMap<UserId, User>,
    sources: BTreeMap<SourceId, SourceRow>,
    comments: BTreeMap<CommentId, Comment>,
    pins: BTreeMap<CommentId, Pin>,
    likes: BTreeSet<(CommentId, Visitor)>,
    reports: BTreeMap<(CommentId, u64), Report>,
    bounds: BTreeMap<(CommentId, String), GuestCount>,
    pub(super) has_hashed_users: bool,
}

impl Sorted {
    pub(super) fn add(&mut self, item: StoredItem) -> Result<(), ExportError> {
        match item {
            StoredItem::Comment(comment) => {
                self.note(comment.user);
                self.comments.insert(comment.id, *comment);
            }
            StoredItem::Report(comment, report) => {
                self.note(report.user);
                self.reports.insert((comment, report.id), report);
            }
            StoredItem::GuestBound(bound) => _ = self.bounds.insert((bound.comment, bound.network.clone()), bound),
            StoredItem::Thread(id, thread) => self.add_thread(id, thread),
            StoredItem::VisitorThreadState(visitor, _, state) => {
                self.note(visitor.user());
                self.likes.extend(state.liked.into_iter().map(|id| (CommentId(id), visitor.clone())));
            }
            StoredItem::User(user) if user.is_unknown() => {}
            StoredItem::User(user) => {
                self.note(Some(user.id));
                self.users.insert(user.id, user);
            }
            StoredItem::Source(source, row) => _ = self.sources.insert(source, row),
            StoredItem::Importing(thread) => return Err(ExportError::Importing(thread)),
        }
        Ok(())
    }

    fn add_thread(&mut self, id: ThreadId, thread: Thread) {
        self.note(thread.author);
        self.pins.extend(thread.pin.map(|pin| (pin.comment, pin)));
        let is_described = thread.title.is_some() || thread.url.is_some() || thread.author.is_some();
        if is_described || thread.closed.is_some() {
            self.threads.insert(thread_key(&id), (id, thread));
        }
    }

    fn note(&mut self, user: Option<UserId>) {
        self.has_hashed_users |= user.is_some_and(UserId::is_hashed);
    }

    /// Leaves out comments below a deleted one, which are yet to be removed, and adds the tombstones that their removal
    /// would leave. Also leaves out likes, reports and guest counts of deleted comments, including placeholders.
    fn drop_orphans(&mut self) {
        let all: BTreeSet<CommentId> = self.comments.keys().copied().collect();
        let is_orphan = |comment: &Comment| comment.ancestors.iter().any(|above| !all.contains(above));
        for (id, comment) in self.comments.extract_if(.., |_, comment| is_orphan(comment)) {
            if let Some(source) = comment.source {
                let tombstone = || SourceRow::new(id, true, Provenance::default());
                self.sources.entry(source).or_insert_with(tombstone).is_deleted = true;
            }
        }
        let stays = |id: &CommentId| self.comments.get(id).is_some_and(|comment| !comment.is_placeholder);
        self.likes.retain(|(id, _)| stays(id));
        self.reports.retain(|(id, _), _| stays(id));
        self.bounds.retain(|(id, _), _| stays(id));
        for comment in self.comments.values() {
            let thread = || (comment.thread.clone(), Thread::default());
            self.threads.entry(thread_key(&comment.thread)).or_insert_with(thread);
        }
    }

    /// Writes all records, once everything has been added, and returns the number of comments.
    pub(super) fn write(mut self, salt: String, out: &mut impl Write) -> Result<u64, ExportError> {
        self.drop_orphans();
        let deleted = self.sources.iter().filter(|(_, row)| row.is_deleted);
        let records = self.threads.len() + self.users.len() + deleted.clone().count() + self.comments.len();
        let records = records + self.likes.len() + self.reports.len() + self.bounds.len();
        let records = iter::once(records::head(salt, records as u64))
            .chain(self.threads.values().map(|(id, thread)| records::thread(id, thread)))
            .chain(self.users.values().map(records::user))
            .chain(deleted.map(|(source, row)| records::tombstone(source, row.comment, row.provenance())))
            .chain(self.comments.values().map(|comment| self.comment(comment)))
            .chain(self.likes.iter().map(|(comment, visitor)| records::like(*comment, visitor)))
            .chain(self.reports.iter().map(|((comment, _), report)| records::report(*comment, report)))
            .chain(self.bounds.values().map(records::guest_bound));
        for record in records {
            writeln!(out, "{}", serde_json::to_string(&record).map_err(io::Error::from)?)?;
        }
        Ok(self.comments.len() as u64)
    }

    /// The record of a comment, with its pin from the thread and its provenance from the source.
    fn comment(&self, stored: &Comment) -> Record {
        let mut record = records::comment(stored);
        if let Record::Comment(comment) = &mut record {
            let pin = self.pins.get(&stored.id).filter(|_| !stored.is_placeholder);
            comment.pinned = pin.is_some();
            comment.pinned_at = pin.and_then(|pin| Timestamp::from_millisecond(pin.at.0).ok());
            let row = comment.source.as_ref().and_then(|source| self.sources.get(&SourceId(source.clone())));
            comment.provenance =
                row.filter(|row| row.comment == stored.id).map(SourceRow::provenance).unwrap_or_default();
        }
        record
    }
}
