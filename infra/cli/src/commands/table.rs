//! The table that a command works on, in a data directory or deployed.

use std::env;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::config::Builder;
use clap::Args;
use server::data_dir::{DataDir, Lock};
use server::engine::Engine;
use server::settings;
use shared::aws::secrets;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::secret::Secret;
use shared::policy;
use shared::store::addresses::Addresses;
use shared::store::{Store, client};
use tempfile::TempDir;

use super::deployed::sdk_config;
use super::kept::open_table;
use super::{Failure, data_dir, not_set};

// With a doc comment, the help would describe the command as these options.
#[derive(Debug, Args)]
pub(super) struct TableOptions {
    /// Directory of the table
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    pub(super) data_dir: PathBuf,
    /// Deployed table to use instead, with the
    /// credentials and the settings from the
    /// environment
    #[arg(long = "table", value_name = "NAME", conflicts_with = "data_dir", verbatim_doc_comment)]
    pub(super) deployed: Option<String>,
}

impl TableOptions {
    pub(super) fn is_deployed(&self) -> bool {
        self.deployed.is_some()
    }

    /// The data directory; `None` for a deployed table.
    pub(super) fn data_dir(&self) -> Option<&Path> {
        (!self.is_deployed()).then_some(self.data_dir.as_path())
    }
}

pub(super) struct Table {
    pub(super) store: Store,
    /// The key of visitors' hashes. `None` for a deployed table if `SVC_VISITOR_SALT` isn't set.
    salt: Option<Secret>,
    pub(super) temp_dir: PathBuf,
    /// `None` for a deployed table.
    pub(super) kept: Option<Kept>,
    /// The copy that was opened instead of a read-only data directory.
    pub(super) copy: Option<TempDir>,
}

/// The rest of the data directory that contains the table.
pub(super) struct Kept {
    pub(super) data_dir: DataDir,
    pub(super) engine: Engine,
    pub(super) lock: Lock,
    /// Whether earlier work on the table is unfinished.
    pub(super) is_unfinished: bool,
}

impl Kept {
    /// Removes traces of deleted data from the directory's files.
    pub(super) fn clean_up(&self) -> Result<(), Failure> {
        self.data_dir.remove_partial_files()?;
        Ok(self.engine.compact()?)
    }
}

impl Table {
    pub(super) async fn open(options: &TableOptions) -> Result<Self, Failure> {
        if let Some(data_dir) = options.data_dir() {
            DataDir::existing(data_dir)?;
        }
        Self::open_or_create(options).await
    }

    /// Like [`Self::open`], but only to read the table. A read-only data directory, such as a snapshot, is read from a
    /// copy.
    pub(super) async fn open_to_read(options: &TableOptions) -> Result<Self, Failure> {
        if let Some(name) = &options.deployed {
            return Self::deployed(name).await;
        }
        let original = DataDir::existing(&options.data_dir)?;
        match original.copy_if_read_only()? {
            Some(copy) => {
                let mut table = Self::of_data_dir(copy.path())?;
                if let Some(kept) = &mut table.kept {
                    kept.is_unfinished = original.is_unfinished();
                }
                Ok(Self { copy: Some(copy), ..table })
            }
            None => Self::of_data_dir(&options.data_dir),
        }
    }

    /// Like [`Self::open`], but creates a missing table in a data directory.
    pub(super) async fn open_or_create(options: &TableOptions) -> Result<Self, Failure> {
        match &options.deployed {
            Some(name) => Self::deployed(name).await,
            None => Self::of_data_dir(&options.data_dir),
        }
    }

    pub(super) fn salt(&self) -> Result<&Secret, Failure> {
        self.salt.as_ref().ok_or_else(|| not_set("SVC_VISITOR_SALT").into())
    }

    async fn deployed(name: &str) -> Result<Self, Failure> {
        let config = settings::load(None, None)?;
        let sdk = sdk_config().await?;
        let salt = match settings::visitor_salt(None)? {
            Some(salt) => Some(secrets::resolve(salt.expose(), &sdk).await?),
            None => None,
        };
        let store = store(Builder::from(&sdk), name, &config, salt.as_ref());
        Ok(Self { store, salt, temp_dir: env::temp_dir(), kept: None, copy: None })
    }

    pub(super) fn of_data_dir(path: &Path) -> Result<Self, Failure> {
        let data_dir = DataDir::open(path)?;
        let lock = data_dir.lock()?;
        let engine = open_table(Some(&data_dir))?;
        let config = settings::load(Some(&data_dir), None)?;
        data_dir.record_salt(&config.visitor_salt)?;
        let store = store(engine.client_builder(), &config.table_name, &config, Some(&config.visitor_salt));
        let is_unfinished = data_dir.is_unfinished();
        let kept = Some(Kept { data_dir, engine, lock, is_unfinished });
        Ok(Self { store, salt: Some(config.visitor_salt), temp_dir: path.to_owned(), kept, copy: None })
    }
}

fn store(client: Builder, table: &str, config: &Config, salt: Option<&Secret>) -> Store {
    Store::new(client::build(client), table.to_owned(), Random::system())
        .embedding(config.lists.replies_per_parent)
        .keeping(Addresses::new(salt, config.guests.show_gravatar))
        .asking_for_trust(policy::shows_by_trust(config))
}

pub(super) fn exists(data_dir: &Path) -> bool {
    data_dir.join("table.db").exists()
}
