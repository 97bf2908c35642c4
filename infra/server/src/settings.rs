//! The service's settings on one machine: from the environment, with secrets from the data directory and fixed values
//! for those that AWS would provide.

use std::net::SocketAddr;
use std::path::PathBuf;

use shared::config::{self, Config, ConfigError};
use shared::domain::origin::LOOPBACK;
use shared::domain::secret::{self, Secret};

use crate::account::{ACCESS_KEY, REGION};
use crate::data_dir::{DataDir, DataDirError, JWT_SECRET, SALT, SEED, random_secret};
use crate::engine::{Engine, EngineError};
use crate::queue::Queues;

pub const TABLE: &str = "comments";
/// The logical id of the queue for the function `jobs`.
pub const JOBS: &str = "JobsQueue";
/// The logical id of the queue for the function `delivery`.
pub const DELIVERIES: &str = "DeliveriesQueue";
/// The bucket's name, and its path on the API's port.
pub const MEDIA: &str = "media";
/// The path for monitoring.
pub const HEALTH: &str = "healthz";
/// The path of the page that shows sent emails.
pub const MAILBOX: &str = "_mail";

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    DataDir(#[from] DataDirError),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error(
        "{0} is missing, and with another salt no one in the table would be recognized; \
         restore the file, or set SVC_VISITOR_SALT to its old content"
    )]
    NoSalt(PathBuf),
    #[error(
        "{0} isn't the salt that this table was written with, so no one in it would be recognized; \
         restore the file, or delete it and set SVC_VISITOR_SALT to its old content; \
         if it is the right salt, delete the file salt-fingerprint beside it"
    )]
    OtherSalt(PathBuf),
}

/// Loads the settings. `address` is the address of a service that is starting, which also serves images. Without a data
/// directory, secrets are generated at every start.
pub fn load(data_dir: Option<&DataDir>, address: Option<SocketAddr>) -> Result<Config, SettingsError> {
    load_with(data_dir, address, &[])
}

/// Like [`load`], with additional defaults.
pub fn load_with(
    data_dir: Option<&DataDir>,
    address: Option<SocketAddr>,
    defaults: &[(&str, String)],
) -> Result<Config, SettingsError> {
    read(data_dir, address.is_some(), address, defaults)
}

fn read(
    data_dir: Option<&DataDir>,
    starts: bool,
    address: Option<SocketAddr>,
    defaults: &[(&str, String)],
) -> Result<Config, SettingsError> {
    if let Some(data_dir) = data_dir {
        // Unless a service is starting, stores no salt for a table with items, because they may use another one.
        if starts || data_dir.has_secret(SALT) || !Engine::has_items(&data_dir.table(), TABLE)? {
            keep(data_dir, SALT, "SVC_VISITOR_SALT")?;
        }
        if starts {
            keep(data_dir, SEED, "SVC_SIGN_IN_SEED")?;
        }
    }
    let seed = data_dir.map_or_else(random_secret, |data_dir| data_dir.secret(SEED))?;
    let jwt_secret = data_dir.map_or_else(random_secret, |data_dir| data_dir.secret(JWT_SECRET))?;
    let visitor_salt = match stored_salt(data_dir)? {
        Some(salt) => salt,
        None => random_secret()?,
    };
    let own = |name: &str| defaults.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let config = Config::from_vars(|name| {
        let default = match name {
            "TABLE_NAME" => return Some(TABLE.to_owned()),
            "JOBS_QUEUE_URL" => return Some(Queues::url(JOBS)),
            "DELIVERIES_QUEUE_URL" => return Some(Queues::url(DELIVERIES)),
            "MEDIA_BUCKET" => return Some(MEDIA.to_owned()),
            "MEDIA_BASE_URL" => return address.map(|address| format!("http://{address}/{MEDIA}")),
            "SVC_JWT_SECRET" => Some(&jwt_secret),
            "SVC_VISITOR_SALT" => Some(&visitor_salt),
            // Never `None`: the functions that send email run in this process, so subscriptions and sign-in require a
            // sender.
            "SVC_MAIL_FROM" => return Some(environment(name).or_else(|| own(name).cloned()).unwrap_or_default()),
            "SVC_SIGN_IN_SEED" => Some(&seed),
            _ => own(name),
        };
        environment(name).or_else(|| default.cloned())
    })?;
    if data_dir.is_some() || address.is_some() {
        check_here(&config)?;
    }
    if let Some(data_dir) = data_dir.filter(|_| starts) {
        data_dir.record_salt(&config.visitor_salt)?;
    }
    // Counts as behind an edge, because reads that an edge would have served cost nothing on one machine.
    Ok(Config { at_edge: true, ..config })
}

