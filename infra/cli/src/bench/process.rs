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
        self.processes()?.into_iter().map(cpu_time).sum()
    }

    /// The resident memory in megabytes.
    pub(super) fn memory(&self) -> Option<u64> {
        let kilobytes: u64 = self.processes()?.into_iter().map(resident).sum::<Option<_>>()?;
        Some(kilobytes / 1024)
    }

    /// The server and its workers.
    fn processes(&self) -> Option<Vec<u32>> {
        let id = self.0.id();
        let workers = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        let workers = workers.split_whitespace().map(str::parse);
        std::iter::once(Ok(id)).chain(workers).collect::<Result<_, _>>().ok()
    }
}

fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
    Some(TICK * (ticks(11)? + ticks(12)?))
}

/// The resident memory in kilobytes.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
