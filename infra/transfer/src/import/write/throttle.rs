//! Bounds the write units that an import spends in a second.

use std::time::Duration;

use tokio::time::Instant;

pub(super) struct Throttle {
    /// Units a second; as fast as possible without.
    rate: Option<u32>,
    start: Instant,
    /// Units spent so far.
    pub(super) units: f64,
}

impl Throttle {
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self { rate, start: Instant::now(), units: 0.0 }
    }

    /// Waits until this many units may have been spent.
    pub(super) async fn spend(&mut self, units: f64) {
        self.units += units;
        let Some(rate) = self.rate else { return };
        let due = Duration::from_secs_f64(self.units / f64::from(rate));
        tokio::time::sleep(due.saturating_sub(self.start.elapsed())).await;
    }
}
