//! The redirect of a reader to a provider and back. The page starts a *flow* and keeps its verifier. The provider sends the
//! reader to our callback, which passes a one-time code to the page. The page finishes the flow with the code and the verifier.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ids::UserId;
use crate::origin::{self, Origins};
use crate::time::{Timestamp, stored};
use crate::webhook_url::parse_as_written;

/// The time that a reader may spend at the provider.
pub const FLOW_LIFETIME: Duration = Duration::from_mins(15);
/// The lifetime of the callback's code.
pub const CODE_LIFETIME: Duration = Duration::from_mins(1);
/// Maximum flows that a network may start per hour.
pub const FLOWS_OF_NETWORK: u32 = 120;
/// Maximum visits to the callback that a network may make per hour.
pub const CALLBACKS_OF_NETWORK: u32 = 240;
/// A flow ends after this many wrong tries.
const MAX_TRIES: u32 = 5;
/// Maximum characters in an address to return to.
const MAX_RETURN: usize = 2_000;

/// A flow, stored as one item that is emptied when the flow ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectFlow {
    #[serde(rename = "vn", default)]
    pub version: u64,
    /// The provider's id.
    #[serde(rename = "pr", default, skip_serializing_if = "String::is_empty")]
    provider: String,
    /// The S256 challenge of the page's verifier (RFC 7636).
    #[serde(rename = "ch", default, skip_serializing_if = "String::is_empty")]
    challenge: String,
    /// Set until the callback.
    #[serde(rename = "st", default, skip_serializing_if = "Option::is_none")]
    started: Option<Started>,
    /// Set after the callback.
    #[serde(rename = "re", default, skip_serializing_if = "Option::is_none")]
    returned: Option<Returned>,
    /// The flow's account, set after the callback.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    #[serde(rename = "tr", default)]
    tries: u32,
    /// When the flow ends, in whole seconds.
    #[serde(rename = "x", default, with = "stored::seconds")]
    ends: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The address that the reader returns to.
    #[serde(rename = "to")]
    pub return_to: String,
    /// [`OwnSecrets`], sealed.
    #[serde(rename = "se")]
    pub secrets: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Keyed hash of the code.
    #[serde(rename = "co")]
    pub code: String,
    /// Keyed hash of the network that reached the callback.
    #[serde(rename = "nw")]
    pub network: String,
    /// The [`Profile`], sealed.
    #[serde(rename = "pf")]
    pub profile: String,
}

/// Our PKCE verifier, which we send to the provider, and the nonce, which the provider's ID token must contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnSecrets {
    #[serde(rename = "v")]
    pub verifier: String,
    #[serde(rename = "n")]
    pub nonce: String,
}

/// A reader's profile from a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    #[serde(rename = "s")]
    pub subject: String,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// An address that the provider has verified.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// The proofs that a page needs to finish a flow.
pub struct Finish<'a> {
    /// Keyed hash of the code.
    pub code: &'a str,
    /// The challenge of the verifier; `None` if the verifier is missing or malformed.
    pub challenge: Option<&'a str>,
    /// Keyed hash of the network.
    pub network: &'a str,
}

impl RedirectFlow {
    #[must_use]
    pub fn new(provider: &str, challenge: &str, started: Started, now: Timestamp) -> Self {
        Self {
            provider: provider.to_owned(),
            challenge: challenge.to_owned(),
            started: Some(started),
            ends: now.start_of_second() + FLOW_LIFETIME,
            ..Self::default()
        }
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now < self.ends && !self.ends.is_too_far_ahead(FLOW_LIFETIME, now)
    }

    fn end(&mut self) {
        *self = Self { version: self.version, ends: self.ends, ..Self::default() };
    }

    /// Removes and returns the data that the callback of this provider needs. `None` if the data was already removed,
    /// the flow has ended, or it leads to another provider.
    pub fn take(&mut self, provider: &str, now: Timestamp) -> Option<Started> {
        if !self.is_live(now) || self.provider != provider {
            return None;
        }
        self.started.take()
    }

