//! A table that exists already, in a data directory or deployed.

use std::env;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::config::Builder;
use aws_types::SdkConfig;
use local::data_dir::{DataDir, Lock};
use local::engine::Engine;
use local::settings;
use shared::aws::{config, secrets};
use shared::domain::ids::Random;
use shared::domain::secret::Secret;
use shared::store::{Store, client};

use super::Failure;

/// The salt of a deployed table.
pub(super) async fn deployed_salt(sdk: &SdkConfig) -> Result<Secret, Failure> {
    let salt = settings::visitor_salt(None)?.ok_or("SVC_VISITOR_SALT is not set; set it as it is for the table")?;
    Ok(secrets::resolve(salt.expose(), sdk).await?)
}

pub(super) struct Table {
    pub(super) store: Store,
    /// The key of visitors' hashes.
    pub(super) salt: Secret,
    /// A directory for temporary files.
    pub(super) scratch: PathBuf,
    /// `None` for a deployed table.
    _lock: Option<Lock>,
}

impl Table {
    /// The deployed table of this name, or else the one in the data directory.
    pub(super) async fn open(data_dir: &Path, deployed: Option<&str>) -> Result<Self, Failure> {
        match deployed {
            Some(name) => Self::deployed(name).await,
            None => Self::of_data_dir(data_dir),
        }
    }

    async fn deployed(name: &str) -> Result<Self, Failure> {
        let embedded = settings::load(None, None)?.lists.replies_per_parent;
        let sdk = config::sdk_config().await;
        let salt = deployed_salt(&sdk).await?;
        let client = client::build(Builder::from(&sdk));
        let store = Store::new(client, name.to_owned(), Random::system()).embedding(embedded);
        Ok(Self { store, salt, scratch: env::temp_dir(), _lock: None })
    }

    fn of_data_dir(path: &Path) -> Result<Self, Failure> {
        let file = path.join("table.db");
        if !file.exists() {
            return Err(format!("there is no table in {}", path.display()).into());
        }
        let data_dir = DataDir::open(path)?;
        let lock = data_dir.lock()?;
        let config = settings::load(Some(&data_dir), None)?;
        let client = client::build(Engine::open(&file)?.client_builder());
        let store = Store::new(client, config.table_name, Random::system());
        let store = store.embedding(config.lists.replies_per_parent);
        Ok(Self { store, salt: config.visitor_salt, scratch: path.to_owned(), _lock: Some(lock) })
    }
}
