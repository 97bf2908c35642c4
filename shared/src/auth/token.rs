//! Bearer tokens: JSON Web Tokens signed with the shared secret (HS256) or with a key of the identity provider (RS256, ES256,
//! `EdDSA`); `own` handles tokens from our own sign-in. `policy` decides what the bearer of a token may do.

use std::fmt;
use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::jwks::Jwks;
use super::jwt::{self, peek, signature_only};
use super::own::{self, KeySource, OwnKeys};
use super::signature;
use crate::aws::https;
use crate::domain::ids::is_subject;
use crate::domain::mend::mended;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::user::Claims;

pub use super::jwt::BadToken;

/// Maximum seconds that the issuer's clock may be ahead of ours. Expired tokens get no leeway.
const NOT_BEFORE_LEEWAY: f64 = 30.0;
const MODERATOR: &str = "moderator";

/// Keys to verify tokens with, and the claims that tokens must have.
#[derive(Clone, Debug, Default)]
pub struct KeySettings {
    pub secret: Option<Secret>,
    pub jwks_url: Option<http::Uri>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

pub struct Keys {
    secret: Option<Secret>,
    jwks: Option<Arc<Jwks>>,
    issuer: Option<String>,
    audience: Option<String>,
    own: Option<OwnKeys>,
}

impl Keys {
    /// An empty secret is ignored, because anyone could sign with it.
    #[must_use]
    pub fn new(settings: KeySettings, client: https::Client) -> Self {
        signature::install();
        Self {
            secret: settings.secret.filter(|secret| !secret.expose().is_empty()),
            jwks: settings.jwks_url.map(|url| Jwks::new(url, client)),
            issuer: settings.issuer,
            audience: settings.audience,
            own: None,
        }
    }

    #[must_use]
    pub fn accepting_own(self, source: Arc<dyn KeySource>) -> Self {
        Self { own: Some(OwnKeys::new(source)), ..self }
    }

    /// Fetches the provider's keys, if there is a provider, so that the first request does not wait for them.
    pub async fn warm(&self, now: Timestamp) {
        if let Some(jwks) = &self.jwks {
            jwks.refresh(now.start_of_second()).await;
        }
    }

    /// The claims of a valid token. Token times are whole seconds, so `now` is rounded down.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, BadToken> {
        let now = now.start_of_second();
        if token.len() > jwt::LENGTH_LIMIT {
            return Err(BadToken::TooLong);
        }
        if own::is_own(token) {
            let own = self.own.as_ref().ok_or(BadToken::UnknownKey)?;
            return own.verify(token, now).await;
        }
        let header = peek(token)?;
        let key = match (header.alg, &self.secret, &self.jwks) {
            (Algorithm::HS256, Some(secret), _) => DecodingKey::from_secret(secret.expose().as_bytes()),
            (Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA, _, Some(jwks)) => {
                jwks.key(header.alg, header.kid.as_deref(), now).await?
            }
            _ => return Err(BadToken::Unsupported),
        };
        let validation = signature_only(header.alg);
        let payload = match jsonwebtoken::decode::<Payload>(token, &key, &validation) {
            Ok(read) => read.claims,
            Err(error) => match error.kind() {
                jsonwebtoken::errors::ErrorKind::InvalidSignature => return Err(BadToken::Signature),
                _ => mended_payload(token, &key, &validation).ok_or_else(|| wrong_claim(token, &key, &validation))?,
            },
        };
        self.check(payload, now)
    }

