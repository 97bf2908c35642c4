//! Ids of comments, users, threads and visitors. `store::keys` builds the keys of items from them.
//!
//! A comment's id contains its creation time, so ids sort by time. Ids from `SEAM` up have millisecond precision. Ids below
//! `SEAM` have second precision, for comments that were written elsewhere before 2026-02-02T16:22:18.368Z.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::time::{Clock, Timestamp};

/// All ids are below this bound, so that JSON parsers with 64-bit floats represent them exactly.
pub const ID_BOUND: u64 = 1 << 53;
/// User ids from here to [`ID_BOUND`] are hashes of a `sub` that isn't itself an id.
const HASHED_IDS: u64 = 1 << 52;
/// The epoch of ids from [`SEAM`] up: 2025-01-01 in Unix milliseconds.
const EPOCH: i64 = 1_735_689_600_000;
/// The number of low bits in ids from [`SEAM`] up. They are random, because several comments may be created in one millisecond.
const RANDOM_BITS: u32 = 12;
/// The first id with millisecond precision. Lower ids are for earlier times, and their high bits are Unix seconds.
const SEAM: u64 = 1 << 47;
/// The number of low bits in ids below [`SEAM`]. They distinguish comments of the same second.
const TIE_BITS: u32 = 16;
/// Maximum lead of an instance's ids over its clock: one second. Up to this lead, ids keep increasing even if they are created
/// faster than the clock ticks. If the clock is set back further, ids follow the clock.
const MOST_AHEAD: u64 = 1_000 << RANDOM_BITS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommentId(pub u64);

impl CommentId {
    /// The number that this id contributes to a [`fingerprint`].
    #[must_use]
    pub fn mark(self) -> i64 {
        // SplitMix64's finalizer. Only 32 bits are kept, so the marks of two billion comments add up without overflow.
        let mut bits = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::from(u32::try_from((bits ^ (bits >> 31)) >> 32).unwrap_or_default())
    }

    #[must_use]
    pub fn created_at(self) -> Timestamp {
        if self.0 < SEAM {
            Timestamp((self.0 >> TIE_BITS).cast_signed() * 1000)
        } else {
            Timestamp((self.0 >> RANDOM_BITS).cast_signed() + EPOCH)
        }
    }

    /// The highest id of this time, if the time is not before the first id with millisecond precision.
    #[must_use]
    pub fn last_of(time: Timestamp) -> Self {
        Self(u64::try_from(time.0 - EPOCH + 1).map_or(0, |next| (next << RANDOM_BITS).saturating_sub(1)))
    }

    /// The possible ids of a comment that was written elsewhere at this time, in the order to try them. The low bits of
    /// `tie` choose the first id. `None` if the time is before 1970 or too late for an id.
    pub fn slots(at: Timestamp, tie: u64) -> Option<impl Iterator<Item = Self>> {
        let (time, bits) =
            if at < Self(SEAM).created_at() { (at.seconds(), TIE_BITS) } else { (at.0 - EPOCH, RANDOM_BITS) };
        let slots = 1 << bits;
        let first = u64::try_from(time).ok()?.checked_mul(slots).filter(|first| *first < ID_BOUND)?;
        let ids = (0..slots).map(move |n| Self(first | (tie.wrapping_add(n) % slots)));
        // The first id of 1970 would be 0, which isn't an id.
        Some(ids.filter(|id| id.0 > 0))
    }
}

/// A hash of a set of comments, which distinguishes sets of the same size. It is a sum, so one addition adds or removes a
/// comment.
#[must_use]
pub fn fingerprint(ids: impl IntoIterator<Item = CommentId>) -> i64 {
    ids.into_iter().map(CommentId::mark).sum()
}

/// The prefix of hashed source ids. Ids that the import generates have a single tilde as their prefix.
pub(super) const HASHED_SOURCE: &str = "~~";

/// The id of an imported comment on the service that it came from, prefixed with the import format and, if known, the site:
/// `disqus:558`, `disqus@blog:558`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub String);

