//! `cargo local`: serves the API for development.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use server::data_dir::{DataDir, Lock};
use server::gateway::{Exchange, Front};
use server::queue::DeadLetters;
use server::service::{self, Services};
use server::settings::{self, SettingsError};
use shared::app::App;
use shared::aws::outbound::system_lookup;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::Clock;
use shared::store::Store;

use super::backup::Door;
use super::demo::{self, Filling};
use super::greeting::greeting;
use super::kept::{open_bucket, open_outbox, open_queues, open_table};
use super::recovery::recover;
use super::stop::stop_signal;
use super::{Failure, data_dir, listen, log, services, warn_of_unknown_settings};

/// Maximum wait for unfinished events at the start and after the signal to stop.
const GRACE: Duration = Duration::from_mins(1);

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Port on 127.0.0.1; 0 takes any free one
    #[arg(long, value_name = "N", default_value_t = super::DEFAULT_PORT, allow_hyphen_values = true, value_parser = parse_port)]
    pub(super) port: u16,
    /// Directory of data and secrets
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    data_dir: PathBuf,
    /// Discard data and secrets on exit
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,
    /// Don't fill the page at / with comments on its first
    /// visit
    #[arg(long, verbatim_doc_comment)]
    pub(super) no_demo: bool,
    /// Let readers sign in by emailed code; emails are shown
    /// at /_mail
    #[arg(long, verbatim_doc_comment)]
    pub(super) sign_in: bool,
    /// Serve the table (port 8000), the bucket (9000) and the
    /// queues (9324) instead of the API, for functions that
    /// run elsewhere, and print their environment; --port 0
    /// takes free ports
    #[arg(long, verbatim_doc_comment)]
    pub(super) services_only: bool,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(io::stderr).without_time().init();
        // Checks the settings before touching the data directory.
        warn_of_unknown_settings(&self.settings(None, SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))?);
        let data_dir = self.data_dir().map(|path| DataDir::open(&path)).transpose()?;
        let lock = data_dir.as_ref().map(DataDir::lock).transpose()?;
        if self.services_only {
            return services::serve(self.port, data_dir.as_ref(), lock.as_ref()).await;
        }
        let all_done = self.serve(data_dir.as_ref(), lock.as_ref()).await?;
        match lock {
            Some(lock) if all_done => Ok(lock.end()?),
            _ => Ok(()),
        }
    }

    pub(super) fn data_dir(&self) -> Option<PathBuf> {
        (!self.ephemeral).then(|| self.data_dir.clone())
    }

    fn settings(&self, data_dir: Option<&DataDir>, address: SocketAddr) -> Result<Config, SettingsError> {
        let sign_in = settings::for_sign_in(address);
        settings::load_with(data_dir, Some(address), if self.sign_in { &sign_in } else { &[] })
    }

    /// Serves until a signal, and returns whether all events were handled.
    async fn serve(&self, data_dir: Option<&DataDir>, lock: Option<&Lock>) -> Result<bool, Failure> {
        let listener = listen(self.port, "choose another --port, or 0 for any free one").await?;
        let address = listener.local_addr()?;
        let engine = open_table(data_dir)?;
        let config = self.settings(data_dir, address)?;
        let bucket = open_bucket(data_dir, &config.media_bucket)?;
        let queues = open_queues(data_dir)?;
        // Marks the work as unfinished only now, because a start that fails earlier leaves nothing unfinished.
        let unfinished_since = lock.map(Lock::begin).transpose()?.flatten();
        let dead_letters = queues.redrive()?;
        let outbox = open_outbox(data_dir, &queues)?;
        let app_queues = service::app_queues(&queues);
        let app = App::new(config.clone(), service::client(&engine), app_queues, Clock::system(), Random::system());
        let services =
            Services { engine: engine.clone(), bucket: bucket.clone(), queues, outbox, lookup: system_lookup() };
        let door = data_dir.map(|data_dir| Door::open(data_dir, &engine)).transpose()?;
        let demo = demo::mount(&config, self.filling(&config, &app.store, address));
        let stack = service::start(app, services, vec![demo])?;
        for DeadLetters { queue, folder, count } in dead_letters {
            let folder = folder.display();
            eprintln!(
                "{queue}: retrying messages given up earlier ({count}); those that fail again return to {folder}"
            );
        }
        if let Some(since) = unfinished_since {
            recover(&stack, &engine, &config, &bucket, since, GRACE, &mut io::stderr()).await?;
        }

        // Installed before printing, because a signal may arrive as soon as the first line is printed.
        let stopped = stop_signal()?;
        let mut stdout = anstream::stdout();
        write!(stdout, "{}", greeting(&config, address)?)?;
        stdout.flush()?;

        let log = |exchange: &Exchange| anstream::eprintln!("{}", log::line(exchange));
        stack.gateway.clone().serve(listener, Front::default(), stopped, log).await;
        let all_done = tokio::time::timeout(GRACE, stack.wait_until_idle()).await.is_ok() && !stack.has_given_up();
        if !all_done {
            tracing::warn!("stopped before all events of the last writes were handled; the next start completes them");
        }
        drop(door);
        stack.stop().await;
        Ok(all_done)
    }

    fn filling(&self, config: &Config, store: &Store, address: SocketAddr) -> Option<Filling> {
        (!self.no_demo).then(|| Filling::new(store.clone(), config.clone(), format!("http://{address}/")))
    }
}

pub(super) fn parse_port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected a number from 0 to 65535")
}
