//! The log of `serve`: JSON lines on standard output. The first line contains the address. Lines logged before it are
//! held back until it's written.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::json;
use server::gateway::Exchange;
use shared::http::request::RefusedBecause;
use shared::store::meter::Cost;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The tracing target of this program's own events.
pub(super) const TARGET: &str = "comments_server";

#[derive(Clone)]
pub(super) struct Lines(Arc<Mutex<Held>>);

/// Lines held back; `None` once they are printed.
type Held = Option<Vec<u8>>;

impl Lines {
    pub(super) fn start() -> Self {
        let (lines, subscriber) = Self::new();
        subscriber.init();
        lines
    }

    /// Returns the lines, and a subscriber for warnings and for this program's own events.
    pub(super) fn new() -> (Self, impl Subscriber + Send + Sync) {
        let lines = Self(Arc::new(Mutex::new(Some(Vec::new()))));
        let writer = lines.clone();
        let json = tracing_subscriber::fmt().json().flatten_event(true).with_target(false);
        let json = json.with_writer(move || writer.clone()).finish();
        (lines, json.with(Targets::new().with_default(Level::WARN).with_target(TARGET, Level::INFO)))
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> String {
        String::from_utf8(self.held().as_mut().map(std::mem::take).unwrap_or_default()).unwrap()
    }

    pub(super) fn listening(&self, address: SocketAddr) -> io::Result<()> {
        let mut held = self.held();
        let first = json!({
            "timestamp": Timestamp::now().to_string(), "level": "INFO", "message": format!("listening on http://{address}"),
            "address": address.to_string(),
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{first}")?;
        out.write_all(&held.take().unwrap_or_default())?;
        out.flush()
    }

    /// Prints the held-back lines to standard error, because the start failed.
    pub(super) fn give_up(&self) {
        // An error means that nothing reads standard error, so it's ignored.
        drop(io::stderr().write_all(&self.held().take().unwrap_or_default()));
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.held() {
            Some(held) => held.write(bytes),
            None => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Logs a request, without its path, headers and body.
pub(super) fn exchange(exchange: &Exchange) {
    let Exchange { method, route, status, elapsed, extensions, path: _ } = exchange;
    let cost = extensions.get::<Cost>().copied().unwrap_or_default();
    tracing::info!(
        target: TARGET,
        method = method.as_str(),
        route,
        status = status.as_u16(),
        duration_ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3,
        read_units = cost.read_units,
        write_units = cost.write_units,
        refused_because = extensions.get::<RefusedBecause>().map(tracing::field::display),
        "request"
    );
}