    fn check(&self, payload: Payload, now: Timestamp) -> Result<Claims, BadToken> {
        #[expect(clippy::cast_precision_loss, reason = "exact for 285 million years")]
        let now = now.seconds() as f64;
        if payload.exp <= now {
            return Err(BadToken::Expired);
        }
        if payload.nbf.is_some_and(|nbf| nbf > now + NOT_BEFORE_LEEWAY) {
            return Err(BadToken::NotYetValid);
        }
        if self.issuer.is_some() && self.issuer != payload.iss {
            return Err(BadToken::Issuer);
        }
        if let Some(audience) = &self.audience
            && !payload.aud.is_some_and(|list| list.holds(audience))
        {
            return Err(BadToken::Audience);
        }
        if !is_subject(&payload.sub) {
            return Err(BadToken::Subject);
        }
        Ok(Claims {
            sub: payload.sub,
            issuer: payload.iss,
            name: payload.name,
            picture: payload.picture,
            email: payload.email,
            email_unverified: payload.email_verified.is_some_and(|verified| verified != true),
            moderator: payload.roles.is_some_and(|roles| roles.iter().any(|role| role == MODERATOR)),
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            issued_at: payload.iat.map(|iat| iat as i64),
            account: None,
        })
    }

    /// Signs a token, for local use and tests. `None` if no secret is set.
    #[must_use]
    pub fn sign(&self, claims: &Claims, expires_at: Timestamp) -> Option<String> {
        let key = EncodingKey::from_secret(self.secret.as_ref()?.expose().as_bytes());
        let claims = Signed {
            sub: &claims.sub,
            name: claims.name.as_deref(),
            picture: claims.picture.as_deref(),
            email: claims.email.as_deref(),
            roles: claims.moderator.then_some([MODERATOR]),
            iat: claims.issued_at,
            exp: expires_at.seconds(),
            iss: self.issuer.as_deref(),
            aud: self.audience.as_deref(),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).ok()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("issuer", &self.issuer).field("audience", &self.audience).finish_non_exhaustive()
    }
}

/// The claims of a signed token that contains half of a surrogate pair, as in a truncated name. `None` if `sub` or `iss`
/// contains it, because they identify a person.
fn mended_payload(token: &str, key: &DecodingKey, validation: &Validation) -> Option<Payload> {
    // The first attempt may have failed before it verified the signature.
    jsonwebtoken::decode::<IgnoredAny>(token, key, validation).ok()?;
    let payload: Payload = serde_json::from_slice(&mended(&own::payload(token)?)?).ok()?;
    let is_whole = |text: &str| !text.contains(char::REPLACEMENT_CHARACTER);
    (is_whole(&payload.sub) && payload.iss.as_deref().is_none_or(is_whole)).then_some(payload)
}

/// The error that names the wrong required claim, for the developer who signs tokens.
fn wrong_claim(token: &str, key: &DecodingKey, validation: &Validation) -> BadToken {
    match jsonwebtoken::decode::<serde_json::Value>(token, key, validation).map(|token| token.claims) {
        Ok(claims) if claims.is_object() && !claims["sub"].is_string() => BadToken::Subject,
        Ok(claims) if claims.is_object() && !claims["exp"].is_number() => BadToken::NoExpiry,
        _ => BadToken::Malformed,
    }
}

/// `sub`, `exp`, `nbf`, `iss` and `aud` decide whether a token is valid, so a type other than RFC 7519's is an error.
/// Other claims of a wrong type are ignored, but such an `email_verified` counts as false.
#[derive(Deserialize)]
struct Payload {
    sub: String,
    exp: f64,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    iss: Option<String>,
    #[serde(default, deserialize_with = "present")]
    aud: Option<Audience>,
    #[serde(default, deserialize_with = "lenient")]
    iat: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    picture: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    email: Option<String>,
    #[serde(default, deserialize_with = "present")]
    email_verified: Option<serde_json::Value>,
    #[serde(default, deserialize_with = "lenient")]
    roles: Option<Vec<serde_json::Value>>,
}

#[derive(Serialize)]
struct Signed<'a> {
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roles: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn holds(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Many(many) => many.iter().any(|one| one == audience),
        }
    }
}

/// Doesn't read `null` as absent, as `Option` would.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

fn lenient<'de, T: serde::de::DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests;
