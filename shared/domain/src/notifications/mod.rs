//! The notifications of one recipient and their schedule. Pure: every step takes the current time and changes the state in
//! memory. The store writes the state on condition that the stored state is unchanged.
//!
//! ```text
//!           held ──┐ confirmed       ┌── its text waits ──→ aside
//!            ↑     ↓                 │
//! notify ────┴→ waiting ── due ──→ in flight ── accepted ──→ notified
//!                  ↑                 │
//!                  └──── refused ────┘
//! ```
//!
//! A notice is in one set at a time, so that each comment is emailed once, however often its event and the queue message are
//! delivered. There are three exceptions. If the server accepts an email but this isn't stored, because the response is
//! lost or the worker dies, the email is sent again with the same `Message-ID`. Beyond 100 waiting notices only a count
//! is stored, so a redelivered event counts twice. Sent notices are stored for a limited time, and at most 400 of them,
//! so a comment whose event is redelivered later is emailed again. A notice in flight is also in `aside` if its text
//! was accepted, or its comment rejected again, in the meantime.
//!
//! [`Enrolment`] has the address and the consent, and [`Schedule`] has the emails. Both are stored as attributes of one item.

mod enrolment;
mod notice;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::enrolment::{Address, Asker, Asking, Enrolment, Status, Wants};
pub use self::notice::Notice;
use self::schedule::MAX_WAIT;
pub use self::schedule::Schedule;
use crate::claim::{self, Claim};
use crate::ids::{CommentId, Visitor};
use crate::time::Timestamp;

/// Maximum comments that one email lists. Further comments are only counted.
pub const MAX_WAITING: usize = 100;
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(7 * 24);
/// The duration of a claim, longer than sending an email takes.
const CLAIM: Duration = Duration::from_mins(2);
/// If an item is overdue for this long, its queue message must have been lost.
const OVERDUE: Duration = Duration::from_mins(10);

/// The reason for notifying a recipient of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A reply to the member's comment, or the rejection of that comment. `subscribed` is whether the member subscribed to the
    /// comment's replies.
    Reply {
        subscribed: bool,
    },
    /// A reply to a comment of this guest, who subscribed, or the rejection of that comment.
    ReplyToGuest(Visitor),
    Mention,
    /// A new top-level comment on a record that the recipient wrote.
    OwnRecord,
}

pub type MailStep = claim::WorkerStep<Mail>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mail {
    /// Asks the owner of the address to confirm this asker.
    Confirm(Asker),
    /// Lists the notices with these numbers, and mentions the number of further ones.
    Notify(BTreeSet<u64>, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Confirmation,
    Notifications,
    Digest,
}

/// The result of [`NotificationState::notify`] for a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    Added,
    /// The notice is already held, waiting or in flight. The process that added it may have died before sending the
    /// queue message.
    Waiting,
    /// No email is needed: for example, the recipient was notified before, isn't subscribed, or muted the thread.
    No,
}

/// The set that contains a notice that an email may have left out.
enum NoticeSet {
    InFlight,
    Aside,
    Waiting,
    None,
}

/// The notification state of one recipient, stored as one item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationState {
    /// The number of changes. A write requires that the stored number is unchanged.
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(flatten)]
    pub enrolment: Enrolment,
    #[serde(flatten)]
    schedule: Schedule,
}

impl NotificationState {
    /// Records an address given without proof. Ignored after an unsubscribe, and after a bounce for the same address. A
    /// network has one pending asker: a later one replaces it, unless its confirmation is being sent.
    pub fn ask(&mut self, asker: Asker, now: Timestamp, wait: Duration) {
        self.enrolment.ask(asker, self.schedule.confirming.as_deref(), now, wait);
    }

    /// Records that a member claims an address without proof, replacing the address claimed before. Ignored while the
    /// member has a confirmed address.
    pub fn claim_address(&mut self, asker: Asker, now: Timestamp, wait: Duration) {
        self.enrolment.claim(asker, self.schedule.confirming.as_deref(), now, wait);
    }

    /// Stores an address that is known to be the member's.
    pub fn enrol(&mut self, address: Address, now: Timestamp, wait: Duration) {
        if let Some(held) = self.enrolment.enrol(address) {
            self.turn_on(held, now, wait);
        }
    }

