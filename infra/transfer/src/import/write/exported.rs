//! Writes records that only an export contains.

use shared::domain::ids::ThreadId;
use shared::error::Fault;
use shared::store::Store;
use shared::store::meter::measure;

use super::WriteError;
use super::throttle::Throttle;
use crate::import::staging::Staging;
use crate::store::import::describe_thread;
use crate::store::restore::{VisitorEntries, keep_imported_salt, restore_entries, restore_tombstones, restore_users};

/// The number of records written between two waits for the throttle.
const BATCH: usize = 100;

/// Writes an export's users, tombstones, and threads without comments. Records the salt of its hashes, if that isn't
/// the table's.
pub(super) async fn write_around(
    staging: &Staging,
    store: &Store,
    other_salt: Option<&str>,
    throttle: &mut Throttle,
) -> Result<(), WriteError> {
    if !staging.is_export() {
        return Ok(());
    }
    if let Some(other) = other_salt {
        keep_imported_salt(store, other).await?;
    }
    for users in staging.accounts().chunks(BATCH) {
        paced(throttle, restore_users(store, users)).await?;
    }
    for tombstones in staging.tombstones().chunks(BATCH) {
        paced(throttle, restore_tombstones(store, tombstones)).await?;
    }
    for target in staging.silent_threads() {
        paced(throttle, describe_thread(store, &target.thread, &target.about)).await?;
    }
    Ok(())
}

/// Writes the likes and reports of a thread's new comments, before the comments themselves.
pub(super) async fn write_entries(
    store: &Store,
    thread: &ThreadId,
    entries: &[VisitorEntries],
    throttle: &mut Throttle,
) -> Result<(), WriteError> {
    for entries in entries.chunks(BATCH) {
        paced(throttle, restore_entries(store, thread, entries)).await?;
    }
    Ok(())
}

async fn paced(throttle: &mut Throttle, work: impl Future<Output = Result<(), Fault>>) -> Result<(), WriteError> {
    let (done, cost) = measure(work).await;
    done?;
    throttle.spend(cost.write_units).await;
    Ok(())
}
