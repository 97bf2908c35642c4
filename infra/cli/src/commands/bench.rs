//! `cargo local bench`: measures the service on this machine.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::bench::{self, Bench};

/// Measure the service on this machine, in a table of its own; use a
/// release build
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_override_self = true)]
pub(super) struct Options {
    /// Time that each row is measured
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) seconds: u64,
    /// Compare with Isso, the program of that name from PyPI
    #[arg(long, value_name = "PATH")]
    pub(super) isso: Option<PathBuf>,
    /// Compare with Waline, the folder of @waline/vercel from npm
    #[arg(long, value_name = "DIR")]
    pub(super) waline: Option<PathBuf>,
    /// Run the server that a bench measures, on this data directory
    #[arg(long, value_name = "DIR", hide = true)]
    serve: Option<PathBuf>,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self.serve {
            Some(data_dir) => bench::serve(&data_dir).await,
            None => Bench { seconds: self.seconds, isso: self.isso, waline: self.waline }.run().await,
        }
    }
}
