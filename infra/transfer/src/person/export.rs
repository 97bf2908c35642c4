//! Exports a person's data in the native format: the profile, comments, likes, reports, and threads whose author is the
//! person. Text by others about the person is left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use shared::domain::ids::CommentId;
use shared::domain::person::{Person, Who};
use shared::domain::time;
use shared::store::Store;

use super::PersonError;
use crate::export::ExportError;
use crate::export::records;
use crate::import::record::Record;
use crate::store::export::{StoredItem, for_each_stored};
use crate::store::person::find::{identify, wrote};

/// Writes the person's records. `salt` is the fingerprint of the table's salt. Returns the number of records after the
/// head.
pub async fn export(store: &Store, who: Who, salt: String, out: &mut impl Write) -> Result<u64, PersonError> {
    let person = identify(store, who, None).await?.ok_or(PersonError::Importing)?;
    let mut found = Found { person: &person, records: BTreeMap::new(), pins: BTreeMap::new() };
    for_each_stored(store, |item| {
        found.add(item);
        Ok::<_, PersonError>(())
    })
    .await?;
    Ok(found.write(salt, out).map_err(ExportError::from)?)
}

/// The kinds of records, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecordKind {
    Profile,
    Thread,
    Comment,
    Like,
    Report,
}

struct Found<'a> {
    person: &'a Person,
    /// Records by kind, and by an id or a name that is unique within the kind.
    records: BTreeMap<(RecordKind, u64, String), Record>,
    pins: BTreeMap<CommentId, time::Timestamp>,
}

impl Found<'_> {
    fn add(&mut self, item: StoredItem) {
        let (known, user) = (&self.person.known, self.person.user());
        match item {
            StoredItem::Comment(comment) if wrote(self.person, &comment) => {
                self.insert(RecordKind::Comment, comment.id.0, "", records::comment(&comment));
            }
            StoredItem::Report(comment, report) if known.visitors.contains(&report.visitor) => {
                self.insert(RecordKind::Report, report.id, "", records::report(comment, &report));
            }
            StoredItem::Thread(id, thread) => {
                self.pins.extend(thread.pin.map(|pin| (pin.comment, pin.at)));
                if thread.author == Some(user) {
                    self.insert(RecordKind::Thread, 0, &records::thread_key(&id), records::thread(&id, &thread));
                }
            }
            StoredItem::VisitorThreadState(visitor, _, state) if known.visitors.contains(&visitor) => {
                for id in state.liked {
                    self.insert(RecordKind::Like, id, &visitor.0, records::like(CommentId(id), &visitor));
                }
            }
            StoredItem::User(stored) if stored.id == user => {
                self.insert(RecordKind::Profile, stored.id.0, "", records::user(&stored));
            }
            _ => {}
        }
    }

    fn insert(&mut self, kind: RecordKind, id: u64, name: &str, record: Record) {
        self.records.insert((kind, id, name.to_owned()), record);
    }

    fn write(mut self, salt: String, out: &mut impl Write) -> io::Result<u64> {
        for (comment, at) in self.pins {
            if let Some(Record::Comment(comment)) =
                self.records.get_mut(&(RecordKind::Comment, comment.0, String::new()))
            {
                comment.pinned = true;
                comment.pinned_at = Timestamp::from_millisecond(at.0).ok();
            }
        }
        let count = self.records.len() as u64;
        let head = records::head(salt, count);
        for record in std::iter::once(&head).chain(self.records.values()) {
            writeln!(out, "{}", serde_json::to_string(record)?)?;
        }
        Ok(count)
    }
}
