//! The command line: the words, and a module for each command.

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
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use server::data_dir::DataDirError;
use server::engine::EngineError;
use server::settings::SettingsError;
use server::token::{NoSecret, Token};
use shared::config::Config;
use shared::domain::ids::{Random, hex};
use shared::domain::time::Clock;
use tokio::net::TcpListener;

const DEFAULT_PORT: u16 = 3000;

/// The exit code when a source, a table or a directory cannot be used.
const UNUSABLE: u8 = 3;

type Failure = Box<dyn Error + Send + Sync>;

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
    after_help = "Settings are environment variables (SVC_…); see docs/settings.md."
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
    pub async fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            None => or_unusable(self.local.run().await),
            Some(Command::Serve(options)) => Ok(options.run().await),
            Some(Command::Backup(options)) => Ok(options.run().await),
            Some(Command::Restore(options)) => Ok(options.run().await),
            Some(Command::Token(options)) => or_unusable(options.run()),
            Some(Command::Moderate(options)) => or_unusable(options.run().await),
            Some(Command::Check(options)) => options.run().await,
            Some(Command::Import(options)) => options.run().await,
            Some(Command::Export(options)) => options.run().await,
            Some(Command::Person(command)) => command.run().await,
        }
    }
}

/// What usage lines call the program. Cargo sets `CARGO` for what it runs.
fn called_as() -> &'static str {
    if env::var_os("CARGO").is_some() { "cargo local" } else { "comments-server" }
}

/// The data directory where `--data-dir` names none.
fn data_dir_or(default: &str) -> PathBuf {
    let named = env::var_os("COMMENTS_DATA_DIR").filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(default), PathBuf::from)
}

/// The data directory of commands for development.
fn data_dir() -> PathBuf {
    data_dir_or(".local")
}

/// The data directory of a service in production.
fn production_data_dir() -> PathBuf {
    data_dir_or("/var/lib/comments")
}

/// A directory that cannot be used has an exit code of its own.
fn or_unusable(result: Result<(), Failure>) -> Result<ExitCode, Failure> {
    match result {
        Err(error) if is_of_data(&error) => {
            eprintln!("error: {error}");
            Ok(ExitCode::from(UNUSABLE))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// Whether a directory or its table cannot be used.
fn is_of_data(error: &Failure) -> bool {
    let is_of_settings = |error: &SettingsError| !matches!(error, SettingsError::Config(_));
    error.is::<DataDirError>() || error.is::<EngineError>() || error.downcast_ref().is_some_and(is_of_settings)
}

/// Warns of variables that are named like settings but that nothing reads.
fn warn_of_unknown_settings(config: &Config) {
    for unknown in config.unknown_settings() {
        eprintln!("warning: {unknown}");
    }
}

/// `hint` says what to do when the port is taken.
async fn listen(port: u16, hint: &str) -> Result<TcpListener, Failure> {
    listen_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), hint).await
}

async fn listen_at(address: SocketAddr, hint: &str) -> Result<TcpListener, Failure> {
    let port = address.port();
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken; {hint}").into(),
        _ => format!("port {port}: {error}").into(),
    })
}

/// Names this process to others that write to the table in bulk. A data directory has its own lock, so the lease of a
/// process that was killed there blocks no other.
fn holder(table: Option<&str>) -> String {
    table.map_or_else(|| "the data directory".to_owned(), |_| hex(&Random::system().bytes::<8>()))
}

/// Tokens to try the service with, by role.
fn sample_tokens(config: &Config) -> Result<[(&'static str, String); 2], NoSecret> {
    let now = Clock::system().now();
    // Ada gets an address where email is on, so that she can try it.
    let email = config.mail.is_some().then(|| "ada@example.org".to_owned());
    let member = Token { email, ..people::ADA.token() };
    Ok([("member", member.sign(&config.auth, now)?), ("moderator", people::GRACE.token().sign(&config.auth, now)?)])
}
