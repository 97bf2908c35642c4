//! Exports one person's data from a table, or erases it from the table and its bucket.

pub mod erase;
pub mod export;

use shared::error::Fault;

use crate::check::CheckError;
use crate::export::ExportError;
use crate::lease::LeaseError;

#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error("can't use the data directory: {0}")]
    Machine(#[from] std::io::Error),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("an import into this table is unfinished; run that import command again first")]
    Importing,
}
