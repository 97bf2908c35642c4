//! A recipient's address and choices. Nothing is sent to an address without its owner's consent: a visitor who gives an address
//! without proof of owning it is an [`Asker`], and the owner has to confirm the request. Notifications for unconfirmed askers
//! are held.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DAY, MAX_WAITING, MINUTE, Notified, Reason, WEEK, is_default};
use crate::ids::{CommentId, Visitor, sha256_hex};
use crate::time::{Timestamp, stored};

/// Maximum muted threads. The oldest is dropped first.
pub(super) const MAX_MUTED: usize = 100;
/// Maximum confirmation emails to an address per week, in total and per network that causes them.
const MAX_CONFIRMATIONS: usize = 3;
const MAX_OF_NETWORK: usize = 2;
/// Maximum askers whose confirmation hasn't been sent yet. Further requests are ignored.
pub(super) const MAX_ASKING: usize = 10;
/// Maximum confirmed askers. The oldest is dropped first.
const MAX_CONFIRMED: usize = 50;
/// Hexadecimal digits in the hash of an asker.
const ASKER: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not subscribed, or the address was deleted.
    #[default]
    New,
    /// The owner hasn't confirmed the address yet.
    Asked,
    On,
    /// Unsubscribed. A member can turn emails on again; a guest can't.
    Off,
    /// The address can't receive emails.
    Bounced,
}

/// The notifications that a member has turned on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    pub replies: bool,
    pub mentions: bool,
    pub own_records: bool,
}

/// An email address as given, sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    #[serde(rename = "a")]
    pub sealed: String,
    #[serde(rename = "l")]
    pub language: String,
    /// Whether the address is known to be the recipient's.
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub confirmed: bool,
}

/// A visitor who gave an address without proof of owning it. The visitor is a guest in a guest's item, and the member in a
/// member's item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// Hash of the guest, [`Asker::of`], or of the address that a member claims.
    #[serde(rename = "v")]
    pub name: String,
    #[serde(rename = "ad")]
    pub address: Address,
    /// Hash of the network, [`crate::mail_keys::MailKeys::network`]. Empty once the asker is confirmed.
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The comment that the address was submitted with, if any.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentId>,
    /// The time of the request.
    #[serde(rename = "t", default, serialize_with = "stored::time")]
    pub(super) at: Timestamp,
    /// The earliest time to send the confirmation.
    #[serde(rename = "f", default, serialize_with = "stored::time")]
    pub(super) from: Timestamp,
    /// When the confirmation was sent.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub(super) asked_at: Option<Timestamp>,
    /// The numbers of notices that are held until the confirmation.
    #[serde(rename = "h", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    held: BTreeSet<u64>,
}

impl Asker {
    #[must_use]
    pub fn new(name: String, address: Address, network: String, comment: Option<CommentId>) -> Self {
        let (at, from) = Default::default();
        Self { name, address, network, comment, at, from, asked_at: None, held: BTreeSet::new() }
    }

    /// Hash of a visitor, which the item stores instead of the visitor.
    #[must_use]
    pub fn of(visitor: &Visitor) -> String {
        let mut name = sha256_hex(&format!("asker {visitor}"));
        name.truncate(ASKER);
        name
    }

    /// Identifies this request, made by `who`, for [`Enrolment::book`].
    #[must_use]
    pub fn asking_of(&self, who: &str) -> String {
        format!("{who} {}", self.at.0)
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.address.confirmed
    }

    pub(super) fn waits(&self) -> bool {
        !self.is_confirmed() && self.asked_at.is_none()
    }
}

/// A confirmation email that was sent to an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Confirmation {
    #[serde(rename = "a", serialize_with = "stored::time")]
    at: Timestamp,
    #[serde(rename = "n")]
    network: String,
    /// The request, as identified by [`Asker::asking_of`].
    #[serde(rename = "v")]
    asking: String,
}

/// Whether a confirmation may be sent to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    Allowed,
    From(Timestamp),
    /// The owner has unsubscribed, or the address can't receive emails.
    Never,
}

