//! `DynamoDB` in this process: an embedded engine behind the real SDK, without a socket. Writes become the stream
//! records that Lambda would receive. Nothing here knows what the table holds.

mod connector;
mod protocol;
mod server;
mod stream;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dynoxide::{Database, DynoxideError};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use self::stream::Stream;
pub use self::tables::{StreamSpecification, TableDefinition};
pub use crate::event_filter::EventFilter;
pub use crate::publisher::Subscription;

/// Requests that have a thread: while the database works on one, the next is parsed.
const AT_ONCE: usize = 2;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Database(#[from] DynoxideError),
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
    /// Held during every write, so that images and records are in commit order. The engine runs one operation at a time
    /// anyway.
    stream: Mutex<Stream>,
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
        Ok(Self::new(Database::memory()?))
    }

    /// Creates the file when it is missing.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let database = Database::new(&path.to_string_lossy())?;
        // Sets SQLite's `synchronous = NORMAL`: a write does not wait for the disk. After a power failure the last
        // writes may be missing, but the database is consistent.
        database.disable_bulk_loading()?;
        Ok(Self::new(database))
    }

    fn new(database: Database) -> Self {
        let turns = Semaphore::new(AT_ONCE);
        Self { shared: Arc::new(Shared { database, stream: Mutex::default(), turns, cpu_time: AtomicU64::new(0) }) }
    }

    /// Subscribes to those records of the table's stream that pass: one Lambda event (`{"Records": […]}`) for each write
    /// from now on, in commit order. Items that TTL removes are not reported.
    #[must_use]
    pub fn subscribe(&self, filter: EventFilter) -> Subscription {
        self.shared.stream().publisher.subscribe(filter)
    }

    /// The number of events published so far. It grows only while there are subscribers.
    #[must_use]
    pub fn reported(&self) -> u64 {
        self.shared.stream().publisher.published()
    }

    /// Removes the items whose TTL has expired and returns their number.
    pub fn remove_expired(&self) -> Result<usize, EngineError> {
        // The lock keeps an item from disappearing between the two images of a write.
        let _writes = self.shared.stream();
        Ok(self.shared.database.sweep_ttl()?)
    }

    /// Answers one request of `DynamoDB`'s protocol with a status and JSON.
    pub async fn answer(&self, operation: String, body: Vec<u8>) -> Result<(u16, Vec<u8>), JoinError> {
        let _turn = self.shared.turns.acquire().await;
        let shared = Arc::clone(&self.shared);
        // The engine is synchronous and may wait for the disk.
        tokio::task::spawn_blocking(move || {
            let before = thread_time();
            let answer = shared.answer(&operation, &body);
            let elapsed = thread_time().saturating_sub(before);
            shared.cpu_time.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            answer
        })
        .await
    }

    /// The CPU time of all answers so far; zero on systems that do not measure it by thread.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.shared.cpu_time.load(Ordering::Relaxed))
    }
}

impl Shared {
    fn stream(&self) -> MutexGuard<'_, Stream> {
        // A panic leaves the stream consistent.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
