//! The sessions of an account. A refresh token is used once, and yields its successor. The token used last yields the same
//! successor for a while, because two tabs may use it at the same time and a response may be lost. An older token must have
//! been copied, so it ends the session.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keys::RefreshToken;
use crate::time::{Timestamp, stored};

/// Maximum sessions of an account. A new session replaces the oldest.
const MAX_SESSIONS: usize = 20;
/// Maximum networks that an account remembers.
const MAX_NETWORKS: usize = 8;
/// For this long after its use, the token used last yields the same successor again.
const GRACE: Duration = Duration::from_secs(30);
/// A session ends after this time without use.
const MAX_UNUSED: Duration = Duration::from_hours(30 * 24);
/// Maximum age of a session.
const MAX_AGE: Duration = Duration::from_hours(180 * 24);

/// The sessions of an account. Their item must stay below 1 KB, so that a change costs one write unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    #[serde(rename = "vn", default)]
    pub version: u64,
    /// The account's epoch when these sessions began. The sessions end once the account's epoch changes.
    #[serde(rename = "ep", default)]
    epoch: u64,
    #[serde(rename = "se", default, skip_serializing_if = "Vec::is_empty")]
    live: Vec<Session>,
    /// Hashes of the networks of the account's latest sign-ins, newest last.
    #[serde(rename = "nw", default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Session {
    #[serde(rename = "i")]
    nonce: u64,
    /// The generation of the newest token.
    #[serde(rename = "g", default)]
    generation: u64,
    /// When the newest token was made, in whole seconds.
    #[serde(rename = "t", with = "stored::seconds")]
    used_at: Timestamp,
    /// When the session began, in whole seconds.
    #[serde(rename = "s", with = "stored::seconds")]
    started_at: Timestamp,
}

impl Session {
    fn is_over(&self, now: Timestamp) -> bool {
        let now = now.start_of_second();
        now.since(self.used_at) > MAX_UNUSED || now.since(self.started_at) > MAX_AGE
    }
}

impl Sessions {
    #[must_use]
    pub fn contains(&self, network: &str) -> bool {
        self.networks.iter().any(|known| known == network)
    }

    /// Begins a session, with `nonce` as its id.
    pub fn begin(&mut self, epoch: u64, nonce: u64, network: &str, now: Timestamp) {
        if self.epoch != epoch {
            self.live.clear();
            self.epoch = epoch;
        }
        self.live.retain(|session| !session.is_over(now));
        if self.live.len() >= MAX_SESSIONS {
            self.live.remove(0);
        }
        let at = now.start_of_second();
        self.live.push(Session { nonce, generation: 0, used_at: at, started_at: at });
        self.networks.retain(|known| known != network);
        self.networks.push(network.to_owned());
        if self.networks.len() > MAX_NETWORKS {
            self.networks.remove(0);
        }
    }

    /// The successor of a token; `None` if the token is no longer valid. A copied token also ends its session.
    pub fn refresh(&mut self, token: &RefreshToken, epoch: u64, now: Timestamp) -> Option<RefreshToken> {
        if self.epoch != epoch {
            return None;
        }
        let place = self.live.iter().position(|session| session.nonce == token.nonce)?;
        let session = &mut self.live[place];
        let is_over = session.is_over(now);
        let second = Duration::from_secs(1);
        let in_grace = token.generation + 1 == session.generation
            && session.used_at.is_within(GRACE + second, now.start_of_second());
        if !is_over && token.generation == session.generation {
            session.generation += 1;
            session.used_at = now.start_of_second();
        } else if is_over || !in_grace {
            self.live.remove(place);
            return None;
        }
        Some(RefreshToken { generation: self.live[place].generation, ..*token })
    }

    /// Whether the session of a token continues.
    #[must_use]
    pub fn has(&self, token: &RefreshToken, epoch: u64, now: Timestamp) -> bool {
        self.epoch == epoch && self.live.iter().any(|session| session.nonce == token.nonce && !session.is_over(now))
    }