/// A recipient's address, the visitors who requested emails to it, and the notifications that the recipient wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    #[serde(rename = "st", default, skip_serializing_if = "is_default")]
    pub status: Status,
    /// A confirmed address, or one that bounced.
    #[serde(rename = "ad", default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// In a member's item, the member is the only asker.
    #[serde(rename = "ak", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) askers: Vec<Asker>,
    #[serde(rename = "re", default, skip_serializing_if = "is_default")]
    replies: bool,
    #[serde(rename = "me", default, skip_serializing_if = "is_default")]
    mentions: bool,
    #[serde(rename = "ow", default, skip_serializing_if = "is_default")]
    own_records: bool,
    /// Hashes of threads, from `MailKeys::thread`.
    #[serde(rename = "mu", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) muted: Vec<String>,
    /// Confirmations sent to the address in the past week, for guests and for members.
    #[serde(rename = "cn", default, skip_serializing_if = "Vec::is_empty")]
    confirmations: Vec<Confirmation>,
    #[serde(rename = "so", default, skip_serializing_if = "is_default", serialize_with = "stored::time")]
    stopped_at: Timestamp,
    #[serde(rename = "ch", default, skip_serializing_if = "is_default", serialize_with = "stored::time")]
    chosen_at: Timestamp,
    /// Hash ([`crate::mail_keys::MailKeys::address`]) of a confirmed address that was deleted when the recipient unsubscribed.
    /// The address needs no new confirmation.
    #[serde(rename = "pv", default, skip_serializing_if = "Option::is_none")]
    proven: Option<String>,
}

impl Enrolment {
    #[must_use]
    pub fn wants(&self) -> Wants {
        Wants { replies: self.replies, mentions: self.mentions, own_records: self.own_records }
    }

    #[must_use]
    pub fn wants_to_know(&self, reason: &Reason) -> bool {
        match reason {
            Reason::Reply { subscribed } => *subscribed || self.replies,
            Reason::ReplyToGuest(guest) => self.asker(&Asker::of(guest)).is_some_and(Asker::is_confirmed),
            Reason::Mention => self.mentions,
            Reason::OwnRecord => self.own_records,
        }
    }

    pub(super) fn asker(&self, name: &str) -> Option<&Asker> {
        self.askers.iter().find(|asker| asker.name == name)
    }

    pub(super) fn asker_mut(&mut self, name: &str) -> Option<&mut Asker> {
        self.askers.iter_mut().find(|asker| asker.name == name)
    }

    /// The asker that the owner has to confirm before the recipient is notified for any of these reasons.
    fn holder(&mut self, reasons: &[Reason]) -> Option<&mut Asker> {
        let is_holder = |asker: &Asker, reason: &Reason| match reason {
            Reason::ReplyToGuest(guest) => asker.name == Asker::of(guest),
            _ => true,
        };
        let askers = self.askers.iter_mut().filter(|asker| !asker.is_confirmed());
        askers.into_iter().find(|asker| reasons.iter().any(|reason| is_holder(asker, reason)))
    }

    /// Holds a notice until the owner confirms its asker. `is_wanted` is whether the recipient wants notifications for any of
    /// these reasons.
    pub(super) fn hold(&mut self, notice: u64, reasons: &[Reason], is_wanted: bool) -> Notified {
        let is_guest = |reason: &Reason| matches!(reason, Reason::ReplyToGuest(_));
        match self.holder(reasons).filter(|_| is_wanted || reasons.iter().any(is_guest)) {
            Some(asker) if asker.held.len() < MAX_WAITING => {
                asker.held.insert(notice);
                Notified::Added
            }
            _ => Notified::No,
        }
    }

    pub(super) fn holds(&self, notice: u64) -> bool {
        self.askers.iter().any(|asker| asker.held.contains(&notice))
    }

    /// The earliest time to send a waiting confirmation.
    pub(super) fn next_confirmation(&self) -> Option<Timestamp> {
        self.askers.iter().filter(|asker| asker.waits()).map(|asker| asker.from).min()
    }

    /// The address that emails go to, or else the first address that was given without proof.
    #[must_use]
    pub fn given_address(&self) -> Option<&Address> {
        self.address.as_ref().or_else(|| self.askers.first().map(|asker| &asker.address))
    }

