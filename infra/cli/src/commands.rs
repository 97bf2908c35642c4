//! The command line, with a module for each command.

mod backup;
mod check;
mod demo;
mod deployed;
mod export;
mod greeting;
mod import;
mod json_log;
mod kept;
mod local;
mod log;
mod moderate;
mod notify;
mod output;
mod people;
mod person;
mod recovery;
mod serve;
mod services;
mod stop;
mod table;
#[cfg(test)]
mod tests;
mod token;

use std::env;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use server::data_dir::DataDirError;
use server::engine::EngineError;
use server::settings::{self, SettingsError};
use server::token::{NoSecret, Token};
use shared::config::{Config, ConfigError};
use shared::domain::ids::{Random, hex};
use shared::domain::time::Clock;
use shared::store::Store;
use tokio::net::TcpListener;
use transfer::lease::{Lease, PATIENCE};

const DEFAULT_PORT: u16 = 3000;

/// The exit code for other failures of `cargo local`, `serve`, `token` and `moderate`, and for findings of `check`.
const FAILED: u8 = 1;
/// The exit code for settings and flags that are missing, malformed or contradictory.
const MISUSED: u8 = 2;
/// The exit code if a source, a table or a directory can't be used, and for other failures of the remaining commands.
const UNUSABLE: u8 = 3;

type Failure = Box<dyn Error + Send + Sync>;

/// The error for arguments that contradict each other or could overwrite data.
#[derive(Debug)]
struct Misuse(String);

impl fmt::Display for Misuse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Misuse {}

/// The comment service on this machine: API, table, bucket and triggers. It needs
/// no account and no container.
#[derive(Debug, Parser)]
#[command(
    name = "comments-server",
    bin_name = called_as(),
    version,
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    disable_help_subcommand = true,
    flatten_help = true,
    after_help = "Settings are environment variables (SVC_…); see docs/settings.md. If one is\n\
                  wrong, a command does nothing, and its exit code is 2."
)]
pub struct CommandLine {
    #[command(flatten)]
    local: local::Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Options),
    Backup(backup::BackUp),
    Restore(backup::Restore),
    Token(token::Options),
    Moderate(moderate::Options),
    Check(check::Options),
    Import(Box<import::Options>),
    Export(export::Options),
    #[command(subcommand, flatten_help = true)]
    Person(person::Command),
}

impl CommandLine {
    pub async fn run(self) -> ExitCode {
        let otherwise = match &self.command {
            None | Some(Command::Token(_) | Command::Moderate(_)) => FAILED,
            Some(_) => UNUSABLE,
        };
        self.done().await.unwrap_or_else(|error| {
            eprintln!("error: {error}");
            ExitCode::from(exit_code(&error).unwrap_or(otherwise))
        })
    }

    async fn done(self) -> Result<ExitCode, Failure> {
        if let Some(command) = &self.command {
            command.check_settings()?;
        }
        let well = |()| ExitCode::SUCCESS;
        match self.command {
            None => self.local.run().await.map(well),
            Some(Command::Serve(options)) => Ok(options.run().await),
            Some(Command::Backup(options)) => options.run().await.map(well),
            Some(Command::Restore(options)) => options.run().await.map(well),
            Some(Command::Token(options)) => options.run().map(well),
            Some(Command::Moderate(options)) => options.run().await.map(well),
            Some(Command::Check(options)) => options.run().await,
            Some(Command::Import(options)) => options.run().await,
            Some(Command::Export(options)) => options.run().await.map(well),
            Some(Command::Person(command)) => command.run().await,
        }
    }
}

/// The program's name in usage lines. Cargo sets `CARGO` for programs that it runs.
fn called_as() -> &'static str {
    if env::var_os("CARGO").is_some() { "cargo local" } else { "comments-server" }
}

impl Command {
    /// Checks the settings before the command changes anything.
    fn check_settings(&self) -> Result<(), SettingsError> {
        let deployed = match self {
            // `serve` checks its settings when it starts, because it needs more of them and logs its warnings.
            Self::Serve(_) => return Ok(()),
            Self::Backup(_) | Self::Restore(_) | Self::Token(_) => false,
            Self::Moderate(options) => options.stack.is_some(),
            Self::Check(options) => options.table.is_deployed(),
            Self::Import(options) => options.table.is_deployed(),
            Self::Export(options) => options.table.is_deployed(),
            Self::Person(command) => command.is_for_deployed_table(),
        };
        let here = (!deployed).then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        warn_of_unknown_settings(&settings::load(None, here)?);
        Ok(())
    }
}

/// The data directory to use without `--data-dir`.
fn data_dir_or(default: &str) -> PathBuf {
    let named = env::var_os("COMMENTS_DATA_DIR").filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(default), PathBuf::from)
}

/// The default data directory of every command except `serve` and `backup`.
fn data_dir() -> PathBuf {
    data_dir_or(".local")
}

fn production_data_dir() -> PathBuf {
    data_dir_or("/var/lib/comments")
}

/// The exit code for an error that every command treats alike; `None` for other errors.
fn exit_code(error: &Failure) -> Option<u8> {
    let of_settings = error.downcast_ref::<SettingsError>();
    if error.is::<Misuse>() || error.is::<ConfigError>() || matches!(of_settings, Some(SettingsError::Config(_))) {
        return Some(MISUSED);
    }
    let is_of_data = of_settings.is_some() || error.is::<DataDirError>() || error.is::<EngineError>();
    is_of_data.then_some(UNUSABLE)
}

/// The error for an unset setting whose value must match the service's.
fn not_set(variable: &'static str) -> ConfigError {
    ConfigError::new(variable, None, "the service's value, but it isn't set")
}

fn warn_of_unknown_settings(config: &Config) {
    for unknown in config.unknown_settings() {
        eprintln!("warning: {unknown}");
    }
}

/// Listens on this machine only. `hint` is advice for the error message.
async fn listen(port: u16, hint: &str) -> Result<TcpListener, Failure> {
    listen_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), hint).await
}

async fn listen_at(address: SocketAddr, hint: &str) -> Result<TcpListener, Failure> {
    let port = address.port();
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken; {hint}").into(),
        _ => format!("can't listen on {address}: {error}; {hint}").into(),
    })
}

/// The lease for writing to a table in bulk. The holder's name is constant for a data directory: its lock already
/// excludes other processes, and the lease of a killed process must not block the next one.
fn lease(store: &Store, is_deployed: bool) -> Lease<'_> {
    let holder = if is_deployed { hex(&Random::system().bytes::<8>()) } else { "the data directory".to_owned() };
    Lease { store, clock: Clock::system(), holder, patience: PATIENCE }
}

/// Sample tokens by role, for trying out the service.
fn sample_tokens(config: &Config) -> Result<[(&'static str, String); 2], NoSecret> {
    let now = Clock::system().now();
    // If email is on, Ada gets an address, so that her token works for subscriptions too.
    let email = config.mail.is_some().then(|| "ada@example.org".to_owned());
    let member = Token { email, ..people::ADA.token() };
    Ok([("member", member.sign(&config.auth, now)?), ("moderator", people::GRACE.token().sign(&config.auth, now)?)])
}
