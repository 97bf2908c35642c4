//! What one recipient is told, and when. Pure: every step takes the time and changes the mailbox in memory; the store writes
//! it on condition that nobody else has.
//!
//! ```text
//!         held ──┐ confirmed       ┌── its text waits ──→ aside
//!          ↑     ↓                 │
//! tell ────┴→ waiting ── due ──→ in flight ── accepted ──→ told
//!                ↑                 │
//!                └──── refused ────┘
//! ```
//!
//! An id is in one set at a time, so that each comment is told once, however often its event and the queue's message are
//! delivered. One case sends a mail twice: a worker dies after the server has taken the mail and before it is noted. The
//! second one has the same `Message-ID`. Of more than a hundred that wait only the number of the others is kept, and an
//! event that is delivered again raises it again.
//!
//! Nobody is told at an address without the owner's consent. Whoever gives an address is an [`Asker`]. The owner confirms
//! each asker, and what concerns the others is held.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::claim::{self, Claim};
use crate::domain::ids::{CommentId, Visitor, sha256_hex};

/// Comments that one mail names. More are a number.
pub const MAX_WAITING: usize = 100;
/// Muted threads. The oldest gives way.
const MAX_MUTED: usize = 100;
/// Told comments that are remembered in each of two sets.
const MAX_TOLD: usize = 200;
/// Mails in 24 hours.
const MAX_MAILS: usize = 10;
/// Confirmations that an address is asked for in a week, and those of them that one network causes.
const MAX_CONFIRMATIONS: usize = 3;
const MAX_OF_NETWORK: usize = 2;
/// Askers whose confirmation has not been sent yet. Others are not heard.
const MAX_ASKING: usize = 10;
/// Askers who were confirmed. The oldest gives way.
const MAX_CONFIRMED: usize = 50;
/// Hexadecimal digits that stand for an asker.
const ASKER: usize = 16;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// How long the link of a confirmation is valid.
const WEEK: i64 = 7 * DAY;
/// How long notices gather after the first, second and later mails of 24 hours.
const WAITS: [i64; 3] = [15 * MINUTE, HOUR, 6 * HOUR];
/// Before the second and later attempts. The last one repeats for [`GIVE_UP`].
const RETRIES: [i64; 5] = [5_000, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR];
const GIVE_UP: i64 = DAY;
/// How long one worker has a mailbox to itself. Longer than sending a mail takes.
const CLAIM: i64 = 2 * MINUTE;
/// A mailbox that is overdue by this has lost its message.
const OVERDUE: i64 = 10 * MINUTE;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has asked for mails, or the address was forgotten.
    #[default]
    New,
    /// The address waits for its confirmation.
    Asked,
    On,
    /// Stopped by a link. Only the member can turn it on again.
    Off,
    /// The address takes no mails.
    Bounced,
}

/// Why somebody is told of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It answers a comment of the member, who `subscribed` to the replies to that comment or not.
    Reply {
        subscribed: bool,
    },
    /// It answers a comment of this guest, who subscribed.
    ReplyToGuest(Visitor),
    Mention,
    /// It is a new top-level comment on a record of the recipient.
    OwnRecord,
}

/// A member's switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    pub replies: bool,
    pub mentions: bool,
    pub own_records: bool,
}

/// An address that somebody gave, sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    #[serde(rename = "a")]
    pub sealed: String,
    /// The language of mails to it.
    #[serde(rename = "l")]
    pub language: String,
    /// Whether it is known to be the recipient's.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub confirmed: bool,
}

/// Somebody who gave an address without proof that it is theirs: in a guest's mailbox a visitor, in a member's the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// What stands for the visitor, [`Asker::of`], or for the address that a member claims.
    #[serde(rename = "v")]
    pub name: String,
    #[serde(rename = "ad")]
    pub address: Address,
    /// What stands for the network: [`crate::domain::mail_keys::MailKeys::network`]. Empty once the asker is confirmed.
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The comment that asked, if it was one.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentId>,
    /// When it asked. Times are Unix milliseconds.
    #[serde(rename = "t", default)]
    at: i64,
    /// When the confirmation may go.
    #[serde(rename = "f", default)]
    from: i64,
    /// When the confirmation went.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    asked_at: Option<i64>,
    /// Comments that wait for the confirmation.
    #[serde(rename = "h", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    held: BTreeSet<u64>,
}

impl Asker {
    #[must_use]
    pub fn new(name: String, address: Address, network: String, comment: Option<CommentId>) -> Self {
        Self { name, address, network, comment, at: 0, from: 0, asked_at: None, held: BTreeSet::new() }
    }

    /// What stands for a visitor. It is of no use to find the visitor's other rows by.
    #[must_use]
    pub fn of(visitor: &Visitor) -> String {
        let mut name = sha256_hex(&format!("asker {visitor}"));
        name.truncate(ASKER);
        name
    }

    /// What stands for this asking of `who`, for [`Mailbox::book`].
    #[must_use]
    pub fn asking_of(&self, who: &str) -> String {
        format!("{who} {}", self.at)
    }

    fn is_confirmed(&self) -> bool {
        self.address.confirmed
    }

    fn waits(&self) -> bool {
        !self.is_confirmed() && self.asked_at.is_none()
    }
}

/// A confirmation that an address was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Confirmation {
    /// Unix milliseconds.
    #[serde(rename = "a")]
    at: i64,
    #[serde(rename = "n")]
    network: String,
    /// [`Asker::asking_of`].
    #[serde(rename = "v")]
    asking: String,
}

/// Whether an address may be asked for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    Allowed,
    /// Not before this time, in Unix milliseconds.
    From(i64),
    /// Its owner wants no mails, or there is no such address.
    Never,
}

/// What a worker does with a mailbox.
pub type Step = claim::Step<Mail>;

/// The mail that a worker sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mail {
    /// The owner of the address is asked to confirm this asker.
    Confirm(Asker),
    /// These comments, and how many more.
    Tell(BTreeSet<u64>, u64),
}

/// What a mail is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Confirmation,
    Notices,
    /// For moderators.
    Digest,
}

