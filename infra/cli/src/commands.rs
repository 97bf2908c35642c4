//! The command line of `cargo local`: the words, and a module for each command.

mod bench;
mod check;
mod demo;
mod deployed;
mod export;
mod greeting;
mod import;
mod kept;
mod log;
mod moderate;
mod people;
mod person;
mod serve;
mod services;
mod stop;
mod table;
#[cfg(test)]
mod tests;
mod token;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
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

const DEFAULT_DATA_DIR: &str = ".local";
const DEFAULT_PORT: u16 = 3000;

/// The exit code when a source, a table or a directory cannot be used.
const UNUSABLE: u8 = 3;

type Failure = Box<dyn Error + Send + Sync>;

/// The comment service on this machine: API, table, bucket and triggers. It needs
/// no account and no container.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo local",
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    disable_help_subcommand = true,
    flatten_help = true,
    after_help = "Settings are environment variables (SVC_…); see infra/settings.md."
)]
pub struct CommandLine {
    #[command(flatten)]
    serve: serve::Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Token(token::Options),
    Moderate(moderate::Options),
    Check(check::Options),
    Bench(bench::Options),
    Import(Box<import::Options>),
    Export(export::Options),
    #[command(subcommand, flatten_help = true)]
    Person(person::Command),
}

impl CommandLine {
    pub async fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            None => match self.serve.run().await {
                Err(error) if is_of_data(&error) => {
                    eprintln!("error: {error}");
                    return Ok(ExitCode::from(UNUSABLE));
                }
                served => served,
            },
            Some(Command::Token(options)) => options.run(),
            Some(Command::Moderate(options)) => options.run().await,
            Some(Command::Bench(options)) => options.run().await,
            Some(Command::Check(options)) => return options.run().await,
            Some(Command::Import(options)) => return options.run().await,
            Some(Command::Export(options)) => return options.run().await,
            Some(Command::Person(command)) => return command.run().await,
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// Whether a directory or its table cannot be used.
fn is_of_data(error: &Failure) -> bool {
    let is_of_settings = |error: &SettingsError| !matches!(error, SettingsError::Config(_));
    error.is::<DataDirError>() || error.is::<EngineError>() || error.downcast_ref().is_some_and(is_of_settings)
}

/// `hint` says what to do when the port is taken.
async fn listen(port: u16, hint: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken; {hint}").into(),
        _ => format!("port {port}: {error}").into(),
    })
}

/// Names this process to others that write to the table in bulk. A data directory has a lock of its own, so the lease of a
/// process that was killed there holds nobody up.
fn holder(table: Option<&str>) -> String {
    table.map_or_else(|| "the data directory".to_owned(), |_| hex(&Random::system().bytes::<8>()))
}

/// Tokens to try the service with, by role.
fn sample_tokens(config: &Config) -> Result<[(&'static str, String); 2], NoSecret> {
    let now = Clock::system().now();
    // Ada gets an address where mails are on, so that she can try them.
    let email = config.mail.is_some().then(|| "ada@example.org".to_owned());
    let member = Token { email, ..people::ADA.token() };
    Ok([("member", member.sign(&config.auth, now)?), ("moderator", people::GRACE.token().sign(&config.auth, now)?)])
}