/// Loads the settings of a service in production. Fails if the public URL, or the mail server of a service that sends
/// email, isn't set. Without a data directory, random secrets replace the stored ones.
pub fn load_production(data_dir: Option<&DataDir>) -> Result<Config, SettingsError> {
    let config = read(data_dir, true, None, &[])?;
    check_here(&config)?;
    let missing = |variable, accepted| Err(ConfigError::new(variable, None, accepted).into());
    let Some(public_url) = &config.public_url else {
        return missing(
            "SVC_PUBLIC_URL",
            "the address where browsers reach this service, such as https://comments.example.org",
        );
    };
    if config.mail.as_ref().is_some_and(|mail| mail.smtp_url.is_none()) {
        return missing(
            "SVC_SMTP_URL",
            "the mail server, such as smtps://user:password@mail.example.org, because SVC_MAIL_FROM is set",
        );
    }
    let media_base_url = format!("{public_url}/{MEDIA}");
    Ok(Config { media_base_url, ..config })
}

/// Stores the value of a variable in the data directory, and refuses a different value later.
fn keep(data_dir: &DataDir, name: &str, variable: &'static str) -> Result<(), SettingsError> {
    let Some(value) = environment(variable).map(|value| value.trim().to_owned()) else { return Ok(()) };
    if data_dir.keep(name, &value)? == value {
        return Ok(());
    }
    let kept = if data_dir.is_staging() { "the backup".to_owned() } else { data_dir.file(name).display().to_string() };
    let accepted = format!("the value of the first start, which is in {kept}; unset it to use that one");
    Err(ConfigError::new(variable, None, &accepted).into())
}

/// Refuses settings that only work on AWS, and a prefix of the API that clashes with other pages of this server.
fn check_here(config: &Config) -> Result<(), ConfigError> {
    // Checked even if sign-in is off, because the first start stores the seed.
    let seed = environment("SVC_SIGN_IN_SEED").filter(|seed| secret::is_name(seed.trim()));
    if let Some(variable) = config.secret_kept_in_aws().or(seed.map(|_| "SVC_SIGN_IN_SEED")) {
        return Err(ConfigError::new(variable, None, "the secret itself; ARNs are for functions in AWS"));
    }
    let first = config.api_prefix.split('/').next().unwrap_or_default();
    if [MEDIA, MAILBOX, HEALTH].contains(&first) {
        let accepted = format!(
            "a path that does not begin with {MEDIA}, {MAILBOX} or {HEALTH}, which this server uses for other pages"
        );
        return Err(ConfigError::new("SVC_API_PREFIX", Some(config.api_prefix.clone()), &accepted));
    }
    Ok(())
}

