//! The flows of an address, and the bounds of the codes that it gets. All spellings of a mailbox have one inbox.

use serde::{Deserialize, Serialize};

use super::{CODE_SECONDS, DAY, HOUR};
use crate::domain::time::Timestamp;

/// Tries of one code.
const MAX_TRIES: u32 = 5;
/// Unused codes of an hour and of a day: for the address, and for each network that it has signed in from.
const UNUSED_OF_HOUR: usize = 3;
const UNUSED_OF_DAY: usize = 6;
/// Those that one unknown network may cause in a day, so that nobody alone keeps the owner from getting one.
const UNUSED_OF_NETWORK: usize = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "fl", default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<Flow>,
    /// Codes of the last day that nobody has used.
    #[serde(rename = "cd", default, skip_serializing_if = "Vec::is_empty")]
    codes: Vec<UnusedCode>,
    /// When the item expires, in Unix seconds.
    #[serde(rename = "x", default)]
    expires: i64,
}

/// A code that was asked for. It is computed from the nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    #[serde(rename = "n")]
    pub nonce: String,
    #[serde(rename = "tr", default)]
    tries: u32,
    /// Unix seconds.
    #[serde(rename = "a")]
    at: i64,
    /// The host of the page that asked.
    #[serde(rename = "h")]
    pub host: String,
    /// The tag of the language of the mail.
    #[serde(rename = "l")]
    pub language: String,
    /// The address as it was typed, sealed.
    #[serde(rename = "ad")]
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnusedCode {
    /// Unix seconds.
    #[serde(rename = "a")]
    at: i64,
    #[serde(rename = "n")]
    network: String,
    /// The address had signed in from the network before.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    is_known: bool,
}

/// A network that asks for a code.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Keyed hash.
    pub network: String,
    /// The address has signed in from it before.
    pub is_known: bool,
}

impl Flow {
    #[must_use]
    pub fn new(nonce: String, host: String, language: String, address: String, now: Timestamp) -> Self {
        Self { nonce, tries: 0, at: now.seconds(), host, language, address }
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now.seconds() < self.at + CODE_SECONDS
    }

    /// Seconds for which the code is still valid.
    #[must_use]
    pub fn expires_in(&self, now: Timestamp) -> i64 {
        self.at + CODE_SECONDS - now.seconds()
    }
}

impl Inbox {
    /// Whether one more code may go to the address.
    #[must_use]
    pub fn has_room(&self, asker: &Asker, now: Timestamp) -> bool {
        let within = |seconds: i64| move |code: &&UnusedCode| now.seconds() < code.at + seconds;
        let is_counted = |code: &&UnusedCode| {
            if asker.is_known { code.is_known && code.network == asker.network } else { !code.is_known }
        };
        let counted: Vec<&UnusedCode> = self.codes.iter().filter(is_counted).filter(within(DAY)).collect();
        let of_hour = counted.iter().copied().filter(|code| within(HOUR)(code)).count();
        let of_network = counted.iter().filter(|code| code.network == asker.network).count();
        of_hour < UNUSED_OF_HOUR && counted.len() < UNUSED_OF_DAY && (asker.is_known || of_network < UNUSED_OF_NETWORK)
    }

    /// Adds a flow, if one more code may go to the address. Returns whether it did.
    pub fn start(&mut self, flow: Flow, asker: &Asker, now: Timestamp) -> bool {
        if !self.has_room(asker, now) {
            return false;
        }
        self.flows.retain(|flow| flow.is_live(now));
        self.codes.retain(|code| now.seconds() < code.at + DAY);
        self.codes.push(UnusedCode { at: now.seconds(), network: asker.network.clone(), is_known: asker.is_known });
        self.flows.push(flow);
        self.expires = now.seconds() + DAY;
        true
    }

