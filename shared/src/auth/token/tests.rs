use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512,
    RsaKeyPair,
};
use serde_json::{Value, json};

use super::*;
use crate::aws::loopback::Loopback;

const NOW: i64 = 1_767_323_045;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}
const SECRET: &str = "a secret of this test";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key of the identity provider.
enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Pair {
    fn rsa() -> Self {
        let pair = RsaKeyPair::from_pkcs8(include_bytes!("test_rsa_key.der")).unwrap();
        Self::Rsa(Box::new(pair))
    }

    fn ec() -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, key.as_ref(), &random).unwrap())
    }

    fn ed() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    fn public(&self) -> Vec<u8> {
        match self {
            Self::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Self::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Self::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let PublicKeyComponents::<Vec<u8>> { n, e } = pair.public_key().into();
                json!({ "kty": "RSA", "kid": id, "n": base64(n), "e": base64(e) })
            }
            Self::Ec(_) => {
                let point = self.public();
                let (x, y) = (base64(&point[1..33]), base64(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": x, "y": y })
            }
            Self::Ed(_) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64(self.public()) })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, id: &str) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": id });
        token(&header, &valid(), |message| self.sign(message))
    }
}

fn token(header: &Value, claims: &impl ToString, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
    let signature = base64(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn hmac(key: &[u8]) -> impl FnOnce(&[u8]) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    move |message| ring::hmac::sign(&key, message).as_ref().to_vec()
}

fn valid() -> Value {
    json!({ "sub": "7", "exp": NOW + 86_400 })
}

/// The valid claims with changes: `null` removes a claim.
fn with(changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("changes are by name") };
    let mut claims = valid();
    for (name, value) in changes {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(&name)),
            value => claims[name] = value,
        }
    }
    claims
}

fn client() -> https::Client {
    https::Client::new(Duration::from_secs(5))
}

fn settings() -> KeySettings {
    KeySettings { secret: Some(SECRET.to_owned().into()), ..KeySettings::default() }
}

async fn verify_with(settings: KeySettings, token: &str) -> Result<Claims, BadToken> {
    Keys::new(settings, client()).verify(token, at(NOW)).await
}

async fn verify(claims: &impl ToString) -> Result<Claims, BadToken> {
    let token = token(&json!({ "alg": "HS256" }), claims, hmac(SECRET.as_bytes()));
    verify_with(settings(), &token).await
}

fn provider(server: &Loopback) -> Keys {
    let settings = KeySettings { jwks_url: Some(server.url.parse().unwrap()), ..settings() };
    Keys::new(settings, client())
}

fn key_set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

#[tokio::test]
async fn a_token_that_we_signed_verifies_with_the_same_claims() {
    let settings =
        KeySettings { issuer: Some("https://issuer.example".into()), audience: Some("comments".into()), ..settings() };
    let keys = Keys::new(settings, client());
    let claims = Claims {
        sub: "7".into(),
        issuer: Some("https://issuer.example".into()),
        name: Some("Ada".into()),
        picture: Some("https://example.com/ada.png".into()),
        email: Some("ada@example.com".into()),
        email_unverified: false,
        moderator: true,
        issued_at: Some(NOW),
        account: None,
    };
    let token = keys.sign(&claims, at(NOW + 1)).unwrap();
    assert_eq!(keys.verify(&token, at(NOW)).await, Ok(claims));
}

#[tokio::test]
async fn a_token_with_a_subject_and_an_expiry_suffices() {
    let claims = verify(&valid()).await.unwrap();
    assert_eq!((claims.sub.as_str(), claims.name, claims.moderator), ("7", None, false));
}

#[tokio::test]
async fn a_changed_token_or_another_secret_is_refused() {
    let header = json!({ "alg": "HS256" });
    let good = token(&header, &valid(), hmac(SECRET.as_bytes()));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (head, _) = message.split_once('.').unwrap();
    let forged = format!("{head}.{}.{signature}", base64(with(json!({ "sub": "8" })).to_string()));
    assert_eq!(verify_with(settings(), &forged).await, Err(BadToken::Signature));
    let unsigned = format!("{message}.");
    assert_eq!(verify_with(settings(), &unsigned).await, Err(BadToken::Signature));
    let foreign = token(&header, &valid(), hmac(b"another secret"));
    assert_eq!(verify_with(settings(), &foreign).await, Err(BadToken::Signature));
}

