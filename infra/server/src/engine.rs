//! Emulates `DynamoDB` in this process: an embedded engine handles requests of the real SDK without a socket. Writes
//! become the stream records that Lambda would receive. The table and its stream survive the process. Nothing here
//! depends on the table's content.

mod barrier;
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

use dynoxide::types::KeySchemaElement;
use dynoxide::{Database, DynoxideError, TableMetadata};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinError;

use self::barrier::Barrier;
pub use self::stream::Follower;
use self::stream::Stream;
pub use self::tables::{StreamSpecification, TableDefinition};
pub use crate::event_filter::EventFilter;
use crate::files;
pub use crate::publisher::{Batch, Record};

/// Maximum requests that may occupy a thread at once. While the database executes one, the next can be parsed.
const AT_ONCE: usize = 2;
/// The number of items that each request of a sweep reads.
const SWEEP_PAGE: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Database(#[from] DynoxideError),
    #[error("{0}")]
    Stream(#[from] rusqlite::Error),
    #[error("can't parse a change in the stream: {0}")]
    Change(#[from] serde_json::Error),
    #[error("{0}")]
    Work(#[from] JoinError),
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("the engine refused {operation}: {answer}")]
    Refused { operation: &'static str, answer: String },
    #[error("another connection has kept SQLite from emptying its log")]
    Busy,
    #[error("{path}: {why}; restore it from a backup, or choose another --data-dir and import an export into it")]
    Unusable { path: PathBuf, why: String },
    #[error("{path}: {cause}; check its permissions and the free space, and try again")]
    Failed { path: PathBuf, cause: Box<Self> },
    #[error("there is no table {0}")]
    NoTable(String),
    #[error(
        "the key schema of the stored table {0} differs from its definition; move the data directory away to start over"
    )]
    KeyDiffers(String),
}

/// Cheap to clone; all clones share one database.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    /// One lock guards both connections. In conflict, they would wait for milliseconds, and in the bundled `SQLite` a
    /// commit during a checkpoint can corrupt the file (the WAL-reset bug, fixed in 3.51.3).
    connections: Mutex<Connections>,
    /// The database's file name for `SQLite`.
    file: String,
    barrier: Barrier,
    /// Notified after every write.
    changed: Notify,
    /// Permits to occupy a thread. Requests wait for a permit without a thread, because each thread would hold on to
    /// its own memory.
    turns: Semaphore,
}

/// The two connections to the file.
struct Connections {
    database: Database,
    stream: Stream,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    pub fn memory() -> Result<Self, EngineError> {
        static ENGINES: AtomicU64 = AtomicU64::new(0);
        // In SQLite's `memdb`, connections within a process share a database by name.
        let number = ENGINES.fetch_add(1, Ordering::Relaxed);
        Self::new(&format!("file:/engine-{}-{number}?vfs=memdb", process::id()), None)
    }

    /// Opens the database, and creates its file if it's missing. Only the owner can read the file.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        Self::open_file(path).map_err(|cause| unusable(path, cause))
    }

    /// Opens the database of a directory that a service has used. The file may be missing. A database without tables is
    /// refused, because its content must have been lost.
    pub fn open_used(path: &Path) -> Result<Self, EngineError> {
        if is_empty(path).map_err(|cause| unusable(path, cause))? {
            let why = "is empty, although a service has used the directory".to_owned();
            return Err(EngineError::Unusable { path: path.to_owned(), why });
        }
        Self::open(path)
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
        has_items().map_err(|error: rusqlite::Error| unusable(path, error.into()))
    }

    fn open_file(path: &Path) -> Result<Self, EngineError> {
        files::make_database(path)?;
        let engine = Self::new(&path.to_string_lossy(), Some(path))?;
        // Sets SQLite's `synchronous = NORMAL`: a write doesn't wait for the disk. Its acknowledgement waits for the
        // barrier instead.
        engine.shared.connections().database.disable_bulk_loading()?;
        Ok(engine)
    }

    fn new(file: &str, path: Option<&Path>) -> Result<Self, EngineError> {
        let database = Database::new(file)?;
        let stream = Stream::open(Connection::open(file)?)?;
        let barrier = path.map(Barrier::of).transpose()?.unwrap_or_default();
        let (file, connections) = (file.to_owned(), Mutex::new(Connections { database, stream }));
        let (changed, turns) = (Notify::new(), Semaphore::new(AT_ONCE));
        Ok(Self { shared: Arc::new(Shared { connections, file, barrier, changed, turns }) })
    }

    /// Fails if the file is damaged. Changes and creates nothing.
    pub fn check_file(path: &Path) -> Result<(), EngineError> {
        if path.exists() && is_damaged(path) {
            return Err(unusable(path, EngineError::Busy));
        }
        Ok(())
    }

    /// Waits until everything written before this call is on disk.
    pub async fn synced(&self) -> io::Result<()> {
        self.shared.barrier.wait().await
    }

    /// Copies the table in its current state into an empty file. Requests continue meanwhile, because a reader doesn't
    /// block writers.
    pub async fn snapshot(&self, to: &Path) -> Result<(), EngineError> {
        let to = to.to_string_lossy().into_owned();
        let copy = move |shared: &Shared| Connection::open(&shared.file)?.execute("VACUUM INTO ?1", [to]).map(drop);
        Ok(self.shared.work(copy).await??)
    }

    /// Removes items of a table whose TTL expired before `now`, in Unix seconds, and returns their number. The stream
    /// records their removal. Pages and removals are separate requests, so that other requests don't wait for the whole
    /// sweep.
    pub async fn remove_expired(&self, table: &str, now: i64) -> Result<usize, EngineError> {
        let name = table.to_owned();
        let swept = self.shared.work(move |shared| shared.connections().swept(&name)).await??;
        let Some((key, ttl)) = swept else { return Ok(0) };
        let (is_expired, now) = ("#ttl < :now", json!({ ":now": { "N": now.to_string() } }));
        let mut names: Map<_, _> =
            key.into_iter().enumerate().map(|(n, name)| (format!("#k{n}"), name.into())).collect();
        let projection = names.keys().cloned().collect::<Vec<_>>().join(",");
        names.insert("#ttl".to_owned(), ttl.clone().into());
        let mut scan = json!({
            "TableName": table, "Limit": SWEEP_PAGE, "FilterExpression": is_expired, "ProjectionExpression": projection,
            "ExpressionAttributeNames": names, "ExpressionAttributeValues": now,
        });
        let mut removed = 0;
        loop {
            let page = self.request("Scan", &scan).await?;
            for key in page["Items"].as_array().into_iter().flatten() {
                // The item's expiry may have been postponed since the page was read.
                let delete = json!({
                    "TableName": table, "Key": key, "ConditionExpression": is_expired,
                    "ExpressionAttributeNames": { "#ttl": ttl }, "ExpressionAttributeValues": now,
                });
                match self.request("DeleteItem", &delete).await {
                    Ok(_) => removed += 1,
                    Err(EngineError::Refused { answer, .. }) if answer.contains("ConditionalCheckFailed") => {}
                    Err(error) => return Err(error),
                }
            }
            match page.get("LastEvaluatedKey") {
                Some(last) => scan["ExclusiveStartKey"] = last.clone(),
                None => return Ok(removed),
            }
        }
    }

    /// Rewrites the file, so that deleted data is also removed from its free pages and from `SQLite`'s log.
    pub fn compact(&self) -> Result<(), EngineError> {
        self.shared.connections().stream.compact()
    }

    async fn request(&self, operation: &'static str, body: &Value) -> Result<Value, EngineError> {
        match self.answer(operation.to_owned(), body.to_string().into_bytes()).await? {
            (200, answer) => Ok(serde_json::from_slice(&answer)?),
            (_, answer) => {
                Err(EngineError::Refused { operation, answer: String::from_utf8_lossy(&answer).into_owned() })
            }
        }
    }

    /// Handles one request of `DynamoDB`'s protocol. Returns a status and JSON.
    pub async fn answer(&self, operation: String, body: Vec<u8>) -> Result<(u16, Vec<u8>), JoinError> {
        let _turn = self.shared.turns.acquire().await;
        self.shared.work(move |shared| shared.answer(&operation, &body)).await
    }

    /// Like [`Self::answer`], but handles the request on this thread.
    #[must_use]
    pub fn answer_here(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        self.shared.answer(operation, body)
    }
}

