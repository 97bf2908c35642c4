//! The flows of an address, and the limits on codes to it. All spellings of a mailbox share one inbox.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CODE_LIFETIME, DAY, HOUR, fits_into_one_unit};
use crate::time::{Timestamp, stored};

/// Maximum tries per code.
const MAX_TRIES: u32 = 5;
/// Maximum unused codes per hour and per day: for all unknown networks together, and for each network that the address has
/// signed in from.
const UNUSED_OF_HOUR: usize = 3;
const UNUSED_OF_DAY: usize = 6;
/// Maximum unused codes that one unknown network may cause per day, so that it can't prevent the owner from getting
/// one.
const UNUSED_OF_NETWORK: usize = 2;
/// Maximum stored characters of a host. The last characters are stored, because they identify the owner of the host.
const MAX_HOST: usize = 96;

/// An inbox. Its item must stay below 1 KB, so that a change costs one write unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "fl", default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<Flow>,
    /// Unused codes of the last day, by the unknown network that requested them.
    #[serde(rename = "cu", default, skip_serializing_if = "BTreeMap::is_empty")]
    unknown: UnusedCodes,
    /// Unused codes of the last day, by the known network that requested them. The address has signed in from a known network
    /// before.
    #[serde(rename = "ck", default, skip_serializing_if = "BTreeMap::is_empty")]
    known: UnusedCodes,
    /// Expiry of the item, in whole seconds.
    #[serde(rename = "x", default, with = "stored::seconds")]
    expires: Timestamp,
}

type UnusedCodes = BTreeMap<String, Vec<RequestedAt>>;

/// When a code was requested, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct RequestedAt(#[serde(with = "stored::seconds")] Timestamp);

/// A requested code. The code itself isn't stored, because it is computed from the nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    #[serde(rename = "n")]
    pub nonce: String,
    #[serde(rename = "tr", default)]
    tries: u32,
    /// When the code was requested, in whole seconds.
    #[serde(rename = "a", with = "stored::seconds")]
    at: Timestamp,
    /// The host of the page that requested the code.
    #[serde(rename = "h", default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The language tag of the email.
    #[serde(rename = "l")]
    pub language: String,
    /// The address as typed, sealed. Empty once no try is left.
    #[serde(rename = "ad", default, skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// A network that requests a code.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Keyed hash of the network.
    pub network: String,
    /// Whether the address has signed in from this network before.
    pub is_known: bool,
}

impl Flow {
    #[must_use]
    pub fn new(nonce: String, host: &str, language: String, address: String, now: Timestamp) -> Self {
        let host = host.chars().skip(host.chars().count().saturating_sub(MAX_HOST)).collect();
        Self { nonce, tries: 0, at: now.start_of_second(), host, language, address }
    }

    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        now.start_of_second().since(self.at)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        self.at.is_within(CODE_LIFETIME, now)
    }
}

impl Inbox {
    fn may_ask(&self, asker: &Asker, now: Timestamp) -> bool {
        let within =
            |codes: &[RequestedAt], time: Duration| codes.iter().filter(|code| code.0.is_within(time, now)).count();
        let networks = if asker.is_known { &self.known } else { &self.unknown };
        let of_network = networks.get(&asker.network).cloned().unwrap_or_default();
        let is_spared = asker.is_known || within(&of_network, DAY) < UNUSED_OF_NETWORK;
        let counted = if asker.is_known { of_network } else { networks.values().flatten().copied().collect() };
        is_spared && within(&counted, HOUR) < UNUSED_OF_HOUR && within(&counted, DAY) < UNUSED_OF_DAY
    }

    /// Whether one more code may be sent to the address.
    #[must_use]
    pub fn has_room(&self, flow: &Flow, asker: &Asker, now: Timestamp) -> bool {
        self.clone().start(flow.clone(), asker, now)
    }

