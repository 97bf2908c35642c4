//! Writes a table as JSON Lines in the native format, which `docs/native-format.md` documents.
//!
//! ```text
//! table → sorted → records → lines
//! ```
//!
//! A table is read in no particular order, so `sorted` collects everything first. Two tables with the same content
//! produce the same bytes.

pub mod records;
mod sorted;

use std::io::{self, Write};

use shared::domain::ids::ThreadId;
use shared::error::Fault;
use shared::store::Store;

use self::records::thread_key;
use self::sorted::Sorted;
use crate::store::export::{for_each_stored, imported_salt};

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error("{0}")]
    Output(#[from] io::Error),
    #[error(
        "an import into {} is unfinished; run the same import command again",
        .0.as_ref().map_or_else(|| "this table".to_owned(), thread_key)
    )]
    Importing(Option<ThreadId>),
}

/// Exports a table. `salt` is the fingerprint of the table's salt. Returns the number of comments.
pub async fn export(store: &Store, salt: String, out: &mut impl Write) -> Result<u64, ExportError> {
    let mut sorted = Sorted::default();
    for_each_stored(store, |item| sorted.add(item)).await?;
    // Hashed user ids always use this table's own salt, because imports refuse those with another salt.
    let imported = if sorted.has_hashed_users { None } else { imported_salt(store).await? };
    sorted.write(imported.unwrap_or(salt), out)
}