    /// Records that the owner confirmed this asker. Returns false if there is no such asker.
    pub fn confirm(&mut self, name: &str, now: Timestamp, wait: Duration) -> bool {
        let Some(held) = self.enrolment.confirm(name) else { return false };
        self.turn_on(held, now, wait);
        true
    }

    /// Moves held notices to the next email, because the address is now known to be the recipient's.
    fn turn_on(&mut self, held: impl IntoIterator<Item = u64>, now: Timestamp, wait: Duration) {
        for id in held {
            self.schedule.add(id);
        }
        let is_sending = self.schedule.confirming.is_some();
        if is_sending && self.confirming().is_none_or(Asker::is_confirmed) {
            // The result of the confirmation that is being sent no longer matters.
            (self.schedule.confirming, self.schedule.claim) = (None, None);
        }
        self.schedule.schedule_waiting(now, wait);
    }

    /// The asker whose confirmation is being sent.
    fn confirming(&self) -> Option<&Asker> {
        self.schedule.confirming.as_ref().and_then(|name| self.enrolment.asker(name))
    }

    /// Deletes the address and prevents it from being enrolled again. `proven` is the hash of the address if it was confirmed.
    /// Unsubscribing again within a minute changes nothing, so that repeated clicks on a link write little.
    pub fn stop(&mut self, now: Timestamp, proven: Option<String>) {
        if !self.enrolment.was_just_stopped(now) {
            self.enrolment.stop(now, proven);
            self.schedule.clear();
        }
    }

    /// Deletes the address and the notification choices. An unsubscribed recipient has no address, and stays unsubscribed.
    pub fn forget(&mut self) {
        if self.enrolment.status != Status::Off {
            self.enrolment.clear();
            self.schedule.clear();
        }
    }

    /// The remaining state of an erased recipient who unsubscribed, which prevents the address from being enrolled again.
    /// `None` unless the recipient unsubscribed.
    #[must_use]
    pub fn refusal(&self) -> Option<Self> {
        let enrolment = self.enrolment.refusal()?;
        Some(Self { version: self.version, enrolment, schedule: Schedule::default() })
    }

    /// Records that the address's mail server refuses emails to it.
    pub fn bounce(&mut self) {
        if matches!(self.enrolment.status, Status::On | Status::Asked) {
            self.enrolment.bounce();
            self.schedule.clear();
        }
    }

    /// Schedules the notification about a comment or a rejection. `thread` is the hash of the comment's thread, as in the set
    /// of muted threads.
    pub fn notify(
        &mut self,
        notice: impl Into<Notice>,
        reasons: &[Reason],
        thread: &str,
        now: Timestamp,
        wait: Duration,
    ) -> Notified {
        let notice = notice.into().number();
        if self.has(notice) {
            return Notified::Waiting;
        }
        let (status, schedule) = (self.enrolment.status, &mut self.schedule);
        let is_open = matches!(status, Status::On | Status::Asked);
        if schedule.was_notified(notice) || self.enrolment.is_muted(thread) || !is_open {
            return Notified::No;
        }
        let is_wanted = reasons.iter().any(|reason| self.enrolment.wants_to_know(reason));
        if status == Status::On && is_wanted {
            schedule.add(notice);
            schedule.schedule_waiting(now, wait);
            return Notified::Added;
        }
        self.enrolment.hold(notice, reasons, is_wanted)
    }

    /// Schedules the notification about a comment whose text a moderator has accepted, if an earlier email left the comment
    /// out.
    pub fn notify_accepted(
        &mut self,
        id: CommentId,
        reasons: &[Reason],
        thread: &str,
        now: Timestamp,
        wait: Duration,
    ) -> Notified {
        match self.take_back(id.into()) {
            NoticeSet::InFlight => Notified::Waiting,
            NoticeSet::Aside | NoticeSet::Waiting => self.notify(id, reasons, thread, now, wait),
            NoticeSet::None => Notified::No,
        }
    }