    /// Adds a flow if one more code may be sent to the address. Returns whether the inbox has the flow; if not, the
    /// inbox must not be stored. Safe to repeat, because the response to a write may be lost.
    pub fn start(&mut self, flow: Flow, asker: &Asker, now: Timestamp) -> bool {
        if self.flows.iter().any(|started| started.nonce == flow.nonce) {
            return true;
        }
        if !self.may_ask(asker, now) {
            return false;
        }
        self.flows.retain(|flow| flow.is_live(now));
        for networks in [&mut self.unknown, &mut self.known] {
            for codes in networks.values_mut() {
                codes.retain(|code| code.0.is_within(DAY, now));
            }
            networks.retain(|_, codes| !codes.is_empty());
        }
        let networks = if asker.is_known { &mut self.known } else { &mut self.unknown };
        networks.entry(asker.network.clone()).or_default().push(RequestedAt(now.start_of_second()));
        self.flows.push(flow);
        self.expires = now.start_of_second() + DAY;
        self.make_room()
    }

    /// Drops flows other than the newest until the item is small enough: first the flow with the longest address, or the oldest
    /// of several. Long spellings of the address can't push out the owner's flow this way. Returns false if the newest flow and
    /// the unused codes alone are too large, which takes a very long address and dozens of codes.
    fn make_room(&mut self) -> bool {
        while !fits_into_one_unit(self) {
            let older = self.flows.len().saturating_sub(1);
            let places = 0..older;
            let Some(place) = places.max_by_key(|place| (self.flows[*place].address.len(), Reverse(*place))) else {
                return false;
            };
            self.flows.remove(place);
        }
        true
    }

