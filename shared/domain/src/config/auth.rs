//! Settings for tokens and moderators, and checks of all secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;

use super::mail::check_smtp;
use super::vars::{Vars, is_discovery_document};
use super::{Config, ConfigError, Needs, sign_in};
use crate::email::{self, mailable};
use crate::ids::UserId;
use crate::origin::is_loopback;
use crate::secret::{self, Secret};
use crate::sign_in::account_of;
use crate::sign_in::providers::ProviderAccount;
use crate::user::Identity;

/// Minimum length of an HS256 secret, in bytes. A shorter secret could be guessed (RFC 7518, section 3.2).
pub const MIN_SECRET: usize = 32;
/// Minimum length of the salt, in bytes. With a shorter salt, addresses could be guessed from their hashes.
pub const MIN_SALT: usize = 16;

pub type SecretCheck = fn(&Secret) -> Result<(), ConfigError>;

#[derive(Clone, Debug)]
pub struct Auth {
    /// `SVC_JWT_SECRET`
    pub secret: Option<Secret>,
    /// `SVC_JWKS_URL`
    pub jwks_url: Option<http::Uri>,
    /// `SVC_JWT_ISSUER`
    pub issuer: Option<String>,
    /// `SVC_JWT_AUDIENCE`
    pub audience: Option<String>,
    pub moderators: Vec<Moderator>,
}

/// An entry of `SVC_MODERATORS`. A number below 2^53 is a user id. An entry that begins with `email:` is an address, and one
/// that begins with `github:`, `google:` or `oidc:` is a provider account. Anything else is the `sub` of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moderator {
    Id(UserId),
    Sub(String),
    /// An email address. Only our sign-in codes prove that a user owns it.
    Email(String),
    /// A provider account. Only our sign-in with the provider proves that a user owns it.
    Elsewhere(ProviderAccount),
}

pub(super) fn check_length(variable: &'static str, secret: &Secret, least: usize) -> Result<(), ConfigError> {
    if secret.expose().len() >= least {
        return Ok(());
    }
    Err(ConfigError { variable, held: None, accepted: format!("a secret of at least {least} bytes") })
}

/// Whether the text looks like a public key or a certificate: PEM, an OpenSSH key, a JWK, a JWKS, or PEM or DER in
/// base64.
fn is_public_key(text: &str) -> bool {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "\u{feff}\"'".contains(c));
    let is_jwk = |json: Value| json.get("keys").is_some() || json.get("kty").is_some_and(|kind| kind != "oct");
    let base64: String = text.split_whitespace().collect::<String>().replace('-', "+").replace('_', "/");
    let der = STANDARD_NO_PAD.decode(base64.trim_end_matches('=')).unwrap_or_default();
    ["-----BEGIN", "AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNhLX"].iter().any(|mark| text.contains(mark))
        || serde_json::from_str(text).is_ok_and(is_jwk)
        || der.starts_with(b"-----BEGIN")
        // An ASN.1 sequence whose first element is a sequence or, for RSA, a long integer. The length of the outer sequence
        // takes one to three bytes.
        || matches!(der[..], [0x30, _, 0x30, _, 6, ..] | [0x30, 0x81, _, 0x30 | 2, ..] | [0x30, 0x82, _, _, 0x30 | 2, ..])
}

/// Rejects public keys and short secrets. Anyone who has a public key could sign tokens with it.
fn check_secret(secret: &Secret) -> Result<(), ConfigError> {
    if is_public_key(secret.expose()) {
        let accepted = "a shared secret, not a public key; SVC_JWKS_URL takes the address of public keys".to_owned();
        return Err(ConfigError { variable: "SVC_JWT_SECRET", held: None, accepted });
    }
    check_length("SVC_JWT_SECRET", secret, MIN_SECRET)
}

fn check_salt(salt: &Secret) -> Result<(), ConfigError> {
    check_length("SVC_VISITOR_SALT", salt, MIN_SALT)
}

