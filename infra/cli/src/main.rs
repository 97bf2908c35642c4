//! Parses the command line and runs the command.

use std::process::ExitCode;

use clap::Parser;
use cli::commands::CommandLine;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    CommandLine::parse().run().await
}