    /// Schedules the notification to the writer that a comment was rejected. An email may have left out an earlier rejection,
    /// because it was undone.
    pub fn notify_rejected(
        &mut self,
        id: CommentId,
        reasons: &[Reason],
        thread: &str,
        now: Timestamp,
        wait: Duration,
    ) -> Notified {
        let rejection = Notice::Rejection(id);
        match self.take_back(rejection) {
            NoticeSet::InFlight => Notified::Waiting,
            NoticeSet::Aside | NoticeSet::Waiting | NoticeSet::None => {
                self.notify(rejection, reasons, thread, now, wait)
            }
        }
    }

    /// Allows a notice that an email left out to be sent again, and returns the set that it was in. A notice in flight may still
    /// be left out of its email.
    fn take_back(&mut self, notice: Notice) -> NoticeSet {
        let notice = notice.number();
        if self.schedule.in_flight.contains(&notice) {
            self.schedule.aside.insert(notice);
            NoticeSet::InFlight
        } else if self.schedule.aside.remove(&notice) {
            NoticeSet::Aside
        } else if self.has(notice) {
            NoticeSet::Waiting
        } else {
            NoticeSet::None
        }
    }

    fn has(&self, notice: u64) -> bool {
        self.schedule.has(notice) || self.enrolment.holds(notice)
    }

    /// Adds a comment to the moderators' digest, which is sent at most once an hour. A comment is added once for each `entry`
    /// of the queue, [`crate::comment::Comment::queue_entry`].
    pub fn alert(&mut self, id: CommentId, entry: u64, now: Timestamp, wait: Duration) -> Notified {
        let schedule = &mut self.schedule;
        if schedule.has(id.0) {
            return Notified::Waiting;
        }
        if schedule.was_notified(entry) {
            return Notified::No;
        }
        schedule.remember([entry].into(), now);
        self.enrolment.status = Status::On;
        schedule.add(id.0);
        if !schedule.is_scheduled(now) && schedule.claim.is_none() {
            schedule.schedule_digest(now, wait);
        }
        Notified::Added
    }

