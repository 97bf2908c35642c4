//! The schedule of a recipient's emails: waiting comments, the email that is being sent, and past notifications.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DAY, HOUR, Kind, MAX_WAITING, MINUTE, Notice, is_default};
use crate::claim::Claim;
use crate::time::{Timestamp, stored};

/// Maximum notices in each of the two sets of past notifications.
const MAX_NOTIFIED: usize = 200;
/// Maximum emails within 24 hours, apart from digests and confirmations.
pub(super) const MAX_MAILS: usize = 10;
/// Waits after the first, second and later emails within 24 hours. Notifications are collected meanwhile.
const WAITS: [Duration; 3] = [Duration::from_mins(15), HOUR, Duration::from_hours(6)];
/// Pauses before the second and later attempts. The last pause repeats until [`GIVE_UP`] has passed.
const RETRIES: [Duration; 5] = [Duration::from_secs(5), MINUTE, Duration::from_mins(5), Duration::from_mins(30), HOUR];
const GIVE_UP: Duration = DAY;
/// The longest time for which an email about comments waits.
pub(super) const MAX_WAIT: Duration = DAY;

/// A recipient's emails. Each [`Notice`] is stored as a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    #[serde(rename = "wt", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub(super) waiting: BTreeSet<u64>,
    /// The number of waiting comments beyond [`MAX_WAITING`].
    #[serde(rename = "wm", default, skip_serializing_if = "is_default")]
    more: u64,
    #[serde(rename = "fl", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub(super) in_flight: BTreeSet<u64>,
    #[serde(rename = "fm", default, skip_serializing_if = "is_default")]
    pub(super) more_in_flight: u64,
    /// Notices that were sent; for moderators, queue entries ([`crate::comment::Comment::queue_entry`]).
    #[serde(rename = "td", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    notified: BTreeSet<u64>,
    #[serde(rename = "ty", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    notified_before: BTreeSet<u64>,
    /// When `notified` was last moved to `notified_before`.
    #[serde(rename = "ro", default, skip_serializing_if = "is_default", serialize_with = "stored::time")]
    notified_since: Timestamp,
    #[serde(rename = "du", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub(super) due: Option<Timestamp>,
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    pub(super) claim: Option<Claim>,
    /// The times of emails sent in the last 24 hours, apart from confirmations.
    #[serde(rename = "se", default, skip_serializing_if = "Vec::is_empty", serialize_with = "stored::list")]
    pub(super) sent: Vec<Timestamp>,
    #[serde(rename = "rf", default, skip_serializing_if = "is_default")]
    refusals: u32,
    /// When the mail server first refused the current email.
    #[serde(rename = "rs", default, skip_serializing_if = "is_default", serialize_with = "stored::time")]
    refused_since: Timestamp,
    /// The asker whose confirmation is being sent.
    #[serde(rename = "cf", default, skip_serializing_if = "Option::is_none")]
    pub(super) confirming: Option<String>,
    /// Notices that an email left out, because the text was pending or the rejection was undone. If a notice is also in flight,
    /// its text has since been approved, or the comment rejected again.
    #[serde(rename = "as", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub(super) aside: BTreeSet<u64>,
}

impl Schedule {
    pub(super) fn has(&self, notice: u64) -> bool {
        self.waiting.contains(&notice) || self.in_flight.contains(&notice)
    }

    pub(super) fn was_notified(&self, id: u64) -> bool {
        self.notified.contains(&id) || self.notified_before.contains(&id)
    }

    pub(super) fn remember(&mut self, mut ids: BTreeSet<u64>, now: Timestamp) {
        if now.since(self.notified_since) >= DAY || self.notified.len() + ids.len() > MAX_NOTIFIED {
            self.notified_before = std::mem::take(&mut self.notified);
            self.notified_since = now;
        }
        self.notified.append(&mut ids);
    }

