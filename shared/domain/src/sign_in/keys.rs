//! Codes, the hashes that represent addresses and networks, and refresh tokens. Codes and hashes are derived from the visitor
//! salt (HKDF-SHA256), so that the function `delivery` can compute codes, which are never stored. The signing keys are derived
//! from the seed, which only the function `sign_in` has.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use icu_normalizer::ComposingNormalizerBorrowed;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::TOKEN_LIFETIME;
use crate::email::{canonical, exact};
use crate::ids::{UserId, sha256_hex};
use crate::seal::{DerivedKeys, Seal, tag};
use crate::secret::Secret;
use crate::time::{Timestamp, stored};
use crate::visible::is_unseen;

const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();

/// The number of digits in a code.
const DIGITS: usize = 8;
const CODES: u32 = 100_000_000;
/// Characters in the hash of an address, and in a nonce: 132 bits.
const INBOX: usize = 22;
/// Characters in the hash of a network or a domain: 66 bits.
const SHORT: usize = 11;
/// Characters in the signature of a refresh token: 256 bits.
const SIGNATURE: usize = 43;
/// Characters in the id of a public key.
const KEY_ID: usize = 16;

/// The id of a flow, which the browser that requested the code receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FlowId {
    /// Keyed hash of the mailbox.
    pub inbox: String,
    pub nonce: String,
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.inbox, self.nonce)
    }
}

impl FromStr for FlowId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hash =
            |part: &str| part.len() == INBOX && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let parts = text.split_once('.').filter(|(inbox, nonce)| is_hash(inbox) && is_hash(nonce));
        let (inbox, nonce) = parts.ok_or("no flow")?;
        Ok(Self { inbox: inbox.to_owned(), nonce: nonce.to_owned() })
    }
}

impl TryFrom<String> for FlowId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<FlowId> for String {
    fn from(flow: FlowId) -> Self {
        flow.to_string()
    }
}

#[must_use]
pub fn nonce(random: [u8; 17]) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(random);
    text.truncate(INBOX);
    text
}

pub struct FlowKeys {
    seal: Seal,
    redirects: Seal,
    names: hmac::Key,
    codes: hmac::Key,
}

impl FlowKeys {
    #[must_use]
    pub fn new(salt: &Secret) -> Self {
        let keys = DerivedKeys::new(salt);
        let redirects = keys.seal("sign-in redirect", "sign-in redirect nonce");
        Self { seal: keys.addresses(), redirects, names: keys.mac("sign-in name"), codes: keys.mac("code") }
    }

    /// A keyed hash of an address's mailbox. All spellings of one mailbox have the same hash.
    #[must_use]
    pub fn inbox(&self, address: &str) -> String {
        tag(&self.names, &["inbox", &canonical(address)], INBOX)
    }

    /// A keyed hash of one address, used to stop codes to it. Tags are kept. Otherwise, a stranger could stop codes to
    /// another person with an address that doesn't exist, because not all servers treat `+` as the start of a tag.
    #[must_use]
    pub fn address(&self, address: &str) -> String {
        tag(&self.names, &["address", &exact(address)], INBOX)
    }

    /// A keyed hash of an address's domain, for the limit on codes per domain.
    #[must_use]
    pub fn domain(&self, address: &str) -> String {
        let address = canonical(address);
        tag(&self.names, &["domain", address.rsplit_once('@').map_or("", |(_, domain)| domain)], SHORT)
    }

    /// A keyed hash of a caller's network: an IPv4 address, or an IPv6 /48, which one customer of an internet provider may
    /// have.
    #[must_use]
    pub fn network(&self, ip: IpAddr) -> String {
        tag(&self.names, &["network", &cut(ip, 32).to_string()], SHORT)
    }

    /// A keyed hash of a caller's wider network: a /24 or a /48. A phone usually stays in the same one when its address
    /// changes.
    #[must_use]
    pub fn wider_network(&self, ip: IpAddr) -> String {
        tag(&self.names, &["wider network", &cut(ip, 24).to_string()], SHORT)
    }