    pub fn end(&mut self, token: &RefreshToken) {
        self.live.retain(|session| session.nonce != token.nonce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::UserId;

    const EPOCH: u64 = 11;
    /// A day in seconds.
    const DAY: i64 = 24 * 3_600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp((1_800_000_000 + seconds) * 1_000)
    }

    fn token(nonce: u64, generation: u64) -> RefreshToken {
        RefreshToken { account: UserId(7), nonce, generation }
    }

    /// Sessions 0, 1, …, each begun a second after the previous one.
    fn begun(count: u64) -> Sessions {
        let mut sessions = Sessions::default();
        for nonce in 0..count {
            sessions.begin(EPOCH, nonce, "home", at(nonce.cast_signed()));
        }
        sessions
    }

    #[test]
    fn each_use_of_a_refresh_token_makes_the_next_one() {
        let mut sessions = begun(2);
        assert_eq!(sessions.refresh(&token(0, 0), EPOCH, at(10)), Some(token(0, 1)));
        assert_eq!(sessions.refresh(&token(0, 1), EPOCH, at(20)), Some(token(0, 2)));
        assert_eq!(sessions.refresh(&token(1, 0), EPOCH, at(20)), Some(token(1, 1)));
    }

    #[test]
    fn the_last_token_gives_the_same_successor_for_thirty_seconds() {
        let mut sessions = begun(1);
        for seconds in [100, 101, 130] {
            assert_eq!(sessions.refresh(&token(0, 0), EPOCH, at(seconds)), Some(token(0, 1)));
        }
        assert_eq!(sessions.clone().refresh(&token(0, 1), EPOCH, at(131)), Some(token(0, 2)));
        assert_eq!(sessions.refresh(&token(0, 0), EPOCH, at(131)), None);
        assert_eq!(sessions.refresh(&token(0, 1), EPOCH, at(131)), None, "the copy has ended the session");
    }

    #[test]
    fn a_token_before_the_last_one_ends_the_session_at_once() {
        let mut sessions = begun(2);
        assert!(sessions.refresh(&token(0, 0), EPOCH, at(10)).is_some());
        assert!(sessions.refresh(&token(0, 1), EPOCH, at(11)).is_some());
        assert_eq!(sessions.refresh(&token(0, 0), EPOCH, at(12)), None);
        assert!(!sessions.has(&token(0, 2), EPOCH, at(12)) && sessions.has(&token(1, 0), EPOCH, at(12)));
    }

    #[test]
    fn a_session_is_over_after_thirty_days_without_use_and_after_180_days() {
        let mut unused = begun(1);
        assert!(unused.clone().refresh(&token(0, 0), EPOCH, at(30 * DAY)).is_some());
        assert_eq!(unused.refresh(&token(0, 0), EPOCH, at(30 * DAY + 1)), None);
        let mut used = begun(1);
        for uses in 0..9_u64 {
            let time = at((uses.cast_signed() + 1) * 20 * DAY);
            assert_eq!(used.refresh(&token(0, uses), EPOCH, time), Some(token(0, uses + 1)));
        }
        assert_eq!(used.refresh(&token(0, 9), EPOCH, at(180 * DAY + 1)), None);
    }

    #[test]
    fn the_twenty_first_session_takes_the_place_of_the_oldest() {
        let sessions = begun(21);
        assert!(!sessions.has(&token(0, 0), EPOCH, at(30)));
        assert!((1..21).all(|nonce| sessions.has(&token(nonce, 0), EPOCH, at(30))));
    }

    #[test]
    fn sessions_of_an_earlier_epoch_are_over() {
        let mut sessions = begun(1);
        assert_eq!(sessions.refresh(&token(0, 0), EPOCH + 1, at(10)), None);
        sessions.begin(EPOCH + 1, 5, "home", at(10));
        let has = |nonce| sessions.has(&token(nonce, 0), EPOCH + 1, at(10));
        assert!(!has(0) && has(5) && !sessions.has(&token(5, 0), EPOCH, at(10)));
    }

    #[test]
    fn a_session_that_was_ended_is_over() {
        let mut sessions = begun(2);
        sessions.end(&token(0, 0));
        let has = |nonce| sessions.has(&token(nonce, 0), EPOCH, at(10));
        assert!(!has(0) && has(1));
    }

    #[test]
    fn an_account_remembers_the_last_eight_networks_that_it_signed_in_from() {
        let mut sessions = Sessions::default();
        for network in 0..9_u64 {
            sessions.begin(EPOCH, network, &network.to_string(), at(0));
        }
        sessions.begin(EPOCH, 9, "1", at(1));
        sessions.begin(EPOCH, 10, "9", at(2));
        assert!(!sessions.contains("0") && !sessions.contains("2"));
        assert!(["1", "3", "8", "9"].iter().all(|network| sessions.contains(network)));
    }

    #[test]
    fn twenty_sessions_and_eight_networks_fit_into_one_write_unit() {
        let mut sessions = begun(20);
        for session in &mut sessions.live {
            (session.nonce, session.generation) = ((1 << 53) - 1, 99_999);
        }
        sessions.networks = (0..8).map(|network| format!("network-{network:03}")).collect();
        (sessions.epoch, sessions.version) = ((1 << 53) - 1, 999_999);
        assert!(super::super::fits_into_one_unit(&sessions));
    }
}