    /// Stores the account that the reader returned with. Returns false if the flow has ended in the meantime.
    pub fn comes_back(&mut self, user: UserId, returned: Returned, now: Timestamp) -> bool {
        if self.challenge.is_empty() {
            return false;
        }
        (self.user, self.returned) = (Some(user), Some(returned));
        self.ends = now.start_of_second() + CODE_LIFETIME;
        true
    }

    /// Finishes the flow. Returns the provider's id and the sealed profile if the code is correct and comes from the
    /// page that started the flow, on the network that reached the callback. A correct code from anywhere else ends the
    /// flow, because it may have been stolen.
    pub fn finish(&mut self, given: &Finish<'_>, now: Timestamp) -> Option<(String, String)> {
        let is_right = |returned: &Returned| returned.code == given.code;
        if !self.is_live(now) {
            self.end();
        } else if let Some(returned) = self.returned.clone().filter(is_right) {
            let is_own = given.challenge == Some(&self.challenge) && returned.network == given.network;
            let provider = self.provider.clone();
            self.end();
            return is_own.then_some((provider, returned.profile));
        } else if !self.challenge.is_empty() {
            self.tries += 1;
            if self.tries >= MAX_TRIES {
                self.end();
            }
        }
        None
    }
}

/// Parses the address of a page to return to, without its fragment. `None` unless its origin is listed or the API's own.
#[must_use]
pub fn return_to(text: &str, listed: &Origins, own: Option<&str>) -> Option<Url> {
    if text.len() > MAX_RETURN || !text.is_ascii() {
        return None;
    }
    let authority = text.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let mut url = parse_as_written(text)?;
    let origin = origin::of(&url[..url::Position::BeforePath])?;
    let is_listed = listed.contains(&origin) || own == Some(&origin);
    url.set_fragment(None);
    (is_listed && matches!(url.scheme(), "https" | "http") && !authority.contains('@')).then_some(url)
}

/// Whether the text is an S256 challenge: a SHA-256 hash in base64url.
#[must_use]
pub fn is_challenge(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|hash| hash.len() == 32)
}

