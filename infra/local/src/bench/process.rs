//! A server in a process of its own, so that its CPU time is separate from that of its callers.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Failure;

/// The unit of CPU time in `/proc`, on Linux of any configuration.
const TICK: Duration = Duration::from_millis(10);

/// Killed when dropped.
pub(super) struct Server(Child);

impl Server {
    pub(super) fn start(command: &mut Command) -> Result<Self, Failure> {
        let program = command.get_program().display().to_string();
        let child = command.stdin(Stdio::null()).spawn();
        Ok(Self(child.map_err(|error| format!("{program}: {error}"))?))
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The CPU time so far; `None` where there is no `/proc`.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
        Some(TICK * (ticks(11)? + ticks(12)?))
    }

    /// The resident memory in megabytes.
    pub(super) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kilobytes / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
