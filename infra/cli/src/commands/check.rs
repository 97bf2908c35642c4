//! `cargo local check`: checks a table.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use clap::Args;
use local::data_dir::DataDir;
use local::engine::Engine;
use local::settings;
use shared::domain::ids::Random;
use shared::store::Store;
use transfer::check::Check;

use super::deployed::sdk_config;
use super::{DEFAULT_DATA_DIR, Failure, UNUSABLE};

/// A deployed service completes the requests under way within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Recount a table and print what is wrong. The exit code is 1 if anything is,
/// 3 if the table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// Directory of the table
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub(super) data_dir: PathBuf,
    /// Deployed table to check instead, with the credentials of
    /// the environment
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir", verbatim_doc_comment)]
    pub(super) table: Option<String>,
    /// Correct what is wrong
    #[arg(long)]
    pub(super) repair: bool,
}

impl Options {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self.findings().await {
            Ok(0) => Ok(ExitCode::SUCCESS),
            Ok(_) => Err("the table is not consistent".into()),
            Err(error) => {
                eprintln!("error: {error}");
                Ok(ExitCode::from(UNUSABLE))
            }
        }
    }

    async fn findings(self) -> Result<usize, Failure> {
        match self.table {
            Some(name) => {
                let client = Client::new(&sdk_config().await?);
                let store = Store::new(client, name, Random::system());
                check(&store, self.repair, PATIENCE).await
            }
            None => check_data_dir(&self.data_dir, self.repair).await,
        }
    }
}

async fn check_data_dir(path: &Path, repair: bool) -> Result<usize, Failure> {
    let file = path.join("table.db");
    if !file.exists() {
        return Err(format!("there is no table in {}", path.display()).into());
    }
    let data_dir = DataDir::open(path)?;
    let _lock = data_dir.lock()?;
    let config = settings::load(Some(&data_dir), None)?;
    let store = Store::new(Engine::open(&file)?.client(), config.table_name, Random::system());
    check(&store, repair, Duration::ZERO).await
}

async fn check(store: &Store, repair: bool, patience: Duration) -> Result<usize, Failure> {
    Ok(Check { repair, patience }.run(store, &mut io::stdout()).await?)
}
