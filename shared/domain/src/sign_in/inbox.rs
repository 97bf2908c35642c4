//! The flows of an address, and the limits on codes to it. All spellings of a mailbox share one inbox.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::session::MAX_NETWORKS;
use super::{CODE_LIFETIME, DAY, HOUR, fits_into_one_unit};
use crate::time::{Timestamp, stored};

/// Tries of one code.
const MAX_TRIES: u32 = 5;
/// Maximum unused codes in an hour and in a day: for the address, and for each network that it has signed in from.
const UNUSED_OF_HOUR: usize = 3;
const UNUSED_OF_DAY: usize = 6;
/// Codes that one unknown network may cause in a day, so that it can't keep the owner from getting one.
const UNUSED_OF_NETWORK: usize = 2;
/// Maximum known networks with unused codes: as many as an account stores.
const MAX_KNOWN: usize = MAX_NETWORKS;
/// Characters of a host that are stored: the last ones, which identify its owner.
const MAX_HOST: usize = 96;

/// One item, which must stay below 1 KB, so that a change costs one write unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Inbox {
    pub version: u64,
    flows: Vec<Flow>,
    /// Unused codes of the last day.
    codes: Vec<UnusedCode>,
    /// The second in which the item expires.
    expires: Timestamp,
}

/// An inbox as it is stored.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "vn", default)]
    version: u64,
    #[serde(rename = "fl", default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<Flow>,
    #[serde(rename = "cd", default, skip_serializing_if = "Vec::is_empty")]
    codes: Vec<String>,
    #[serde(rename = "kn", default, skip_serializing_if = "Vec::is_empty")]
    known: Vec<String>,
    #[serde(rename = "x", default, with = "stored::seconds")]
    expires: Timestamp,
}

/// A requested code. It is computed from the nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    #[serde(rename = "n")]
    pub nonce: String,
    #[serde(rename = "tr", default)]
    tries: u32,
    /// A whole second.
    #[serde(rename = "a", with = "stored::seconds")]
    at: Timestamp,
    /// The host of the page that requested it.
    #[serde(rename = "h", default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The tag of the language of the email.
    #[serde(rename = "l")]
    pub language: String,
    /// The address as it was typed, sealed. Empty once no try is left.
    #[serde(rename = "ad", default, skip_serializing_if = "String::is_empty")]
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct UnusedCode {
    /// A whole second.
    at: Timestamp,
    network: String,
    /// The address had signed in from the network before.
    is_known: bool,
}

/// A network that requests a code.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Keyed hash.
    pub network: String,
    /// The address has signed in from it before.
    pub is_known: bool,
}

impl Flow {
    #[must_use]
    pub fn new(nonce: String, host: &str, language: String, address: String, now: Timestamp) -> Self {
        let host = host.chars().skip(host.chars().count().saturating_sub(MAX_HOST)).collect();
        Self { nonce, tries: 0, at: now.start_of_second(), host, language, address }
    }

    /// The time since the code was requested.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        now.start_of_second().since(self.at)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        now < self.at + CODE_LIFETIME
    }
}

impl Inbox {
    /// Whether one more code may go to the address.
    #[must_use]
    pub fn has_room(&self, asker: &Asker, now: Timestamp) -> bool {
        let within = |time: Duration| move |code: &&UnusedCode| now < code.at + time;
        let is_counted = |code: &&UnusedCode| {
            if asker.is_known { code.is_known && code.network == asker.network } else { !code.is_known }
        };
        let counted: Vec<&UnusedCode> = self.codes.iter().filter(is_counted).filter(within(DAY)).collect();
        let of_hour = counted.iter().copied().filter(|code| within(HOUR)(code)).count();
        let of_network = counted.iter().filter(|code| code.network == asker.network).count();
        let has_place =
            if asker.is_known { self.has_place(&asker.network, now) } else { of_network < UNUSED_OF_NETWORK };
        of_hour < UNUSED_OF_HOUR && counted.len() < UNUSED_OF_DAY && has_place
    }