impl Config {
    /// Whether `SVC_MODERATORS` names this user, by id, `sub`, email address or provider account.
    #[must_use]
    pub fn names_moderator(&self, user: &Identity) -> bool {
        let has = |(id, subject): (UserId, String)| {
            user.claims.account.is_some() && (id, Some(&subject)) == (user.id, user.subject.as_ref())
        };
        self.auth.moderators.iter().any(|moderator| match moderator {
            Moderator::Id(named) => *named == user.id,
            Moderator::Sub(named) => *named == user.claims.sub,
            Moderator::Email(address) => has(account_of(&self.visitor_salt, address)),
            Moderator::Elsewhere(account) => self.account_elsewhere(account).is_some_and(has),
        })
    }

    /// The user ids that `SVC_MODERATORS` names. The id of a `sub` depends on the token's issuer, so it is computed for each of
    /// `issuers`, for the configured issuer, and without an issuer.
    pub fn named_moderators<'a>(&'a self, issuers: &'a [&str]) -> impl Iterator<Item = UserId> + 'a {
        self.auth.moderators.iter().flat_map(move |moderator| match moderator {
            Moderator::Id(id) => vec![*id],
            Moderator::Sub(sub) => {
                let issuers = issuers.iter().copied().chain(self.auth.issuer.as_deref()).chain([""]);
                issuers.map(|issuer| UserId::hashed(&self.visitor_salt, issuer, sub).0).collect()
            }
            Moderator::Email(address) => vec![account_of(&self.visitor_salt, address).0],
            Moderator::Elsewhere(account) => self.account_elsewhere(account).into_iter().map(|(id, _)| id).collect(),
        })
    }

    /// The first variable that should contain a secret but contains the ARN of a secret in AWS, if any.
    #[must_use]
    pub fn secret_kept_in_aws(&self) -> Option<&'static str> {
        let secrets = [
            ("SVC_JWT_SECRET", self.auth.secret.as_ref()),
            ("SVC_AKISMET_KEY", self.spam.akismet_key.as_ref()),
            ("SVC_EDGE_SECRET", self.edge_secret.as_ref()),
            ("SVC_SMTP_URL", self.mail.as_ref().and_then(|mail| mail.smtp_url.as_ref())),
            ("SVC_SIGN_IN_SEED", self.sign_in.as_ref().and_then(|sign_in| sign_in.seed.as_ref())),
            ("SVC_VISITOR_SALT", Some(&self.visitor_salt)),
        ];
        let secrets = secrets.into_iter().filter_map(|(name, secret)| Some((name, secret?)));
        let mut secrets = secrets.chain(sign_in::client_secrets(self.sign_in.as_ref()));
        secrets.find(|(_, secret)| secret::is_name(secret.expose())).map(|(name, _)| name)
    }

    /// All secrets, each with the check for its value. A secret given as an ARN has to be fetched before it is checked.
    pub fn secrets_mut(&mut self) -> impl Iterator<Item = (&mut Secret, SecretCheck)> {
        let salt = Some(&mut self.visitor_salt).filter(|salt| !salt.expose().is_empty());
        let (seed, clients) = match &mut self.sign_in {
            Some(sign_in) => (sign_in.seed.as_mut(), sign_in.clients.as_mut_slice()),
            None => (None, [].as_mut_slice()),
        };
        let secrets: [(Option<&mut Secret>, SecretCheck); 6] = [
            (self.auth.secret.as_mut(), check_secret),
            (self.spam.akismet_key.as_mut(), |_| Ok(())),
            (self.edge_secret.as_mut(), |_| Ok(())),
            (self.mail.as_mut().and_then(|mail| mail.smtp_url.as_mut()), check_smtp),
            (seed, sign_in::check_seed),
            (salt, check_salt),
        ];
        let clients = clients.iter_mut().map(|client| (Some(&mut client.secret), (|_| Ok(())) as SecretCheck));
        secrets.into_iter().chain(clients).filter_map(|(secret, check)| Some((secret?, check)))
    }
}

