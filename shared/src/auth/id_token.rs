//! ID tokens (OpenID Connect Core, section 3.1.3.7). Like the host's tokens, they are verified with `jsonwebtoken` and
//! ring, because an OpenID Connect library would add a second crypto library.

use std::fmt;
use std::sync::Arc;

use jsonwebtoken::Algorithm;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::jwks::Jwks;
pub use super::jwt::BadToken;
use super::jwt::{peek, signature_only};
use super::signature;
use crate::aws::https;
use crate::domain::ids::is_subject;
use crate::domain::time::Timestamp;

/// Maximum difference between the issuer's clock and ours, in seconds.
const LEEWAY: f64 = 60.0;

/// An issuer's cached keys. A token with an unknown key id triggers another fetch, at most once a minute.
#[derive(Clone)]
pub struct IssuerKeys(Arc<Jwks>);

/// The claims that a token must have.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
}

impl IssuerKeys {
    #[must_use]
    pub fn new(url: http::Uri, client: https::Client) -> Self {
        signature::install();
        Self(Jwks::new(url, client))
    }

    #[must_use]
    pub fn url(&self) -> &http::Uri {
        self.0.url()
    }

    /// The claims of a token that the provider issued to us for this flow. `sub` is a string of 1 to 255 characters.
    pub async fn verify(
        &self,
        token: &str,
        expected: Expected<'_>,
        now: Timestamp,
    ) -> Result<Map<String, Value>, BadToken> {
        let header = peek(token)?;
        if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256 | Algorithm::EdDSA) {
            return Err(BadToken::Unsupported);
        }
        let now = now.start_of_second();
        let key = self.0.key(header.alg, header.kid.as_deref(), now).await?;
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &signature_only(header.alg));
        let claims = claims.map_err(|error| match error.kind() {
            jsonwebtoken::errors::ErrorKind::InvalidSignature => BadToken::Signature,
            _ => BadToken::Malformed,
        })?;
        check(&claims.claims.0, expected, now)?;
        Ok(claims.claims.0)
    }
}

fn check(claims: &Map<String, Value>, expected: Expected<'_>, now: Timestamp) -> Result<(), BadToken> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(BadToken::Issuer);
    }
    let audiences = match claims.get("aud") {
        Some(Value::String(one)) => vec![Some(one.as_str())],
        Some(Value::Array(many)) => many.iter().map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_party = match claims.get("azp") {
        Some(party) => party.as_str() == Some(expected.client_id),
        None => audiences.len() == 1,
    };
    if !is_party || !audiences.contains(&Some(expected.client_id)) {
        return Err(BadToken::Audience);
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(BadToken::Nonce);
    }
    #[expect(clippy::cast_precision_loss, reason = "exact for 285 million years")]
    let now = now.seconds() as f64;
    if claims.get("exp").and_then(Value::as_f64).ok_or(BadToken::NoExpiry)? + LEEWAY < now {
        return Err(BadToken::Expired);
    }
    let is_ahead = |nbf: &Value| nbf.as_f64().is_none_or(|nbf| nbf > now + LEEWAY);
    if claims.get("nbf").is_some_and(is_ahead) {
        return Err(BadToken::NotYetValid);
    }
    if text("sub").is_some_and(is_subject) { Ok(()) } else { Err(BadToken::Subject) }
}

