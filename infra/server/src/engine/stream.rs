//! The table's stream. Triggers in `SQLite` record each change in a table of the same database, in the same
//! transaction. A record is removed once all followers have handled it. If a process ends first, the next one delivers
//! the remaining records. The engine's own stream isn't used, because it makes every write slower than the last.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::{Connection, Row};
use serde_json::{Map, Value, json};

use super::{Engine, EngineError, Shared};
use crate::account::{ACCOUNT_ID, REGION};
use crate::event_filter::EventFilter;
use crate::publisher::{Batch, Record};

/// The names contain colons, so that they can't clash with the names of `DynamoDB`'s tables and indexes.
const SCHEMA: &str = r#"
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS "stream::changes" (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, old TEXT, new TEXT);
DROP TRIGGER IF EXISTS "stream::put";
DROP TRIGGER IF EXISTS "stream::delete";
"#;
/// The engine replaces the whole item at each change. A trigger that runs before the change can still read the old
/// item.
const TRIGGERS: &str = r#"
CREATE TRIGGER IF NOT EXISTS "stream::put" BEFORE INSERT ON "{table}" BEGIN
    INSERT INTO "stream::changes" (at, old, new) VALUES (unixepoch(),
        (SELECT item_json FROM "{table}" WHERE pk = NEW.pk AND sk = NEW.sk), NEW.item_json);
END;
CREATE TRIGGER IF NOT EXISTS "stream::delete" BEFORE DELETE ON "{table}" BEGIN
    INSERT INTO "stream::changes" (at, old) VALUES (unixepoch(), OLD.item_json);
END;
"#;
const READ: &str = r#"SELECT number, at, old, new FROM "stream::changes" WHERE number > ?1 ORDER BY number LIMIT ?2"#;
const REMOVE: &str = r#"DELETE FROM "stream::changes" WHERE number >= ?1 AND number < ?2"#;
const REPLACE: &str = r#"REPLACE INTO "stream::changes" (number, at, old, new) VALUES (?1, ?2, ?3, ?4)"#;
const LAST: &str = r#"SELECT ifnull(max(number), 0) FROM "stream::changes""#;
/// Maximum records that an amendment reads at a time.
const AMENDED_AT_ONCE: usize = 1_000;
/// The wait after a failure, such as a full disk.
const PAUSE: Duration = Duration::from_secs(1);

/// The stream's records, with a separate connection to the engine's database.
pub(super) struct Stream {
    connection: Connection,
    /// For each follower, the number of the last change that it has handled.
    positions: Vec<Weak<AtomicI64>>,
    /// The number up to which records have been removed, except those in `given_up`.
    removed: i64,
    given_up: BTreeSet<i64>,
}

/// A change as stored in the database. The images are JSON.
struct Change {
    number: i64,
    at: i64,
    old: Option<String>,
    new: Option<String>,
}

/// A reader of the stream. A follower begins with the oldest record if there is no other follower, and with the next
/// change otherwise.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    table: String,
    /// The names of the key attributes.
    key: Vec<String>,
    filter: EventFilter,
    position: Arc<AtomicI64>,
}

impl Stream {
    /// Opens the stream. Before the first follower, no changes are recorded: imports and repairs do their own follow-up
    /// work.
    pub(super) fn open(connection: Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection, positions: Vec::new(), removed: 0, given_up: BTreeSet::new() })
    }

    /// The number of the last change that is stored or that a current follower has handled.
    pub(super) fn last(&self) -> rusqlite::Result<i64> {
        let stored: i64 = self.connection.prepare_cached(LAST)?.query_row([], |row| row.get(0))?;
        Ok(self.handled().fold(stored, i64::max))
    }

    /// The positions of the current followers.
    fn handled(&self) -> impl Iterator<Item = i64> {
        self.positions.iter().filter_map(Weak::upgrade).map(|position| position.load(Ordering::Relaxed))
    }

    fn follow(&mut self, table: &str) -> rusqlite::Result<Arc<AtomicI64>> {
        self.connection.execute_batch(&TRIGGERS.replace("{table}", table))?;
        self.positions.retain(|position| position.strong_count() > 0);
        let start = if self.positions.is_empty() { 0 } else { self.last()? };
        let position = Arc::new(AtomicI64::new(start));
        self.positions.push(Arc::downgrade(&position));
        Ok(position)
    }

    fn read(&self, after: i64, most: usize) -> rusqlite::Result<Vec<Change>> {
        let mut statement = self.connection.prepare_cached(READ)?;
        statement.query_map((after, i64::try_from(most).unwrap_or(i64::MAX)), Change::read)?.collect()
    }

    fn amend(&mut self, amend: &mut dyn FnMut(Value) -> Option<Value>) -> Result<u64, EngineError> {
        let (mut amended, mut after) = (0, 0);
        let transaction = self.connection.unchecked_transaction()?;
        loop {
            let changes = self.read(after, AMENDED_AT_ONCE)?;
            let Some(last) = changes.last().map(|change| change.number) else { break };
            for change in changes {
                let Change { number, at, old, new } = &change;
                let (was, mut is_own) = ([old, new], false);
                let mut image = |text: &Option<String>| -> serde_json::Result<Option<String>> {
                    let Some(text) = text else { return Ok(None) };
                    let image: Value = serde_json::from_str(text)?;
                    let amended = amend(image.clone());
                    is_own |= amended.is_none();
                    let changed = amended.filter(|amended| *amended != image);
                    Ok(Some(changed.map_or_else(|| text.clone(), |changed| changed.to_string())))
                };
                let now = [image(old)?, image(new)?];
                if is_own {
                    self.connection.prepare_cached(REMOVE)?.execute((number, number + 1))?;
                } else if was != now.each_ref() {
                    self.connection.prepare_cached(REPLACE)?.execute((number, at, &now[0], &now[1]))?;
                } else {
                    continue;
                }
                amended += 1;
            }
            after = last;
        }
        transaction.commit()?;
        Ok(amended)
    }

    pub(super) fn compact(&self) -> Result<(), EngineError> {
        self.connection.execute_batch("VACUUM")?;
        let is_busy: bool = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy { Err(EngineError::Busy) } else { Ok(()) }
    }

    /// Removes records that every follower has handled.
    fn remove_handled(&mut self) -> rusqlite::Result<()> {
        let Some(end) = self.handled().min().filter(|end| *end > self.removed) else { return Ok(()) };
        let mut statement = self.connection.prepare_cached(REMOVE)?;
        let mut start = self.removed + 1;
        for kept in self.given_up.range(start..=end).copied().chain([end + 1]) {
            if start < kept {
                statement.execute((start, kept))?;
            }
            start = kept + 1;
        }
        self.removed = end;
        Ok(())
    }
}

