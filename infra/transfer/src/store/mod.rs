//! The owner's operations on the table: bulk writes, full reads, recounts, and the erasure of a person. They take a
//! `Store`, but are in this crate so that the service is built without them.

pub mod export;
pub mod fixtures;
pub mod import;
pub mod person;
pub mod recount;
pub mod restore;
pub mod sources;

use shared::error::Fault;
use shared::store::Store;
use shared::store::keys::Item;

/// Calls `each` with every item of the table, read consistently, until it fails.
async fn for_each_item<E: From<Fault>>(store: &Store, mut each: impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
    let mut start = None;
    loop {
        let (items, next) = store.scan(start).await?;
        items.into_iter().try_for_each(&mut each)?;
        start = next;
        if start.is_none() {
            return Ok(());
        }
    }
}
