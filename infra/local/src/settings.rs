//! The service's settings on this machine: the environment's, and for what a laptop has to make itself, ours.

use std::net::SocketAddr;
use std::time::Duration;

use shared::auth::token::{KeySettings, Keys};
use shared::aws::https;
use shared::config::{Config, ConfigError};
use shared::domain::secret::Secret;
use shared::domain::user::Claims;

use crate::cli::Token;
use crate::data_dir::{DataDir, DataDirError, random_secret};
use crate::engine::REGION;

const TABLE: &str = "comments";
/// Path prefix of the bucket on the API's port, and the bucket's name.
pub const MEDIA: &str = "media";

const JWKS_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    DataDir(#[from] DataDirError),
    #[error("no secret to sign tokens with")]
    NoSecret,
}

/// `address` serves the images. Without a directory the secrets are new at every start.
pub fn load(data_dir: Option<&DataDir>, address: Option<SocketAddr>) -> Result<Config, SettingsError> {
    let secret = |name| data_dir.map_or_else(random_secret, |data_dir| data_dir.secret(name));
    let (jwt_secret, visitor_salt) = (secret("jwt-secret")?, secret("visitor-salt")?);
    Ok(Config::from_vars(|name| {
        let made_here = match name {
            "TABLE_NAME" => return Some(TABLE.to_owned()),
            "MEDIA_BUCKET" => return Some(MEDIA.to_owned()),
            "MEDIA_BASE_URL" => return address.map(|address| format!("http://{address}/{MEDIA}")),
            "SVC_JWT_SECRET" => Some(&jwt_secret),
            "SVC_VISITOR_SALT" => Some(&visitor_salt),
            _ => None,
        };
        environment(name).or_else(|| made_here.cloned())
    })?)
}

/// The variables of a function that runs elsewhere with the table and the bucket of this machine.
#[must_use]
pub fn for_functions(config: &Config, table: SocketAddr, bucket: SocketAddr) -> Vec<(&'static str, String)> {
    let secret = |secret: Option<&Secret>| secret.map_or_else(String::new, |secret| secret.expose().to_owned());
    vec![
        ("TABLE_NAME", config.table_name.clone()),
        ("SVC_JWT_SECRET", secret(config.auth.secret.as_ref())),
        ("SVC_VISITOR_SALT", secret(Some(&config.visitor_salt))),
        ("MEDIA_BUCKET", config.media_bucket.clone()),
        ("MEDIA_BASE_URL", config.media_base_url.clone()),
        ("AWS_ENDPOINT_URL_DYNAMODB", format!("http://{table}")),
        ("AWS_ENDPOINT_URL_S3", format!("http://{bucket}")),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
    ]
}

#[expect(clippy::disallowed_methods, reason = "handed to the configuration, which asks by name")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// `now` is in Unix seconds.
pub fn sign(config: &Config, token: &Token, now: i64) -> Result<String, SettingsError> {
    let keys = KeySettings {
        secret: config.auth.secret.clone(),
        jwks_url: None,
        issuer: config.auth.issuer.clone(),
        audience: config.auth.audience.clone(),
    };
    let claims = Claims {
        sub: token.id.clone(),
        issuer: config.auth.issuer.clone(),
        name: Some(token.name.clone()),
        picture: token.picture.clone(),
        email: token.email.clone(),
        moderator: token.moderator,
        issued_at: Some(now),
    };
    let expires_at = now.saturating_add(token.lifetime.as_secs());
    Keys::new(keys, https::Client::new(JWKS_TIMEOUT)).sign(&claims, expires_at).ok_or(SettingsError::NoSecret)
}