    /// All addresses that emails may have gone to.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.address.iter().chain(self.askers.iter().map(|asker| &asker.address))
    }

    #[must_use]
    pub fn is_muted(&self, thread: &str) -> bool {
        self.muted.iter().any(|muted| muted == thread)
    }

    pub fn mute(&mut self, thread: &str) {
        if !self.is_muted(thread) {
            self.muted.push(thread.to_owned());
            let surplus = self.muted.len().saturating_sub(MAX_MUTED);
            self.muted.drain(..surplus);
        }
    }

    /// Decides whether a confirmation of this request, by a guest or a member, may be sent to the address. If so, it is
    /// counted. Safe to repeat. The limits expire, so no one can use them up forever, and one network can't use them up alone.
    pub fn book(&mut self, asking: &str, network: &str, now: Timestamp) -> Asking {
        if matches!(self.status, Status::Off | Status::Bounced) {
            return Asking::Never;
        }
        let recent: Vec<&Confirmation> =
            self.confirmations.iter().filter(|sent| sent.at.is_within(WEEK, now)).collect();
        if recent.iter().any(|sent| sent.asking == asking) {
            return Asking::Allowed;
        }
        let bound = |sent: &[&Confirmation], most: usize, time: Duration| {
            let first = sent.len().checked_sub(most).map(|first| sent[first].at + time);
            first.filter(|from| *from > now)
        };
        let of_network: Vec<&Confirmation> = recent.iter().copied().filter(|sent| sent.network == network).collect();
        let bounds =
            [bound(&recent, 1, DAY), bound(&recent, MAX_CONFIRMATIONS, WEEK), bound(&of_network, MAX_OF_NETWORK, WEEK)];
        if let Some(from) = bounds.into_iter().flatten().max() {
            return Asking::From(from);
        }
        self.confirmations.retain(|sent| sent.at.is_within(WEEK, now));
        self.confirmations.push(Confirmation { at: now, network: network.to_owned(), asking: asking.to_owned() });
        Asking::Allowed
    }

    /// Whether the member has confirmed this address before. `address` is the hash of the address,
    /// [`crate::mail_keys::MailKeys::address`].
    #[must_use]
    pub fn has_proven(&self, address: &str) -> bool {
        self.proven.as_deref() == Some(address)
    }

    /// Whether the owner of the member's address unsubscribed after the member's last choice. The choice doesn't count
    /// if the address is unconfirmed, or if the clock was ahead when the choice was made, because it may then be the
    /// earlier one. `owner` is the enrolment of the address itself.
    #[must_use]
    pub fn is_stopped_by(&self, owner: &Self, address: &Address, now: Timestamp) -> bool {
        let is_later = owner.stopped_at > self.chosen_at || self.chosen_at.is_too_far_ahead(Duration::ZERO, now);
        owner.status == Status::Off && (is_later || !address.confirmed)
    }

    /// Whether the asker is confirmed, or its confirmation is waiting to be sent or was sent less than a day ago.
    #[must_use]
    pub fn has_heard(&self, name: &str, now: Timestamp) -> bool {
        self.asker(name)
            .is_some_and(|asker| asker.asked_at.is_none_or(|at| asker.is_confirmed() || at.is_within(DAY, now)))
    }

    /// Whether a request for this address is accepted: the recipient hasn't unsubscribed, and the address hasn't bounced.
    #[must_use]
    pub fn receives(&self, address: &Address) -> bool {
        match self.status {
            Status::Off => false,
            Status::Bounced => self.address.as_ref().is_none_or(|known| known.sealed != address.sealed),
            Status::New | Status::Asked | Status::On => true,
        }
    }

    /// Implements [`super::NotificationState::ask`]. `confirming` is the asker whose confirmation is being sent.
    pub(super) fn ask(&mut self, asker: Asker, confirming: Option<&str>, now: Timestamp, wait: Duration) {
        if self.has_heard(&asker.name, now) {
            // The newest comment replaces the first one, which may be gone when the confirmation is sent.
            if let Some(known) = self.asker_mut(&asker.name).filter(|known| known.waits()) {
                known.comment = asker.comment;
            }
            return;
        }
        if !self.receives(&asker.address) {
            return;
        }
        self.askers.retain(|known| known.is_confirmed() || known.asked_at.is_none_or(|at| now.since(at) < WEEK));
        let mut asker = Asker { at: now, from: now + wait, ..asker };
        let of_name = self.askers.iter().position(|known| known.name == asker.name);
        let gives_way =
            |known: &Asker| known.waits() && known.network == asker.network && confirming != Some(known.name.as_str());
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
        if matches!(self.status, Status::New | Status::Bounced) {
            (self.status, self.address) = (Status::Asked, None);
        }
    }

    /// Implements [`super::NotificationState::claim_address`]. `confirming` is the asker whose confirmation is being sent.
    pub(super) fn claim(&mut self, asker: Asker, confirming: Option<&str>, now: Timestamp, wait: Duration) {
        if self.status == Status::On || self.has_heard(&asker.name, now) {
            return;
        }
        let held = self.askers.drain(..).flat_map(|before| before.held).collect();
        self.ask(Asker { held, ..asker }, confirming, now, wait);
    }

    /// Stores an address that is known to be the member's, and returns the held notices. `None` if this changes nothing.
    pub(super) fn enrol(&mut self, address: Address) -> Option<Vec<u64>> {
        let same = self.address.as_ref().is_some_and(|known| known.sealed == address.sealed);
        if !self.receives(&address) || (self.status == Status::On && same) {
            return None;
        }
        (self.status, self.address) = (Status::On, Some(address));
        Some(std::mem::take(&mut self.askers).into_iter().flat_map(|asker| asker.held).collect())
    }

    /// Records that the owner confirmed this asker, and returns the asker's held notices. `None` if there is no such asker.
    pub(super) fn confirm(&mut self, name: &str) -> Option<BTreeSet<u64>> {
        let asker = self.asker_mut(name)?;
        asker.address.confirmed = true;
        asker.network.clear();
        let (address, held) = (asker.address.clone(), std::mem::take(&mut asker.held));
        self.address.get_or_insert(address);
        let confirmed = self.askers.iter().filter(|asker| asker.is_confirmed()).count();
        if confirmed > MAX_CONFIRMED
            && let Some(oldest) = self.askers.iter().position(|asker| asker.is_confirmed() && asker.name != name)
        {
            self.askers.remove(oldest);
        }
        self.status = Status::On;
        Some(held)
    }

    /// Implements [`super::NotificationState::dismiss`].
    pub(super) fn dismiss(&mut self, name: Option<&str>) {
        self.askers.retain(|asker| Some(asker.name.as_str()) != name);
        if self.status == Status::Asked && self.askers.is_empty() {
            self.status = Status::New;
        }
    }

    /// Accepts all addresses again after an unsubscribe or a bounce, because the member makes a new choice.
    pub fn reopen(&mut self, now: Timestamp) {
        self.chosen_at = now;
        if matches!(self.status, Status::Off | Status::Bounced) {
            self.status = Status::New;
        }
    }

    pub fn choose(&mut self, wants: Wants, now: Timestamp) {
        self.reopen(now);
        (self.replies, self.mentions, self.own_records) = (wants.replies, wants.mentions, wants.own_records);
    }

    pub(super) fn was_just_stopped(&self, now: Timestamp) -> bool {
        self.status == Status::Off && self.stopped_at.is_within(MINUTE, now)
    }

    /// Implements [`super::NotificationState::stop`].
    pub(super) fn stop(&mut self, now: Timestamp, proven: Option<String>) {
        let proven = proven.or(self.proven.take());
        self.clear();
        // A stopped address gets no confirmations, so none need to be counted.
        self.confirmations.clear();
        (self.status, self.stopped_at, self.proven) = (Status::Off, now, proven);
    }

    /// Marks the address as bounced, and keeps it so that it can be recognized later.
    pub(super) fn bounce(&mut self) {
        let address = self.given_address().cloned();
        self.clear();
        (self.status, self.address) = (Status::Bounced, address);
    }

    /// Deletes the address, the askers and the notification choices.
    pub(super) fn clear(&mut self) {
        *self = Self {
            confirmations: std::mem::take(&mut self.confirmations),
            muted: std::mem::take(&mut self.muted),
            chosen_at: self.chosen_at,
            ..Self::default()
        };
    }

    /// The enrolment reduced to the fact that the recipient unsubscribed. `None` unless the recipient did.
    pub(super) fn refusal(&self) -> Option<Self> {
        let stopped = Self { status: Status::Off, stopped_at: self.stopped_at, ..Self::default() };
        (self.status == Status::Off).then_some(stopped)
    }
}