    pub(super) fn add(&mut self, id: u64) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.insert(id);
        } else {
            self.more += 1;
        }
    }

    /// Whether an email is scheduled. A time set while the clock was ahead doesn't count.
    pub(super) fn is_scheduled(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| !due.is_too_far_ahead(MAX_WAIT, now))
    }

    pub(super) fn schedule_waiting(&mut self, now: Timestamp, wait: Duration) {
        // While an email about comments is being sent, the next email isn't scheduled.
        let is_free = self.claim.is_none() || self.confirming.is_some();
        if !self.waiting.is_empty() && is_free && !self.is_scheduled(now) {
            self.due = Some(self.next(now, wait));
        }
    }

    /// When the next email is due.
    pub(super) fn next(&self, now: Timestamp, wait: Duration) -> Timestamp {
        let recent: Vec<Timestamp> = self.sent.iter().copied().filter(|at| at.is_within(DAY, now)).collect();
        let wait = match recent.len() {
            0 => wait,
            mails => WAITS[(mails - 1).min(WAITS.len() - 1)].max(wait),
        };
        let full = recent.len().checked_sub(MAX_MAILS).map_or(now, |first| recent[first] + DAY);
        (now + wait).max(full)
    }

    pub(super) fn schedule_digest(&mut self, now: Timestamp, wait: Duration) {
        let last = self.sent.iter().rfind(|at| at.is_within(HOUR, now));
        let next = last.map_or(now, |last| *last + HOUR);
        self.due = Some((now + wait).max(next));
    }

    pub(super) fn take(&mut self) {
        self.in_flight = std::mem::take(&mut self.waiting);
        self.more_in_flight = std::mem::take(&mut self.more);
    }

    /// Identifies the email about the comments in flight.
    pub(super) fn mail(&self) -> String {
        format!("{:?} {:?}", self.in_flight, self.sent.last().map(|last| last.0))
    }

    /// Counts an email toward the day's limit. Confirmations don't count, so that they don't delay the first email after them.
    pub(super) fn count(&mut self, now: Timestamp, kind: Kind) {
        self.sent.retain(|at| at.is_within(DAY, now));
        if kind != Kind::Confirmation {
            self.sent.push(now);
        }
    }

    /// Implements [`super::NotificationState::set_aside`].
    pub(super) fn set_aside(&mut self, ids: &BTreeSet<u64>) {
        for id in ids {
            if !self.in_flight.remove(id) {
                continue;
            }
            if self.aside.contains(id) {
                self.add(*id);
            } else {
                // Drops the oldest notice that isn't in flight. The text of notices in flight has been accepted.
                let is_full = self.aside.len() >= MAX_WAITING;
                if is_full && let Some(oldest) = self.aside.iter().copied().find(|id| !self.in_flight.contains(id)) {
                    self.aside.remove(&oldest);
                }
                self.aside.insert(*id);
            }
        }
        self.aside.retain(|id| !self.waiting.contains(id));
    }

    /// Counts the comments in flight as notified. Returns the asker whose confirmation was being sent.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<String> {
        let notified = std::mem::take(&mut self.in_flight);
        self.aside.retain(|id| !notified.contains(id));
        self.remember(notified, now);
        self.more_in_flight = 0;
        self.claim = None;
        self.refusals = 0;
        self.confirming.take()
    }

    /// Counts a refusal by the mail server, and returns the pause before the next attempt. `None` after a day of refusals.
    pub(super) fn refuse(&mut self, now: Timestamp) -> Option<Duration> {
        if self.refusals == 0 || self.refused_since.is_too_far_ahead(Duration::ZERO, now) {
            self.refused_since = now;
        }
        if now.since(self.refused_since) >= GIVE_UP {
            return None;
        }
        let retry = RETRIES[usize::try_from(self.refusals).unwrap_or(usize::MAX).min(RETRIES.len() - 1)];
        self.refusals += 1;
        Some(retry)
    }

    /// Returns the comments in flight to the waiting set, which becomes due at `due`.
    pub(super) fn put_back(&mut self, due: Timestamp) {
        for id in std::mem::take(&mut self.in_flight) {
            self.aside.remove(&id);
            self.add(id);
        }
        self.more += std::mem::take(&mut self.more_in_flight);
        self.claim = None;
        self.due = Some(due);
    }

    /// Removes the comments written since the first refusal from the set in flight, and returns them.
    pub(super) fn split_newer(&mut self) -> BTreeSet<u64> {
        let is_newer = |notice: &u64| Notice::of_number(*notice).comment().created_at() > self.refused_since;
        let (newer, older) = std::mem::take(&mut self.in_flight).into_iter().partition(is_newer);
        self.in_flight = older;
        newer
    }

    /// Returns comments to the waiting set after their email, which also listed older comments, was refused. They are retried
    /// for another day.
    pub(super) fn retry_newer(&mut self, newer: BTreeSet<u64>, now: Timestamp) {
        for id in newer {
            self.add(id);
        }
        if !self.waiting.is_empty() {
            (self.refusals, self.refused_since) = (1, now);
            self.due = Some(now + HOUR);
        }
    }

    /// Clears the state, but keeps past notifications and the times of sent emails.
    pub(super) fn clear(&mut self) {
        *self = Self {
            notified: std::mem::take(&mut self.notified),
            notified_before: std::mem::take(&mut self.notified_before),
            notified_since: self.notified_since,
            sent: std::mem::take(&mut self.sent),
            ..Self::default()
        };
    }
}
