//! The lease that lets one process at a time write to a table in bulk.

use std::time::Duration;

use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::Store;
use tokio::time::Instant;

use crate::store::import::{end_import_lease, lease_import};

/// The time between two renewals of the lease, which expires after a minute.
const RENEWAL: Duration = Duration::from_secs(15);
/// The lease counts as lost if no renewal succeeds for this long.
const LAST_RENEWAL: Duration = Duration::from_secs(45);
/// The wait before another attempt to take or renew the lease.
const AGAIN: Duration = Duration::from_secs(1);
/// The lease of a killed process expires within this time.
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
    /// The name of the holder. A process with the same name can take the lease over.
    pub holder: String,
    /// Maximum wait while another process holds the lease.
    pub patience: Duration,
}

impl Lease<'_> {
    /// Runs `work`, which reads and writes the table, under the lease. Waits up to `patience` while another process
    /// holds it. Cancels the work if the lease is lost.
    pub async fn hold<T, E: From<LeaseError>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.take().await?;
        let result = tokio::select! {
            result = work => result,
            lost = self.keep() => Err(lost.into()),
        };
        let ended = end_import_lease(self.store, &self.holder).await.map_err(LeaseError::from);
        let value = result?;
        ended?;
        Ok(value)
    }

    async fn take(&self) -> Result<(), LeaseError> {
        let start = Instant::now();
        loop {
            match self.renew().await {
                Err(LeaseError::Taken) if start.elapsed() < self.patience => tokio::time::sleep(AGAIN).await,
                taken => return taken,
            }
        }
    }

    /// Renews the lease until it's lost.
    async fn keep(&self) -> LeaseError {
        let (mut renewed, mut pause) = (Instant::now(), RENEWAL);
        loop {
            tokio::time::sleep(pause).await;
            match self.renew().await {
                Ok(()) => (renewed, pause) = (Instant::now(), RENEWAL),
                Err(LeaseError::Table(_)) if renewed.elapsed() < LAST_RENEWAL => pause = AGAIN,
                Err(lost) => return lost,
            }
        }
    }

    async fn renew(&self) -> Result<(), LeaseError> {
        if lease_import(self.store, &self.holder, self.clock.now()).await? { Ok(()) } else { Err(LeaseError::Taken) }
    }
}