    /// The id of the redirect flow with this `state`. The page keeps the id, and the provider's response has the state.
    #[must_use]
    pub fn redirect(&self, state: &str) -> String {
        tag(&self.names, &["redirect", state], INBOX)
    }

    /// A keyed hash of a redirect flow's id, for the key of its item.
    #[must_use]
    pub fn redirect_name(&self, flow: &str) -> String {
        tag(&self.names, &["redirect name", flow], INBOX)
    }

    /// A keyed hash of the code of a redirect flow.
    #[must_use]
    pub fn redirect_code(&self, flow: &str, code: &str) -> String {
        tag(&self.names, &["redirect code", flow, code], INBOX)
    }

    #[must_use]
    pub fn seal_of_redirect(&self, value: &impl Serialize) -> String {
        self.redirects.close(&serde_json::to_string(value).unwrap_or_default())
    }

    /// Opens a sealed value of a redirect flow; `None` if it was sealed under another salt.
    #[must_use]
    pub fn open_of_redirect<T: DeserializeOwned>(&self, sealed: &str) -> Option<T> {
        serde_json::from_str(&self.redirects.open(sealed)?).ok()
    }

    #[must_use]
    pub fn seal(&self, address: &str) -> String {
        self.seal.close(address)
    }

    /// Decrypts a sealed address; `None` if it was sealed under another salt.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<String> {
        self.seal.open(sealed)
    }

    /// The code of a flow. All codes are equally likely, because numbers from the largest multiple of `CODES` up are skipped.
    #[must_use]
    pub fn code(&self, flow: &FlowId) -> String {
        const WHOLE: u32 = u32::MAX - u32::MAX % CODES;
        let words = (0_u32..).flat_map(|round| {
            let tag = hmac::sign(&self.codes, format!("{round}.{flow}").as_bytes());
            let words = tag.as_ref().chunks_exact(4).map(|word| word.iter().fold(0, |sum, b| sum << 8 | u32::from(*b)));
            words.collect::<Vec<u32>>()
        });
        let number = words.into_iter().find(|word| *word < WHOLE).unwrap_or_default();
        format!("{:0DIGITS$}", number % CODES)
    }

    /// Whether the typed text is the flow's code. Takes the same time for right and wrong codes.
    #[must_use]
    pub fn is_code(&self, flow: &FlowId, typed: &str) -> bool {
        let typed: String =
            NFKC.normalize_iter(typed.chars()).filter(|c| !c.is_whitespace() && !is_unseen(*c)).collect();
        let hash = |text: &str| hmac::sign(&self.codes, text.as_bytes());
        hash(&self.code(flow)).as_ref() == hash(&typed).as_ref()
    }
}

/// A token that is exchanged for an access token and its own successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshToken {
    pub account: UserId,
    /// Distinguishes the session from the account's other sessions.
    pub nonce: u64,
    pub generation: u64,
}

/// The keys that sign tokens.
pub struct Seed {
    signing: [u8; 32],
    refresh: hmac::Key,
}

impl Seed {
    #[must_use]
    pub fn new(seed: &Secret) -> Self {
        let keys = DerivedKeys::new(seed);
        Self { signing: keys.bytes("access token"), refresh: keys.mac("refresh token") }
    }

    /// The private key of access tokens (Ed25519).
    #[must_use]
    pub fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// The public key of access tokens, in base64url.
    #[must_use]
    pub fn public(&self) -> String {
        let pair = Ed25519KeyPair::from_seed_unchecked(&self.signing).expect("a key has 32 bytes");
        URL_SAFE_NO_PAD.encode(pair.public_key())
    }

    /// The signed text of a token. The same token has the same text, so that two tabs get the same successor.
    #[must_use]
    pub fn write(&self, token: &RefreshToken) -> String {
        let RefreshToken { account, nonce, generation } = token;
        let signed = format!("{account}.{nonce}.{generation}");
        format!("{signed}.{}", tag(&self.refresh, &[&signed], SIGNATURE))
    }

