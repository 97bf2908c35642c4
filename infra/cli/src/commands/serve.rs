//! `comments-server serve`: serves the API in production.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use delivery::Tally;
use server::data_dir::{DataDir, Lock};
use server::gateway::{Exchange, Front, Proxies, SmallBodies};
use server::queue::Queues;
use server::service;
use server::settings::{self, HEALTH};
use shared::app::App;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use tokio::net::TcpListener;

use super::backup::Door;
use super::json_log::{self, Lines, TARGET};
use super::kept::{open_bucket, open_queues, open_table};
use super::notify::notify;
use super::recovery::recover;
use super::stop::stop_signal;
use super::{FAILED, Failure, MISUSED, UNUSABLE, exit_code, listen_at, production_data_dir};

/// Maximum wait at the start for work that the last process left unfinished.
const RECOVERY_GRACE: Duration = Duration::from_secs(10);
/// Maximum wait for unfinished events after the last request. The next start finishes the rest.
const STOP_GRACE: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_mins(1);
/// The limit for request bodies other than uploads, in bytes.
const SMALL_BODY: usize = 256 * 1024;

/// Serve the API in production, behind a proxy that speaks TLS; see docs/server.md.
/// The exit code is 2 if a setting is wrong, 3 if the data cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// Address and port; port 0 takes
    /// any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000", value_parser = address, verbatim_doc_comment)]
    pub(super) listen: SocketAddr,
    /// Directory of the data and the
    /// secrets
    #[arg(long, value_name = "DIR", default_value_os_t = production_data_dir(), verbatim_doc_comment)]
    pub(super) data_dir: PathBuf,
    /// Proxies whose X-Forwarded-For is
    /// trusted, as address ranges; "" if
    /// clients connect directly. By default
    /// this machine, if only this machine
    /// can connect
    #[arg(long, value_name = "CIDR,…", verbatim_doc_comment)]
    pub(super) trusted_proxies: Option<Proxies>,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:3000 or [::]:80")
}

/// The exit code, and the reason why the service stopped.
struct Stopped(u8, Failure);

fn misused(error: impl Into<Failure>) -> Stopped {
    Stopped(MISUSED, error.into())
}

fn unusable(error: impl Into<Failure>) -> Stopped {
    let error = error.into();
    Stopped(exit_code(&error).unwrap_or(UNUSABLE), error)
}

fn failed(error: impl Into<Failure>) -> Stopped {
    Stopped(FAILED, error.into())
}

impl Options {
    pub(super) async fn run(self) -> ExitCode {
        let lines = Lines::start();
        match self.serve(&lines).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(Stopped(code, error)) => {
                lines.give_up();
                eprintln!("error: {error}");
                ExitCode::from(code)
            }
        }
    }

    async fn serve(self, lines: &Lines) -> Result<(), Stopped> {
        // Checks the settings before touching the data directory.
        settings::load_production(None).map_err(unusable)?;
        let proxies = self.proxies()?;
        let data_dir = DataDir::open(&self.data_dir).map_err(unusable)?;
        let lock = data_dir.lock().map_err(unusable)?;
        let listener = listen_at(self.listen, "choose another with --listen").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = Service::start(&data_dir, &lock).await?;
        allow_connections();

        let stopped = stop_signal().map_err(failed)?;
        lines.listening(address).map_err(failed)?;
        for unknown in service.config.unknown_settings() {
            tracing::warn!("{unknown}");
        }
        supervised("READY=1");
        let all_done = service.serve(listener, proxies, stopped).await;
        if all_done { lock.end().map_err(failed) } else { Ok(()) }
    }

    fn proxies(&self) -> Result<Proxies, Stopped> {
        match &self.trusted_proxies {
            Some(proxies) => Ok(proxies.clone()),
            None if self.listen.ip().to_canonical().is_loopback() => Ok(Proxies::loopback()),
            None => Err(misused(format!(
                "--listen {} is open to other machines; list your proxies with --trusted-proxies, or pass \
                 --trusted-proxies \"\" if clients connect directly",
                self.listen
            ))),
        }
    }
}

struct Service {
    stack: server::stack::Stack,
    queues: Queues,
    tally: Arc<Tally>,
    config: Config,
    door: Door,
}

