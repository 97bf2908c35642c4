//! The output: progress, and tables in Markdown.

use std::io::{self, Write};
use std::time::Duration;

use super::CpuTime;
use super::load::Load;
use super::process::Server;

/// One operation in one thread with one number of connections.
pub(super) struct Row {
    pub(super) parents: usize,
    pub(super) operation: &'static str,
    pub(super) connections: usize,
    pub(super) load: Load,
    pub(super) cpu: CpuTime,
}

/// CPU time of a request, in milliseconds.
struct RequestTime {
    total: f64,
    without_engine: f64,
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "a few seconds have less than 2^52 requests")]
    fn requests(&self) -> f64 {
        self.load.requests().max(1) as f64
    }

    fn request_time(&self) -> Option<RequestTime> {
        let total = self.cpu.server?;
        let of_request = |time| milliseconds(time) / self.requests();
        let without_engine = of_request(total.saturating_sub(self.cpu.engine));
        Some(RequestTime { total: of_request(total), without_engine })
    }

    fn per_second(&self) -> f64 {
        self.requests() / self.load.elapsed.as_secs_f64()
    }

    fn latencies(&self) -> String {
        let percentile = |percent| milliseconds(self.load.percentile(percent));
        format!("{:.1} | {:.1}", percentile(50), percentile(99))
    }

    fn name(&self) -> String {
        format!("{} | {} | {}", self.operation, self.parents, self.connections)
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Shows a line in place of the one before.
pub(super) fn progress(line: &str) {
    eprint!("\r{line:<79}");
    if line.is_empty() {
        eprint!("\r");
    }
}

pub(super) fn print_rows(rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| | parents | connections | requests/s | CPU ms a request | without the table | bytes | p50 ms | p99 ms |\n\
         |---|---|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let cpu = row
            .request_time()
            .map_or_else(|| "– | –".to_owned(), |time| format!("{:.2} | {:.2}", time.total, time.without_engine));
        let (name, per_second, bytes) = (row.name(), row.per_second(), row.load.bytes());
        writeln!(out, "| {name} | {per_second:.0} | {cpu} | {bytes} | {} |", row.latencies())?;
    }
    writeln!(out)
}

/// Prints the rows of another server, each compared with ours of the same name.
pub(super) fn print_comparison(server: &str, rows: &[Row], ours: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| {server} | parents | connections | requests/s | CPU ms a request | bytes | p50 ms | p99 ms | CPU, times ours | \
         times ours without the table |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let (name, per_second, bytes) = (row.name(), row.per_second(), row.load.bytes());
        let ours = ours.iter().find(|ours| ours.name() == name).and_then(Row::request_time);
        let (cpu, ratios) = match (row.request_time(), ours) {
            (Some(RequestTime { total, .. }), Some(ours)) => {
                (format!("{total:.2}"), format!("{:.1} | {:.1}", total / ours.total, total / ours.without_engine))
            }
            _ => ("–".to_owned(), "– | –".to_owned()),
        };
        writeln!(out, "| {name} | {per_second:.0} | {cpu} | {bytes} | {} | {ratios} |", row.latencies())?;
    }
    writeln!(out)
}

pub(super) fn print_memory(name: &str, server: &Server) -> io::Result<()> {
    match server.memory() {
        Some(megabytes) => writeln!(io::stdout(), "Memory of {name} at the end: {megabytes} MB\n"),
        None => Ok(()),
    }
}
