//! What one recipient is told, and when. Pure: every step takes the time and changes the mailbox in memory; the store writes
//! it on condition that nobody else has.
//!
//! ```text
//! tell → waiting ── due ──→ in flight ── accepted ──→ told
//!           ↑                   │
//!           └───── refused ─────┘
//! ```
//!
//! An id is in one set at a time, so that each comment is told once, however often its event and the queue's message are
//! delivered. What is in flight when a worker dies is sent once more. Of more than a hundred that wait only the number of
//! the others is kept, and an event that is delivered again raises it again.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::ids::CommentId;

/// Comments that one mail names. More are a number.
pub const MAX_WAITING: usize = 100;
/// Muted threads. The oldest gives way.
const MAX_MUTED: usize = 100;
/// Told comments that are remembered in each of two sets.
const MAX_TOLD: usize = 200;
/// Mails in 24 hours.
const MAX_MAILS: usize = 10;
/// Confirmations that an address is ever asked for.
const MAX_CONFIRMATIONS: u32 = 3;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It answers a comment of the recipient, who `subscribed` to the replies to that comment or not.
    Reply {
        subscribed: bool,
    },
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

/// A worker is sending what is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Another name for each time that a worker takes a mailbox.
    #[serde(rename = "o")]
    pub owner: String,
    /// Unix milliseconds. Afterwards the worker counts as dead, and what became of the mail as unknown.
    #[serde(rename = "u")]
    pub until: i64,
    /// Whether an earlier worker died with the same mail.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub again: bool,
}

/// Whether an address may be asked for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    Allowed,
    /// Not before this time, in Unix milliseconds.
    From(i64),
    /// Its owner wants no mails, or was asked as often as may be.
    Never,
}

