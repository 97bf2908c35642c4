//! Hourly and daily counters with limits. Each counter is an item that expires.

use super::counts::count_of;
use super::keys::{self, Key};
use super::schema::limiter;
use super::transaction::Write;
use super::{Reading, Store, number};
use crate::domain::time::{Hour, Timestamp};
use crate::error::Fault;

/// Hours in a day. Days begin at midnight UTC.
const DAY: i64 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<'a> {
    scope: &'static str,
    /// The owner of the counter: a keyed hash, or [`Bound::ALL`].
    whose: &'a str,
    hours: i64,
    most: u32,
}

impl<'a> Bound<'a> {
    /// The owner of counters that everyone shares.
    pub const ALL: &'static str = "all";

    #[must_use]
    pub const fn hourly(scope: &'static str, whose: &'a str, most: u32) -> Self {
        Self { scope, whose, hours: 1, most }
    }

    #[must_use]
    pub const fn daily(scope: &'static str, whose: &'a str, most: u32) -> Self {
        Self { scope, whose, hours: DAY, most }
    }

    /// An hourly counter without a maximum.
    #[must_use]
    pub const fn counter(scope: &'static str, whose: &'a str) -> Self {
        Self::hourly(scope, whose, u32::MAX)
    }

    #[must_use]
    pub fn has_room(&self, counted: u64) -> bool {
        counted < u64::from(self.most)
    }

    fn number(&self, now: Timestamp) -> i64 {
        Hour::of(now).0.div_euclid(self.hours)
    }

    fn key(&self, now: Timestamp) -> Key {
        keys::limiter(self.scope, self.whose, self.number(now))
    }

    /// Increments the counter, on condition that its limit isn't reached.
    pub(super) fn write(&self, now: Timestamp) -> Write {
        let last = Hour((self.number(now) + 1) * self.hours - 1);
        Write::update(self.key(now))
            .add(limiter::COUNT, number(1))
            .set(limiter::EXPIRES, number(last.expiry()))
            .when(format!("attribute_not_exists({0}) OR {0} < :most", limiter::COUNT))
            .with(":most", number(self.most))
    }
}

impl Store {
    /// Increments the counter, unless its limit is reached. Returns whether it was incremented.
    pub async fn count_towards(&self, bound: Bound<'_>, now: Timestamp) -> Result<bool, Fault> {
        Ok(self.update("counting towards a bound", bound.write(now)).await?.is_some())
    }

    /// The count so far. It may miss the latest increments.
    pub async fn counted_towards(&self, bound: Bound<'_>, now: Timestamp) -> Result<u64, Fault> {
        let item = self.one_item(&bound.key(now), Reading::Eventual).await?;
        Ok(count_of(&item.unwrap_or_default()))
    }

    /// Adds `more` to a caller's count of this hour, and returns the new count.
    pub async fn count_in_hour(&self, scope: &str, caller: &str, more: usize, now: Timestamp) -> Result<u64, Fault> {
        let hour = Hour::of(now);
        let key = keys::limiter(scope, caller, hour.0);
        let count = Write::update(key).add(limiter::COUNT, number(more)).set(limiter::EXPIRES, number(hour.expiry()));
        let item = self.update("counting in an hour", count).await?.unwrap_or_default();
        Ok(count_of(&item))
    }

    pub async fn counted_in_hour(&self, scope: &str, caller: &str, now: Timestamp) -> Result<u64, Fault> {
        let item = self.item(&keys::limiter(scope, caller, Hour::of(now).0), Reading::Consistent).await?;
        Ok(count_of(&item.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_for_an_hour_or_for_a_day() {
        let at = |hours: i64| Timestamp(hours * 3_600_000);
        let key = |bound: Bound<'_>, hours| bound.key(at(hours));
        let (hourly, daily) = (Bound::hourly("a", "b", 1), Bound::daily("a", "b", 1));
        assert_ne!(key(hourly, 48), key(hourly, 49));
        assert!(key(daily, 48) == key(daily, 71) && key(daily, 71) != key(daily, 72));
        assert!(hourly.has_room(0) && !hourly.has_room(1) && Bound::counter("a", "b").has_room(1_000_000));
    }
}