    /// Whether a known network is, or may become, one of those with unused codes.
    fn has_place(&self, network: &str, now: Timestamp) -> bool {
        let known = self.codes.iter().filter(|code| code.is_known && now < code.at + DAY);
        let others: BTreeSet<&str> =
            known.map(|code| code.network.as_str()).filter(|known| *known != network).collect();
        others.len() < MAX_KNOWN
    }

    /// Adds a flow, if one more code may go to the address. Returns whether it did. Safe to repeat: the response to a write
    /// may get lost.
    pub fn start(&mut self, flow: Flow, asker: &Asker, now: Timestamp) -> bool {
        if self.flows.iter().any(|started| started.nonce == flow.nonce) {
            return true;
        }
        if !self.has_room(asker, now) {
            return false;
        }
        self.flows.retain(|flow| flow.is_live(now));
        self.codes.retain(|code| now < code.at + DAY);
        self.codes.push(UnusedCode {
            at: now.start_of_second(),
            network: asker.network.clone(),
            is_known: asker.is_known,
        });
        self.flows.push(flow);
        self.expires = now.start_of_second() + DAY;
        self.make_room();
        true
    }

    /// Drops flows before the newest one until the item is small enough: first those with the longest addresses, so that
    /// long spellings of the address can't push out the owner's flow, and of those the oldest.
    fn make_room(&mut self) {
        while !fits_into_one_unit(self) {
            let older = self.flows.len().saturating_sub(1);
            let places = 0..older;
            let Some(place) = places.max_by_key(|place| (self.flows[*place].address.len(), Reverse(*place))) else {
                return;
            };
            self.flows.remove(place);
        }
    }

    /// The flow of this nonce, while its code is valid.
    #[must_use]
    pub fn flow(&self, nonce: &str, now: Timestamp) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.nonce == nonce && flow.is_live(now))
    }

    /// Counts a try, before the code is checked. `None` if there is no such flow, or no try is left. Also removes expired flows,
    /// and the address with the last try.
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

    /// Spends a flow whose code was right, with the others of the same address, and resets the limits. False if it is already
    /// spent.
    pub fn spend(&mut self, flow: &Flow) -> bool {
        let is_there = self.flows.iter().any(|other| other.nonce == flow.nonce);
        self.flows.retain(|other| other.nonce != flow.nonce && other.address != flow.address);
        self.codes.clear();
        is_there
    }
}

/// Digits of an age in seconds. Those of a day fit into three.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const AGE_DIGITS: usize = 3;

/// The codes of one network in one text, since numbers and names of fields would take twice the space: its hash, a dot,
/// and how much older each code is than the newest flow.
fn write_codes(codes: &[UnusedCode], is_known: bool, newest: Timestamp) -> Vec<String> {
    let mut networks: Vec<(&str, String)> = Vec::new();
    for code in codes.iter().filter(|code| code.is_known == is_known) {
        let place = networks.iter().position(|(network, _)| *network == code.network).unwrap_or_else(|| {
            networks.push((&code.network, format!("{}.", code.network)));
            networks.len() - 1
        });
        let age =
            usize::try_from(newest.since(code.at).as_secs()).unwrap_or(usize::MAX).min((1 << (6 * AGE_DIGITS)) - 1);
        networks[place].1.extend((0..AGE_DIGITS).rev().map(|digit| char::from(DIGITS[age >> (6 * digit) & 63])));
    }
    networks.into_iter().map(|(_, text)| text).collect()
}