    /// The flow of this nonce, while its code is valid.
    #[must_use]
    pub fn flow(&self, nonce: &str, now: Timestamp) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.nonce == nonce && flow.is_live(now))
    }

    /// Counts a try, before anybody looks at the code. `None` when there is no such flow, or no try is left.
    pub fn try_code(&mut self, nonce: &str, now: Timestamp) -> Option<Flow> {
        let mut flows = self.flows.iter_mut();
        let flow = flows.find(|flow| flow.nonce == nonce && flow.is_live(now) && flow.tries < MAX_TRIES)?;
        flow.tries += 1;
        Some(flow.clone())
    }

    /// Spends a flow whose code was right, with the others of the same address, and resets the bounds. False when it is spent
    /// already.
    pub fn spend(&mut self, flow: &Flow) -> bool {
        let is_there = self.flows.iter().any(|other| other.nonce == flow.nonce);
        self.flows.retain(|other| other.address != flow.address);
        self.codes.clear();
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp((1_800_000_000 + seconds) * 1_000)
    }

    fn stranger(network: &str) -> Asker {
        Asker { network: network.to_owned(), is_known: false }
    }

    fn known(network: &str) -> Asker {
        Asker { network: network.to_owned(), is_known: true }
    }

    fn flow(nonce: &str, address: &str, now: Timestamp) -> Flow {
        Flow::new(nonce.to_owned(), "www.example.org".to_owned(), "en".to_owned(), address.to_owned(), now)
    }

    /// Asks for a code. Whether one is sent.
    fn ask(inbox: &mut Inbox, asker: &Asker, seconds: i64) -> bool {
        inbox.start(flow(&format!("n{seconds}"), "ada", at(seconds)), asker, at(seconds))
    }

    #[test]
    fn an_address_gets_three_unused_codes_an_hour_and_six_a_day() {
        let mut inbox = Inbox::default();
        let networks: Vec<Asker> = ["a", "b", "c", "d"].map(stranger).to_vec();
        let asked: Vec<bool> = (0..).zip(&networks).map(|(n, network)| ask(&mut inbox, network, n)).collect();
        assert_eq!(asked, [true, true, true, false]);
        assert!(!ask(&mut inbox, &networks[3], HOUR - 1) && ask(&mut inbox, &networks[3], HOUR));
        assert!(ask(&mut inbox, &stranger("e"), HOUR + 1) && ask(&mut inbox, &stranger("f"), HOUR + 2));
        assert!(!ask(&mut inbox, &stranger("g"), 3 * HOUR) && !ask(&mut inbox, &stranger("g"), DAY - 1));
        assert!(ask(&mut inbox, &stranger("g"), DAY));
    }

    #[test]
    fn one_network_causes_two_of_six_codes_and_the_owner_gets_the_others() {
        let mut inbox = Inbox::default();
        let mallory = stranger("mallory");
        assert!(ask(&mut inbox, &mallory, 0) && ask(&mut inbox, &mallory, 1) && !ask(&mut inbox, &mallory, 2));
        assert!(!ask(&mut inbox, &mallory, 2 * HOUR));
        assert!(ask(&mut inbox, &stranger("home"), 3));
    }

    #[test]
    fn a_network_that_the_address_signed_in_from_has_six_codes_of_its_own() {
        let mut inbox = Inbox::default();
        for (n, network) in (0..).zip(["a", "b", "c"]) {
            assert!(ask(&mut inbox, &stranger(network), n));
        }
        assert!(!ask(&mut inbox, &stranger("d"), 3));
        let home = known("home");
        for n in 0..3 {
            assert!(ask(&mut inbox, &home, 10 + n));
        }
        assert!(!ask(&mut inbox, &home, 20) && ask(&mut inbox, &known("office"), 21));
        assert!((0..3).all(|n| ask(&mut inbox, &home, 2 * HOUR + n)));
        assert!(!ask(&mut inbox, &home, 4 * HOUR));
    }

    #[test]
    fn signing_in_resets_the_bounds_and_spends_the_codes_of_the_address() {
        let mut inbox = Inbox::default();
        for network in ["a", "b"] {
            assert!(ask(&mut inbox, &stranger(network), i64::from(network.as_bytes()[0])));
        }
        let other = flow("other", "ada+x", at(100));
        assert!(inbox.start(other, &stranger("c"), at(100)) && !inbox.has_room(&stranger("d"), at(101)));
        let tried = inbox.try_code("n97", at(101)).unwrap();
        assert!(inbox.spend(&tried));
        assert!(inbox.has_room(&stranger("d"), at(101)));
        assert!(inbox.flow("n97", at(101)).is_none() && inbox.flow("n98", at(101)).is_none());
        assert!(inbox.flow("other", at(101)).is_some());
        assert!(!inbox.spend(&tried));
    }

    #[test]
    fn a_code_has_five_tries_and_ten_minutes() {
        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0));
        assert!((0..5).all(|_| inbox.try_code("n0", at(1)).is_some()));
        let tried = inbox.clone();
        assert!(inbox.try_code("n0", at(1)).is_none() && inbox.try_code("n1", at(1)).is_none());
        assert_eq!(inbox, tried);

        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0));
        assert_eq!(inbox.flow("n0", at(0)).unwrap().expires_in(at(0)), CODE_SECONDS);
        assert!(inbox.flow("n0", at(CODE_SECONDS - 1)).is_some() && inbox.flow("n0", at(CODE_SECONDS)).is_none());
        assert!(inbox.try_code("n0", at(CODE_SECONDS)).is_none());
    }

    #[test]
    fn what_is_over_is_kept_no_longer_than_a_day() {
        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0) && ask(&mut inbox, &stranger("b"), DAY));
        assert_eq!((inbox.flows.len(), inbox.codes.len()), (1, 1));
        assert_eq!(inbox.expires, at(2 * DAY).seconds());
    }
}