impl Change {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { number: row.get(0)?, at: row.get(1)?, old: row.get(2)?, new: row.get(3)? })
    }

    /// Converts the change to a record of Lambda's event. `None` if the images are equal.
    fn record(self, table: &str, key: &[String]) -> serde_json::Result<Option<Record>> {
        let size = [&self.old, &self.new].into_iter().flatten().map(String::len).sum::<usize>();
        let image = |text: Option<String>| text.map(|text| serde_json::from_str::<Map<_, _>>(&text)).transpose();
        let (old, new) = (image(self.old)?, image(self.new)?);
        let name = match (&old, &new) {
            (Some(old), Some(new)) if old == new => return Ok(None),
            (None, None) => return Ok(None),
            (None, Some(_)) => "INSERT",
            (Some(_), Some(_)) => "MODIFY",
            (Some(_), None) => "REMOVE",
        };
        let item = new.as_ref().or(old.as_ref());
        let value = |name: &String| Some((name.clone(), item?.get(name)?.clone()));
        let mut change = json!({
            "ApproximateCreationDateTime": self.at,
            "Keys": key.iter().filter_map(value).collect::<Map<_, _>>(),
            "SequenceNumber": format!("{:021}", self.number),
            "SizeBytes": size,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        for (name, image) in [("OldImage", old), ("NewImage", new)] {
            if let Some(image) = image {
                change[name] = image.into();
            }
        }
        let content = json!({
            // Includes the time, because the number alone isn't unique across databases.
            "eventID": format!("{:016x}{:016x}", self.at, self.number),
            "eventName": name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "dynamodb": change,
            "eventSourceARN": format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}/stream/local"),
        });
        Ok(Some(Record { number: self.number, content }))
    }
}

impl Engine {
    /// Follows the stream of a table. Once there is a follower, each change to the table is recorded with its images.
    pub fn follow(&self, table: &str, filter: EventFilter) -> Result<Follower, EngineError> {
        let mut connections = self.shared.connections();
        let key = connections.key(table)?;
        let position = connections.stream.follow(table)?;
        drop(connections);
        Ok(Follower { shared: Arc::clone(&self.shared), table: table.to_owned(), key, filter, position })
    }

    /// The number of the last change that is stored or that a current follower has handled; zero if there is none.
    pub fn last_change(&self) -> Result<i64, EngineError> {
        Ok(self.shared.connections().stream.last()?)
    }

    /// Amends the records of the stream, and returns the number of records that were changed or removed. `amend` gets
    /// each image, an item in `DynamoDB`'s JSON, and returns its replacement; `None` removes the record. Nothing else
    /// may read the stream during this call.
    pub fn amend_records(&self, amend: &mut dyn FnMut(Value) -> Option<Value>) -> Result<u64, EngineError> {
        self.shared.connections().stream.amend(amend)
    }
}

impl Follower {
    /// The number of the last handled change.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Waits for changes, and returns at most `most`. Changes are returned again until they are handled.
    pub async fn next(&mut self, most: usize) -> Batch {
        loop {
            let shared = Arc::clone(&self.shared);
            let changed = shared.changed.notified();
            match self.next_now(most).await {
                Ok(Some(batch)) => return batch,
                Ok(None) => changed.await,
                Err(error) => {
                    tracing::error!("reading the table's stream failed: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Returns at most `most` of the existing changes, without waiting. `None` if there are none.
    pub async fn next_now(&mut self, most: usize) -> Result<Option<Batch>, EngineError> {
        let after = self.position();
        let changes = self.shared.work(move |shared| shared.connections().stream.read(after, most)).await??;
        let Some(end) = changes.last().map(|change| change.number) else { return Ok(None) };
        let records = changes.into_iter().filter_map(|change| change.record(&self.table, &self.key).transpose());
        let mut records: Vec<Record> = records.collect::<Result<_, _>>()?;
        records.retain(|record| self.filter.passes(&record.content));
        Ok(Some(Batch { records, end }))
    }

    /// Records that the changes up to `end` were handled. Keeps the changes in `given_up` for the next process.
    pub async fn handled(&mut self, end: i64, given_up: Vec<i64>) {
        self.position.store(end, Ordering::Relaxed);
        let removed = self.shared.work(move |shared| {
            let mut connections = shared.connections();
            connections.stream.given_up.extend(given_up);
            connections.stream.remove_handled()
        });
        let removed = removed.await.map_err(EngineError::from).and_then(|removed| Ok(removed?));
        if let Err(error) = removed {
            tracing::error!("removing handled records from the table's stream failed: {error}");
        }
    }
}
