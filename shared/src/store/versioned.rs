//! Items that count their changes. A change is decided in memory, and written on condition that no other was first.

use serde::Serialize;

use super::keys::Key;
use super::schema::endpoint::VERSION;
use super::transaction::Write;
use super::{Store, number, write};
use crate::domain::notifications::NotificationState;
use crate::domain::webhook::{Delivery, Endpoint};
use crate::error::Fault;

pub(super) trait Versioned: Clone + PartialEq + Serialize {
    /// Zero before the item is stored.
    fn version(&mut self) -> &mut u64;
}

impl Versioned for NotificationState {
    fn version(&mut self) -> &mut u64 {
        &mut self.version
    }
}

impl Versioned for Endpoint {
    fn version(&mut self) -> &mut u64 {
        &mut self.version
    }
}

impl Versioned for Delivery {
    fn version(&mut self) -> &mut u64 {
        &mut self.version
    }
}

impl Store {
    /// Changes an item, and returns it with what `change` says. `None` when another change was first. An item that stays the
    /// same is written only if it `is_new`.
    pub(super) async fn try_change<I: Versioned, T>(
        &self,
        doing: &'static str,
        key: &Key,
        (before, is_new): (I, bool),
        change: impl Fn(&mut I) -> T,
    ) -> Result<Option<(I, T)>, Fault> {
        let mut after = before.clone();
        let result = change(&mut after);
        let is_same = !is_new && after == before;
        let is_stored = is_same || self.put(doing, next_version(key, before, &mut after)?).await?;
        Ok(is_stored.then_some((after, result)))
    }
}

/// Writes `after` in place of `before`, if that is still what is stored.
pub(super) fn next_version<I: Versioned>(key: &Key, mut before: I, after: &mut I) -> Result<Write, Fault> {
    let version = *before.version();
    *after.version() = version + 1;
    Ok(Write::put(write(key, after)?).still(VERSION, (version > 0).then(|| number(version))))
}
