//! Tokens for signed-in users, like those that their site would issue.

use std::time::Duration;

use jiff::SignedDuration;
use shared::auth::token::{KeySettings, Keys};
use shared::aws::https;
use shared::config::Auth;
use shared::domain::time::Timestamp;
use shared::domain::user::Claims;

/// The timeout of the HTTP client that `Keys` requires. Signing doesn't use the client.
const JWKS_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
#[error("can't sign tokens without a secret; set SVC_JWT_SECRET")]
pub struct NoSecret;

#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub moderator: bool,
    pub picture: Option<String>,
    pub email: Option<String>,
    pub lifetime: SignedDuration,
}

impl Token {
    /// A token that is valid for a day, without a picture or email address.
    #[must_use]
    pub fn new(id: &str, name: &str) -> Self {
        let lifetime = SignedDuration::from_hours(24);
        Self { id: id.to_owned(), name: name.to_owned(), moderator: false, picture: None, email: None, lifetime }
    }

    /// Signs the token as a site with these settings would.
    pub fn sign(&self, auth: &Auth, now: Timestamp) -> Result<String, NoSecret> {
        let keys = KeySettings {
            secret: auth.secret.clone(),
            jwks_url: None,
            issuer: auth.issuer.clone(),
            audience: auth.audience.clone(),
        };
        let claims = Claims {
            email_unverified: false,
            sub: self.id.clone(),
            issuer: auth.issuer.clone(),
            name: Some(self.name.clone()),
            picture: self.picture.clone(),
            email: self.email.clone(),
            moderator: self.moderator,
            issued_at: Some(now.seconds()),
            account: None,
        };
        let expires_at = Timestamp::from_seconds(now.seconds().saturating_add(self.lifetime.as_secs()));
        Keys::new(keys, https::Client::new(JWKS_TIMEOUT)).sign(&claims, expires_at).ok_or(NoSecret)
    }
}