#[tokio::test]
async fn a_malformed_token_is_refused() {
    let two_parts = format!("{}.{}", base64(r#"{"alg":"HS256"}"#), base64(valid().to_string()));
    let four_parts = format!("{two_parts}.AAAA.AAAA");
    let array = token(&json!({ "alg": "HS256" }), &json!(["7"]), hmac(SECRET.as_bytes()));
    for text in ["", ".", "..", "a.b.c", "\u{1F600}.a.b", &two_parts, &four_parts, &array] {
        assert_eq!(verify_with(settings(), text).await, Err(BadToken::Malformed), "{text}");
    }
}

#[tokio::test]
async fn a_name_may_have_been_cut_in_the_middle_of_a_character_but_no_subject() {
    let signed = |claims: &str, key: &[u8]| token(&json!({ "alg": "HS256" }), &claims, hmac(key));
    let named = format!(r#"{{"sub":"7","exp":{},"name":"Ada \ud83d"}}"#, NOW + 60);
    let claims = verify_with(settings(), &signed(&named, SECRET.as_bytes())).await.unwrap();
    assert_eq!((claims.sub.as_str(), claims.name.as_deref()), ("7", Some("Ada \u{fffd}")));
    let foreign = signed(&named, b"another secret");
    assert_eq!(verify_with(settings(), &foreign).await, Err(BadToken::Signature));
    for text in [format!("{foreign}.AAAA"), format!("{foreign}!"), foreign.rsplit_once('.').unwrap().0.to_owned()] {
        assert_eq!(verify_with(settings(), &text).await, Err(BadToken::Malformed), "{text}");
    }
    for cut in [r#""sub":"7\ud83d""#, r#""sub":"7","iss":"\udc00""#] {
        let token = signed(&format!(r#"{{{cut},"exp":{}}}"#, NOW + 60), SECRET.as_bytes());
        assert_eq!(verify_with(settings(), &token).await, Err(BadToken::Malformed), "{cut}");
    }
}

#[tokio::test]
async fn a_token_of_more_than_eight_kilobytes_is_refused() {
    let fill = |length| with(json!({ "fill": "x".repeat(length) }));
    assert!(verify(&fill(5_900)).await.is_ok());
    assert_eq!(verify(&fill(6_200)).await, Err(BadToken::TooLong));
}

#[tokio::test]
async fn a_token_expires_on_the_second() {
    assert!(verify(&with(json!({ "exp": NOW + 1 }))).await.is_ok());
    for exp in [NOW, NOW - 1, NOW - 10, 0, -1] {
        let outcome = verify(&with(json!({ "exp": exp }))).await;
        assert_eq!(outcome, Err(BadToken::Expired), "{exp}");
    }
    assert!(verify(&with(json!({ "exp": 1e300 }))).await.is_ok());
}

#[tokio::test]
async fn a_token_is_refused_more_than_half_a_minute_before_it_becomes_valid() {
    assert!(verify(&with(json!({ "nbf": NOW + 30 }))).await.is_ok());
    let outcome = verify(&with(json!({ "nbf": NOW + 31 }))).await;
    assert_eq!(outcome, Err(BadToken::NotYetValid));
}

#[tokio::test]
async fn a_claim_that_affects_access_must_be_present_and_have_the_right_type() {
    for (changes, reason) in [
        (json!({ "sub": null }), BadToken::Subject),
        (json!({ "sub": 7 }), BadToken::Subject),
        (json!({ "sub": ["7"] }), BadToken::Malformed),
        (json!({ "exp": null }), BadToken::NoExpiry),
        (json!({ "exp": (NOW + 60).to_string() }), BadToken::NoExpiry),
        (json!({ "exp": true }), BadToken::NoExpiry),
        (json!({ "nbf": "0" }), BadToken::Malformed),
        (json!({ "nbf": [] }), BadToken::Malformed),
        (json!({ "iss": 7 }), BadToken::Malformed),
        (json!({ "aud": 7 }), BadToken::Malformed),
        (json!({ "aud": [7] }), BadToken::Malformed),
    ] {
        let outcome = verify(&with(changes.clone())).await;
        assert_eq!(outcome, Err(reason), "{changes}");
    }
    let mut null = valid();
    null["nbf"] = Value::Null;
    assert_eq!(verify(&null).await, Err(BadToken::Malformed));
}

#[tokio::test]
async fn a_claim_given_twice_is_refused() {
    let claims = format!(r#"{{"sub":"7","sub":"8","exp":{}}}"#, NOW + 60);
    assert_eq!(verify(&claims).await, Err(BadToken::Malformed));
}

#[tokio::test]
async fn a_subject_has_one_to_255_characters() {
    assert!(verify(&with(json!({ "sub": "é".repeat(255) }))).await.is_ok());
    for sub in [String::new(), "x".repeat(256)] {
        let outcome = verify(&with(json!({ "sub": sub }))).await;
        assert_eq!(outcome, Err(BadToken::Subject));
    }
}

#[tokio::test]
async fn a_claim_that_only_describes_is_ignored_when_it_is_of_another_type() {
    let odd = json!({ "name": 7, "picture": [], "email": {}, "roles": "moderator", "iat": "now" });
    let claims = verify(&with(odd)).await.unwrap();
    let plain = Claims { sub: "7".into(), ..Claims::default() };
    assert_eq!(claims, plain);
}

#[tokio::test]
async fn the_moderator_role_is_recognized_among_other_roles() {
    let roles = |roles: Value| with(json!({ "roles": roles }));
    let is_moderator = async |claims: Value| verify(&claims).await.unwrap().moderator;
    assert!(is_moderator(roles(json!(["editor", 7, "moderator"]))).await);
    assert!(!is_moderator(roles(json!(["Moderator", "moderators"]))).await);
    assert!(!is_moderator(roles(json!([]))).await);
}

#[tokio::test]
async fn without_a_key_for_its_algorithm_a_token_is_refused() {
    let none = KeySettings::default();
    let empty = KeySettings { secret: Some(String::new().into()), ..KeySettings::default() };
    let token = token(&json!({ "alg": "HS256" }), &valid(), hmac(b""));
    for settings in [none, empty] {
        assert!(Keys::new(settings.clone(), client()).sign(&Claims::default(), at(NOW)).is_none());
        assert_eq!(verify_with(settings, &token).await, Err(BadToken::Unsupported));
    }
    let outcome = verify_with(settings(), &Pair::ec().token("a")).await;
    assert_eq!(outcome, Err(BadToken::Unsupported));
}

#[tokio::test]
async fn an_unsigned_token_is_refused() {
    for alg in ["none", "None", "NONE", ""] {
        let token = token(&json!({ "alg": alg }), &valid(), |_| Vec::new());
        assert_eq!(verify_with(settings(), &token).await, Err(BadToken::Malformed), "{alg}");
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_accepted_is_refused_though_the_key_would_fit() {
    let pair = Pair::rsa();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = provider(&server);
    for alg in ["HS384", "HS512", "RS384", "RS512", "PS256", "ES384"] {
        let Pair::Rsa(rsa) = &pair else { unreachable!() };
        let token = token(&json!({ "alg": alg, "kid": "a" }), &valid(), |message| {
            let mut signature = vec![0; rsa.public().modulus_len()];
            rsa.sign(&RSA_PKCS1_SHA512, &SystemRandom::new(), message, &mut signature).unwrap();
            signature
        });
        assert_eq!(keys.verify(&token, at(NOW)).await, Err(BadToken::Unsupported), "{alg}");
    }
}

#[tokio::test]
async fn an_extension_that_must_be_understood_is_refused() {
    for extension in [json!({ "crit": ["b64"], "b64": false }), json!({ "crit": [] }), json!({ "zip": "DEF" })] {
        let mut header = json!({ "alg": "HS256" });
        header.as_object_mut().unwrap().extend(extension.as_object().unwrap().clone());
        let token = token(&header, &valid(), hmac(SECRET.as_bytes()));
        assert_eq!(verify_with(settings(), &token).await, Err(BadToken::Unsupported), "{header}");
    }
}

#[tokio::test]
async fn every_algorithm_of_a_provider_is_verified() {
    for pair in [Pair::rsa(), Pair::ec(), Pair::ed()] {
        let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
        let keys = provider(&server);
        let good = pair.token("a");
        assert_eq!(keys.verify(&good, at(NOW)).await.map(|claims| claims.sub), Ok("7".into()));
        let header = json!({ "alg": pair.algorithm(), "kid": "a" });
        let forged = token(&header, &valid(), |_| pair.sign(b"something else"));
        assert_eq!(keys.verify(&forged, at(NOW)).await, Err(BadToken::Signature));
        let empty = token(&header, &valid(), |_| Vec::new());
        assert_eq!(keys.verify(&empty, at(NOW)).await, Err(BadToken::Signature));
        let zero = token(&header, &valid(), |_| vec![0; 64]);
        assert_eq!(keys.verify(&zero, at(NOW)).await, Err(BadToken::Signature));
    }
}

#[tokio::test]
async fn a_public_key_does_not_serve_as_a_secret() {
    for pair in [Pair::rsa(), Pair::ec(), Pair::ed()] {
        let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
        let without_secret = KeySettings { jwks_url: Some(server.url.parse().unwrap()), ..KeySettings::default() };
        let header = json!({ "alg": "HS256", "kid": "a" });
        let token = token(&header, &valid(), hmac(&pair.public()));
        assert_eq!(provider(&server).verify(&token, at(NOW)).await, Err(BadToken::Signature));
        assert_eq!(verify_with(without_secret, &token).await, Err(BadToken::Unsupported));
    }
}

#[tokio::test]
async fn a_key_serves_its_own_algorithm_only() {
    let pairs = [Pair::rsa(), Pair::ec(), Pair::ed()];
    for pair in &pairs {
        let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
        let keys = provider(&server);
        for other in ["RS256", "ES256", "EdDSA"] {
            let header = json!({ "alg": other, "kid": "a" });
            let token = token(&header, &valid(), |message| pair.sign(message));
            let outcome = keys.verify(&token, at(NOW)).await.map(|_| ());
            let expected = if other == pair.algorithm() { Ok(()) } else { Err(BadToken::UnknownKey) };
            assert_eq!(outcome, expected, "{other}");
        }
    }
}

#[tokio::test]
async fn a_key_in_the_token_itself_is_not_trusted() {
    let pair = Pair::ec();
    let attacker = Pair::ec();
    let evil = Loopback::start(key_set(&[attacker.jwk("a"), attacker.jwk("evil")])).await;
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = provider(&server);
    for (id, outcome) in [("a", BadToken::Signature), ("evil", BadToken::UnknownKey)] {
        let header = json!({ "alg": "ES256", "kid": id, "jku": evil.url, "x5u": evil.url, "jwk": attacker.jwk(id) });
        let token = token(&header, &valid(), |message| attacker.sign(message));
        assert_eq!(keys.verify(&token, at(NOW)).await, Err(outcome));
    }
    assert_eq!(evil.hits(), 0);
}

#[tokio::test]
async fn a_symmetric_key_in_the_key_set_is_ignored() {
    let oct = json!({ "kty": "oct", "kid": "a", "k": base64("public") });
    let server = Loopback::start(key_set(&[oct, Pair::ec().jwk("b")])).await;
    let token = token(&json!({ "alg": "HS256", "kid": "a" }), &valid(), hmac(b"public"));
    assert_eq!(provider(&server).verify(&token, at(NOW)).await, Err(BadToken::Signature));
}

#[tokio::test]
async fn a_key_that_cannot_be_used_does_not_spoil_the_others() {
    let pair = Pair::ed();
    let mut named = pair.jwk("c");
    named["alg"] = json!("EdDSA");
    named["use"] = json!("sig");
    let mut encryption = pair.jwk("d");
    encryption["use"] = json!("enc");
    let mut renamed = Pair::rsa().jwk("e");
    renamed["alg"] = json!("RS512");
    let odd = json!({ "kty": "AKP", "kid": "a", "alg": "ML-DSA-44", "pub": "AAAA" });
    let broken = json!({ "kty": "RSA", "kid": "b" });
    let server = Loopback::start(key_set(&[odd, broken, json!(7), named, encryption, renamed])).await;
    let keys = provider(&server);
    assert!(keys.verify(&pair.token("c"), at(NOW)).await.is_ok());
    assert_eq!(keys.verify(&pair.token("d"), at(NOW)).await, Err(BadToken::UnknownKey));
    assert_eq!(keys.verify(&Pair::rsa().token("e"), at(NOW)).await, Err(BadToken::UnknownKey));
}

#[tokio::test]
async fn a_token_without_a_key_id_is_checked_with_the_only_key_of_its_algorithm() {
    let (first, second, other) = (Pair::ec(), Pair::ec(), Pair::ed());
    let anonymous = token(&json!({ "alg": "ES256" }), &valid(), |message| first.sign(message));
    let server = Loopback::start(key_set(&[other.jwk("b"), first.jwk("a")])).await;
    assert!(provider(&server).verify(&anonymous, at(NOW)).await.is_ok());
    server.set(200, key_set(&[first.jwk("a"), second.jwk("c")]));
    assert_eq!(provider(&server).verify(&anonymous, at(NOW)).await, Err(BadToken::UnknownKey));
}

#[tokio::test]
async fn keys_are_fetched_once_and_only_when_needed() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = provider(&server);
    let ours = keys.sign(&Claims { sub: "7".into(), ..Claims::default() }, at(NOW + 60)).unwrap();
    assert!(keys.verify(&ours, at(NOW)).await.is_ok());
    assert_eq!(server.hits(), 0);
    for _ in 0..3 {
        assert!(keys.verify(&pair.token("a"), at(NOW)).await.is_ok());
    }
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn after_keys_are_fetched_at_start_the_first_request_does_not_wait() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = provider(&server);
    keys.warm(at(NOW)).await;
    assert_eq!(server.hits(), 1);
    assert!(keys.verify(&pair.token("a"), at(NOW)).await.is_ok());
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn an_unknown_key_is_requested_at_most_once_a_minute() {
    let (old, new) = (Pair::ec(), Pair::ec());
    let server = Loopback::start(key_set(&[old.jwk("old")])).await;
    let keys = provider(&server);
    assert!(keys.verify(&old.token("old"), at(NOW)).await.is_ok());
    server.set(200, key_set(&[old.jwk("old"), new.jwk("new")]));
    for now in [NOW, NOW + 59] {
        assert_eq!(keys.verify(&new.token("new"), at(now)).await, Err(BadToken::UnknownKey));
    }
    assert_eq!(server.hits(), 1);
    assert!(keys.verify(&new.token("new"), at(NOW + 60)).await.is_ok());
    assert_eq!(server.hits(), 2);
}

#[tokio::test]
async fn a_failing_provider_is_left_alone_for_a_minute_and_old_keys_stay() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = provider(&server);
    let lasting = pair.token("a");
    assert!(keys.verify(&lasting, at(NOW)).await.is_ok());
    let mut hits = 1;
    let other = key_set(&[Pair::ec().jwk("b")]);
    for (hour, (status, body)) in
        [(500, other.as_str()), (302, &other), (200, "<html>"), (200, r#"{"keys":[]}"#)].into_iter().enumerate()
    {
        server.set(status, body);
        let now = NOW + 3_600 + 100 * i64::try_from(hour).unwrap();
        for now in [now, now + 59] {
            assert!(keys.verify(&lasting, at(now)).await.is_ok(), "{status} {body}");
        }
        hits += 1;
        assert_eq!(server.hits(), hits, "{status} {body}");
    }
}

#[tokio::test]
async fn without_any_keys_the_provider_is_queried_again_within_seconds() {
    let pair = Pair::ec();
    let server = Loopback::start("").await;
    server.set(500, "");
    let keys = provider(&server);
    keys.warm(at(NOW)).await;
    for now in [NOW, NOW + 4] {
        assert_eq!(keys.verify(&pair.token("a"), at(now)).await, Err(BadToken::NoKeys));
    }
    assert_eq!(server.hits(), 1);
    server.set(200, r#"{"keys":[]}"#);
    for now in [NOW + 5, NOW + 9] {
        assert_eq!(keys.verify(&pair.token("a"), at(now)).await, Err(BadToken::NoKeys));
    }
    assert_eq!(server.hits(), 2);
    server.set(200, key_set(&[pair.jwk("a")]));
    assert!(keys.verify(&pair.token("a"), at(NOW + 10)).await.is_ok());
    assert_eq!(server.hits(), 3);
    assert_eq!(keys.verify(&pair.token("b"), at(NOW + 20)).await, Err(BadToken::UnknownKey));
    assert_eq!(server.hits(), 3);
}

#[tokio::test]
async fn keys_fetched_while_the_clock_was_ahead_are_fetched_again() {
    let (old, new) = (Pair::ec(), Pair::ec());
    let server = Loopback::start(key_set(&[old.jwk("old")])).await;
    let keys = provider(&server);
    keys.warm(at(NOW + 86_400)).await;
    server.set(200, key_set(&[new.jwk("new")]));
    assert_eq!(keys.verify(&old.token("old"), at(NOW)).await, Err(BadToken::UnknownKey));
    assert!(keys.verify(&new.token("new"), at(NOW)).await.is_ok());
}

#[tokio::test]
async fn a_withdrawn_key_is_gone_after_an_hour() {
    let (old, new) = (Pair::ec(), Pair::ec());
    let server = Loopback::start(key_set(&[old.jwk("old")])).await;
    let keys = provider(&server);
    let lasting = old.token("old");
    assert!(keys.verify(&lasting, at(NOW)).await.is_ok());
    server.set(200, key_set(&[new.jwk("new")]));
    assert!(keys.verify(&lasting, at(NOW + 3_599)).await.is_ok());
    assert_eq!(server.hits(), 1);
    assert_eq!(keys.verify(&lasting, at(NOW + 3_600)).await, Err(BadToken::UnknownKey));
    assert_eq!(server.hits(), 2);
}

#[tokio::test]
async fn concurrent_requests_fetch_the_keys_once() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    server.set_delay(Duration::from_millis(50));
    let keys = std::sync::Arc::new(provider(&server));
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let (keys, token) = (keys.clone(), pair.token("a"));
            tokio::spawn(async move { keys.verify(&token, at(NOW)).await })
        })
        .collect();
    for request in requests {
        assert!(request.await.unwrap().is_ok());
    }
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn a_cancelled_request_does_not_cancel_the_fetch() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    server.set_delay(Duration::from_millis(50));
    let keys = provider(&server);
    let (token, patience) = (pair.token("a"), Duration::from_millis(10));
    let gone = tokio::time::timeout(patience, keys.verify(&token, at(NOW))).await;
    assert!(gone.is_err(), "the server was too fast for this test");
    assert!(keys.verify(&token, at(NOW)).await.is_ok());
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn a_cached_key_is_used_while_another_is_fetched() {
    let pair = Pair::ec();
    let server = Loopback::start(key_set(&[pair.jwk("a")])).await;
    let keys = std::sync::Arc::new(provider(&server));
    keys.warm(at(NOW - 100)).await;
    server.set_delay(Duration::from_mins(1));
    let waiting = tokio::spawn({
        let (keys, token) = (keys.clone(), pair.token("unknown"));
        async move { keys.verify(&token, at(NOW)).await }
    });
    while server.hits() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(keys.verify(&pair.token("a"), at(NOW)).await.is_ok());
    waiting.abort();
}

#[test]
fn debug_output_does_not_contain_the_secret() {
    let shown = format!("{:?} {:?}", settings(), Keys::new(settings(), client()));
    assert!(!shown.contains(SECRET), "{shown}");
}