impl SourceId {
    /// The prefix of source ids from a site. Colons in the site's name are escaped, so the prefix ends at the first colon.
    #[must_use]
    pub fn prefix(format: &str, site: Option<&str>) -> String {
        match site {
            None => format.to_owned(),
            Some(site) => format!("{format}@{}", site.replace('%', "%25").replace(':', "%3A")),
        }
    }

    #[must_use]
    pub fn format(&self) -> &str {
        self.0.split([':', '@']).next().unwrap_or_default()
    }

    /// Whether this is a hash created by `PersonHashes::source`.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.0.split_once(':').is_some_and(|(_, id)| id.starts_with(HASHED_SOURCE))
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Short hashes of an imported comment's page and writer, which distinguish it from another site's comment with the same source
/// id. The writer is hashed by account or name, or by address if both are missing. The hashes have no key, so anyone who knows
/// a name can compare it with the hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
}

impl Provenance {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether both pages are known and differ.
    #[must_use]
    pub fn is_on_another_page(&self, other: &Self) -> bool {
        self.thread.as_ref().zip(other.thread.as_ref()).is_some_and(|(own, other)| own != other)
    }

    /// Whether both writers are known and differ.
    #[must_use]
    pub fn is_by_another_writer(&self, other: &Self) -> bool {
        self.writer.as_ref().zip(other.writer.as_ref()).is_some_and(|(own, other)| own != other)
    }
}

/// A user of the host application, or an account of our own sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub u64);

/// Reads an id as written in addresses: plain decimal, no sign, no leading zero, below [`ID_BOUND`].
fn plain_decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|id| plain && *id < ID_BOUND)
}

macro_rules! decimal {
    ($($id:ident)*) => {$(
        impl FromStr for $id {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                plain_decimal(text).map(Self).ok_or(())
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
decimal!(CommentId UserId);

impl UserId {
    /// The id in a token's `sub`, if it is a positive integer below 2^52 in plain decimal.
    #[must_use]
    pub fn of_sub(sub: &str) -> Option<Self> {
        plain_decimal(sub).filter(|id| *id < HASHED_IDS).map(Self)
    }

    /// Whether this is the hash of a `sub` that isn't itself an id.
    #[must_use]
    pub fn is_hashed(self) -> bool {
        self.0 >= HASHED_IDS
    }

    /// The id for a `sub` of this issuer that isn't itself an id, and a longer hash, which distinguishes subjects with the same
    /// id.
    #[must_use]
    pub fn hashed(salt: &Secret, issuer: &str, sub: &str) -> (Self, String) {
        let tag = keyed_tag(salt, &["sub", issuer, sub]);
        let tail = tag.as_ref().last_chunk().map_or(0, |chunk| u64::from_be_bytes(*chunk));
        (Self(HASHED_IDS | (tail % HASHED_IDS)), text_of(tag))
    }
}

/// Whether `sub` has a valid length (OpenID Connect Core, section 2).
#[must_use]
pub fn is_subject(sub: &str) -> bool {
    (1..=255).contains(&sub.chars().count())
}

/// The thread of one record of the host application. Serialized as `type#record`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadId {
    pub kind: String,
    /// 1 to 128 characters of `A-Z a-z 0-9 . _ ~ : -`.
    pub record: String,
}

impl ThreadId {
    /// The id of a thread; `None` if `record` is invalid, `.` or `..`. The caller must check `kind` against the settings.
    #[must_use]
    pub fn new(kind: &str, record: &str) -> Option<Self> {
        Self::stored(kind, record).filter(|thread| ![".", ".."].contains(&thread.record.as_str()))
    }

    /// Like [`Self::new`], for stored threads. Their record may be `.` or `..`, which earlier versions allowed.
    #[must_use]
    pub fn stored(kind: &str, record: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._~:-".contains(&b);
        let valid = (1..=128).contains(&record.len()) && record.bytes().all(allowed);
        valid.then(|| Self { kind: kind.to_owned(), record: record.to_owned() })
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.record)
    }
}

impl From<ThreadId> for String {
    fn from(thread: ThreadId) -> Self {
        thread.to_string()
    }
}

impl TryFrom<String> for ThreadId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (kind, record) = text.split_once('#').ok_or("not type#record")?;
        Self::stored(kind, record).ok_or("not a record id")
    }
}

