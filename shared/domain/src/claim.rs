//! Claims let one worker at a time own an item: the notification state of a recipient, or a delivery to a webhook. A worker
//! claims the item before it sends anything. An expired claim means that the worker died, perhaps after sending, or
//! that the result of sending is unknown.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, stored};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The id of the worker, random and new for each claim.
    #[serde(rename = "o")]
    owner: String,
    #[serde(rename = "u", serialize_with = "stored::time")]
    pub until: Timestamp,
    /// Whether an earlier claim for the same email expired. Always false for webhooks.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub again: bool,
}

impl Claim {
    #[must_use]
    pub fn new(owner: &str, until: Timestamp, again: bool) -> Self {
        Self { owner: owner.to_owned(), until, again }
    }

    #[must_use]
    pub fn is_of(&self, owner: &str) -> bool {
        self.owner == owner
    }

    /// Shortens a claim that was made while the clock was ahead. The claim isn't dropped, because its worker may still
    /// be sending.
    pub fn shorten(&mut self, lease: Duration, now: Timestamp) {
        if self.until.is_too_far_ahead(lease, now) {
            self.until = now + lease;
        }
    }

    /// The claim's expiry if it blocks `worker`; `None` if `worker` holds the claim itself or the claim has expired.
    #[must_use]
    pub fn blocks(&self, worker: &str, now: Timestamp) -> Option<Timestamp> {
        (self.until > now && !self.is_of(worker)).then_some(self.until)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerStep<T> {
    Nothing,
    Wait(Timestamp),
    Send(T),
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
