//! One process at a time writes to a table in bulk.

use std::time::{Duration, Instant};

use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::Store;

/// Between two renewals of the lease, which holds for a minute.
pub const RENEWAL: Duration = Duration::from_secs(15);
/// The lease of a process that was killed ends within this time.
pub const PATIENCE: Duration = Duration::from_secs(65);

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error("another import or erasure is running on this table; try again in a minute")]
    Taken,
}

#[derive(Clone)]
pub struct Lease<'a> {
    pub store: &'a Store,
    pub clock: Clock,
    /// Names this process.
    pub holder: String,
    /// How long another process may hold the table.
    pub patience: Duration,
}

impl Lease<'_> {
    /// Waits for the lease of a process that was killed. To be called before the table is read.
    pub async fn take(&self) -> Result<(), LeaseError> {
        let start = Instant::now();
        while let Err(error) = self.renew().await {
            if start.elapsed() >= self.patience {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    pub async fn renew(&self) -> Result<(), LeaseError> {
        if self.store.lease_import(&self.holder, self.clock.now()).await? { Ok(()) } else { Err(LeaseError::Taken) }
    }

    pub async fn end(&self) -> Result<(), LeaseError> {
        Ok(self.store.end_import_lease(&self.holder).await?)
    }
}
