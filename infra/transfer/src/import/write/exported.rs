//! Writes what only an export holds.

use shared::domain::ids::{ThreadId, UserId, Visitor};
use shared::domain::thread::{Thread, imported_address, imported_title};
use shared::error::Fault;
use shared::store::Store;
use shared::store::meter::measure;

use super::WriteError;
use super::throttle::Throttle;
use crate::import::staging::{Staging, thread_id};
use crate::store::import::describe_thread;
use crate::store::restore::{keep_imported_salt, restore_entries, restore_tombstones, restore_users};

/// Writes users, tombstones, and threads without comments.
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
    let mut last = None;
    loop {
        let users = staging.accounts_after(last)?;
        let Some(user) = users.last() else { break };
        last = Some(user.id);
        paced(throttle, restore_users(store, &users)).await?;
    }
    let mut last = String::new();
    loop {
        let tombstones = staging.tombstones_after(&last)?;
        let Some((source, _)) = tombstones.last() else { break };
        last.clone_from(&source.0);
        paced(throttle, restore_tombstones(store, &tombstones)).await?;
    }
    let mut last = String::new();
    loop {
        let threads = staging.threads_after(&last)?;
        let Some((name, _)) = threads.last() else { return Ok(()) };
        last.clone_from(name);
        for (name, record) in threads {
            let author = record.author_id.map(UserId);
            let title = record.title.as_deref().and_then(imported_title);
            let url = record.url.as_deref().and_then(imported_address);
            let about = Thread { title, url, author, closed: record.closed, ..Thread::default() };
            paced(throttle, describe_thread(store, &thread_id(&name)?, &about)).await?;
        }
    }
}

/// Enters the likes and reports of a thread's new comments, before these are written.
pub(super) async fn write_entries(
    staging: &Staging,
    store: &Store,
    target: &str,
    thread: &ThreadId,
    throttle: &mut Throttle,
) -> Result<(), WriteError> {
    let mut last = Visitor(String::new());
    loop {
        let entries = staging.entries_after(target, &last)?;
        let Some(of_visitor) = entries.last() else { return Ok(()) };
        last = of_visitor.visitor.clone();
        paced(throttle, restore_entries(store, thread, &entries)).await?;
    }
}

async fn paced(throttle: &mut Throttle, work: impl Future<Output = Result<(), Fault>>) -> Result<(), WriteError> {
    let (done, cost) = measure(work).await;
    done?;
    throttle.spend(cost.write_units).await;
    Ok(())
}