/// The default settings for `--sign-in`, for a service at this address.
#[must_use]
pub fn for_sign_in(address: SocketAddr) -> [(&'static str, String); 4] {
    [
        ("SVC_SIGN_IN", "true".to_owned()),
        ("SVC_MAIL_FROM", "comments@example.org".to_owned()),
        ("SVC_PUBLIC_URL", format!("http://{address}")),
        ("SVC_CORS_ORIGINS", format!("http://{address},{}", LOOPBACK.join(","))),
    ]
}

/// The salt of visitors' hashes, if there is one: from the environment, or else from the data directory, where it's
/// generated if needed. It may be the name of a secret.
pub fn visitor_salt(data_dir: Option<&DataDir>) -> Result<Option<Secret>, SettingsError> {
    let salt = match environment("SVC_VISITOR_SALT") {
        Some(salt) => Some(salt),
        None => stored_salt(data_dir)?,
    };
    Ok(salt.map(|salt| Secret::from(salt.trim().to_owned())))
}

/// The salt in the data directory. Generates a missing salt if the table has no items, and fails otherwise. `None`
/// without a directory, or if the environment sets a salt.
fn stored_salt(data_dir: Option<&DataDir>) -> Result<Option<String>, SettingsError> {
    let Some(data_dir) = data_dir.filter(|_| !is_set("SVC_VISITOR_SALT")) else { return Ok(None) };
    check_salt(data_dir)?;
    Ok(Some(data_dir.secret(SALT)?))
}

/// Fails if the table has items, and the salt in the directory, or else in the environment, is missing or known to
/// differ.
pub fn check_salt(data_dir: &DataDir) -> Result<(), SettingsError> {
    let stored = data_dir.salt()?;
    let own = stored.is_none().then(|| environment("SVC_VISITOR_SALT")).flatten();
    let own = own.map(|salt| Secret::from(salt.trim().to_owned()));
    let error = match stored.as_ref().or(own.as_ref()) {
        Some(salt) if !data_dir.has_other_salt(salt)? => return Ok(()),
        Some(_) if stored.is_some() => SettingsError::OtherSalt(data_dir.file(SALT)),
        Some(_) => ConfigError::new("SVC_VISITOR_SALT", None, "the salt that this table was written with").into(),
        None => SettingsError::NoSalt(data_dir.file(SALT)),
    };
    if Engine::has_items(&data_dir.table(), TABLE)? { Err(error) } else { Ok(()) }
}

/// The environment of a function in another process that uses the table, the bucket and the queues of this process.
#[must_use]
pub fn for_functions(
    config: &Config,
    table: SocketAddr,
    bucket: SocketAddr,
    queue: SocketAddr,
) -> Vec<(&'static str, String)> {
    let secret = |secret: Option<&Secret>| secret.map_or_else(String::new, |secret| secret.expose().to_owned());
    vec![
        ("TABLE_NAME", config.table_name.clone()),
        ("SVC_JWT_SECRET", secret(config.auth.secret.as_ref())),
        ("SVC_VISITOR_SALT", secret(Some(&config.visitor_salt))),
        ("JOBS_QUEUE_URL", Queues::url(JOBS)),
        ("DELIVERIES_QUEUE_URL", Queues::url(DELIVERIES)),
        ("MEDIA_BUCKET", config.media_bucket.clone()),
        ("MEDIA_BASE_URL", config.media_base_url.clone()),
        ("AWS_ENDPOINT_URL_DYNAMODB", format!("http://{table}")),
        ("AWS_ENDPOINT_URL_S3", format!("http://{bucket}")),
        ("AWS_ENDPOINT_URL_SQS", format!("http://{queue}")),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", ACCESS_KEY.to_owned()),
    ]
}

#[must_use]
pub fn is_set(name: &str) -> bool {
    environment(name).is_some()
}

fn environment(name: &str) -> Option<String> {
    config::environment(name).filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_sign_in_allows_loopback_origins_and_keeps_its_seed() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(folder.path()).unwrap();
        let address: SocketAddr = "127.0.0.1:3000".parse().unwrap();
        let seed = || {
            let config = load_with(Some(&data_dir), Some(address), &for_sign_in(address)).unwrap();
            assert!(config.mail.is_some() && config.cors_origins.contains("http://localhost:8080"));
            assert!(!config.cors_origins.contains("https://www.example.org"));
            config.sign_in.unwrap().seed.unwrap().expose().to_owned()
        };
        assert_eq!(seed(), seed());
        assert!(load(Some(&data_dir), Some(address)).unwrap().sign_in.is_none());
    }

    #[test]
    fn pages_may_ask_as_often_as_behind_the_edge() {
        let config = load(None, None).unwrap();
        assert!(config.at_edge && config.edge_secret.is_none());
    }
}