/// The owner of comments, likes and reports: `u` and a user's id, `k` and the keyed hash of a guest's `Comment-Key`, or
/// `g` and the keyed hash of a guest's network and user agent. A hash cannot be reversed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Visitor(pub String);

impl From<UserId> for Visitor {
    fn from(id: UserId) -> Self {
        Self(format!("u{id}"))
    }
}

impl Visitor {
    /// `None` for guests.
    #[must_use]
    pub fn user(&self) -> Option<UserId> {
        self.0.strip_prefix('u')?.parse().ok()
    }

    /// A visitor who owns nothing, for responses that are the same for everyone.
    #[must_use]
    pub fn nobody() -> Self {
        Self(String::new())
    }

    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this identifies one person: a user, or a guest with a key. Several people may share a network and a user agent.
    #[must_use]
    pub fn is_one_person(&self) -> bool {
        self.0.starts_with(['u', 'k'])
    }
}

impl fmt::Display for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const HASH_LENGTH: usize = 22;

/// A keyed hash of the parts: 132 bits, as 22 characters that are safe in keys and addresses.
#[must_use]
pub fn keyed_hash(salt: &Secret, parts: &[&str]) -> String {
    text_of(keyed_tag(salt, parts))
}

/// Whether the text has the form of a [`keyed_hash`].
#[must_use]
pub fn is_keyed_hash(text: &str) -> bool {
    text.len() == HASH_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// Identifies the salt without revealing it, so that hashes made with different salts can be told apart.
#[must_use]
pub fn salt_fingerprint(salt: &Secret) -> String {
    keyed_hash(salt, &["fingerprint of the salt"])
}

fn keyed_tag(salt: &Secret, parts: &[&str]) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt.expose().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.sign()
}

fn text_of(tag: hmac::Tag) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(tag);
    text.truncate(HASH_LENGTH);
    text
}