/// A JSON object. Duplicate names are refused, because parsers disagree about which value counts.
struct Claims(Map<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Claims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("claims")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut claims = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if claims.insert(name, value).is_some() {
                        return Err(A::Error::custom("a claim appears twice"));
                    }
                }
                Ok(Claims(claims))
            }
        }
        from.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::aws::loopback::Loopback;

    const START: i64 = 1_800_000_000;
    const EXPECTED: Expected<'_> = Expected { issuer: "https://id.test", client_id: "us", nonce: "n" };

    fn at(seconds: i64) -> Timestamp {
        Timestamp((START + seconds) * 1_000)
    }

    fn pair(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
    }

    fn signed(seed: u8, header: &Value, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(pair(seed).sign(text.as_bytes()));
        format!("{text}.{signature}")
    }

    fn key_set(keys: &[(u8, &str)]) -> String {
        let key = |(seed, id): &(u8, &str)| {
            let x = URL_SAFE_NO_PAD.encode(pair(*seed).public_key());
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
        };
        json!({ "keys": keys.iter().map(key).collect::<Vec<_>>() }).to_string()
    }

    async fn issuer() -> (Loopback, IssuerKeys) {
        let server = Loopback::start(key_set(&[(1, "a")])).await;
        let keys = IssuerKeys::new(server.url.parse().unwrap(), https::Client::new(Duration::from_secs(5)));
        (server, keys)
    }

    fn claims() -> Value {
        json!({ "iss": "https://id.test", "aud": "us", "nonce": "n", "sub": "ada", "exp": START, "name": "Ada" })
    }

    fn header() -> Value {
        json!({ "alg": "EdDSA", "kid": "a" })
    }

    /// The claims with these changes; null removes a claim.
    fn with(changes: &Value) -> String {
        let mut all = claims();
        for (name, value) in changes.as_object().unwrap() {
            if value.is_null() {
                all.as_object_mut().unwrap().remove(name);
            } else {
                all[name] = value.clone();
            }
        }
        all.to_string()
    }

    #[tokio::test]
    async fn a_token_issued_for_this_client_is_accepted() {
        let (_server, keys) = issuer().await;
        let verify = async |claims: String| keys.verify(&signed(1, &header(), &claims), EXPECTED, at(60)).await;
        assert_eq!(verify(claims().to_string()).await.unwrap()["name"], "Ada");
        for good in [
            json!({ "azp": "us" }),
            json!({ "aud": ["us"] }),
            json!({ "aud": ["us", "them"], "azp": "us" }),
            json!({ "nbf": START + 120 }),
            json!({ "sub": "é".repeat(255) }),
        ] {
            assert!(verify(with(&good)).await.is_ok(), "{good}");
        }
    }

    #[tokio::test]
    async fn a_token_for_another_purpose_is_refused() {
        let (_server, keys) = issuer().await;
        let verify = async |claims: String| keys.verify(&signed(1, &header(), &claims), EXPECTED, at(60)).await;
        for (changes, why) in [
            (json!({ "iss": "https://id.test/" }), BadToken::Issuer),
            (json!({ "iss": null }), BadToken::Issuer),
            (json!({ "aud": "them" }), BadToken::Audience),
            (json!({ "aud": null }), BadToken::Audience),
            (json!({ "aud": ["us", "them"] }), BadToken::Audience),
            (json!({ "aud": ["us", 7] }), BadToken::Audience),
            (json!({ "azp": "them" }), BadToken::Audience),
            (json!({ "aud": ["us", "them"], "azp": "them" }), BadToken::Audience),
            (json!({ "azp": 7 }), BadToken::Audience),
            (json!({ "nonce": "other" }), BadToken::Nonce),
            (json!({ "nonce": null }), BadToken::Nonce),
            (json!({ "exp": START - 1 }), BadToken::Expired),
            (json!({ "exp": null }), BadToken::NoExpiry),
            (json!({ "exp": "1900000000" }), BadToken::NoExpiry),
            (json!({ "nbf": START + 121 }), BadToken::NotYetValid),
            (json!({ "nbf": "now" }), BadToken::NotYetValid),
            (json!({ "sub": null }), BadToken::Subject),
            (json!({ "sub": 7 }), BadToken::Subject),
            (json!({ "sub": "" }), BadToken::Subject),
            (json!({ "sub": "x".repeat(256) }), BadToken::Subject),
        ] {
            assert_eq!(verify(with(&changes)).await, Err(why), "{changes}");
        }
        let doubled = claims().to_string().replacen('{', r#"{"sub":"eve","#, 1);
        assert_eq!(verify(doubled).await, Err(BadToken::Malformed));
        assert_eq!(verify("[]".to_owned()).await, Err(BadToken::Malformed));
    }

    #[tokio::test]
    async fn only_the_issuers_signature_counts() {
        let (_server, keys) = issuer().await;
        let verify = async |token: String| keys.verify(&token, EXPECTED, at(0)).await;
        let claims = claims().to_string();
        assert_eq!(verify(signed(2, &header(), &claims)).await, Err(BadToken::Signature));
        for (odd, why) in [
            (json!({ "alg": "HS256", "kid": "a" }), BadToken::Unsupported),
            (json!({ "alg": "RS256", "kid": "a" }), BadToken::UnknownKey),
            (json!({ "alg": "none" }), BadToken::Malformed),
            (json!({ "alg": "EdDSA", "kid": "a", "crit": ["x"], "x": 1 }), BadToken::Unsupported),
            (json!({ "alg": "EdDSA", "kid": "b" }), BadToken::UnknownKey),
        ] {
            assert_eq!(verify(signed(1, &odd, &claims)).await, Err(why), "{odd}");
        }
    }
}