fn read_codes(texts: &[String], is_known: bool, newest: Timestamp) -> impl Iterator<Item = UnusedCode> {
    let of_network = move |text: &String| -> Vec<UnusedCode> {
        let (network, ages) = text.split_once('.').unwrap_or_default();
        let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte).unwrap_or(0);
        let ages = ages.as_bytes().chunks_exact(AGE_DIGITS).map(|age| age.iter().fold(0, |sum, b| sum << 6 | digit(b)));
        let code = |age: usize| UnusedCode {
            at: newest - Duration::from_secs(age as u64),
            network: network.to_owned(),
            is_known,
        };
        ages.map(code).collect()
    };
    texts.iter().flat_map(of_network)
}

impl From<Stored> for Inbox {
    fn from(stored: Stored) -> Self {
        let newest = stored.expires - DAY;
        let codes = read_codes(&stored.codes, false, newest).chain(read_codes(&stored.known, true, newest)).collect();
        Self { version: stored.version, flows: stored.flows, codes, expires: stored.expires }
    }
}

impl From<Inbox> for Stored {
    fn from(inbox: Inbox) -> Self {
        let codes = |is_known| write_codes(&inbox.codes, is_known, inbox.expires - DAY);
        let (codes, known) = (codes(false), codes(true));
        Self { version: inbox.version, flows: inbox.flows, codes, known, expires: inbox.expires }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seconds.
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

    /// Requests a code. Returns whether one is sent.
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
        assert_eq!((inbox.flows.len(), inbox.codes.len()), (1, 1));
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

    /// An inbox with as many codes as there may be, all of long addresses and hosts. The last is requested at
    /// `seconds`.
    fn full(seconds: i64) -> Inbox {
        let address = |n: usize| format!("{n:03}{}", "x".repeat(373));
        let mut inbox = Inbox::default();
        let mut ask = |asker: &Asker, ago: i64| {
            let now = at(seconds - ago);
            let (nonce, host) = (format!("{ago:022}"), "h".repeat(253));
            let flow = Flow::new(nonce, &host, "en-US".to_owned(), address(asker.network.len()), now);
            assert!(inbox.start(flow, asker, now));
        };
        let networks = |name: &str, count: usize| (0..count).map(|n| format!("{name}{n:0>8}")).collect::<Vec<_>>();
        let (others, homes) = (networks("out", 6), networks("own", 8));
        for ago in [2 * HOUR, 0] {
            let hour = usize::from(ago == 0);
            for (place, network) in others[3 * hour..][..3].iter().enumerate() {
                ask(&stranger(network), ago + 99 - i64::try_from(place).unwrap());
            }
            for (place, network) in homes.iter().flat_map(|network| [network; 3]).enumerate() {
                ask(&known(network), ago + 30 - i64::try_from(place).unwrap());
            }
        }
        inbox
    }

    #[test]
    fn the_largest_inbox_fits_into_one_write_unit_and_its_newest_flow_works() {
        let mut inbox = full(DAY);
        inbox.version = 999_999_999;
        assert_eq!(inbox.codes.len(), 6 + 8 * 6);
        assert!(super::super::fits_into_one_unit(&inbox), "{inbox:?}");
        assert!(inbox.flows.last().unwrap().is_live(at(DAY)) && inbox.flows.last().unwrap().host.len() == MAX_HOST);
        assert!(!inbox.has_room(&known("a ninth one"), at(DAY)) && inbox.has_room(&known("a ninth one"), at(3 * DAY)));
    }

    #[test]
    fn an_inbox_is_read_as_it_was_written() {
        let mut inbox = full(DAY);
        inbox.codes.sort_by_key(|code| (code.is_known, code.network.clone(), code.at));
        let written = serde_json::to_value(&inbox).unwrap();
        let mut read: Inbox = serde_json::from_value(written).unwrap();
        read.codes.sort_by_key(|code| (code.is_known, code.network.clone(), code.at));
        assert_eq!(read, inbox);
    }

    #[test]
    fn a_long_spelling_of_the_address_drops_no_flow_of_the_owner() {
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
        assert_eq!((inbox.flows.len(), inbox.codes.len()), (1, 1));
        assert_eq!(inbox.expires, at(2 * DAY));
    }
}
