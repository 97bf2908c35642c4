//! Waits until writes are on disk. Writers that arrive together share one sync.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::files;

/// `SQLite` appends each commit to its log without a sync, and syncs the log before it moves commits into the database.
/// Syncing the log therefore makes all earlier commits durable.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// `None` for a table in memory.
    log: Option<Arc<File>>,
    written: AtomicU64,
    /// The number of writes on disk. Locked during a sync; the next sync covers all writers waiting for the lock.
    synced: Mutex<u64>,
}

impl Barrier {
    pub(super) fn of(database: &Path) -> io::Result<Self> {
        let log = File::open(files::beside(database, "-wal"))?;
        files::sync_folder(database)?;
        Ok(Self { log: Some(Arc::new(log)), ..Self::default() })
    }

    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Waits until all writes before this call are on disk.
    pub(super) async fn wait(&self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let wanted = self.written.load(Ordering::Acquire);
        let mut synced = self.synced.lock().await;
        if *synced < wanted {
            let (log, covered) = (Arc::clone(log), self.written.load(Ordering::Acquire));
            tokio::task::spawn_blocking(move || log.sync_data()).await.map_err(io::Error::other)??;
            *synced = covered;
        }
        Ok(())
    }
}
