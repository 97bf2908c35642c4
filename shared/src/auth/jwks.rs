//! The identity provider's public keys (RFC 7517), fetched when needed and cached.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::aws::https;
use crate::domain::time::Timestamp;

/// Minimum time between two requests to the provider, even after a failure.
const PAUSE: Duration = Duration::from_mins(1);
/// The pause while no keys are cached, because every token is refused then.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);
/// Cached keys older than this are fetched again, so that withdrawn keys expire.
const MAX_AGE: Duration = Duration::from_hours(1);

pub(super) struct Jwks {
    url: http::Uri,
    client: https::Client,
    known: RwLock<CachedKeys>,
    /// When the provider was last queried. Locked during a request, so that concurrent callers share its response.
    asked_at: Mutex<Option<Timestamp>>,
}

#[derive(Clone, Default)]
struct CachedKeys {
    keys: Arc<[PublicKey]>,
    fetched_at: Timestamp,
}

struct PublicKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The provider's keys could not be fetched.
    Unavailable,
    Unknown,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Https(#[from] https::Error),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("the provider returned {0}")]
    Status(http::StatusCode),
    #[error("not a key set: {0}")]
    Json(#[from] serde_json::Error),
    #[error("no key for RS256, ES256 or EdDSA")]
    NoKeys,
}

impl Jwks {
    pub(super) fn url(&self) -> &http::Uri {
        &self.url
    }

    pub(super) fn new(url: http::Uri, client: https::Client) -> Arc<Self> {
        Arc::new(Self { url, client, known: RwLock::default(), asked_at: Mutex::default() })
    }

    /// The key with this id. Without an id, the algorithm must have exactly one key.
    pub(super) async fn key(
        self: &Arc<Self>,
        algorithm: Algorithm,
        id: Option<&str>,
        now: Timestamp,
    ) -> Result<DecodingKey, NoKey> {
        let known = self.known();
        if known.fetched_at.is_within(MAX_AGE, now)
            && let Some(key) = known.find(algorithm, id)
        {
            return Ok(key);
        }
        self.refresh(now).await;
        let known = self.known();
        if known.keys.is_empty() {
            return Err(NoKey::Unavailable);
        }
        known.find(algorithm, id).ok_or(NoKey::Unknown)
    }

    /// Fetches the keys, unless the last attempt is recent. A failure keeps the old keys.
    pub(super) async fn refresh(self: &Arc<Self>, now: Timestamp) {
        let jwks = Arc::clone(self);
        let task = tokio::spawn(async move {
            let mut asked_at = jwks.asked_at.lock().await;
            let pause = if jwks.known().keys.is_empty() { PAUSE_WITHOUT_KEYS } else { PAUSE };
            if asked_at.is_some_and(|then| then.is_within(pause, now)) {
                return;
            }
            *asked_at = Some(now);
            match jwks.fetch().await {
                Ok(keys) => jwks.store(keys, now),
                Err(error) => tracing::warn!(?error, "the token keys could not be fetched"),
            }
        });
        // A separate task continues even if the caller's request is canceled.
        if let Err(error) = task.await {
            tracing::error!(%error, "the task that fetches the token keys failed");
        }
    }

    fn store(&self, keys: Arc<[PublicKey]>, now: Timestamp) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = CachedKeys { keys, fetched_at: now };
    }

    fn known(&self) -> CachedKeys {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self) -> Result<Arc<[PublicKey]>, FetchError> {
        let request =
            http::Request::get(&self.url).header(http::header::ACCEPT, "application/json").body(String::new())?;
        let answer = self.client.send(request).await?;
        if answer.status() != http::StatusCode::OK {
            return Err(FetchError::Status(answer.status()));
        }
        let keys = parse(answer.body())?;
        if keys.is_empty() {
            return Err(FetchError::NoKeys);
        }
        Ok(keys)
    }
}

impl CachedKeys {
    fn find(&self, algorithm: Algorithm, id: Option<&str>) -> Option<DecodingKey> {
        let mut fitting =
            self.keys.iter().filter(|key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id));
        let first = fitting.next()?;
        (id.is_some() || fitting.next().is_none()).then(|| first.key.clone())
    }
}

/// Parses a key set. Unreadable keys and keys of other kinds are ignored.
fn parse(json: &[u8]) -> Result<Arc<[PublicKey]>, serde_json::Error> {
    #[derive(Deserialize)]
    struct KeySet {
        keys: Vec<serde_json::Value>,
    }
    let set: KeySet = serde_json::from_slice(json)?;
    Ok(set
        .keys
        .into_iter()
        .filter_map(|value| serde_json::from_value(value).ok())
        .filter_map(|jwk: Jwk| PublicKey::new(&jwk))
        .collect())
}

impl PublicKey {
    fn new(jwk: &Jwk) -> Option<Self> {
        let (algorithm, name) = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, KeyAlgorithm::ES256)
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
            }
            _ => return None,
        };
        let common = &jwk.common;
        let signs = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let fits = common.key_algorithm.is_none_or(|named| named == name);
        (signs && fits).then_some(())?;
        Some(Self { id: common.key_id.clone(), algorithm, key: DecodingKey::from_jwk(jwk).ok()? })
    }
}