    /// Reads a signed token; `None` if it wasn't signed with this seed.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<RefreshToken> {
        let mut parts = text.split('.');
        let account = parts.next()?.parse().ok()?;
        let token =
            RefreshToken { account, nonce: parts.next()?.parse().ok()?, generation: parts.next()?.parse().ok()? };
        // Compares hashes, so that timing reveals nothing about the signature.
        let hash = |text: &str| hmac::sign(&self.refresh, text.as_bytes());
        (hash(&self.write(&token)).as_ref() == hash(text).as_ref()).then_some(token)
    }
}

/// The network of an IP address: the first `bits` bits of an IPv4 address, or an IPv6 /48.
fn cut(ip: IpAddr, bits: u32) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << (32 - bits)))),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 80))),
    }
}

#[must_use]
pub fn key_id(public: &str) -> String {
    let mut id = sha256_hex(public);
    id.truncate(KEY_ID);
    id
}

/// The public keys that verify access tokens. A new seed replaces the current key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKeys {
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "k", default)]
    current: String,
    /// The previous key, whose tokens are valid until they expire.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// When `current` replaced `previous`, in whole seconds.
    #[serde(rename = "c", default, with = "stored::seconds")]
    changed_at: Timestamp,
}

impl PublicKeys {
    pub fn publish(&mut self, public: &str, now: Timestamp) {
        if self.current != public {
            let earlier = std::mem::replace(&mut self.current, public.to_owned());
            self.previous = Some(earlier).filter(|earlier| !earlier.is_empty());
            self.changed_at = now.start_of_second();
        }
    }

    /// The bytes of the key with this id; `None` if the key is unknown or its tokens have expired.
    #[must_use]
    pub fn find(&self, id: &str, now: Timestamp) -> Option<Vec<u8>> {
        let previous = self.previous.iter().filter(|_| now.start_of_second() <= self.changed_at + TOKEN_LIFETIME);
        let key = previous.chain([&self.current]).find(|key| !key.is_empty() && key_id(key) == id)?;
        URL_SAFE_NO_PAD.decode(key).ok()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::from(text.to_owned())
    }

    fn keys(salt: &str) -> FlowKeys {
        FlowKeys::new(&secret(salt))
    }

    fn flow(n: u8) -> FlowId {
        FlowId { inbox: keys("a").inbox("ada@example.org"), nonce: nonce([n; 17]) }
    }

    #[test]
    fn a_code_has_eight_digits_and_belongs_to_one_flow_under_one_salt() {
        let codes: HashSet<String> = (0..=255).map(|n| keys("a").code(&flow(n))).collect();
        assert!(codes.len() > 250);
        assert!(codes.iter().all(|code| code.len() == 8 && code.bytes().all(|b| b.is_ascii_digit())));
        assert_eq!(keys("a").code(&flow(1)), keys("a").code(&flow(1)));
        assert_ne!(keys("a").code(&flow(1)), keys("b").code(&flow(1)));
    }