/// What a worker does with a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Until this time, in Unix milliseconds.
    Wait(i64),
    Confirm,
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
    #[serde(rename = "ad", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
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
    /// Whether a confirmation is to be sent.
    #[serde(rename = "cw", default, skip_serializing_if = "is_default")]
    confirms: bool,
    /// Confirmations that were asked for, ever.
    #[serde(rename = "cn", default, skip_serializing_if = "is_default")]
    confirmations: u32,
    #[serde(rename = "ca", default, skip_serializing_if = "is_default")]
    confirmation_asked_at: i64,
    /// Who asked for the last confirmation: the member of [`Mailbox::ask_for_member`].
    #[serde(rename = "cb", default, skip_serializing_if = "Option::is_none")]
    confirmation_asked_by: Option<String>,
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
    pub fn wants_to_know(&self, cause: Cause) -> bool {
        match cause {
            Cause::Reply { subscribed } => subscribed || self.replies,
            Cause::Mention => self.mentions,
            Cause::OwnRecord => self.own_records,
        }
    }

    #[must_use]
    pub fn is_muted(&self, thread: &str) -> bool {
        self.muted.iter().any(|muted| muted == thread)
    }

    /// Whether an address that nobody has confirmed would be asked for a confirmation now.
    #[must_use]
    pub fn would_confirm(&self, address: &Address, now: i64) -> bool {
        self.takes(address, now) && !address.confirmed && self.may_ask(now)
    }

    fn may_ask(&self, now: i64) -> bool {
        self.asking(now) == Asking::Allowed
    }

    fn asking(&self, now: i64) -> Asking {
        let next = self.confirmation_asked_at + DAY;
        match self.confirmations {
            0 => Asking::Allowed,
            MAX_CONFIRMATIONS.. => Asking::Never,
            _ if next > now => Asking::From(next),
            _ => Asking::Allowed,
        }
    }

    /// A member claims the address of this mailbox, and asks for a confirmation to be sent there. Safe to repeat, until the
    /// member's own mailbox counts the confirmation. `member` is what stands for the member:
    /// [`crate::domain::mail_keys::MailKeys::member`].
    pub fn ask_for_member(&mut self, member: &str, now: i64) -> Asking {
        if self.state == State::Off {
            return Asking::Never;
        }
        if self.confirmation_asked_by.as_deref() == Some(member) && now - self.confirmation_asked_at < DAY {
            return Asking::Allowed;
        }
        let asking = self.asking(now);
        if asking == Asking::Allowed {
            self.count_confirmation(Some(member.to_owned()), now);
        }
        asking
    }

    fn count_confirmation(&mut self, member: Option<String>, now: i64) {
        self.confirmations += 1;
        self.confirmation_asked_at = now;
        self.confirmation_asked_by = member;
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

    /// Whether the address would change anything. A mailbox that was stopped takes none, and one that bounced no address
    /// that it has. One that waits for a confirmation takes another unconfirmed address when that may be asked for its own.
    #[must_use]
    pub fn takes(&self, address: &Address, now: i64) -> bool {
        let same = self.address.as_ref().is_some_and(|known| known.sealed == address.sealed);
        match self.state {
            State::New => true,
            State::Asked => same || address.confirmed || self.may_ask(now),
            State::On => !same && address.confirmed,
            State::Off => false,
            State::Bounced => !same,
        }
    }

    /// Somebody subscribed with this address.
    pub fn enrol(&mut self, address: Address, now: i64, wait: Duration) {
        if !self.takes(&address, now) {
            return;
        }
        if address.confirmed {
            self.turn_on(now, wait);
        } else {
            if self.would_confirm(&address, now) {
                self.confirms = true;
                self.count_confirmation(None, now);
                self.due = Some(now + millis(wait));
            }
            self.state = State::Asked;
        }
        self.address = Some(address);
    }

    /// Makes a mailbox that was stopped or has bounced take any address again, because its member wants to choose.
    pub fn reopen(&mut self, now: i64) {
        self.chosen_at = now;
        if matches!(self.state, State::Off | State::Bounced) {
            self.state = State::New;
        }
    }

    /// A member chooses.
    pub fn choose(&mut self, wants: Wants, address: Address, now: i64, wait: Duration) {
        self.reopen(now);
        (self.replies, self.mentions, self.own_records) = (wants.replies, wants.mentions, wants.own_records);
        self.enrol(address, now, wait);
    }

    /// The owner of the address has confirmed it. False when it is not asked any more.
    pub fn confirm(&mut self, now: i64, wait: Duration) -> bool {
        let Some(address) = self.address.as_mut().filter(|_| matches!(self.state, State::Asked | State::On)) else {
            return false;
        };
        address.confirmed = true;
        self.turn_on(now, wait);
        true
    }

    /// The address of this mailbox is known to be the recipient's.
    fn turn_on(&mut self, now: i64, wait: Duration) {
        if self.state != State::On {
            self.state = State::On;
            self.confirms = false;
            // Of a confirmation. What becomes of it does not matter any more.
            self.claim = None;
            self.due = None;
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

    /// Forgets the address, so that nobody can enrol it again. `proven` is what stands for it if it was confirmed.
    pub fn stop(&mut self, now: i64, proven: Option<String>) {
        let proven = proven.or(self.proven.take());
        self.clear();
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
            confirmations: self.confirmations,
            confirmation_asked_at: self.confirmation_asked_at,
            confirmation_asked_by: self.confirmation_asked_by.take(),
            muted: std::mem::take(&mut self.muted),
            chosen_at: self.chosen_at,
            ..Self::default()
        };
    }

    /// The mail server of the address takes no mails for it. The address stays, to be known again.
    pub fn bounce(&mut self) {
        if matches!(self.state, State::On | State::Asked) {
            let address = self.address.take();
            self.clear();
            (self.state, self.address) = (State::Bounced, address);
        }
    }

    /// Tells of a comment when it is time. `thread` is what mutes it.
    pub fn tell(&mut self, id: CommentId, thread: &str, now: i64, wait: Duration) -> Told {
        if self.waiting.contains(&id.0) || self.in_flight.contains(&id.0) {
            return Told::Waiting;
        }
        if self.was_told(id.0) || self.is_muted(thread) || !matches!(self.state, State::On | State::Asked) {
            return Told::No;
        }
        self.add(id.0);
        if self.state == State::On && self.due.is_none() && self.claim.is_none() {
            self.due = Some(self.next(now, wait));
        }
        Told::Added
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
        if !self.waiting.is_empty() && self.claim.is_none() && self.due.is_none() {
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
        self.claim.as_ref().map(|claim| claim.until).or(self.due)
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
            Some(claim) if claim.owner == owner => {
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
                self.mark_told(now);
                self.due = (!self.waiting.is_empty()).then_some(now + MINUTE);
                return self.due.map_or(Step::Nothing, Step::Wait);
            }
            earlier => earlier,
        };
        if earlier.is_none() {
            match self.due {
                None => return Step::Nothing,
                Some(due) if due > now => return Step::Wait(due),
                Some(_) => {}
            }
            if self.state == State::On {
                self.in_flight = std::mem::take(&mut self.waiting);
                self.more_in_flight = std::mem::take(&mut self.more);
            }
        }
        self.due = None;
        let step = self.step();
        if step != Step::Nothing {
            self.claim = Some(Claim { owner: owner.to_owned(), until: now + CLAIM, again: earlier.is_some() });
        }
        step
    }

    fn step(&self) -> Step {
        match self.state {
            State::Asked if self.confirms => Step::Confirm,
            State::On if !self.in_flight.is_empty() => Step::Tell(self.in_flight.clone(), self.more_in_flight),
            _ => Step::Nothing,
        }
    }

    /// What tells the mail that is being sent from all others. It is the same when the mail is sent again because a worker
    /// died, so that mail programs show the two as one.
    #[must_use]
    pub fn mail(&self) -> String {
        format!("{:?} {:?} {}", self.in_flight, self.sent.last(), self.confirmations)
    }

    /// Whether this worker still has the mailbox.
    #[must_use]
    pub fn is_claimed_by(&self, owner: &str) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.owner == owner)
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
        self.mark_told(now);
        if !self.waiting.is_empty() && self.state == State::On {
            self.due = Some(if kind == Kind::Digest { self.next_digest(now, wait) } else { self.next(now, wait) });
        }
    }

    /// What is in flight counts as told.
    fn mark_told(&mut self, now: i64) {
        let told = std::mem::take(&mut self.in_flight);
        self.remember(told, now);
        self.more_in_flight = 0;
        self.claim = None;
        self.confirms = false;
        self.refusals = 0;
        self.due = None;
    }

    /// The mail server has not taken the mail. It is tried again, for a day.
    pub fn refused(&mut self, now: i64) {
        if self.refusals == 0 {
            self.refused_since = now;
        }
        if now - self.refused_since >= GIVE_UP {
            return self.give_up(now);
        }
        let retry = RETRIES[usize::try_from(self.refusals).unwrap_or(usize::MAX).min(RETRIES.len() - 1)];
        self.refusals += 1;
        for id in std::mem::take(&mut self.in_flight) {
            self.add(id);
        }
        self.more += std::mem::take(&mut self.more_in_flight);
        self.claim = None;
        self.due = Some(now + retry);
    }

    /// What was in flight counts as told, but for what was written since the first refusal. That has a day of its own.
    fn give_up(&mut self, now: i64) {
        let is_newer = |id: &u64| CommentId(*id).created_at().0 > self.refused_since;
        let (newer, older): (BTreeSet<u64>, BTreeSet<u64>) =
            std::mem::take(&mut self.in_flight).into_iter().partition(is_newer);
        self.in_flight = older;
        self.mark_told(now);
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

    fn on() -> Mailbox {
        let mut mailbox = Mailbox::default();
        mailbox.enrol(address(true), NOW, WAIT);
        mailbox
    }

    fn tell(mailbox: &mut Mailbox, id: u64, now: i64) -> Told {
        mailbox.tell(CommentId(id), "thread", now, WAIT)
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
        assert_eq!(mailbox.take(NOW + 60_000, "worker"), Step::Tell(ids([1, 2]), 0));
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
        assert_eq!(mailbox.take(NOW + 16 * MINUTE, "worker"), Step::Tell(ids([2]), 0));
    }

    #[test]
    fn waits_grow_and_a_day_has_at_most_ten_mails() {
        let (mut mailbox, mut now, mut mails) = (on(), NOW, Vec::new());
        for id in 0..100 {
            tell(&mut mailbox, id, now);
            now = mailbox.due().unwrap();
            assert!(matches!(mailbox.take(now, "worker"), Step::Tell(..)));
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
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Tell(ids(0..100), 900));
    }

    #[test]
    fn a_mail_whose_worker_died_is_sent_once_more_and_no_more() {
        let mut mailbox = on();
        tell(&mut mailbox, 1, NOW);
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Tell(ids([1]), 0));
        let (dead, mail) = (NOW + MINUTE + CLAIM, mailbox.mail());
        assert_eq!(mailbox.take(dead - 1, "second"), Step::Wait(dead));
        assert_eq!(mailbox.take(dead, "second"), Step::Tell(ids([1]), 0));
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
            assert_eq!(mailbox.take(now, "worker"), Step::Tell(ids([1]), 0));
            mailbox.refused(now);
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
        while let Step::Tell(tried, _) = mailbox.take(now, "worker") {
            if now >= NOW + 20 * HOUR && !tried.contains(&later) {
                tell(&mut mailbox, later, now);
            }
            if !tried.contains(&first) {
                break;
            }
            if now - NOW >= DAY {
                tell(&mut mailbox, last, now);
            }
            mailbox.refused(now);
            now = mailbox.due().unwrap();
        }
        assert_eq!(mailbox.in_flight, ids([later, last]));
        mailbox.refused(now);
        while now - NOW < 44 * HOUR {
            now = mailbox.due().unwrap();
            assert_eq!(mailbox.take(now, "worker"), Step::Tell(ids([later, last]), 0));
            mailbox.refused(now);
        }
    }

    #[test]
    fn an_unconfirmed_address_gets_one_confirmation_a_day_and_three_ever() {
        let (mut mailbox, mut sent) = (Mailbox::default(), 0);
        for hour in 0..24 * 10 {
            let now = NOW + hour * HOUR;
            mailbox.enrol(address(false), now, WAIT);
            if mailbox.take(now + MINUTE, "worker") == Step::Confirm {
                mailbox.accepted(now + MINUTE, WAIT, Kind::Confirmation);
                sent += 1;
                assert!(sent <= 1 + hour / 24, "{sent} in {hour} hours");
            }
        }
        assert_eq!((sent, mailbox.state), (3, State::Asked));
    }

    #[test]
    fn an_unconfirmed_address_takes_the_place_of_another_when_it_may_be_asked() {
        let other = |confirmed| Address { sealed: "other".to_owned(), ..address(confirmed) };
        let mut mailbox = Mailbox::default();
        mailbox.enrol(address(false), NOW, WAIT);
        mailbox.enrol(other(false), NOW + DAY - 1, WAIT);
        assert_eq!((&mailbox.address, mailbox.state), (&Some(address(false)), State::Asked));
        let mut proven = mailbox.clone();
        proven.enrol(other(true), NOW + DAY - 1, WAIT);
        assert_eq!((&proven.address, proven.state), (&Some(other(true)), State::On));
        mailbox.enrol(other(false), NOW + DAY, WAIT);
        assert_eq!((&mailbox.address, mailbox.state), (&Some(other(false)), State::Asked));
    }

    #[test]
    fn a_member_who_claims_an_address_again_counts_once_and_others_wait() {
        let (mut owner, ada, eve) = (Mailbox::default(), "ada", "eve");
        assert_eq!(owner.ask_for_member(ada, NOW), Asking::Allowed);
        let before = owner.clone();
        assert_eq!(owner.ask_for_member(ada, NOW + MINUTE), Asking::Allowed);
        assert_eq!(owner.ask_for_member(eve, NOW + MINUTE), Asking::From(NOW + DAY));
        assert_eq!(owner, before);
        assert_eq!(owner.ask_for_member(eve, NOW + DAY), Asking::Allowed);
        assert_eq!(owner.ask_for_member(ada, NOW + DAY), Asking::From(NOW + 2 * DAY));
        assert_eq!(owner.ask_for_member(ada, NOW + 2 * DAY), Asking::Allowed);
        assert_eq!(owner.ask_for_member(ada, NOW + 3 * DAY), Asking::Never, "three ever");
        let mut stopped = Mailbox::default();
        stopped.stop(NOW, None);
        assert_eq!(stopped.ask_for_member(ada, NOW + 2 * DAY), Asking::Never);
    }

    #[test]
    fn what_gathers_before_the_confirmation_goes_after_it() {
        let mut mailbox = Mailbox::default();
        mailbox.enrol(address(false), NOW, WAIT);
        assert_eq!(tell(&mut mailbox, 1, NOW), Told::Added);
        assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Confirm);
        mailbox.accepted(NOW + MINUTE, WAIT, Kind::Confirmation);
        assert_eq!(mailbox.take(NOW + DAY, "worker"), Step::Nothing);
        assert!(mailbox.confirm(NOW + DAY, WAIT));
        assert_eq!(mailbox.due(), Some(NOW + DAY + MINUTE));
        assert_eq!(mailbox.take(NOW + 2 * DAY, "worker"), Step::Tell(ids([1]), 0));
    }

    #[test]
    fn what_gathers_goes_although_it_is_not_known_what_became_of_the_confirmation() {
        for by_its_link in [false, true] {
            let mut mailbox = Mailbox::default();
            mailbox.enrol(address(false), NOW, WAIT);
            tell(&mut mailbox, 1, NOW);
            assert_eq!(mailbox.take(NOW + MINUTE, "worker"), Step::Confirm);
            if by_its_link {
                mailbox.confirm(NOW + MINUTE, WAIT);
            } else {
                mailbox.enrol(address(true), NOW + MINUTE, WAIT);
            }
            assert_eq!(mailbox.take(NOW + CLAIM + MINUTE, "second"), Step::Tell(ids([1]), 0));
            assert!(!mailbox.is_claimed_by("worker"));
        }
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
        for confirmed in [false, true] {
            mailbox.enrol(address(confirmed), NOW, WAIT);
            assert_eq!((mailbox.state, &mailbox.address), (State::Off, &None));
        }
        assert!(!mailbox.confirm(NOW, WAIT));
        mailbox.choose(Wants { replies: true, ..Wants::default() }, address(true), NOW, WAIT);
        assert_eq!(mailbox.state, State::On);
        assert!(mailbox.wants_to_know(Cause::Reply { subscribed: false }) && !mailbox.wants_to_know(Cause::Mention));
    }

    #[test]
    fn what_stops_the_address_stops_who_has_not_chosen_since() {
        let (mut owner, mut member) = (on(), on());
        owner.stop(NOW, None);
        assert!(member.is_stopped_by(&owner, &address(true)) && !member.is_stopped_by(&on(), &address(true)));
        member.choose(Wants::default(), address(true), NOW, WAIT);
        member.forget();
        assert!(!member.is_stopped_by(&owner, &address(true)));
        assert!(member.is_stopped_by(&owner, &address(false)), "anybody may claim an address");
        owner.stop(NOW + 1, None);
        assert!(member.is_stopped_by(&owner, &address(true)));
    }

    #[test]
    fn what_a_member_has_confirmed_stays_known_after_stopping_and_not_after_choosing_to_be_forgotten() {
        let mut mailbox = on();
        mailbox.stop(NOW, Some("ada".to_owned()));
        mailbox.stop(NOW, None);
        assert!(mailbox.has_proven("ada") && !mailbox.has_proven("eve"));
        mailbox.choose(Wants::default(), address(true), NOW, WAIT);
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
        chosen.choose(Wants::default(), address(true), NOW, WAIT);
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
        assert_eq!(mailbox.tell(CommentId(1), "100", NOW, WAIT), Told::No);
    }

    #[test]
    fn moderators_get_a_digest_an_hour_at_most() {
        let mut mods = Mailbox::default();
        assert_eq!(mods.alert(CommentId(1), 21, NOW, WAIT), Told::Added);
        assert_eq!(mods.take(NOW + MINUTE, "worker"), Step::Tell(ids([1]), 0));
        mods.accepted(NOW + MINUTE, WAIT, Kind::Digest);
        assert_eq!(mods.alert(CommentId(1), 21, NOW + 2 * MINUTE, WAIT), Told::No);
        assert_eq!(mods.due(), None);
        assert_eq!(mods.alert(CommentId(1), 22, NOW + 2 * MINUTE, WAIT), Told::Added);
        assert_eq!(mods.due(), Some(NOW + MINUTE + HOUR));
    }
}