impl Vars<'_> {
    pub(super) fn visitor_salt(&self, needs: Needs) -> Result<Secret, ConfigError> {
        let salt = self.text("SVC_VISITOR_SALT").map(Secret::from);
        match salt.filter(|_| needs != Needs::Nothing) {
            Some(salt) if secret::is_name(salt.expose()) => Ok(salt),
            Some(salt) => check_salt(&salt).map(|()| salt),
            None if needs == Needs::Nothing => Ok(Secret::from(String::new())),
            None => Err(self.wrong("SVC_VISITOR_SALT", "a secret that isn't used for anything else")),
        }
    }

    pub(super) fn auth(&self, needs: Needs) -> Result<Auth, ConfigError> {
        let auth = Auth {
            secret: self.text("SVC_JWT_SECRET").map(Secret::from),
            jwks_url: self.address("SVC_JWKS_URL", "an https address without credentials or a fragment")?,
            issuer: self.text("SVC_JWT_ISSUER"),
            audience: self.text("SVC_JWT_AUDIENCE"),
            moderators: self.moderators("SVC_MODERATORS")?,
        };
        // A secret given as an ARN is checked after it has been fetched.
        if let Some(secret) = auth.secret.as_ref().filter(|secret| !secret::is_name(secret.expose())) {
            check_secret(secret)?;
        }
        match &auth.jwks_url {
            None if auth.secret.is_none() && needs == Needs::Callers => {
                Err(self.wrong("SVC_JWT_SECRET", "a secret, unless SVC_JWKS_URL is set"))
            }
            Some(url) if url.scheme_str() != Some("https") && !url.host().is_some_and(is_loopback) => {
                Err(self.wrong("SVC_JWKS_URL", "an https address without credentials or a fragment"))
            }
            Some(url) if is_discovery_document(url.path()) => {
                Err(self.wrong("SVC_JWKS_URL", "the address of the keys, which is jwks_uri in the discovery document"))
            }
            Some(_) if auth.issuer.is_none() && auth.audience.is_none() => {
                Err(self.wrong("SVC_JWKS_URL", "SVC_JWT_ISSUER or SVC_JWT_AUDIENCE to be set too"))
            }
            _ => Ok(auth),
        }
    }

    pub(super) fn moderators(&self, name: &'static str) -> Result<Vec<Moderator>, ConfigError> {
        // An id followed by more words means that the list has spaces instead of commas. A `sub` may contain spaces.
        let is_list = |text: &str| {
            let mut words = text.split_ascii_whitespace();
            words.next().is_some_and(|word| word.parse::<UserId>().is_ok()) && words.next().is_some()
        };
        let is_account = |text: &str| text.starts_with("email:") || sign_in::provider_account(text).is_some();
        let moderator = |text: String| match text.strip_prefix("email:") {
            Some(address) if mailable(address).is_some() => Ok(Moderator::Email(email::exact(address))),
            Some(_) => Err(self.wrong(name, "ids and subs, and email addresses after email:, separated by commas")),
            None => match sign_in::provider_account(&text) {
                Some(account) => account.map(Moderator::Elsewhere).map_err(|_| {
                    self.wrong(
                        name,
                        "ids and subs, and ids of accounts after github:, google: or oidc:, such as github:583231",
                    )
                }),
                None if text.contains(';') || is_list(&text) => {
                    Err(self.wrong(name, "ids and subs, separated by commas"))
                }
                None if is_account(&text.to_ascii_lowercase()) => {
                    Err(self.wrong(name, "ids and subs, and email:, github:, google: and oidc: in lower case"))
                }
                None => Ok(text.parse().map_or(Moderator::Sub(text), Moderator::Id)),
            },
        };
        self.list(name).into_iter().map(moderator).collect()
    }
}
