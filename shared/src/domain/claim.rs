//! How one worker at a time has an item: a mailbox, or a delivery to a webhook. A worker claims the item before it sends
//! anything. A claim that has expired means that the worker died, and that what became of the sending is unknown.

use serde::{Deserialize, Serialize};

/// A worker is sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A new random id for each claim.
    #[serde(rename = "o")]
    owner: String,
    /// When it expires, in Unix milliseconds.
    #[serde(rename = "u")]
    pub until: i64,
    /// Whether an earlier worker died with the same mail.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub again: bool,
}

impl Claim {
    #[must_use]
    pub fn new(owner: &str, until: i64, again: bool) -> Self {
        Self { owner: owner.to_owned(), until, again }
    }

    #[must_use]
    pub fn is_of(&self, owner: &str) -> bool {
        self.owner == owner
    }

    /// When it expires, for any worker but its own. `None` once it has.
    #[must_use]
    pub fn blocks(&self, worker: &str, now: i64) -> Option<i64> {
        (self.until > now && !self.is_of(worker)).then_some(self.until)
    }
}

/// What a worker does with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    Nothing,
    /// The worker waits until this time, in Unix milliseconds.
    Wait(i64),
    Send(T),
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
