//! The access tokens of our own sign-in. Tokens with our `iss` are verified only here, with our own keys. One function
//! signs tokens and writes its public key to the table. A function that gets a token with an unknown key reads the
//! public keys from the table.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::jwt::{BadToken, peek, signature_only};
use crate::domain::ids::UserId;
use crate::domain::sign_in::keys::{PublicKeys, Seed, key_id};
use crate::domain::sign_in::{Account, ISSUER, TOKEN_LIFETIME};
use crate::domain::time::Timestamp;
use crate::domain::user::Claims;
use crate::error::Fault;

/// Minimum time between two reads of the keys, even after a failure.
const PAUSE: Duration = Duration::from_mins(1);
/// The pause while no key is known, because every token is refused then.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);

pub trait KeySource: Send + Sync {
    fn public_keys(&self) -> BoxFuture<'_, Result<PublicKeys, Fault>>;
}

/// The content of an access token: the account, without name or address.
#[derive(Serialize, Deserialize)]
struct Payload {
    iss: String,
    /// The account's id, a dot, and the account's subject.
    sub: String,
    iat: i64,
    exp: i64,
    epoch: u64,
}

/// Whether the token's `iss` is ours, or begins with ours and a colon. Such issuers are used only to hash the ids of
/// provider accounts, so no other tokens may have them. Doesn't check the signature.
pub(super) fn is_own(token: &str) -> bool {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let issuer = payload(token).and_then(|payload| serde_json::from_slice::<Issuer>(&payload).ok());
    issuer.is_some_and(|issuer| {
        issuer.iss.strip_prefix(ISSUER).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}

/// The decoded claims of a token (JSON), without any check.
pub(super) fn payload(token: &str) -> Option<Vec<u8>> {
    token.split('.').nth(1).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok())
}

pub fn sign(seed: &Seed, account: &Account, now: Timestamp) -> Result<String, Fault> {
    super::signature::install();
    let payload = Payload {
        iss: ISSUER.to_owned(),
        sub: format!("{}.{}", account.id, account.subject),
        iat: now.seconds(),
        exp: (now + TOKEN_LIFETIME).seconds(),
        epoch: account.epoch,
    };
    let header = Header { kid: Some(key_id(&seed.public())), ..Header::new(Algorithm::EdDSA) };
    let signed = jsonwebtoken::encode(&header, &payload, &EncodingKey::from_ed_der(seed.signing()));
    signed.map_err(|error| Fault::new("signing an access token", error))
}

/// The public keys that this instance has read.
pub(super) struct OwnKeys {
    source: Arc<dyn KeySource>,
    known: RwLock<PublicKeys>,
    /// When the source was last read. Locked during a read, so that concurrent callers share its result.
    asked_at: Mutex<Option<Timestamp>>,
}

impl OwnKeys {
    pub(super) fn new(source: Arc<dyn KeySource>) -> Self {
        Self { source, known: RwLock::default(), asked_at: Mutex::default() }
    }

    pub(super) async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, BadToken> {
        let header = peek(token)?;
        let id = header.kid.filter(|_| header.alg == Algorithm::EdDSA).ok_or(BadToken::Unsupported)?;
        let key = DecodingKey::from_ed_der(&self.key(&id, now).await?);
        let payload = jsonwebtoken::decode::<Payload>(token, &key, &signature_only(Algorithm::EdDSA));
        let payload = payload.map_err(|_| BadToken::Signature)?.claims;
        if payload.exp <= now.seconds() {
            return Err(BadToken::Expired);
        }
        Ok(Claims {
            account: Some(Box::new(account(&payload).ok_or(BadToken::Subject)?)),
            sub: payload.sub,
            issuer: Some(payload.iss),
            issued_at: Some(payload.iat),
            ..Claims::default()
        })
    }

    async fn key(&self, id: &str, now: Timestamp) -> Result<Vec<u8>, BadToken> {
        if let Some(key) = self.known().find(id, now) {
            return Ok(key);
        }
        let mut asked_at = self.asked_at.lock().await;
        let pause = if self.known().is_empty() { PAUSE_WITHOUT_KEYS } else { PAUSE };
        if asked_at.is_none_or(|then| !then.is_within(pause, now)) {
            *asked_at = Some(now);
            match self.source.public_keys().await {
                Ok(keys) => *self.known.write().unwrap_or_else(PoisonError::into_inner) = keys,
                Err(fault) => {
                    tracing::warn!(error = fault.chain(), "the keys of our own tokens could not be read");
                    return Err(BadToken::NoKeys);
                }
            }
        }
        self.known().find(id, now).ok_or(BadToken::UnknownKey)
    }

    fn known(&self) -> PublicKeys {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn account(payload: &Payload) -> Option<Account> {
    let (id, subject) = payload.sub.split_once('.')?;
    let id: UserId = id.parse().ok()?;
    Some(Account { id, subject: subject.to_owned(), epoch: payload.epoch })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::auth::token::{KeySettings, Keys};
    use crate::aws::https;
    use crate::domain::secret::Secret;

    const START: i64 = 1_800_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp((START + seconds) * 1_000)
    }

    fn seed(text: &str) -> Seed {
        Seed::new(&Secret::from(text.to_owned()))
    }

    fn ada() -> Account {
        Account { id: UserId(9), subject: "ada".to_owned(), epoch: 3 }
    }

    /// A source of keys that counts how often it is read.
    #[derive(Default)]
    struct Row {
        keys: RwLock<PublicKeys>,
        readings: AtomicUsize,
    }

    impl Row {
        fn publish(&self, seed: &Seed, now: Timestamp) {
            self.keys.write().unwrap().publish(&seed.public(), now);
        }
    }

    impl KeySource for Row {
        fn public_keys(&self) -> BoxFuture<'_, Result<PublicKeys, Fault>> {
            self.readings.fetch_add(1, Ordering::Relaxed);
            let keys = self.keys.read().unwrap().clone();
            Box::pin(async { Ok(keys) })
        }
    }

    fn keys(row: &Arc<Row>) -> Keys {
        let settings = KeySettings {
            secret: Some(Secret::from("the secret of the host, which is long".to_owned())),
            issuer: Some("https://host.example".to_owned()),
            audience: Some("comments".to_owned()),
            ..KeySettings::default()
        };
        Keys::new(settings, https::Client::new(Duration::from_secs(1)))
            .accepting_own(Arc::clone(row) as Arc<dyn KeySource>)
    }

    #[tokio::test]
    async fn our_own_token_identifies_a_user_whatever_the_host_expects_of_its_tokens() {
        let row = Arc::new(Row::default());
        row.publish(&seed("a"), at(0));
        let token = sign(&seed("a"), &ada(), at(0)).unwrap();
        let claims = keys(&row).verify(&token, at(0)).await.unwrap();
        assert_eq!((claims.account.as_deref(), claims.issuer.as_deref()), (Some(&ada()), Some(ISSUER)));
        assert_eq!((claims.name, claims.picture, claims.email, claims.moderator), (None, None, None, false));
    }

    #[tokio::test]
    async fn a_token_with_our_issuer_and_anothers_signature_is_bad() {
        let row = Arc::new(Row::default());
        row.publish(&seed("a"), at(0));
        let host = KeySettings {
            secret: Some(Secret::from("the secret of the host, which is long".to_owned())),
            issuer: Some(ISSUER.to_owned()),
            ..KeySettings::default()
        };
        let host = Keys::new(host, https::Client::new(Duration::from_secs(1)));
        let claims = Claims { sub: "9.ada".to_owned(), ..Claims::default() };
        let forged = host.sign(&claims, at(60)).unwrap();
        assert_eq!(keys(&row).verify(&forged, at(0)).await, Err(BadToken::Unsupported));
        assert_eq!(host.verify(&forged, at(0)).await, Err(BadToken::UnknownKey), "without a sign-in of ours too");
        let stolen = sign(&seed("b"), &ada(), at(0)).unwrap();
        assert_eq!(keys(&row).verify(&stolen, at(0)).await, Err(BadToken::UnknownKey));
        let (head, tail) = stolen.split_once('.').unwrap();
        let header = json!({ "alg": "EdDSA", "kid": key_id(&seed("a").public()) }).to_string();
        let renamed = format!("{}.{tail}", URL_SAFE_NO_PAD.encode(header));
        assert_ne!(head, renamed.split_once('.').unwrap().0);
        assert_eq!(keys(&row).verify(&renamed, at(0)).await, Err(BadToken::Signature));
    }

    #[tokio::test]
    async fn an_unknown_key_is_looked_for_once_a_minute() {
        let row = Arc::new(Row::default());
        row.publish(&seed("a"), at(0));
        let keys = keys(&row);
        let (old, new) = (sign(&seed("a"), &ada(), at(0)).unwrap(), sign(&seed("b"), &ada(), at(0)).unwrap());
        let readings = || row.readings.load(Ordering::Relaxed);
        for _ in 0..3 {
            assert!(keys.verify(&old, at(0)).await.is_ok() && keys.verify(&new, at(59)).await.is_err());
        }
        assert_eq!(readings(), 1);
        row.publish(&seed("b"), at(59));
        assert!(keys.verify(&new, at(60)).await.is_ok() && keys.verify(&old, at(60)).await.is_ok());
        assert_eq!(readings(), 2);
    }

    #[tokio::test]
    async fn a_new_key_is_found_although_the_clock_was_ahead_at_the_last_reading() {
        let row = Arc::new(Row::default());
        let keys = keys(&row);
        let token = sign(&seed("a"), &ada(), at(0)).unwrap();
        assert!(keys.verify(&token, at(86_400)).await.is_err());
        row.publish(&seed("a"), at(0));
        assert!(keys.verify(&token, at(0)).await.is_ok());
    }
}
