//! Bounds the write units that an import spends per second.

use std::time::Duration;

use shared::error::Fault;
use shared::store::meter::measure;
use tokio::time::Instant;

pub(super) struct Throttle {
    /// Units per second; `None` for no limit.
    rate: Option<u32>,
    start: Instant,
    pub(super) units: f64,
}

impl Throttle {
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self { rate, start: Instant::now(), units: 0.0 }
    }

    /// Does some work, adds the units that it spent, and waits as in [`spend`](Self::spend).
    pub(super) async fn paced<T>(&mut self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let (done, cost) = measure(work).await;
        let done = done?;
        self.spend(cost.write_units).await;
        Ok(done)
    }

    /// Adds spent units, and waits until the rate allows the total.
    pub(super) async fn spend(&mut self, units: f64) {
        self.units += units;
        let Some(rate) = self.rate else { return };
        let due = Duration::from_secs_f64(self.units / f64::from(rate));
        tokio::time::sleep(due.saturating_sub(self.start.elapsed())).await;
    }
}