/// The S256 challenge of a verifier; `None` if the text isn't a verifier.
#[must_use]
pub fn challenge_of(verifier: &str) -> Option<String> {
    let is_plain = verifier.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    let fits = is_plain && (43..=128).contains(&verifier.len());
    fits.then(|| URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn at(seconds: i64) -> Timestamp {
        Timestamp((1_800_000_000 + seconds) * 1_000)
    }

    fn started() -> RedirectFlow {
        let started = Started { return_to: "https://a.test/".to_owned(), secrets: "sealed".to_owned() };
        RedirectFlow::new("github", CHALLENGE, started, at(0))
    }

    fn returned(seconds: i64) -> RedirectFlow {
        let mut flow = started();
        flow.take("github", at(seconds)).unwrap();
        let back = Returned { code: "code".to_owned(), network: "home".to_owned(), profile: "profile".to_owned() };
        assert!(flow.comes_back(UserId(7), back, at(seconds)));
        flow
    }

    fn finish(flow: &mut RedirectFlow, code: &str, challenge: Option<&str>, network: &str, seconds: i64) -> bool {
        flow.finish(&Finish { code, challenge, network }, at(seconds)).is_some()
    }

    #[test]
    fn a_state_is_taken_once_within_fifteen_minutes_by_its_own_provider() {
        let mut flow = started();
        assert_eq!(flow.take("google", at(0)), None);
        assert!(flow.take("github", at(899)).is_some());
        assert_eq!(flow.take("github", at(899)), None);
        assert_eq!(started().take("github", at(900)), None);
    }

    #[test]
    fn a_code_is_valid_once_for_a_minute() {
        let mut flow = returned(100);
        assert!(finish(&mut flow.clone(), "code", Some(CHALLENGE), "home", 159));
        assert!(!finish(&mut flow.clone(), "code", Some(CHALLENGE), "home", 160));
        assert!(finish(&mut flow, "code", Some(CHALLENGE), "home", 159));
        assert!(!finish(&mut flow, "code", Some(CHALLENGE), "home", 159));
    }

    #[test]
    fn a_correct_code_with_another_challenge_or_network_ends_the_flow() {
        for (challenge, network) in [(None, "home"), (Some("other"), "home"), (Some(CHALLENGE), "elsewhere")] {
            let mut flow = returned(0);
            assert!(!finish(&mut flow, "code", challenge, network, 1));
            assert!(!finish(&mut flow, "code", Some(CHALLENGE), "home", 1));
            let ended = RedirectFlow { version: flow.version, ends: flow.ends, ..RedirectFlow::default() };
            assert_eq!(flow, ended, "nothing of the person is left");
        }
    }

    #[test]
    fn five_wrong_tries_end_the_flow_before_the_callback_too() {
        let mut flow = returned(0);
        for _ in 0..4 {
            assert!(!finish(&mut flow, "wrong", Some(CHALLENGE), "home", 1));
        }
        assert!(finish(&mut flow.clone(), "code", Some(CHALLENGE), "home", 1));
        assert!(!finish(&mut flow, "wrong", Some(CHALLENGE), "home", 1));
        assert!(!finish(&mut flow, "code", Some(CHALLENGE), "home", 1));
        let mut flow = started();
        for _ in 0..5 {
            assert!(!finish(&mut flow, "wrong", Some(CHALLENGE), "home", 1));
        }
        assert_eq!(flow.take("github", at(1)), None);
        let back = Returned { code: String::new(), network: String::new(), profile: String::new() };
        assert!(!flow.comes_back(UserId(7), back, at(1)));
    }

    #[test]
    fn a_reader_returns_to_listed_origins_alone() {
        let listed = Origins::parse("https://www.example.org,http://localhost:*").unwrap();
        let reads = |text: &str| return_to(text, &listed, Some("https://api.test")).map(String::from);
        for (text, url) in [
            ("https://www.example.org", "https://www.example.org/"),
            ("https://www.example.org/a?b=c#d", "https://www.example.org/a?b=c"),
            ("https://www.example.org:443/a", "https://www.example.org/a"),
            ("HTTPS://WWW.Example.org/", "https://www.example.org/"),
            ("http://localhost:8080/", "http://localhost:8080/"),
            ("https://api.test/svc/api/v1/moderate", "https://api.test/svc/api/v1/moderate"),
        ] {
            assert_eq!(reads(text).as_deref(), Some(url));
        }
        let long = format!("https://www.example.org/{}", "x".repeat(2_000 - 24));
        assert!(reads(&long).is_some() && reads(&format!("{long}x")).is_none());
        for bad in [
            "",
            "/a",
            "//www.example.org/a",
            "https:www.example.org/a",
            "https://evil.test/",
            "https://www.example.org.evil.test/",
            "https://www.example.org@evil.test/",
            "https://ada@www.example.org/",
            "https://@www.example.org/",
            "https://ada:x@www.example.org/",
            "https://evil.test\\@www.example.org/",
            "https://www.example.org\\.evil.test/",
            "https:\\\\www.example.org/",
            "https://www.example.org/a\\b",
            "https://www.example.org/a\nb",
            "https://www.example.org/\u{7f}",
            "https://www.example.org/é",
            "https://www.example.org:444/",
            "http://www.example.org/",
            "javascript://www.example.org/%0aalert(1)",
        ] {
            assert_eq!(reads(bad), None, "{bad:?}");
        }
    }

    /// Uses the example in RFC 7636, appendix B.
    #[test]
    fn a_challenge_is_the_hash_of_a_verifier() {
        assert_eq!(challenge_of(VERIFIER).as_deref(), Some(CHALLENGE));
        assert!(is_challenge(CHALLENGE));
        for bad in ["", &VERIFIER[1..], &"x".repeat(129), &VERIFIER.replace('d', "+")] {
            assert_eq!(challenge_of(bad), None, "{bad}");
        }
        for bad in
            ["", &CHALLENGE[1..], &format!("{CHALLENGE}A"), &format!("{CHALLENGE}="), &CHALLENGE.replace('-', "+")]
        {
            assert!(!is_challenge(bad), "{bad}");
        }
    }
}