/// What became of a comment in [`Mailbox::tell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Added,
    /// It waits or is in flight. The process that added it may have died before it sent a message.
    Waiting,
    /// It was told before, or nobody wants to know.
    No,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    /// Counts the changes, for the condition of the next one.
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "st", default, skip_serializing_if = "is_default")]
    pub state: State,
    /// It is confirmed, or it bounced.
    #[serde(rename = "ad", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// In the order in which they asked. A member is the only one.
    #[serde(rename = "ak", default, skip_serializing_if = "Vec::is_empty")]
    askers: Vec<Asker>,
    #[serde(rename = "re", default, skip_serializing_if = "is_default")]
    replies: bool,
    #[serde(rename = "me", default, skip_serializing_if = "is_default")]
    mentions: bool,
    #[serde(rename = "ow", default, skip_serializing_if = "is_default")]
    own_records: bool,
    /// Threads, as `MailKeys::thread` names them.
    #[serde(rename = "mu", default, skip_serializing_if = "Vec::is_empty")]
    muted: Vec<String>,
    #[serde(rename = "wt", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    waiting: BTreeSet<u64>,
    /// Beyond [`MAX_WAITING`].
    #[serde(rename = "wm", default, skip_serializing_if = "is_default")]
    more: u64,
    #[serde(rename = "fl", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    in_flight: BTreeSet<u64>,
    #[serde(rename = "fm", default, skip_serializing_if = "is_default")]
    more_in_flight: u64,
    /// Comments, and for moderators the occasions on which they were told.
    #[serde(rename = "td", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    told: BTreeSet<u64>,
    #[serde(rename = "ty", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    told_before: BTreeSet<u64>,
    /// When `told` became empty. Times are Unix milliseconds.
    #[serde(rename = "ro", default, skip_serializing_if = "is_default")]
    told_since: i64,
    #[serde(rename = "du", default, skip_serializing_if = "Option::is_none")]
    due: Option<i64>,
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    claim: Option<Claim>,
    /// Mails of the last 24 hours.
    #[serde(rename = "se", default, skip_serializing_if = "Vec::is_empty")]
    sent: Vec<i64>,
    #[serde(rename = "rf", default, skip_serializing_if = "is_default")]
    refusals: u32,
    /// Since when the mail server has refused.
    #[serde(rename = "rs", default, skip_serializing_if = "is_default")]
    refused_since: i64,
    /// The asker whose confirmation is being sent.
    #[serde(rename = "cf", default, skip_serializing_if = "Option::is_none")]
    confirming: Option<String>,
    /// Confirmations that the address was asked for within a week, by guests and by members.
    #[serde(rename = "cn", default, skip_serializing_if = "Vec::is_empty")]
    confirmations: Vec<Confirmation>,
    /// Comments that were left out of a mail because their text waits for a moderator; in flight, those whose text was
    /// accepted meanwhile.
    #[serde(rename = "as", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    aside: BTreeSet<u64>,
    /// When the mails were last stopped.
    #[serde(rename = "so", default, skip_serializing_if = "is_default")]
    stopped_at: i64,
    /// When the member last chose.
    #[serde(rename = "ch", default, skip_serializing_if = "is_default")]
    chosen_at: i64,
    /// What stands for a confirmed address that was forgotten because the mails were stopped:
    /// [`crate::domain::mail_keys::MailKeys::address`]. It needs no other confirmation.
    #[serde(rename = "pv", default, skip_serializing_if = "Option::is_none")]
    proven: Option<String>,
}

impl Mailbox {
    #[must_use]
    pub fn wants(&self) -> Wants {
        Wants { replies: self.replies, mentions: self.mentions, own_records: self.own_records }
    }

    /// Whether the recipient is to be told for this cause.
    #[must_use]
    pub fn wants_to_know(&self, cause: &Cause) -> bool {
        match cause {
            Cause::Reply { subscribed } => *subscribed || self.replies,
            Cause::ReplyToGuest(guest) => self.asker(&Asker::of(guest)).is_some_and(Asker::is_confirmed),
            Cause::Mention => self.mentions,
            Cause::OwnRecord => self.own_records,
        }
    }

    fn asker(&self, name: &str) -> Option<&Asker> {
        self.askers.iter().find(|asker| asker.name == name)
    }

    fn asker_mut(&mut self, name: &str) -> Option<&mut Asker> {
        self.askers.iter_mut().find(|asker| asker.name == name)
    }

    /// The asker whom the owner has to confirm before the recipient is told for one of these causes.
    fn holder(&mut self, causes: &[Cause]) -> Option<&mut Asker> {
        let is_holder = |asker: &Asker, cause: &Cause| match cause {
            Cause::ReplyToGuest(guest) => asker.name == Asker::of(guest),
            _ => true,
        };
        let askers = self.askers.iter_mut().filter(|asker| !asker.is_confirmed());
        askers.into_iter().find(|asker| causes.iter().any(|cause| is_holder(asker, cause)))
    }

    /// The address that mails go to, or the first that was given without proof.
    #[must_use]
    pub fn given_address(&self) -> Option<&Address> {
        self.address.as_ref().or_else(|| self.askers.first().map(|asker| &asker.address))
    }

