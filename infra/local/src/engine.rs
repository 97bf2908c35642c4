//! `DynamoDB` in this process: an embedded engine behind the real SDK, without a socket. Writes become the stream
//! records that Lambda would receive, and survive the process as they do. Nothing here knows what the table holds.

mod connector;
mod protocol;
mod server;
mod stream;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dynoxide::{Database, DynoxideError};
use rusqlite::{Connection, ErrorCode};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinError;

pub use self::stream::Follower;
use self::stream::Stream;
pub use self::tables::{StreamSpecification, TableDefinition};
pub use crate::event_filter::EventFilter;
use crate::files;
pub use crate::publisher::{Batch, Record};

/// Requests that have a thread: while the database works on one, the next is parsed.
const AT_ONCE: usize = 2;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Database(#[from] DynoxideError),
    #[error("{0}")]
    Stream(#[from] rusqlite::Error),
    #[error("a change in the stream: {0}")]
    Change(#[from] serde_json::Error),
    #[error("{0}")]
    Work(#[from] JoinError),
    #[error("{0}")]
    File(#[from] io::Error),
    #[error(
        "{path}: {why}; restore it from a backup, or choose another --data-dir, into which an export can be imported"
    )]
    Unusable { path: PathBuf, why: String },
    #[error("there is no table {0}")]
    NoTable(String),
    #[error("the stored table {0} has another key than its definition; move the data directory away to start afresh")]
    KeyDiffers(String),
}

/// Cheap to clone; all clones are one database.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    database: Database,
    /// Locked during every request: to `SQLite` it is another connection, and two that meet wait for milliseconds. The
    /// engine runs one operation at a time anyway.
    stream: Mutex<Stream>,
    /// Notified after every write.
    changed: Notify,
    /// The other requests wait for these without a thread, each of which would keep memory of its own.
    turns: Semaphore,
    /// Nanoseconds.
    cpu_time: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    pub fn memory() -> Result<Self, EngineError> {
        static ENGINES: AtomicU64 = AtomicU64::new(0);
        // Connections of this process share a database of this file system by its name.
        let number = ENGINES.fetch_add(1, Ordering::Relaxed);
        Self::new(&format!("file:/engine-{}-{number}?vfs=memdb", process::id()))
    }

    /// Creates the file when it is missing. Only its owner can read it.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        Self::open_file(path).map_err(|cause| unusable(path, &cause))
    }

    /// Whether the table has items. The file, or the table in it, may be missing.
    pub fn has_items(path: &Path, table: &str) -> Result<bool, EngineError> {
        if !path.exists() {
            return Ok(false);
        }
        let has_items = || {
            let connection = Connection::open(path)?;
            let mut tables = connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?;
            Ok(tables.exists([table])? && connection.prepare(&format!("SELECT 1 FROM \"{table}\""))?.exists([])?)
        };
        has_items().map_err(|error: rusqlite::Error| unusable(path, &error.into()))
    }

    fn open_file(path: &Path) -> Result<Self, EngineError> {
        files::make_database(path)?;
        let engine = Self::new(&path.to_string_lossy())?;
        // Sets SQLite's `synchronous = NORMAL`: a write does not wait for the disk. After a power failure the last
        // writes may be missing, but the database is consistent.
        engine.shared.database.disable_bulk_loading()?;
        Ok(engine)
    }

    fn new(file: &str) -> Result<Self, EngineError> {
        let database = Database::new(file)?;
        let stream = Mutex::new(Stream::open(Connection::open(file)?)?);
        let (changed, turns, cpu_time) = (Notify::new(), Semaphore::new(AT_ONCE), AtomicU64::new(0));
        Ok(Self { shared: Arc::new(Shared { database, stream, changed, turns, cpu_time }) })
    }

    /// Removes the items whose TTL has expired and returns their number. Their removal is in the stream.
    pub fn remove_expired(&self) -> Result<usize, EngineError> {
        // The sweep may take long. It holds no lock, so requests pass.
        let removed = self.shared.database.sweep_ttl()?;
        self.shared.changed.notify_waiters();
        Ok(removed)
    }

    /// Answers one request of `DynamoDB`'s protocol with a status and JSON.
    pub async fn answer(&self, operation: String, body: Vec<u8>) -> Result<(u16, Vec<u8>), JoinError> {
        let _turn = self.shared.turns.acquire().await;
        self.shared.work(move |shared| shared.answer(&operation, &body)).await
    }

    /// The CPU time of all answers and of the stream so far; zero on systems that do not measure it by thread.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.shared.cpu_time.load(Ordering::Relaxed))
    }
}

impl Shared {
    /// The engine is synchronous and may wait for the disk.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let shared = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let before = thread_time();
            let result = work(&shared);
            let elapsed = thread_time().saturating_sub(before);
            shared.cpu_time.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            result
        })
        .await
    }

    fn stream(&self) -> MutexGuard<'_, Stream> {
        // A panic leaves the stream consistent.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unusable(path: &Path, cause: &EngineError) -> EngineError {
    let why = if is_damaged(path) { "is damaged, or is no database".to_owned() } else { cause.to_string() };
    EngineError::Unusable { path: path.to_owned(), why }
}

/// Whether `SQLite` finds the file damaged.
fn is_damaged(path: &Path) -> bool {
    let check = |connection: Connection| {
        connection.query_row("PRAGMA quick_check(1)", [], |row| Ok(row.get::<_, String>(0)? != "ok"))
    };
    Connection::open(path).and_then(check).unwrap_or_else(|error| {
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    })
}

/// Parses a part of a stored table's definition.
fn parse_stored<T: DeserializeOwned>(json: &str) -> Result<T, DynoxideError> {
    serde_json::from_str(json).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// The CPU time of the current thread.
#[cfg(unix)]
fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(not(unix))]
fn thread_time() -> Duration {
    Duration::ZERO
}