#[must_use]
pub fn sha256_hex(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

type Fill = dyn Fn(&mut [u8]) + Send + Sync;

#[derive(Clone)]
pub struct Random(Arc<Fill>);

impl Random {
    /// # Panics
    ///
    /// The returned source panics if the system has no random source, because the service can't run safely without one.
    #[must_use]
    pub fn system() -> Self {
        let random = SystemRandom::new();
        Self::new(move |bytes| random.fill(bytes).expect("the system has a random source"))
    }

    pub fn new(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }
}

/// Generates ids that contain the time. The ids of one instance increase, so comments of the same millisecond keep their order.
/// An id may be generated twice: by two instances, after a clock was set back, or by [`after`](IdSource::after). The
/// conditional put of the second item then fails and is retried with another id.
pub struct IdSource {
    clock: Clock,
    random: Random,
    last: Mutex<u64>,
}

impl IdSource {
    #[must_use]
    pub fn new(clock: Clock, random: Random) -> Self {
        Self { clock, random, last: Mutex::new(0) }
    }

    #[must_use]
    pub fn next(&self) -> CommentId {
        let elapsed = u64::try_from(self.clock.now().0 - EPOCH).unwrap_or(0);
        let low = u64::from(u16::from_be_bytes(self.random.bytes())) % (1 << RANDOM_BITS);
        let now = (elapsed << RANDOM_BITS | low).max(SEAM);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = if now + MOST_AHEAD < *last { now } else { now.max(*last + 1) };
        CommentId(*last)
    }

    /// An id above `floor`. If `floor` is ahead of the clock, the id is at least `steps` milliseconds above `floor`,
    /// and later ids may be below it.
    #[must_use]
    pub fn after(&self, floor: CommentId, steps: u64) -> CommentId {
        let id = self.next();
        // The low bits of `id` make it unlikely that two ids above the same floor are equal.
        let raised = || CommentId(floor.0 + 1 + (steps << RANDOM_BITS) + id.0 % (1 << RANDOM_BITS));
        if id > floor { id } else { raised() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seam() -> Timestamp {
        Timestamp::parse("2026-02-02T16:22:18.368Z").unwrap()
    }

    /// A source with a fixed clock. The low bits of its ids begin at zero, so that many ids fit into a millisecond.
    fn source_at(time: Timestamp) -> IdSource {
        source(Clock::new(move || time))
    }

    fn source(clock: Clock) -> IdSource {
        IdSource::new(clock, Random::new(|bytes| bytes.fill(0)))
    }

    fn slot(at: Timestamp, tie: u64) -> Option<CommentId> {
        CommentId::slots(at, tie)?.next()
    }

    #[test]
    fn ids_grow_within_a_millisecond_and_hold_their_time() {
        let time = Timestamp(seam().0 + 5_000);
        let ids = source_at(time);
        let handed: Vec<CommentId> = (0..10_000).map(|_| ids.next()).collect();
        assert!(handed.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(handed[0].created_at(), time);
    }

    #[test]
    fn an_id_above_a_future_id_does_not_advance_later_ids() {
        let now = Timestamp(seam().0 + 5_000);
        let ids = source_at(now);
        let ahead = source_at(Timestamp(now.0 + 3_600_000)).next();
        let raised: Vec<CommentId> = (0..100).map(|step| ids.after(ahead, step)).collect();
        assert!(raised[0] > ahead && raised.windows(2).all(|pair| pair[0] < pair[1]), "{raised:?}");
        assert!(raised.iter().all(|id| id.created_at().seconds() == ahead.created_at().seconds()), "{raised:?}");
        assert_eq!(ids.next().created_at(), now);
        let behind = source_at(Timestamp(now.0 - 1)).next();
        assert_eq!(ids.after(behind, 100).created_at(), now);
    }

    #[test]
    fn ids_above_the_same_one_differ() {
        let ids = source_at(Timestamp(seam().0 + 5_000));
        let ahead = source_at(Timestamp(seam().0 + 6_000)).next();
        let handed: std::collections::BTreeSet<CommentId> = (0..1_000).map(|_| ids.after(ahead, 3)).collect();
        assert_eq!(handed.len(), 1_000);
    }

    #[test]
    fn ids_ignore_a_clock_set_back_by_a_second_and_follow_one_set_back_further() {
        let time = Arc::new(std::sync::atomic::AtomicI64::new(seam().0 + 7_200_000));
        let clock = Clock::new({
            let time = Arc::clone(&time);
            move || Timestamp(time.load(std::sync::atomic::Ordering::Relaxed))
        });
        let ids = source(clock);
        let first = ids.next();
        time.fetch_sub(900, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ids.next(), CommentId(first.0 + 1));
        let now = time.fetch_sub(3_600_000, std::sync::atomic::Ordering::Relaxed) - 3_600_000;
        let handed = [ids.next(), ids.next()];
        assert_eq!(handed.map(CommentId::created_at), [Timestamp(now); 2]);
        assert!(handed[0] < handed[1]);
    }

    #[test]
    fn later_ids_are_above_the_last_one_of_a_time() {
        for time in [seam(), Timestamp(seam().0 + 5_000), Timestamp(0), Timestamp(i64::MIN / 2)] {
            let last = CommentId::last_of(time);
            assert!(source_at(Timestamp(time.0 + 1)).next() > last, "{time:?}");
            assert!(time < seam() || CommentId(last.0 + 1).created_at() == Timestamp(time.0 + 1), "{time:?}");
        }
    }

    #[test]
    fn ids_by_the_millisecond_reach_two_to_the_47_at_the_seam() {
        assert_eq!(CommentId(SEAM).created_at(), seam());
        assert_eq!(slot(seam(), 0), Some(CommentId(SEAM)));
        let before = slot(Timestamp(seam().0 - 1), u64::MAX).unwrap();
        assert!(before.0 < SEAM);
        assert_eq!(before.created_at().to_string(), "2026-02-02T16:22:18+00:00");
    }

    #[test]
    fn a_clock_before_the_seam_gives_ids_at_the_seam() {
        let ids = source_at(Timestamp(EPOCH + 5_000));
        assert_eq!((ids.next().created_at(), ids.next().0), (seam(), SEAM + 1));
    }

    #[test]
    fn times_before_1970_or_beyond_the_largest_id_have_no_slots() {
        assert_eq!(slot(Timestamp(0), 0), Some(CommentId(1)), "0 isn't an id");
        assert_eq!(slot(Timestamp(0), 7), Some(CommentId(7)));
        assert_eq!(CommentId(7).created_at(), Timestamp(0));
        let last = CommentId(ID_BOUND - 1).created_at();
        assert_eq!(slot(last, u64::MAX), Some(CommentId(ID_BOUND - 1)));
        for refused in [Timestamp(-1), Timestamp(i64::MIN), Timestamp(last.0 + 1), Timestamp(i64::MAX)] {
            assert!(slot(refused, 0).is_none(), "{refused:?}");
        }
    }

    #[test]
    fn the_slots_of_a_time_start_at_the_tie_and_contain_each_id_once() {
        for (time, count) in [(Timestamp(1_000_000_000_000), 1 << 16), (seam(), 1 << 12)] {
            let slots: Vec<CommentId> = CommentId::slots(time, 3).unwrap().collect();
            assert_eq!(slots[1].0, slots[0].0 + 1);
            assert!(slots.iter().all(|slot| slot.created_at() == time));
            assert_eq!(slots.into_iter().collect::<std::collections::BTreeSet<_>>().len(), count);
        }
    }

    /// Times before and after the seam, with more samples near it.
    fn times() -> impl Strategy<Value = Timestamp> {
        let last = CommentId(ID_BOUND - 1).created_at().0;
        prop_oneof![0..=last, seam().0 - 5_000..seam().0 + 5_000].prop_map(Timestamp)
    }

    /// Ids that comments may have. The highest ids below the seam represent no time.
    fn ids() -> impl Strategy<Value = CommentId> {
        let is_of_a_time = |id: &CommentId| id.0 >= SEAM || id.created_at() < seam();
        (1..ID_BOUND).prop_map(CommentId).prop_filter("no comment has it", is_of_a_time)
    }

    proptest! {
        #[test]
        fn an_id_holds_its_time_to_the_second(time in times(), tie in any::<u64>()) {
            let created_at = slot(time, tie).unwrap().created_at();
            prop_assert_eq!(created_at.seconds(), time.seconds());
            prop_assert!(created_at == time || time < seam());
        }

        #[test]
        fn ids_are_in_the_order_of_their_seconds(times in (times(), times()), ties in any::<(u64, u64)>()) {
            let (one, other) = (slot(times.0, ties.0).unwrap(), slot(times.1, ties.1).unwrap());
            let seconds = times.0.seconds().cmp(&times.1.seconds());
            prop_assert_eq!(one.cmp(&other), seconds.then(one.cmp(&other)));
        }

        #[test]
        fn times_are_in_the_order_of_ids(one in ids(), other in ids()) {
            let (low, high) = (one.min(other), one.max(other));
            prop_assert!(low.created_at() <= high.created_at());
        }
    }

    #[test]
    fn sets_of_one_size_have_different_fingerprints() {
        let first = 1_000_000 << RANDOM_BITS;
        let ids: Vec<CommentId> = (0..100).map(|n| CommentId(first + n)).collect();
        let fingerprints: std::collections::BTreeSet<i64> =
            ids.iter().map(|missing| fingerprint(ids.iter().copied().filter(|id| id != missing))).collect();
        assert_eq!(fingerprints.len(), 100);
    }

    #[test]
    fn ids_stay_below_two_to_the_53_for_a_lifetime() {
        let year_2090 = Timestamp(3_786_912_000_000);
        assert!(IdSource::new(Clock::new(move || year_2090), Random::system()).next().0 < ID_BOUND);
    }

    #[test]
    fn ids_in_addresses_are_plain_decimal() {
        assert_eq!("7".parse(), Ok(CommentId(7)));
        for bad in ["", "0", "007", "+7", "-7", "7.0", "9007199254740992", "٧", "1e3", "99999999999999999999999"] {
            assert_eq!(bad.parse::<CommentId>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn a_sub_that_is_a_plain_decimal_below_two_to_the_52_is_the_user_id() {
        for id in [1, 7, HASHED_IDS - 1] {
            assert_eq!(UserId::of_sub(&id.to_string()), Some(UserId(id)));
        }
        let odd = ["", "0", "007", "+7", "-7", " 7", "7 ", "7.0", "٧", "4503599627370496", "18446744073709551616", "a"];
        for sub in odd {
            assert_eq!(UserId::of_sub(sub), None, "{sub}");
        }
    }

    #[test]
    fn other_subjects_are_hashed_with_salt_and_issuer_to_ids_from_two_to_the_52() {
        let id = |salt: &str, issuer, sub| UserId::hashed(&Secret::from(salt.to_owned()), issuer, sub);
        let all = [
            id("a", "x", "ada"),
            id("b", "x", "ada"),
            id("a", "y", "ada"),
            id("a", "xa", "da"),
            id("a", "x", "Ada"),
            id("a", "", "ada"),
            id("a", "x", "4503599627370496"),
        ];
        for (n, (id, hash)) in all.iter().enumerate() {
            assert!((HASHED_IDS..ID_BOUND).contains(&id.0) && hash.len() == 22, "{id} {hash}");
            assert!(all[..n].iter().all(|(other, longer)| other != id && longer != hash), "{all:?}");
        }
        assert_eq!(all[0], id("a", "x", "ada"));
        assert!(all[0].0.is_hashed() && !UserId(HASHED_IDS - 1).is_hashed());
    }

    #[test]
    fn a_visitor_is_a_user_or_a_guest() {
        assert_eq!(Visitor::from(UserId(7)).user(), Some(UserId(7)));
        for guest in ["gABC", "g7", "", "u", "uA"] {
            assert_eq!(Visitor(guest.to_owned()).user(), None, "{guest}");
        }
    }

    #[test]
    fn a_salt_has_a_fingerprint() {
        let print = |salt: &str| salt_fingerprint(&Secret::from(salt.to_owned()));
        assert_eq!(print("a"), print("a"));
        assert_ne!(print("a"), print("b"));
        assert_ne!(print("a"), "a");
    }

    #[test]
    fn record_ids_are_1_to_128_of_their_alphabet() {
        assert!(ThreadId::new("posts", "A-z_0.9~:").is_some());
        assert!(ThreadId::new("posts", &"x".repeat(128)).is_some());
        for bad in ["", "a b", "a#b", "a/b", "é", &"x".repeat(129)] {
            assert!(ThreadId::new("posts", bad).is_none(), "{bad}");
        }
        for step in [".", ".."] {
            assert!(ThreadId::new("posts", step).is_none() && ThreadId::try_from(format!("posts#{step}")).is_ok());
        }
        assert!(ThreadId::new("posts", "...").is_some());
    }

    #[test]
    fn a_keyed_hash_depends_on_key_and_parts() {
        let hash = |salt: &str, parts: &[&str]| keyed_hash(&Secret::from(salt.to_owned()), parts);
        assert_eq!(hash("a", &["x", "y"]).len(), 22);
        assert_ne!(hash("a", &["x", "y"]), hash("b", &["x", "y"]));
        assert_ne!(hash("a", &["x", "y"]), hash("a", &["xy", ""]));
    }
}
