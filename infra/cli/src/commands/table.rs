//! A table that exists already, in a data directory or deployed.

use std::env;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::config::Builder;
use local::data_dir::{DataDir, Lock};
use local::engine::Engine;
use local::settings;
use local::template::{DEPLOYED, Template};
use shared::aws::secrets;
use shared::domain::ids::Random;
use shared::domain::secret::Secret;
use shared::store::{Store, client};

use super::Failure;
use super::deployed::sdk_config;

pub(super) struct Table {
    pub(super) store: Store,
    /// The key of visitors' hashes. `None` for a deployed table while `SVC_VISITOR_SALT` is not set.
    salt: Option<Secret>,
    /// A directory for temporary files.
    pub(super) temp_dir: PathBuf,
    /// `None` for a deployed table.
    _lock: Option<Lock>,
}

impl Table {
    /// The deployed table of this name, or else the one in the data directory.
    pub(super) async fn open(data_dir: &Path, deployed: Option<&str>) -> Result<Self, Failure> {
        match deployed {
            Some(name) => Self::deployed(name).await,
            None if file(data_dir).exists() => Self::of_data_dir(data_dir),
            None => Err(format!("there is no table in {}", data_dir.display()).into()),
        }
    }

    /// The same. A data directory gets a table if it has none.
    pub(super) async fn open_or_create(data_dir: &Path, deployed: Option<&str>) -> Result<Self, Failure> {
        match deployed {
            Some(name) => Self::deployed(name).await,
            None => Self::of_data_dir(data_dir),
        }
    }

    pub(super) fn salt(&self) -> Result<&Secret, Failure> {
        self.salt.as_ref().ok_or_else(|| "SVC_VISITOR_SALT is not set; set it as it is for the table".into())
    }

    async fn deployed(name: &str) -> Result<Self, Failure> {
        let embedded = settings::load(None, None)?.lists.replies_per_parent;
        let sdk = sdk_config().await?;
        let salt = match settings::visitor_salt(None)? {
            Some(salt) => Some(secrets::resolve(salt.expose(), &sdk).await?),
            None => None,
        };
        let client = client::build(Builder::from(&sdk));
        let store = Store::new(client, name.to_owned(), Random::system()).embedding(embedded);
        Ok(Self { store, salt, temp_dir: env::temp_dir(), _lock: None })
    }

    fn of_data_dir(path: &Path) -> Result<Self, Failure> {
        let data_dir = DataDir::open(path)?;
        let lock = data_dir.lock()?;
        let config = settings::load(Some(&data_dir), None)?;
        let engine = Engine::open(&file(path))?;
        engine.create_table(&config.table_name, &Template::parse(DEPLOYED, &[])?.table()?)?;
        let store = Store::new(client::build(engine.client_builder()), config.table_name, Random::system());
        let store = store.embedding(config.lists.replies_per_parent);
        Ok(Self { store, salt: Some(config.visitor_salt), temp_dir: path.to_owned(), _lock: Some(lock) })
    }
}

/// The table of a data directory.
pub(super) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("table.db")
}