    /// All addresses that mails may have gone to.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.address.iter().chain(self.askers.iter().map(|asker| &asker.address))
    }

    #[must_use]
    pub fn is_muted(&self, thread: &str) -> bool {
        self.muted.iter().any(|muted| muted == thread)
    }

    /// Whether a confirmation of this asking, of a guest or of a member, may go to the address of this mailbox, which counts it
    /// then. Safe to repeat. The bounds end with time, so that nobody can use them up for good, and one
    /// network leaves something to the others.
    pub fn book(&mut self, asking: &str, network: &str, now: i64) -> Asking {
        if matches!(self.state, State::Off | State::Bounced) {
            return Asking::Never;
        }
        let recent: Vec<&Confirmation> = self.confirmations.iter().filter(|sent| now - sent.at < WEEK).collect();
        if recent.iter().any(|sent| sent.asking == asking) {
            return Asking::Allowed;
        }
        let bound = |sent: &[&Confirmation], most: usize, time: i64| {
            let first = sent.len().checked_sub(most).map(|first| sent[first].at + time);
            first.filter(|from| *from > now)
        };
        let of_network: Vec<&Confirmation> = recent.iter().copied().filter(|sent| sent.network == network).collect();
        let bounds =
            [bound(&recent, 1, DAY), bound(&recent, MAX_CONFIRMATIONS, WEEK), bound(&of_network, MAX_OF_NETWORK, WEEK)];
        if let Some(from) = bounds.into_iter().flatten().max() {
            return Asking::From(from);
        }
        self.confirmations.retain(|sent| now - sent.at < WEEK);
        self.confirmations.push(Confirmation { at: now, network: network.to_owned(), asking: asking.to_owned() });
        Asking::Allowed
    }

    /// Whether the member has confirmed this address before, as [`crate::domain::mail_keys::MailKeys::address`] names it.
    #[must_use]
    pub fn has_proven(&self, address: &str) -> bool {
        self.proven.as_deref() == Some(address)
    }

    /// Whether mails to this address of the member were stopped since the member chose. What a member chooses for an address
    /// without proof does not count. `owner` is the address's own mailbox.
    #[must_use]
    pub fn is_stopped_by(&self, owner: &Self, address: &Address) -> bool {
        owner.state == State::Off && (owner.stopped_at > self.chosen_at || !address.confirmed)
    }

    /// Whether the asker waits for the owner, or was confirmed. Then asking again changes nothing.
    #[must_use]
    pub fn has_heard(&self, name: &str, now: i64) -> bool {
        self.asker(name).is_some_and(|asker| asker.asked_at.is_none_or(|at| asker.is_confirmed() || now - at < DAY))
    }

    /// Whether somebody who asks is heard: not where mails were stopped, nor where they bounce.
    #[must_use]
    pub fn hears(&self, address: &Address) -> bool {
        match self.state {
            State::Off => false,
            State::Bounced => self.address.as_ref().is_none_or(|known| known.sealed != address.sealed),
            State::New | State::Asked | State::On => true,
        }
    }

    /// Somebody gives an address without proof. A mailbox that was stopped hears nobody, and one that bounced hears of no
    /// address that it has. One network waits once: a later asker of it takes the place of the earlier one, unless the
    /// confirmation of that one is being sent.
    pub fn ask(&mut self, asker: Asker, now: i64, wait: Duration) {
        if self.has_heard(&asker.name, now) {
            // The newest comment asks as well as the first one, which may be gone when the owner is asked.
            if let Some(known) = self.asker_mut(&asker.name).filter(|known| known.waits()) {
                known.comment = asker.comment;
            }
            return;
        }
        if !self.hears(&asker.address) {
            return;
        }
        self.askers.retain(|known| known.is_confirmed() || known.asked_at.is_none_or(|at| now - at < WEEK));
        let mut asker = Asker { at: now, from: now + millis(wait), ..asker };
        let of_name = self.askers.iter().position(|known| known.name == asker.name);
        let gives_way = |known: &Asker| {
            known.waits() && known.network == asker.network && self.confirming.as_ref() != Some(&known.name)
        };
        let of_network = || self.askers.iter().position(gives_way);
        if let Some(place) = of_name.or_else(of_network) {
            if self.askers[place].name == asker.name {
                asker.held = std::mem::take(&mut self.askers[place].held);
            } else {
                asker.from = self.askers[place].from;
            }
            self.askers[place] = asker;
        } else if self.askers.iter().filter(|known| known.waits()).count() < MAX_ASKING {
            self.askers.push(asker);
        }
        if matches!(self.state, State::New | State::Bounced) {
            (self.state, self.address) = (State::Asked, None);
        }
    }

    /// A member claims an address without proof, in place of the one claimed before.
    pub fn claim(&mut self, asker: Asker, now: i64, wait: Duration) {
        if self.state == State::On || self.has_heard(&asker.name, now) {
            return;
        }
        let held = self.askers.drain(..).flat_map(|before| before.held).collect();
        self.ask(Asker { held, ..asker }, now, wait);
    }

    /// A member gives an address that is known to be the member's.
    pub fn enrol(&mut self, address: Address, now: i64, wait: Duration) {
        let same = self.address.as_ref().is_some_and(|known| known.sealed == address.sealed);
        if !self.hears(&address) || (self.state == State::On && same) {
            return;
        }
        self.address = Some(address);
        for held in std::mem::take(&mut self.askers).into_iter().flat_map(|asker| asker.held) {
            self.add(held);
        }
        self.turn_on(now, wait);
    }

    /// Makes a mailbox that was stopped or has bounced take any address again, because its member wants to choose.
    pub fn reopen(&mut self, now: i64) {
        self.chosen_at = now;
        if matches!(self.state, State::Off | State::Bounced) {
            self.state = State::New;
        }
    }

    /// A member chooses.
    pub fn choose(&mut self, wants: Wants, now: i64) {
        self.reopen(now);
        (self.replies, self.mentions, self.own_records) = (wants.replies, wants.mentions, wants.own_records);
    }

    /// The owner of the address has confirmed this asker. False when nobody of that name asks.
    pub fn confirm(&mut self, name: &str, now: i64, wait: Duration) -> bool {
        let Some(asker) = self.asker_mut(name) else { return false };
        asker.address.confirmed = true;
        asker.network.clear();
        let (address, held) = (asker.address.clone(), std::mem::take(&mut asker.held));
        self.address.get_or_insert(address);
        for id in held {
            self.add(id);
        }
        let confirmed = self.askers.iter().filter(|asker| asker.is_confirmed()).count();
        if confirmed > MAX_CONFIRMED
            && let Some(oldest) = self.askers.iter().position(|asker| asker.is_confirmed() && asker.name != name)
        {
            self.askers.remove(oldest);
        }
        self.turn_on(now, wait);
        true
    }

    /// The address of this mailbox is known to be the recipient's.
    fn turn_on(&mut self, now: i64, wait: Duration) {
        self.state = State::On;
        let confirms =
            self.confirming.as_ref().and_then(|name| self.asker(name)).is_some_and(|asker| !asker.is_confirmed());
        if self.confirming.is_some() && !confirms {
            // What becomes of the confirmation that is being sent does not matter any more.
            (self.confirming, self.claim) = (None, None);
        }
        self.schedule_waiting(now, wait);
    }

    pub fn mute(&mut self, thread: &str) {
        if !self.is_muted(thread) {
            self.muted.push(thread.to_owned());
            let surplus = self.muted.len().saturating_sub(MAX_MUTED);
            self.muted.drain(..surplus);
        }
    }

    /// Forgets the address, so that nobody can enrol it again. `proven` is what stands for it if it was confirmed. Stopping
    /// again within a minute changes nothing, so that a link that is pressed all the time writes little.
    pub fn stop(&mut self, now: i64, proven: Option<String>) {
        if self.state == State::Off && now - self.stopped_at < MINUTE {
            return;
        }
        let proven = proven.or(self.proven.take());
        self.clear();
        // Nobody is asked any more.
        self.confirmations.clear();
        (self.state, self.stopped_at, self.proven) = (State::Off, now, proven);
    }

    /// Forgets the address and the switches. A mailbox that was stopped has no address, and stays stopped.
    pub fn forget(&mut self) {
        if self.state != State::Off {
            self.clear();
        }
    }

    /// What was told stays known.
    fn clear(&mut self) {
        *self = Self {
            version: self.version,
            told: std::mem::take(&mut self.told),
            told_before: std::mem::take(&mut self.told_before),
            told_since: self.told_since,
            sent: std::mem::take(&mut self.sent),
            confirmations: std::mem::take(&mut self.confirmations),
            muted: std::mem::take(&mut self.muted),
            chosen_at: self.chosen_at,
            ..Self::default()
        };
    }

    /// What is left of a mailbox that was stopped when its owner is forgotten: that nobody may enrol the address.
    #[must_use]
    pub fn refusal(&self) -> Option<Self> {
        let stopped = Self { version: self.version, state: State::Off, stopped_at: self.stopped_at, ..Self::default() };
        (self.state == State::Off).then_some(stopped)
    }

    /// The mail server of the address takes no mails for it. The address stays, to be known again.
    pub fn bounce(&mut self) {
        if matches!(self.state, State::On | State::Asked) {
            let address = self.given_address().cloned();
            self.clear();
            (self.state, self.address) = (State::Bounced, address);
        }
    }

    /// Tells of a comment when it is time. `thread` is what mutes it.
    pub fn tell(&mut self, id: CommentId, causes: &[Cause], thread: &str, now: i64, wait: Duration) -> Told {
        if self.has(id) {
            return Told::Waiting;
        }
        if self.was_told(id.0) || self.is_muted(thread) || !matches!(self.state, State::On | State::Asked) {
            return Told::No;
        }
        let is_wanted = causes.iter().any(|cause| self.wants_to_know(cause));
        if self.state == State::On && is_wanted {
            self.add(id.0);
            self.schedule_waiting(now, wait);
            return Told::Added;
        }
        let is_guest = |cause: &Cause| matches!(cause, Cause::ReplyToGuest(_));
        match self.holder(causes).filter(|_| is_wanted || causes.iter().any(is_guest)) {
            Some(asker) if asker.held.len() < MAX_WAITING => {
                asker.held.insert(id.0);
                Told::Added
            }
            _ => Told::No,
        }
    }

    /// Tells of a comment whose text a moderator has accepted, if a mail left it out before.
    pub fn tell_accepted(&mut self, id: CommentId, causes: &[Cause], thread: &str, now: i64, wait: Duration) -> Told {
        if self.in_flight.contains(&id.0) {
            self.aside.insert(id.0);
            return Told::Waiting;
        }
        let was_aside = self.aside.remove(&id.0);
        if was_aside || self.has(id) { self.tell(id, causes, thread, now, wait) } else { Told::No }
    }

    fn has(&self, id: CommentId) -> bool {
        let is_held = |asker: &Asker| asker.held.contains(&id.0);
        self.waiting.contains(&id.0) || self.in_flight.contains(&id.0) || self.askers.iter().any(is_held)
    }

    /// Tells the moderators of a comment, at most once an hour, and once for each `occasion`; [`Comment::occasion`].
    ///
    /// [`Comment::occasion`]: crate::domain::comment::Comment::occasion
    pub fn alert(&mut self, id: CommentId, occasion: u64, now: i64, wait: Duration) -> Told {
        if self.waiting.contains(&id.0) || self.in_flight.contains(&id.0) {
            return Told::Waiting;
        }
        if self.was_told(occasion) {
            return Told::No;
        }
        self.remember([occasion].into(), now);
        self.state = State::On;
        self.add(id.0);
        if self.due.is_none() && self.claim.is_none() {
            self.due = Some(self.next_digest(now, wait));
        }
        Told::Added
    }

    fn was_told(&self, id: u64) -> bool {
        self.told.contains(&id) || self.told_before.contains(&id)
    }

    fn remember(&mut self, mut told: BTreeSet<u64>, now: i64) {
        if now - self.told_since >= DAY || self.told.len() + told.len() > MAX_TOLD {
            self.told_before = std::mem::take(&mut self.told);
            self.told_since = now;
        }
        self.told.append(&mut told);
    }

    fn add(&mut self, id: u64) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.insert(id);
        } else {
            self.more += 1;
        }
    }

    fn schedule_waiting(&mut self, now: i64, wait: Duration) {
        // While a mail of notices is sent, the next one waits for what becomes of it.
        let is_free = self.claim.is_none() || self.confirming.is_some();
        if !self.waiting.is_empty() && is_free && self.due.is_none() {
            self.due = Some(self.next(now, wait));
        }
    }

    /// When the mail goes that gathers from now on.
    fn next(&self, now: i64, wait: Duration) -> i64 {
        let recent: Vec<i64> = self.sent.iter().copied().filter(|at| now - at < DAY).collect();
        let wait = match recent.len() {
            0 => millis(wait),
            mails => WAITS[(mails - 1).min(WAITS.len() - 1)].max(millis(wait)),
        };
        let full = recent.len().checked_sub(MAX_MAILS).map_or(now, |first| recent[first] + DAY);
        (now + wait).max(full)
    }

    fn next_digest(&self, now: i64, wait: Duration) -> i64 {
        let last = self.sent.last().map_or(i64::MIN, |last| last + HOUR);
        (now + millis(wait)).max(last)
    }

    /// When the queue's message about this mailbox has work to do.
    #[must_use]
    pub fn due(&self) -> Option<i64> {
        let asking = self.askers.iter().filter(|asker| asker.waits()).map(|asker| asker.from);
        self.claim.as_ref().map(|claim| claim.until).or_else(|| self.due.into_iter().chain(asking).min())
    }

    /// Whether the message about this mailbox must have been lost.
    #[must_use]
    pub fn is_overdue(&self, now: i64) -> bool {
        self.due().is_some_and(|due| now - due > OVERDUE)
    }

    /// Takes what is due. The mailbox is claimed for `owner` when there is something to send.
    pub fn take(&mut self, now: i64, owner: &str) -> Step {
        let earlier = match self.claim.take() {
            // The answer to the write of the claim was lost.
            Some(claim) if claim.is_of(owner) => {
                self.claim = Some(claim);
                return self.step();
            }
            Some(claim) if claim.until > now => {
                let until = claim.until;
                self.claim = Some(claim);
                return Step::Wait(until);
            }
            Some(claim) if claim.again => {
                // Two workers died with it. One of them may have sent it.
                self.settle(now, Duration::ZERO);
                self.due = self.due.map(|due| due.max(now + MINUTE));
                return self.wait();
            }
            earlier => earlier,
        };
        if earlier.is_none() {
            match self.due() {
                None => return Step::Nothing,
                Some(due) if due > now => return Step::Wait(due),
                Some(_) => self.begin(now),
            }
        }
        let step = self.step();
        if step == Step::Nothing {
            return self.wait();
        }
        self.claim = Some(Claim::new(owner, now + CLAIM, earlier.is_some()));
        step
    }

    fn wait(&self) -> Step {
        self.due().map_or(Step::Nothing, Step::Wait)
    }

    /// Takes one asker, else the comments that wait.
    fn begin(&mut self, now: i64) {
        let asking = self.askers.iter().find(|asker| asker.waits() && asker.from <= now);
        self.confirming = asking.map(|asker| asker.name.clone());
        if self.confirming.is_none() {
            self.due = None;
            if self.state == State::On {
                self.in_flight = std::mem::take(&mut self.waiting);
                self.more_in_flight = std::mem::take(&mut self.more);
            }
        }
    }

    fn step(&self) -> Step {
        if let Some(name) = &self.confirming {
            return self.asker(name).cloned().map_or(Step::Nothing, |asker| Step::Send(Mail::Confirm(asker)));
        }
        match self.state {
            State::On if !self.in_flight.is_empty() => {
                Step::Send(Mail::Tell(self.in_flight.clone(), self.more_in_flight))
            }
            _ => Step::Nothing,
        }
    }

    /// What tells the mail that is being sent from all others. It is the same when the mail is sent again because a worker
    /// died, so that mail programs show the two as one.
    #[must_use]
    pub fn mail(&self) -> String {
        match self.confirming.as_ref().and_then(|name| self.asker(name)) {
            Some(asker) => format!("confirm {} {}", asker.name, asker.at),
            None => format!("{:?} {:?}", self.in_flight, self.sent.last()),
        }
    }

    /// Whether this worker still has the mailbox.
    #[must_use]
    pub fn is_claimed_by(&self, owner: &str) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.is_of(owner))
    }

    /// The mail server has taken the mail.
    pub fn accepted(&mut self, now: i64, wait: Duration, kind: Kind) {
        self.sent.retain(|at| now - at < DAY);
        // The first notices after a confirmation wait no longer than others.
        if kind != Kind::Confirmation {
            self.sent.push(now);
        }
        self.dropped(now, wait, kind);
    }

    /// There was nothing left to send: what waited is gone by now.
    pub fn dropped(&mut self, now: i64, wait: Duration, kind: Kind) {
        if kind == Kind::Digest {
            // A comment may be reported again. Its occasion is remembered.
            self.in_flight.clear();
        }
        self.settle(now, wait);
        if kind == Kind::Digest && !self.waiting.is_empty() {
            self.due = Some(self.next_digest(now, wait));
        }
    }

    /// The text of these comments waits for a moderator. They are told once it is accepted; some may be by now.
    pub fn set_aside(&mut self, ids: &BTreeSet<u64>) {
        for id in ids {
            if !self.in_flight.remove(id) {
                continue;
            }
            if self.aside.contains(id) {
                self.add(*id);
            } else {
                // The oldest gives way. Those in flight are accepted.
                let is_full = self.aside.len() >= MAX_WAITING;
                if is_full && let Some(oldest) = self.aside.iter().copied().find(|id| !self.in_flight.contains(id)) {
                    self.aside.remove(&oldest);
                }
                self.aside.insert(*id);
            }
        }
        self.aside.retain(|id| !self.waiting.contains(id));
    }

    /// What is in flight counts as told, and the asker as asked.
    fn settle(&mut self, now: i64, wait: Duration) {
        let told = std::mem::take(&mut self.in_flight);
        self.aside.retain(|id| !told.contains(id));
        self.remember(told, now);
        self.more_in_flight = 0;
        self.claim = None;
        self.refusals = 0;
        if let Some(asker) = self.confirming.take().and_then(|name| self.asker_mut(&name)) {
            asker.asked_at = Some(now);
        }
        if self.state == State::On {
            self.schedule_waiting(now, wait);
        }
    }

    /// The confirmation that was to be sent waits until this time, in Unix milliseconds.
    pub fn put_off(&mut self, until: i64) {
        self.claim = None;
        if let Some(asker) = self.confirming.take().and_then(|name| self.asker_mut(&name)) {
            asker.from = until;
        }
    }

    /// What the asker wrote is gone, so that the owner is not asked.
    pub fn dismiss(&mut self) {
        self.claim = None;
        let name = self.confirming.take();
        self.askers.retain(|asker| Some(&asker.name) != name.as_ref());
        if self.state == State::Asked && self.askers.is_empty() {
            self.state = State::New;
        }
    }

    /// The mail server has not taken the mail. It is tried again, for a day.
    pub fn refused(&mut self, now: i64, wait: Duration) {
        if self.refusals == 0 {
            self.refused_since = now;
        }
        if now - self.refused_since >= GIVE_UP {
            return self.give_up(now, wait);
        }
        let retry = RETRIES[usize::try_from(self.refusals).unwrap_or(usize::MAX).min(RETRIES.len() - 1)];
        self.refusals += 1;
        if self.confirming.is_some() {
            return self.put_off(now + retry);
        }
        for id in std::mem::take(&mut self.in_flight) {
            self.aside.remove(&id);
            self.add(id);
        }
        self.more += std::mem::take(&mut self.more_in_flight);
        self.claim = None;
        self.due = Some(now + retry);
    }

    /// What was in flight counts as told, but for what was written since the first refusal. That has a day of its own.
    fn give_up(&mut self, now: i64, wait: Duration) {
        if self.confirming.is_some() {
            return self.settle(now, wait);
        }
        let is_newer = |id: &u64| CommentId(*id).created_at().0 > self.refused_since;
        let (newer, older): (BTreeSet<u64>, BTreeSet<u64>) =
            std::mem::take(&mut self.in_flight).into_iter().partition(is_newer);
        self.in_flight = older;
        self.settle(now, wait);
        for id in newer {
            self.add(id);
        }
        if !self.waiting.is_empty() {
            (self.refusals, self.refused_since) = (1, now);
            self.due = Some(now + HOUR);
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    const NOW: i64 = 1_800_000_000_000;
    const WAIT: Duration = Duration::from_mins(1);

    fn address(confirmed: bool) -> Address {
        Address { sealed: "sealed".to_owned(), language: "en".to_owned(), confirmed }
    }

    fn guest(name: &str) -> Visitor {
        Visitor(name.to_owned())
    }

    fn asker(name: &str, network: &str) -> Asker {
        Asker::new(Asker::of(&guest(name)), address(false), network.to_owned(), None)
    }

    /// A guest's mailbox that this visitor asked for mails.
    fn asked(name: &str) -> Mailbox {
        let mut mailbox = Mailbox::default();
        mailbox.ask(asker(name, "home"), NOW, WAIT);
        mailbox
    }

    /// Somebody answers this visitor.
    fn answer(mailbox: &mut Mailbox, name: &str, id: u64, now: i64) -> Told {
        mailbox.tell(CommentId(id), &[Cause::ReplyToGuest(guest(name))], "thread", now, WAIT)
    }

    /// Whose confirmation is sent now, if anybody's.
    fn confirmation(mailbox: &mut Mailbox, now: i64) -> Option<String> {
        let Step::Send(Mail::Confirm(asker)) = mailbox.take(now, "worker") else { return None };
        match mailbox.book(&asker.asking_of(&asker.name), &asker.network, now) {
            Asking::Allowed => mailbox.accepted(now, WAIT, Kind::Confirmation),
            Asking::From(time) => {
                mailbox.put_off(time);
                return None;
            }
            Asking::Never => return None,
        }
        Some(asker.name)
    }

    fn on() -> Mailbox {
        let mut mailbox = Mailbox::default();
        mailbox.enrol(address(true), NOW, WAIT);
        mailbox
    }

    fn tell(mailbox: &mut Mailbox, id: u64, now: i64) -> Told {
        mailbox.tell(CommentId(id), &[Cause::Reply { subscribed: true }], "thread", now, WAIT)
    }

    /// The member chooses, with an address that is the member's.
    fn choose(mailbox: &mut Mailbox, wants: Wants) {
        mailbox.choose(wants, NOW);
        mailbox.enrol(address(true), NOW, WAIT);
    }

    fn ids(ids: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        ids.into_iter().collect()
    }

    #[test]
    fn one_mail_holds_all_that_gathered_within_the_wait() {
        let mut mailbox = on();
        assert_eq!(mailbox.take(NOW, "worker"), Step::Nothing);
        assert_eq!(tell(&mut mailbox, 1, NOW), Told::Added);
        assert_eq!(tell(&mut mailbox, 2, NOW + 30_000), Told::Added);
        assert_eq!(mailbox.take(NOW + 59_999, "worker"), Step::Wait(NOW + 60_000));
        assert_eq!(mailbox.take(NOW + 60_000, "worker"), Step::Send(Mail::Tell(ids([1, 2]), 0)));
        mailbox.accepted(NOW + 60_000, WAIT, Kind::Notices);
        assert_eq!((mailbox.take(NOW + DAY, "worker"), mailbox.due()), (Step::Nothing, None));
    }

    #[test]
    fn a_comment_is_told_once_however_often_its_event_comes() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        assert_eq!(tell(&mut mailbox, 1, NOW), Told::Waiting);
        mailbox.take(NOW + MINUTE, "worker");
        assert_eq!(tell(&mut mailbox, 1, NOW + MINUTE), Told::Waiting);
        mailbox.accepted(NOW + MINUTE, WAIT, Kind::Notices);
        for later in [NOW + MINUTE, NOW + DAY, NOW + DAY + HOUR] {
            assert_eq!(tell(&mut mailbox, 1, later), Told::No);
        }
    }

    #[test]
    fn what_arrives_while_a_mail_is_sent_goes_with_the_next_one() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        mailbox.take(NOW + MINUTE, "worker");
        tell(&mut mailbox, 2, NOW + MINUTE);
        assert_eq!(mailbox.take(NOW + MINUTE, "second"), Step::Wait(NOW + MINUTE + CLAIM));
        mailbox.accepted(NOW + MINUTE, WAIT, Kind::Notices);
        assert_eq!(mailbox.due(), Some(NOW + 16 * MINUTE));
        assert_eq!(mailbox.take(NOW + 16 * MINUTE, "worker"), Step::Send(Mail::Tell(ids([2]), 0)));
    }

    #[test]
    fn waits_grow_and_a_day_has_at_most_ten_mails() {
        let (mut mailbox, mut now, mut mails) = (on(), NOW, Vec::new());
        for id in 0..100 {
            tell(&mut mailbox, id, now);
            now = mailbox.due().unwrap();
            assert!(matches!(mailbox.take(now, "worker"), Step::Send(Mail::Tell(..))));
            mailbox.accepted(now, WAIT, Kind::Notices);
            mails.push(now);
        }
        let waits: Vec<i64> = mails.windows(2).take(4).map(|pair| (pair[1] - pair[0]) / MINUTE).collect();
        assert_eq!(waits, [15, 60, 360, 360]);
        for at in &mails {
            assert!(mails.iter().filter(|other| (0..DAY).contains(&(*other - at))).count() <= MAX_MAILS);
        }
        // The bound holds by itself, however short the waits are.
        mailbox.sent = (0..10).map(|n| now + n).collect();
        assert!(mailbox.next(now + 10, WAIT) >= now + DAY);
    }

    #[test]
    fn a_mail_names_a_hundred_and_counts_the_rest() {
        let mut mailbox = on();
        for id in 0..1_000 {
            tell(&mut mailbox, id, NOW);
        }
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Tell(ids(0..100), 900)));
    }

    #[test]
    fn a_mail_whose_worker_died_is_sent_once_more_and_no_more() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
        let (dead, mail) = (NOW + MINUTE + CLAIM, mailbox.mail());
        assert_eq!(mailbox.take(dead - 1, "second"), Step::Wait(dead));
        assert_eq!(mailbox.take(dead, "second"), Step::Send(Mail::Tell(ids([1]), 0)));
        assert_eq!(mailbox.mail(), mail, "mail programs show the two as one");
        assert_eq!(mailbox.take(dead + CLAIM, "third"), Step::Nothing);
        assert_eq!(tell(&mut mailbox, 1, dead + CLAIM), Told::No);
        tell(&mut mailbox, 2, dead + CLAIM);
        mailbox.take(mailbox.due().unwrap(), "worker");
        assert_ne!(mailbox.mail(), mail);
    }

    #[test]
    fn a_worker_that_takes_its_mailbox_twice_gets_the_same() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        let taken = mailbox.take(NOW + MINUTE, "worker");
        let before = mailbox.clone();
        assert_eq!((mailbox.take(NOW + MINUTE, "worker"), &mailbox), (taken, &before));
        assert!(mailbox.is_claimed_by("worker") && !mailbox.is_claimed_by("second"));
    }

    #[test]
    fn a_refused_mail_is_tried_for_a_day_with_growing_pauses() {
        let (mut mailbox, mut now, mut pauses) = (on(), NOW + MINUTE, Vec::new());
        tell(&mut mailbox, 1, NOW);
        loop {
            assert_eq!(mailbox.take(now, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
            mailbox.refused(now, WAIT);
            let Some(due) = mailbox.due() else { break };
            pauses.push((due - now) / 1_000);
            now = due;
        }
        assert_eq!(pauses[..6], [5, 60, 300, 1_800, 3_600, 3_600]);
        assert!((23 * HOUR..=25 * HOUR).contains(&(now - NOW)), "{pauses:?}");
        assert_eq!(tell(&mut mailbox, 1, now), Told::No);
        assert_eq!(tell(&mut mailbox, 2, now), Told::Added);
    }

    #[test]
    fn what_is_written_while_the_server_refuses_mails_is_tried_for_a_day_of_its_own() {
        let id = |at: i64| CommentId::slots(Timestamp(at), 0).unwrap().next().unwrap().0;
        let (first, later, last) = (id(NOW), id(NOW + 20 * HOUR), id(NOW + 25 * HOUR));
        let (mut mailbox, mut now) = (on(), NOW + MINUTE);
        tell(&mut mailbox, first, NOW);
        while let Step::Send(Mail::Tell(tried, _)) = mailbox.take(now, "worker") {
            if now >= NOW + 20 * HOUR && !tried.contains(&later) {
                tell(&mut mailbox, later, now);
            }
            if !tried.contains(&first) {
                break;
            }
            if now - NOW >= DAY {
                tell(&mut mailbox, last, now);
            }
            mailbox.refused(now, WAIT);
            now = mailbox.due().unwrap();
        }
        assert_eq!(mailbox.in_flight, ids([later, last]));
        mailbox.refused(now, WAIT);
        while now - NOW < 44 * HOUR {
            now = mailbox.due().unwrap();
            assert_eq!(mailbox.take(now, "worker"), Step::Send(Mail::Tell(ids([later, last]), 0)));
            mailbox.refused(now, WAIT);
        }
    }

    #[test]
    fn an_address_gets_one_confirmation_a_day_and_three_a_week_of_which_a_network_causes_two() {
        for (networks, expected) in [(1, [0, 1, 7, 8, 14, 15]), (8, [0, 1, 2, 7, 8, 9])] {
            let (mut mailbox, mut days) = (Mailbox::default(), Vec::new());
            for hour in 0..24 * 16 {
                let (now, name) = (NOW + hour * HOUR, hour.to_string());
                let network = (hour % networks).to_string();
                mailbox.ask(asker(&name, &network), now, Duration::ZERO);
                if confirmation(&mut mailbox, now).is_some() {
                    days.push(hour / 24);
                }
            }
            assert_eq!(days[..6], expected, "{networks} networks");
        }
    }

    #[test]
    fn who_asks_after_a_stranger_gets_the_next_confirmation_however_often_the_stranger_asks() {
        let mut mailbox = asked("stranger");
        mailbox.ask(asker("ada", "elsewhere"), NOW, WAIT);
        let mut sent = Vec::new();
        for hour in 0..72 {
            let now = NOW + MINUTE + hour * HOUR;
            mailbox.ask(asker(&format!("stranger {hour}"), "home"), now, WAIT);
            sent.extend(confirmation(&mut mailbox, now));
        }
        assert_eq!(sent[1], Asker::of(&guest("ada")));
    }

    #[test]
    fn one_network_waits_once_and_ten_wait_at_most() {
        let mut mailbox = asked("first");
        for browser in 0..30 {
            mailbox.ask(asker(&browser.to_string(), "home"), NOW, WAIT);
        }
        assert_eq!(
            mailbox.askers.iter().map(|asker| asker.name.as_str()).collect::<Vec<_>>(),
            [Asker::of(&guest("29"))]
        );
        for network in 0..30 {
            mailbox.ask(asker(&format!("of {network}"), &network.to_string()), NOW, WAIT);
        }
        assert_eq!(mailbox.askers.len(), MAX_ASKING);
    }

    #[test]
    fn a_confirmation_covers_the_visitor_who_asked_and_no_other() {
        let (ada, eve) = (Asker::of(&guest("ada")), Asker::of(&guest("eve")));
        let mut mailbox = asked("ada");
        mailbox.ask(asker("eve", "elsewhere"), NOW, WAIT);
        answer(&mut mailbox, "eve", 1, NOW);
        assert_eq!(answer(&mut mailbox, "nobody", 2, NOW), Told::No);
        assert!(mailbox.confirm(&ada, NOW + MINUTE, WAIT));
        assert_eq!(answer(&mut mailbox, "ada", 3, NOW + MINUTE), Told::Added);
        assert_eq!(answer(&mut mailbox, "eve", 4, NOW + MINUTE), Told::Added);
        let asks = |name: &str, known: &Mailbox| Step::Send(Mail::Confirm(known.asker(name).unwrap().clone()));
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), asks(&eve, &mailbox));
        mailbox.accepted(NOW + MINUTE, WAIT, Kind::Confirmation);
        assert_eq!(mailbox.take(NOW + 2 * MINUTE, "worker"), Step::Send(Mail::Tell(ids([3]), 0)));
        mailbox.accepted(NOW + 2 * MINUTE, WAIT, Kind::Notices);
        assert!(mailbox.confirm(&eve, NOW + DAY, WAIT));
        assert_eq!(mailbox.take(NOW + 2 * DAY, "worker"), Step::Send(Mail::Tell(ids([1, 4]), 0)));
    }

    #[test]
    fn a_visitor_who_was_confirmed_asks_no_second_time() {
        let ada = Asker::of(&guest("ada"));
        let mut mailbox = asked("ada");
        mailbox.confirm(&ada, NOW, WAIT);
        let before = mailbox.clone();
        mailbox.ask(asker("ada", "elsewhere"), NOW + 30 * DAY, WAIT);
        assert_eq!((mailbox.has_heard(&ada, NOW + 30 * DAY), mailbox), (true, before));
    }

    #[test]
    fn a_member_claims_one_address_at_a_time() {
        let claimed = |name: &str| Asker::new(name.to_owned(), address(false), "home".to_owned(), None);
        let mut mailbox = Mailbox::default();
        mailbox.claim(claimed("first"), NOW, WAIT);
        assert_eq!(tell(&mut mailbox, 1, NOW), Told::Added);
        mailbox.claim(claimed("second"), NOW, WAIT);
        assert!(!mailbox.confirm("first", NOW, WAIT) && mailbox.confirm("second", NOW, WAIT));
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
    }

    #[test]
    fn what_gathers_before_the_confirmation_goes_after_it() {
        let mut mailbox = asked("ada");
        assert_eq!(answer(&mut mailbox, "ada", 1, NOW), Told::Added);
        assert_eq!(answer(&mut mailbox, "ada", 1, NOW), Told::Waiting);
        assert!(confirmation(&mut mailbox, NOW + MINUTE).is_some());
        assert_eq!(mailbox.take(NOW + DAY, "worker"), Step::Nothing);
        assert!(mailbox.confirm(&Asker::of(&guest("ada")), NOW + DAY, WAIT));
        assert_eq!(mailbox.due(), Some(NOW + DAY + MINUTE));
        assert_eq!(mailbox.take(NOW + 2 * DAY, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
    }

    #[test]
    fn what_gathers_goes_although_it_is_not_known_what_became_of_the_confirmation() {
        let claimed = || Asker::new("ada".to_owned(), address(false), "home".to_owned(), None);
        for by_its_link in [false, true] {
            let mut mailbox = Mailbox::default();
            mailbox.claim(claimed(), NOW, WAIT);
            tell(&mut mailbox, 1, NOW);
            assert!(matches!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Confirm(_))));
            if by_its_link {
                mailbox.confirm("ada", NOW + MINUTE, WAIT);
            } else {
                mailbox.enrol(address(true), NOW + MINUTE, WAIT);
            }
            assert_eq!(mailbox.take(NOW + CLAIM + MINUTE, "second"), Step::Send(Mail::Tell(ids([1]), 0)));
            assert!(!mailbox.is_claimed_by("worker"));
        }
    }

    #[test]
    fn a_confirmation_that_is_sent_again_has_the_same_name_and_is_sent_twice_at_most() {
        let mut mailbox = asked("ada");
        assert!(matches!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Confirm(_))));
        let (dead, mail) = (NOW + MINUTE + CLAIM, mailbox.mail());
        assert!(matches!(mailbox.take(dead, "second"), Step::Send(Mail::Confirm(_))));
        assert_eq!(mailbox.mail(), mail);
        assert_eq!(mailbox.take(dead + CLAIM, "third"), Step::Nothing);
    }

    #[test]
    fn what_was_left_out_because_its_text_waits_is_told_once_it_is_accepted() {
        let accept = |mailbox: &mut Mailbox, now| {
            let causes = [Cause::Reply { subscribed: true }];
            mailbox.tell_accepted(CommentId(1), &causes, "thread", now, WAIT)
        };
        for accepted_while_it_is_sent in [false, true] {
            let mut mailbox = on();
            assert_eq!(accept(&mut mailbox, NOW), Told::No, "of a comment that nobody was to be told of");
            tell(&mut mailbox, 1, NOW);
            tell(&mut mailbox, 2, NOW);
            mailbox.take(NOW + MINUTE, "worker");
            if accepted_while_it_is_sent {
                assert_eq!(accept(&mut mailbox, NOW + MINUTE), Told::Waiting);
            }
            mailbox.set_aside(&ids([1]));
            mailbox.accepted(NOW + MINUTE, WAIT, Kind::Notices);
            if !accepted_while_it_is_sent {
                assert_eq!(mailbox.due(), None);
                assert_eq!(accept(&mut mailbox, NOW + HOUR), Told::Added);
            }
            assert_eq!(mailbox.take(NOW + DAY, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
            mailbox.accepted(NOW + DAY, WAIT, Kind::Notices);
            assert_eq!(accept(&mut mailbox, NOW + DAY), Told::No);
            assert_eq!((mailbox.due(), mailbox.aside), (None, ids([])));
        }
    }

    #[test]
    fn of_more_than_a_hundred_that_are_left_out_the_newest_are_told_once_they_are_accepted() {
        let accept = |mailbox: &mut Mailbox, id: u64, now: i64| {
            let causes = [Cause::Reply { subscribed: true }];
            mailbox.tell_accepted(CommentId(id), &causes, "thread", now, WAIT)
        };
        let (mut mailbox, mut now) = (on(), NOW);
        for id in 1..=101 {
            tell(&mut mailbox, id, now);
            now = mailbox.due().unwrap();
            mailbox.take(now, "worker");
            mailbox.set_aside(&ids([id]));
            mailbox.dropped(now, WAIT, Kind::Notices);
        }
        assert_eq!(accept(&mut mailbox, 1, now), Told::No);
        assert_eq!(accept(&mut mailbox, 2, now), Told::Added);
        assert_eq!(accept(&mut mailbox, 101, now), Told::Added);
    }

    #[test]
    fn nobody_of_its_network_displaces_an_asker_whose_confirmation_is_being_sent() {
        let mut mailbox = asked("ada");
        assert!(matches!(mailbox.take(NOW + MINUTE, "worker"), Step::Send(Mail::Confirm(_))));
        mailbox.ask(asker("bob", "home"), NOW + MINUTE, WAIT);
        mailbox.ask(asker("carl", "home"), NOW + MINUTE, WAIT);
        mailbox.accepted(NOW + MINUTE, WAIT, Kind::Confirmation);
        assert!(mailbox.confirm(&Asker::of(&guest("ada")), NOW + HOUR, WAIT));
        let waits = mailbox.askers.iter().filter(|asker| asker.waits());
        assert_eq!(waits.map(|asker| asker.name.as_str()).collect::<Vec<_>>(), [Asker::of(&guest("carl"))]);
    }

    #[test]
    fn no_network_is_kept_of_an_asker_who_was_confirmed_nor_of_an_address_that_was_stopped() {
        let mut mailbox = asked("ada");
        assert!(confirmation(&mut mailbox, NOW + MINUTE).is_some());
        mailbox.confirm(&Asker::of(&guest("ada")), NOW + HOUR, WAIT);
        assert!(mailbox.askers.iter().all(|asker| asker.network.is_empty()));
        mailbox.stop(NOW + HOUR, None);
        assert!(!format!("{mailbox:?}").contains("home"), "{mailbox:?}");
    }

    #[test]
    fn a_stopped_mailbox_is_turned_on_by_its_member_alone() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        mailbox.stop(NOW, None);
        assert_eq!((mailbox.state, &mailbox.address), (State::Off, &None));
        assert_eq!(mailbox.take(NOW + DAY, "worker"), Step::Nothing);
        let stopped = mailbox.clone();
        mailbox.forget();
        assert_eq!(mailbox, stopped);
        mailbox.enrol(address(true), NOW, WAIT);
        assert_eq!((mailbox.state, &mailbox.address), (State::Off, &None));
        mailbox.ask(asker("ada", "home"), NOW, WAIT);
        assert!(!mailbox.confirm(&Asker::of(&guest("ada")), NOW, WAIT));
        assert_eq!(mailbox.book("ada", "home", NOW), Asking::Never);
        choose(&mut mailbox, Wants { replies: true, ..Wants::default() });
        assert_eq!(mailbox.state, State::On);
        assert!(mailbox.wants_to_know(&Cause::Reply { subscribed: false }) && !mailbox.wants_to_know(&Cause::Mention));
    }

    #[test]
    fn what_stops_the_address_stops_who_has_not_chosen_since() {
        let (mut owner, mut member) = (on(), on());
        owner.stop(NOW, None);
        assert!(member.is_stopped_by(&owner, &address(true)) && !member.is_stopped_by(&on(), &address(true)));
        choose(&mut member, Wants::default());
        member.forget();
        assert!(!member.is_stopped_by(&owner, &address(true)));
        assert!(member.is_stopped_by(&owner, &address(false)), "anybody may claim an address");
        owner.stop(NOW + MINUTE, None);
        assert!(member.is_stopped_by(&owner, &address(true)));
    }

    #[test]
    fn what_a_member_has_confirmed_stays_known_after_stopping_and_not_after_choosing_to_be_forgotten() {
        let mut mailbox = on();
        mailbox.stop(NOW, Some("ada".to_owned()));
        mailbox.stop(NOW, None);
        assert!(mailbox.has_proven("ada") && !mailbox.has_proven("eve"));
        choose(&mut mailbox, Wants::default());
        mailbox.forget();
        assert!(!mailbox.has_proven("ada"));
    }

    #[test]
    fn a_bounced_address_stays_out_until_its_member_chooses_and_another_one_comes_in() {
        let mut mailbox = on();
        mailbox.bounce();
        mailbox.enrol(address(true), NOW, WAIT);
        assert_eq!((mailbox.state, tell(&mut mailbox, 1, NOW)), (State::Bounced, Told::No));
        let mut chosen = mailbox.clone();
        choose(&mut chosen, Wants::default());
        assert_eq!((chosen.state, &chosen.address), (State::On, &Some(address(true))));
        mailbox.enrol(Address { sealed: "other".to_owned(), ..address(true) }, NOW, WAIT);
        assert_eq!(mailbox.state, State::On);
    }

    #[test]
    fn a_muted_thread_is_not_told_and_the_hundred_latest_stay_muted() {
        let mut mailbox = on();
        for thread in 0..=MAX_MUTED {
            mailbox.mute(&thread.to_string());
        }
        assert!(!mailbox.is_muted("0") && mailbox.is_muted("1") && mailbox.is_muted("100"));
        let causes = [Cause::Reply { subscribed: true }];
        assert_eq!(mailbox.tell(CommentId(1), &causes, "100", NOW, WAIT), Told::No);
    }

    #[test]
    fn moderators_get_a_digest_an_hour_at_most() {
        let mut mods = Mailbox::default();
        assert_eq!(mods.alert(CommentId(1), 21, NOW, WAIT), Told::Added);
        assert_eq!(mods.take(NOW + MINUTE, "worker"), Step::Send(Mail::Tell(ids([1]), 0)));
        mods.accepted(NOW + MINUTE, WAIT, Kind::Digest);
        assert_eq!(mods.alert(CommentId(1), 21, NOW + 2 * MINUTE, WAIT), Told::No);
        assert_eq!(mods.due(), None);
        assert_eq!(mods.alert(CommentId(1), 22, NOW + 2 * MINUTE, WAIT), Told::Added);
        assert_eq!(mods.due(), Some(NOW + MINUTE + HOUR));
    }
}