impl Service {
    async fn start(data_dir: &DataDir, lock: &Lock) -> Result<Self, Stopped> {
        let engine = open_table(Some(data_dir)).map_err(unusable)?;
        let config = settings::load_production(Some(data_dir)).map_err(unusable)?;
        let bucket = open_bucket(Some(data_dir), &config.media_bucket).map_err(unusable)?;
        let queues = open_queues(Some(data_dir)).map_err(unusable)?;
        let unfinished_since = lock.begin().map_err(unusable)?;
        let dead_letters = queues.redrive().map_err(unusable)?;
        let app_queues = service::app_queues(&queues);
        let app = App::new(config.clone(), service::client(&engine), app_queues, Clock::system(), Random::system());
        let tally = Arc::<Tally>::default();
        let stack = service::start_production(app, engine.clone(), bucket.clone(), queues.clone(), &tally);
        let stack = stack.map_err(unusable)?;
        for letters in dead_letters {
            tracing::warn!(queue = letters.queue, count = letters.count, "retrying messages given up earlier");
        }
        if let Some(since) = unfinished_since {
            let mut found = Vec::new();
            recover(&stack, &engine, &config, &bucket, since, RECOVERY_GRACE, &mut found).await.map_err(unusable)?;
            for line in String::from_utf8_lossy(&found).lines() {
                tracing::warn!("{line}");
            }
        }
        let door = Door::open(data_dir, &engine).map_err(unusable)?;
        Ok(Self { stack, queues, tally, config, door })
    }

    /// Serves until a signal, and returns whether all events were handled.
    async fn serve(self, listener: TcpListener, proxies: Proxies, stopped: impl Future<Output = ()>) -> bool {
        let Self { stack, queues, tally, config: _, door } = self;
        let report = tokio::spawn(report(queues, tally));
        let front = Front { proxies, small_bodies: Some(SmallBodies { limit: SMALL_BODY, except: "media" }) };
        let stopped = async {
            stopped.await;
            supervised("STOPPING=1");
        };
        let log = |exchange: &Exchange| {
            if exchange.route.trim_start_matches('/') != HEALTH {
                json_log::exchange(exchange);
            }
        };
        stack.gateway.clone().serve(listener, front, stopped, log).await;
        let all_done = tokio::time::timeout(STOP_GRACE, stack.wait_until_idle()).await.is_ok() && !stack.has_given_up();
        report.abort();
        drop(door);
        stack.stop().await;
        all_done
    }
}

/// Logs the numbers of waiting messages, dead letters and emails whenever they change, at most once per interval.
async fn report(queues: Queues, tally: Arc<Tally>) {
    let mut last = (0, 0, 0, 0);
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    loop {
        interval.tick().await;
        let (waiting, dead_letters) = queues.counts();
        let (mails_sent, mails_failed) = (tally.sent.load(Ordering::Relaxed), tally.failed.load(Ordering::Relaxed));
        let now = (waiting, dead_letters, mails_sent, mails_failed);
        if now != last {
            tracing::info!(target: TARGET, waiting, dead_letters, mails_sent, mails_failed, "queues");
            last = now;
        }
    }
}

fn supervised(state: &str) {
    if let Err(error) = notify(state) {
        tracing::warn!("NOTIFY_SOCKET: {error}");
    }
}

/// Raises the limit of open files to the maximum, because each connection needs a file descriptor, and another one to
/// read an image.
#[cfg(unix)]
fn allow_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!("raising the limit of open files: {error}");
    }
}

#[cfg(not(unix))]
fn allow_connections() {}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use server::settings::{DELIVERIES, JOBS};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn queue_numbers_are_logged_for_each_minute_in_which_they_changed() {
        let (log, subscriber) = Lines::new();
        let _logging = tracing::subscriber::set_default(subscriber);
        let (queues, tally) = (open_queues(None).unwrap(), Arc::<Tally>::default());
        let reporting = tokio::spawn(report(queues.clone(), Arc::clone(&tally)));
        let after = async |seconds: u64| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let numbers = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!((&line["level"], &line["message"]), (&json!("INFO"), &json!("queues")));
                ["waiting", "dead_letters", "mails_sent", "mails_failed"].map(|name| line[name].as_u64().unwrap())
            };
            log.taken().lines().map(numbers).collect::<Vec<_>>()
        };
        assert_eq!(after(1).await, [[0; 4]; 0], "nothing waits and nothing was sent");
        queues.put(JOBS, &json!({})).unwrap();
        queues.put(DELIVERIES, &json!({})).unwrap();
        queues.put("JobsDeadLetters", &json!({})).unwrap();
        assert_eq!(after(58).await, [[0; 4]; 0]);
        assert_eq!(after(2).await, [[2, 1, 0, 0]]);
        assert_eq!(after(180).await, [[0; 4]; 0], "nothing changed");
        tally.sent.fetch_add(7, Ordering::Relaxed);
        tally.failed.fetch_add(3, Ordering::Relaxed);
        assert_eq!(after(60).await, [[2, 1, 7, 3]]);
        let received = queues.receive(JOBS, 1).unwrap();
        queues.delete(JOBS, &received[0]).unwrap();
        assert_eq!(after(60).await, [[1, 1, 7, 3]]);
        reporting.abort();
    }
}