    /// The flow with this nonce, while its code is valid.
    #[must_use]
    pub fn flow(&self, nonce: &str, now: Timestamp) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.nonce == nonce && flow.is_live(now))
    }

    /// Counts a try, before the code is checked, and returns the flow. `None` if there is no such flow, or no try is left. Also
    /// removes expired flows, and the stored address after the last try.
    pub fn try_code(&mut self, nonce: &str, now: Timestamp) -> Option<Flow> {
        self.flows.retain(|flow| flow.is_live(now));
        let flow = self.flows.iter_mut().find(|flow| flow.nonce == nonce && flow.tries < MAX_TRIES)?;
        flow.tries += 1;
        let tried = flow.clone();
        if flow.tries == MAX_TRIES {
            (flow.host, flow.address) = (String::new(), String::new());
        }
        Some(tried)
    }

    /// Removes a flow after its code was entered correctly, removes the other flows of the same address, and resets the
    /// limits. Returns false if the flow was already removed.
    pub fn spend(&mut self, flow: &Flow) -> bool {
        let is_there = self.flows.iter().any(|other| other.nonce == flow.nonce);
        self.flows.retain(|other| other.nonce != flow.nonce && other.address != flow.address);
        self.unknown.clear();
        self.known.clear();
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Durations in seconds.
    const CODE: i64 = 10 * 60;
    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

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
        Flow::new(nonce.to_owned(), "www.example.org", "en".to_owned(), address.to_owned(), now)
    }

    /// Requests a code. Returns whether the code is sent.
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
    fn codes_requested_while_the_clock_was_ahead_neither_count_nor_stay_valid() {
        let (mut inbox, ahead) = (Inbox::default(), 400 * DAY);
        for (n, network) in (0..).zip(["a", "b", "c"]) {
            assert!(ask(&mut inbox, &stranger(network), ahead + n));
        }
        assert!(inbox.flow(&format!("n{ahead}"), at(0)).is_none());
        assert!(ask(&mut inbox, &stranger("a"), 0));
        assert_eq!((inbox.flows.len(), count(&inbox)), (1, 1));
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
    fn a_network_that_the_address_signed_in_from_has_six_separate_codes() {
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
        assert!(inbox.start(other, &stranger("c"), at(100)) && !inbox.may_ask(&stranger("d"), at(101)));
        let tried = inbox.try_code("n97", at(101)).unwrap();
        assert!(inbox.spend(&tried));
        assert!(inbox.may_ask(&stranger("d"), at(101)));
        assert!(inbox.flow("n97", at(101)).is_none() && inbox.flow("n98", at(101)).is_none());
        assert!(inbox.flow("other", at(101)).is_some());
        assert!(!inbox.spend(&tried));
    }

    #[test]
    fn a_code_has_five_tries_and_ten_minutes() {
        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0));
        assert!((0..5).all(|_| inbox.try_code("n0", at(1)).is_some()));
        assert!(inbox.flows[0].address.is_empty() && inbox.flows[0].host.is_empty());
        let tried = inbox.clone();
        assert!(inbox.try_code("n0", at(1)).is_none() && inbox.try_code("n1", at(1)).is_none());
        assert_eq!(inbox, tried);

        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0));
        assert!(inbox.flow("n0", at(CODE - 1)).is_some() && inbox.flow("n0", at(CODE)).is_none());
        assert!(inbox.try_code("n0", at(CODE)).is_none() && inbox.flows.is_empty());
    }

    #[test]
    fn a_flow_that_is_started_again_is_one_flow_with_one_code() {
        let mut inbox = Inbox::default();
        assert!((0..3).all(|_| ask(&mut inbox, &stranger("a"), 0)));
        assert_eq!((inbox.flows.len(), count(&inbox)), (1, 1));
        assert!((0..5).all(|_| inbox.try_code("n0", at(1)).is_some()) && inbox.try_code("n0", at(1)).is_none());
    }

    #[test]
    fn the_last_try_may_be_right() {
        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0));
        let tried = (0..5).map(|_| inbox.try_code("n0", at(1)).unwrap()).last().unwrap();
        assert_eq!(tried.address, "ada");
        assert!(inbox.spend(&tried) && inbox.flows.is_empty());
    }

    /// Maximum unused codes: six for networks that the address hasn't signed in from, and six for each of the eight networks
    /// that an account remembers.
    const MAX_CODES: usize = 6 + 8 * 6;

    fn count(inbox: &Inbox) -> usize {
        inbox.unknown.values().chain(inbox.known.values()).map(Vec::len).sum()
    }

    /// An inbox after requests for [`MAX_CODES`] codes, with the largest possible flows for an address of this length.
    fn full(length: usize, host: usize) -> Inbox {
        let sealed = "x".repeat(((12 + length + 16) * 4).div_ceil(3));
        let (mut inbox, mut version) = (Inbox::default(), 999_999_900);
        let mut ask = |asker: &Asker, seconds: i64| {
            let flow =
                Flow::new(format!("{version:022}"), &"h".repeat(host), "en-US".to_owned(), sealed.clone(), at(seconds));
            let before = inbox.clone();
            assert!(inbox.may_ask(asker, at(seconds)));
            if inbox.start(flow, asker, at(seconds)) {
                version += 1;
                inbox.version = version;
            } else {
                inbox = before;
            }
            assert!(fits_into_one_unit(&inbox) && inbox.flows.last().unwrap().is_live(at(seconds)), "{inbox:?}");
        };
        for hour in 0..2 {
            for n in 0..3 {
                ask(&stranger(&format!("out{:08}", 3 * hour + n)), hour * HOUR);
            }
            for network in 0..8 {
                (0..3).for_each(|_| ask(&known(&format!("own{network:08}")), hour * HOUR));
            }
        }
        inbox
    }

    #[test]
    fn an_inbox_fits_in_one_write_unit_with_all_codes_except_for_the_longest_addresses() {
        assert_eq!(count(&full(150, 24)), MAX_CODES);
        assert_eq!(count(&full(96, MAX_HOST)), MAX_CODES);
        assert_eq!(count(&full(254, MAX_HOST)), 31);
    }

    #[test]
    fn long_spellings_of_an_address_do_not_evict_a_flow_of_its_owner() {
        let mut inbox = Inbox::default();
        let start = |inbox: &mut Inbox, address: String, asker: Asker, seconds| {
            assert!(inbox.start(flow(&format!("n{seconds}"), &address, at(seconds)), &asker, at(seconds)));
        };
        start(&mut inbox, "a".repeat(64), known("home"), 0);
        start(&mut inbox, "x".repeat(376), stranger("mallory"), 1);
        start(&mut inbox, "x".repeat(376), stranger("mallory"), 2);
        start(&mut inbox, "x".repeat(376), stranger("malice"), 3);
        assert!(inbox.flow("n0", at(4)).is_some() && inbox.flow("n3", at(4)).is_some());
        assert!(inbox.flow("n1", at(4)).is_none());
    }

    #[test]
    fn codes_are_kept_no_longer_than_a_day() {
        let mut inbox = Inbox::default();
        assert!(ask(&mut inbox, &stranger("a"), 0) && ask(&mut inbox, &stranger("b"), DAY));
        assert_eq!((inbox.flows.len(), count(&inbox)), (1, 1));
        assert_eq!(inbox.expires, at(2 * DAY));
    }
}