    #[test]
    fn every_digit_of_a_code_is_as_likely_as_any_other() {
        let inbox = keys("a").inbox("ada@example.org");
        let mut counts = [[0_u32; 10]; DIGITS];
        for n in 0..4_000_u32 {
            let nonce = format!("{n:022}");
            let code = keys("a").code(&FlowId { inbox: inbox.clone(), nonce });
            for (place, digit) in code.bytes().enumerate() {
                counts[place][usize::from(digit - b'0')] += 1;
            }
        }
        // Each digit is expected 400 times, within five standard deviations.
        assert!(counts.iter().flatten().all(|count| (305..=495).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_code_may_be_typed_in_groups_or_in_wide_digits() {
        let (keys, code) = (keys("a"), keys("a").code(&flow(1)));
        let grouped = format!(" {} {}\n", &code[..4], &code[4..]);
        let wide: String = code.chars().map(|digit| char::from_u32(u32::from(digit) + 0xfee0).unwrap()).collect();
        let isolated = format!("\u{2066}{}\u{200b}{}\u{2069}", &code[..4], &code[4..]);
        for typed in [&code, &grouped, &wide, &isolated] {
            assert!(keys.is_code(&flow(1), typed), "{typed:?}");
        }
        for wrong in ["", "00000000", &code[1..], &format!("{code}0"), &keys.code(&flow(2))] {
            assert!(!keys.is_code(&flow(1), wrong), "{wrong}");
        }
    }

    #[test]
    fn a_flow_id_survives_a_round_trip_and_malformed_ids_are_refused() {
        assert_eq!(flow(1).to_string().parse(), Ok(flow(1)));
        let text = flow(1).to_string();
        for odd in ["", ".", "a.b", &text[1..], &format!("{text}x"), &text.replace('.', "#"), &text.replace('.', "..")]
        {
            assert!(odd.parse::<FlowId>().is_err(), "{odd}");
        }
    }

    #[test]
    fn spellings_of_a_mailbox_share_an_inbox_and_a_network_is_a_48() {
        let keys = keys("a");
        assert_eq!(keys.inbox("A.da+x@googlemail.com"), keys.inbox("ada@gmail.com"));
        assert_ne!(keys.inbox("ada@example.org"), keys.inbox("eve@example.org"));
        assert_eq!(keys.domain("ada@googlemail.com"), keys.domain("eve@GMAIL.com"));
        assert_eq!(keys.address("Ada@example.org"), keys.address("ada@example.org"));
        assert_ne!(keys.address("ada+x@example.org"), keys.address("ada@example.org"));
        let network = |ip: &str| keys.network(ip.parse().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:ffff::2"));
        assert_ne!(network("2001:db8:1::1"), network("2001:db8:2::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        let wider = |ip: &str| keys.wider_network(ip.parse().unwrap());
        assert_eq!(wider("192.0.2.1"), wider("192.0.2.254"));
        assert_eq!(wider("2001:db8:1:2::1"), wider("2001:db8:1:ffff::2"));
        assert!(wider("192.0.2.1") != wider("192.0.3.1") && wider("2001:db8:1::1") != wider("2001:db8:2::1"));
    }

    #[test]
    fn a_flow_is_derived_from_its_state_and_does_not_reveal_it() {
        let keys = keys("a");
        let flow = keys.redirect("state");
        assert_eq!(flow, keys.redirect("state"));
        assert!(!flow.contains('.') && flow != keys.redirect("other") && flow != keys.redirect_name("state"));
        assert_ne!(keys.redirect_code(&flow, "code"), keys.redirect_code("other", "code"));
        let sealed = keys.seal_of_redirect(&"hush");
        assert_eq!(keys.open_of_redirect::<String>(&sealed).as_deref(), Some("hush"));
        assert_eq!((keys.open(&sealed), self::keys("b").open_of_redirect::<String>(&sealed)), (None, None));
    }

    #[test]
    fn a_refresh_token_is_read_under_its_own_seed_only() {
        let token = RefreshToken { account: UserId(7), nonce: 8, generation: 9 };
        let (seed, other) = (Seed::new(&secret("a")), Seed::new(&secret("b")));
        let text = seed.write(&token);
        assert_eq!((seed.read(&text), other.read(&text)), (Some(token), None));
        assert_eq!(text, seed.write(&token));
        let forged = text.replacen(".9.", ".10.", 1);
        for odd in ["", "7.8.9", "7.8.9.", &forged, &text[..text.len() - 1], &format!("{text}."), &format!("0{text}")] {
            assert_eq!(seed.read(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_replaced_key_is_known_until_its_tokens_expire() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        let (old, new) = (Seed::new(&secret("a")).public(), Seed::new(&secret("b")).public());
        let mut keys = PublicKeys::default();
        assert!(keys.is_empty() && keys.find(&key_id(""), at(0)).is_none());
        keys.publish(&old, at(0));
        keys.publish(&new, at(1_000));
        let mut again = keys.clone();
        again.publish(&new, at(2_000));
        assert_eq!(again, keys);
        let finds = |key: &str, seconds| keys.find(&key_id(key), at(seconds)).is_some();
        assert!(finds(&new, 9_999) && finds(&old, 1_600) && !finds(&old, 1_601));
    }

    #[test]
    fn an_address_opens_under_its_own_salt() {
        let sealed = keys("a").seal("ada@example.org");
        assert_eq!(keys("a").open(&sealed).as_deref(), Some("ada@example.org"));
        assert_eq!(keys("b").open(&sealed), None);
    }
}