    /// When the next work for this recipient is due.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        let next = || self.schedule.due.into_iter().chain(self.enrolment.next_confirmation()).min();
        self.schedule.claim.as_ref().map(|claim| claim.until).or_else(next)
    }

    /// Whether the queue's message about this recipient must have been lost.
    #[must_use]
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.due().is_some_and(|due| now.since(due) > OVERDUE)
    }

    /// Takes due notices. Claims the item for `worker` if there is something to send.
    pub fn take(&mut self, now: Timestamp, worker: &str) -> MailStep {
        self.correct(now);
        let earlier = match self.schedule.claim.take() {
            // This worker has already claimed the item, but the response to that write was lost.
            Some(claim) if claim.is_of(worker) => {
                self.schedule.claim = Some(claim);
                return self.step();
            }
            Some(claim) if claim.until > now => {
                let until = claim.until;
                self.schedule.claim = Some(claim);
                return MailStep::Wait(until);
            }
            Some(claim) if claim.again => {
                // Two claims for this email have expired. It may have been sent.
                self.settle(now, Duration::ZERO);
                self.schedule.due = self.schedule.due.map(|due| due.max(now + MINUTE));
                return self.wait();
            }
            earlier => earlier,
        };
        if earlier.is_none() {
            match self.due() {
                None => return MailStep::Nothing,
                Some(due) if due > now => return MailStep::Wait(due),
                Some(_) => self.begin(now),
            }
        }
        let step = self.step();
        if step == MailStep::Nothing {
            return self.wait();
        }
        self.schedule.claim = Some(Claim::new(worker, now + CLAIM, earlier.is_some()));
        step
    }

    /// Corrects times that were set while the clock was ahead, and may be years away.
    fn correct(&mut self, now: Timestamp) {
        if let Some(claim) = &mut self.schedule.claim {
            claim.shorten(CLAIM, now);
        }
        self.schedule.due = self.schedule.due.map(|due| due.or_now(MAX_WAIT, now));
        for asker in &mut self.enrolment.askers {
            asker.from = asker.from.or_now(WEEK, now);
        }
    }

    fn wait(&self) -> MailStep {
        self.due().map_or(MailStep::Nothing, MailStep::Wait)
    }

    /// Begins to confirm one asker, or else to send the email about waiting comments.
    fn begin(&mut self, now: Timestamp) {
        let asking = self.enrolment.askers.iter().find(|asker| asker.waits() && asker.from <= now);
        self.schedule.confirming = asking.map(|asker| asker.name.clone());
        if self.schedule.confirming.is_none() {
            self.schedule.due = None;
            if self.enrolment.status == Status::On {
                self.schedule.take();
            }
        }
    }

    fn step(&self) -> MailStep {
        if self.schedule.confirming.is_some() {
            return self.confirming().cloned().map_or(MailStep::Nothing, |asker| MailStep::Send(Mail::Confirm(asker)));
        }
        let Schedule { in_flight, more_in_flight, .. } = &self.schedule;
        match self.enrolment.status {
            Status::On if !in_flight.is_empty() => MailStep::Send(Mail::Notify(in_flight.clone(), *more_in_flight)),
            _ => MailStep::Nothing,
        }
    }

    /// Identifies the email that is being sent. The id is the same when the email is sent again after its claim
    /// expired, so that email clients show the two as one.
    #[must_use]
    pub fn mail(&self) -> String {
        match self.confirming() {
            Some(asker) => format!("confirm {} {}", asker.name, asker.at.0),
            None => self.schedule.mail(),
        }
    }

    #[must_use]
    pub fn is_claimed_by(&self, worker: &str) -> bool {
        self.schedule.claim.as_ref().is_some_and(|claim| claim.is_of(worker))
    }

    /// Records that the mail server accepted the email.
    pub fn accepted(&mut self, now: Timestamp, wait: Duration, kind: Kind) {
        self.schedule.count(now, kind);
        self.dropped(now, wait, kind);
    }

    /// Records that there was nothing left to send.
    pub fn dropped(&mut self, now: Timestamp, wait: Duration, kind: Kind) {
        if kind == Kind::Digest {
            // A comment can be reported again, so only its queue entry counts as notified.
            self.schedule.in_flight.clear();
        }
        self.settle(now, wait);
        if kind == Kind::Digest && !self.schedule.waiting.is_empty() {
            self.schedule.schedule_digest(now, wait);
        }
    }

    /// Leaves these notices out of the email, because the text of the comment waits for a moderator, or the rejection was
    /// undone. A notice is sent once the text is accepted or the comment is rejected again, which may already have happened.
    pub fn set_aside(&mut self, ids: &BTreeSet<u64>) {
        self.schedule.set_aside(ids);
    }

    /// Counts the notices in flight and the confirmation as sent, and schedules the waiting notices.
    fn settle(&mut self, now: Timestamp, wait: Duration) {
        if let Some(asker) = self.schedule.settle(now).and_then(|name| self.enrolment.asker_mut(&name)) {
            asker.asked_at = Some(now);
        }
        if self.enrolment.status == Status::On {
            self.schedule.schedule_waiting(now, wait);
        }
    }

    /// Postpones the confirmation that is being sent.
    pub fn put_off(&mut self, until: Timestamp) {
        self.schedule.claim = None;
        if let Some(asker) = self.schedule.confirming.take().and_then(|name| self.enrolment.asker_mut(&name)) {
            asker.from = until;
        }
    }

    /// Removes the asker whose confirmation is being sent, because the asker's comment is no longer public, or the
    /// address can't be opened.
    pub fn dismiss(&mut self) {
        self.schedule.claim = None;
        self.enrolment.dismiss(self.schedule.confirming.take().as_deref());
    }

    /// Records that the mail server refused the email, which is retried for a day.
    pub fn refused(&mut self, now: Timestamp, wait: Duration) {
        match self.schedule.refuse(now) {
            None => self.give_up(now, wait),
            Some(retry) if self.schedule.confirming.is_some() => self.put_off(now + retry),
            Some(retry) => self.schedule.put_back(now + retry),
        }
    }

    /// Stops retrying the email. Its comments count as notified, except those written since the first refusal, which are
    /// retried for another day.
    fn give_up(&mut self, now: Timestamp, wait: Duration) {
        if self.schedule.confirming.is_some() {
            return self.settle(now, wait);
        }
        let newer = self.schedule.split_newer();
        self.settle(now, wait);
        self.schedule.retry_newer(newer, now);
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