impl Shared {
    /// Runs work on another thread, because the engine is synchronous and may wait for the disk.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let shared = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&shared)).await
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        // A panic leaves the stream consistent.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// The names of a table's key attributes.
    fn key(&self, table: &str) -> Result<Vec<String>, EngineError> {
        let stored = self.database.get_table_metadata(table)?;
        key_of(&stored.ok_or_else(|| EngineError::NoTable(table.to_owned()))?)
    }

    /// The names of a table's key attributes and of its TTL attribute. `None` if it has no TTL.
    fn swept(&self, table: &str) -> Result<Option<(Vec<String>, String)>, EngineError> {
        let stored = self.database.get_table_metadata(table)?.filter(|stored| stored.ttl_enabled);
        let Some(stored) = stored else { return Ok(None) };
        let key = key_of(&stored)?;
        Ok(stored.ttl_attribute.map(|attribute| (key, attribute)))
    }
}

fn key_of(stored: &TableMetadata) -> Result<Vec<String>, EngineError> {
    let key: Vec<KeySchemaElement> = parse_stored(&stored.key_schema)?;
    Ok(key.into_iter().map(|element| element.attribute_name).collect())
}

fn unusable(path: &Path, cause: EngineError) -> EngineError {
    let path = path.to_owned();
    if is_damaged(&path) {
        return EngineError::Unusable { path, why: "is damaged or isn't a database".to_owned() };
    }
    EngineError::Failed { path, cause: Box::new(cause) }
}

/// Whether the database has no tables, although its file or its log exists.
fn is_empty(path: &Path) -> Result<bool, EngineError> {
    let size = |path: &Path| path.metadata().map_or(0, |file| file.len());
    if size(path) == 0 {
        return Ok(path.exists() || size(&files::beside(path, "-wal")) > 0);
    }
    Ok(open_for_inspection(path)?.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?)
}

/// Opens a database to inspect it, while no other process uses it. Creates and changes no file.
fn open_for_inspection(path: &Path) -> rusqlite::Result<Connection> {
    if files::beside(path, "-wal").metadata().is_ok_and(|log| log.len() > 0) {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // In this mode SQLite creates no shared-memory file. The mode needs a lock that a read-only connection can't
        // have.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        return Ok(connection);
    }
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

/// Whether `SQLite` finds the file damaged. Creates and changes no file.
fn is_damaged(path: &Path) -> bool {
    let check = |connection: Connection| {
        connection.query_row("PRAGMA quick_check(1)", [], |row| Ok(row.get::<_, String>(0)? != "ok"))
    };
    open_for_inspection(path).and_then(check).unwrap_or_else(|error: rusqlite::Error| {
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    })
}

/// Parses a part of a stored table's definition.
fn parse_stored<T: DeserializeOwned>(json: &str) -> Result<T, DynoxideError> {
    serde_json::from_str(json).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
