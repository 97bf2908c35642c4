//! Counters of requests per minute, shared by all instances through the table. The write limiter counts each request in the
//! table. The read limiter lets an instance grant a caller some reads first, and then takes blocks of reads from the table.
//! A caller that was refused once is refused for the rest of the minute without asking the table.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::transaction::Write;
use super::{Store, keys, number, text};
use crate::domain::ids::Visitor;
use crate::domain::rate_limit::{RateClass, RateLimitStatus};
use crate::domain::time::Timestamp;
use crate::error::Fault;

/// Reads that an instance grants before it asks the table, and that it takes from the table at a time.
const BLOCK: u32 = 10;
/// Callers whose windows an instance keeps.
const MAX_CALLERS: usize = 10_000;
/// Seconds within which the same text by the same visitor is a repeat.
const REPEAT: i64 = 60;
/// Seconds that a counter outlives its minute.
const KEPT: i64 = 120;

/// What is counted, for whom, and the limit per minute.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    pub class: RateClass,
    pub caller: &'a str,
    pub limit: u32,
    pub now: Timestamp,
}

impl Counter<'_> {
    fn minute(&self) -> i64 {
        self.now.seconds().div_euclid(60)
    }

    fn status(&self, counted: u32, allowed: bool) -> RateLimitStatus {
        let resets_in = 60 - self.now.seconds().rem_euclid(60);
        RateLimitStatus {
            class: self.class,
            limit: self.limit,
            remaining: if allowed { self.limit.saturating_sub(counted) } else { 0 },
            allowed,
            resets_in: resets_in.unsigned_abs().max(1),
        }
    }
}

/// This instance's counts of the current minute.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    minute: i64,
    callers: HashMap<(RateClass, String), Window>,
}

/// This instance's counts of one caller's minute.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Requests counted by this instance.
    used: u32,
    /// Requests that this instance has added to the table's count, or is adding.
    booked: u32,
    /// Reads that this instance may let through.
    granted: u32,
    /// Requests that other instances had booked when the table last answered.
    elsewhere: u32,
    /// The caller has reached the limit according to the table.
    closed: bool,
}

impl Window {
    fn new(class: RateClass, limit: u32) -> Self {
        match class {
            RateClass::Read | RateClass::Changes => {
                Self { granted: BLOCK.min(limit), closed: limit <= BLOCK, ..Self::default() }
            }
            RateClass::Write | RateClass::Upload | RateClass::Forget => Self::default(),
        }
    }

    fn counted(&self) -> u32 {
        self.elsewhere.saturating_add(self.used)
    }

    /// Lets one read through, if any is left.
    fn take(&mut self) -> bool {
        let allowed = self.used < self.granted;
        self.used += u32::from(allowed);
        allowed
    }

    /// The number of requests to book: those not yet booked, and `more`. At least one, as an earlier booking may be under way
    /// or lost.
    fn ask(&mut self, more: u32) -> u32 {
        let count = self.used.saturating_add(more).saturating_sub(self.booked).max(1);
        self.booked += count;
        count
    }

    /// `counted` is the table's answer to an [`ask`](Self::ask), and `booked` the value that the ask left.
    fn learn(&mut self, counted: u32, booked: u32, limit: u32) {
        let over = counted.saturating_sub(limit);
        // Requests that were booked here since may not be in `counted` yet.
        self.granted = self.granted.max(booked.min(counted).saturating_sub(over));
        // Requests that were booked here meanwhile may be in `counted` already.
        self.elsewhere = self.elsewhere.max(counted.saturating_sub(self.booked));
        self.closed |= over > 0;
    }

    /// Counts a write that is booked with the next one. Returns whether it is within the limit.
    fn owe(&mut self, limit: u32) -> bool {
        self.used = self.used.saturating_add(1);
        self.closed |= self.counted() > limit;
        !self.closed
    }

    /// Whether this caller is refused without asking the table.
    fn is_used_up(&self) -> bool {
        self.closed && self.used >= self.granted
    }

    /// Whether the next request is within the limit, as far as this instance knows: a read if it is granted, a write by the
    /// count so far.
    fn has_room(&self, class: RateClass, limit: u32) -> bool {
        match class {
            RateClass::Read | RateClass::Changes => self.used < self.granted,
            RateClass::Write | RateClass::Upload | RateClass::Forget => !self.closed && self.counted() < limit,
        }
    }
}

impl Limiter {
    fn window<T>(&self, counter: Counter<'_>, change: impl FnOnce(&mut Window) -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.minute < counter.minute() {
            *known = Minute { minute: counter.minute(), callers: HashMap::new() };
        } else if known.minute > counter.minute() {
            // The request began in the minute before. The counts of the new minute stay.
            return change(&mut Window::new(counter.class, counter.limit));
        }
        let key = (counter.class, counter.caller.to_owned());
        if known.callers.len() >= MAX_CALLERS && !known.callers.contains_key(&key) {
            known.make_room();
        }
        change(known.callers.entry(key).or_insert_with(|| Window::new(counter.class, counter.limit)))
    }
}

impl Minute {
    /// Keeps the refused callers, unless they are too many as well.
    fn make_room(&mut self) {
        self.callers.retain(|_, window| window.closed);
        if self.callers.len() > MAX_CALLERS / 2 {
            self.callers.clear();
        }
    }
}

impl Store {
    /// Whether reads may begin before the request is counted, as this instance knows no reason to refuse it.
    pub fn has_room(&self, counter: Counter<'_>) -> bool {
        self.limiter.window(counter, |window| window.has_room(counter.class, counter.limit))
    }

    /// The refusal of a caller that this instance knows to be over the limit.
    pub fn known_refusal(&self, counter: Counter<'_>) -> Option<RateLimitStatus> {
        let used_up = self.limiter.window(counter, |window| window.is_used_up());
        used_up.then(|| counter.status(counter.limit, false))
    }

    /// Counts a write, or an upload, exactly. A request that is `refused` for another reason is booked together with the next
    /// one that is not, unless it is the first of the minute.
    pub async fn count_write(&self, counter: Counter<'_>, refused: bool) -> Result<RateLimitStatus, Fault> {
        let step = self.limiter.window(counter, |window| {
            if refused && window.booked > 0 {
                let allowed = window.owe(counter.limit);
                return Ok(counter.status(window.counted(), allowed));
            }
            window.used += 1;
            Err((window.ask(0), window.booked))
        });
        let (count, booked) = match step {
            Ok(status) => return Ok(status),
            Err(asked) => asked,
        };
        let counted = self.book(counter, count).await?;
        self.limiter.window(counter, |window| window.learn(counted, booked, counter.limit));
        Ok(counter.status(counted, counted <= counter.limit))
    }

    /// Counts a read: exactly while one instance serves the caller, off by a block for each further instance.
    pub async fn count_read(&self, counter: Counter<'_>) -> Result<RateLimitStatus, Fault> {
        loop {
            let step = self.limiter.window(counter, |window| {
                let allowed = window.take();
                if allowed || window.closed {
                    return Ok(counter.status(window.counted(), allowed));
                }
                Err((window.ask(BLOCK), window.booked))
            });
            let (count, booked) = match step {
                Ok(status) => return Ok(status),
                Err(asked) => asked,
            };
            let counted = self.book(counter, count).await?;
            // Concurrent reads may take the granted block first. Then the loop asks again.
            self.limiter.window(counter, |window| window.learn(counted, booked, counter.limit));
        }
    }

    /// Counts `more` reads for one that was let through. They are booked with the next block.
    pub fn count_surplus(&self, counter: Counter<'_>, more: u32) {
        self.limiter.window(counter, |window| window.used = window.used.saturating_add(more));
    }

    /// Whether the visitor wrote the same text in another request within the last minute. Remembers the text of this one.
    pub async fn is_repeat(
        &self,
        visitor: &Visitor,
        hash: &str,
        request: String,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let seconds = now.seconds();
        let mut item = keys::repeat(visitor, hash).item();
        item.insert("x".to_owned(), number(seconds + REPEAT));
        item.insert("rq".to_owned(), text(request.clone()));
        let put = Write::put(item)
            .when("attribute_not_exists(pk) OR x <= :now OR rq = :request")
            .with(":now", number(seconds))
            .with(":request", text(request));
        Ok(!self.put("remembering a text", put).await?)
    }

    /// Adds to the table's count, and returns it.
    async fn book(&self, counter: Counter<'_>, count: u32) -> Result<u32, Fault> {
        let doing = "counting a request";
        let minute = counter.minute();
        let update = Write::update(keys::limiter(counter.class.scope(), counter.caller, minute))
            .add("n", number(count))
            .set("x", number((minute + 1) * 60 + KEPT));
        let row = self.update(doing, update).await?;
        let counted = row.as_ref().and_then(|row| row.get("n")?.as_n().ok()?.parse().ok());
        counted.ok_or_else(|| Fault::new(doing, "no count came back"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `reads`, each counting for `each`, a single instance lets through, and how often it asked the table.
    fn let_through(limit: u32, reads: u32, each: u32) -> (u32, u32) {
        let (mut window, mut counted, mut asked, mut allowed) = (Window::new(RateClass::Read, limit), 0, 0, 0);
        for _ in 0..reads {
            let mut passes = window.take();
            if !passes && !window.closed {
                counted += window.ask(BLOCK);
                asked += 1;
                window.learn(counted, window.booked, limit);
                passes = window.take();
            }
            allowed += u32::from(passes);
            window.used += if passes { each - 1 } else { 0 };
        }
        (allowed, asked)
    }

    #[test]
    fn a_late_request_of_the_minute_before_does_not_reset_the_counts() {
        let limiter = Limiter::default();
        let at = |now| Counter { class: RateClass::Write, caller: "ada", limit: 1, now: Timestamp(now) };
        limiter.window(at(60_000), |window| window.closed = true);
        limiter.window(at(59_999), |window| window.used += 1);
        assert!(limiter.window(at(60_001), |window| window.closed));
    }

    #[test]
    fn one_instance_lets_through_exactly_the_limit() {
        for limit in 1..=305 {
            for each in [1, 2, 7, 50, 1_000] {
                assert_eq!(let_through(limit, 400, each).0, limit.div_ceil(each), "{limit}, {each} each");
            }
        }
    }

    #[test]
    fn the_table_is_asked_for_no_more_than_a_tenth_of_the_reads() {
        assert_eq!(let_through(300, 10, 1).1, 0);
        assert_eq!(let_through(300, 300, 1), (300, 29));
        assert_eq!(let_through(300, 100_000, 1).1, 30);
    }

    fn counter(caller: &str, limit: u32) -> Counter<'_> {
        Counter { class: RateClass::Read, caller, limit, now: Timestamp(0) }
    }

    #[test]
    fn an_instance_keeps_a_bounded_number_of_callers_and_refused_ones_longest() {
        let limiter = Limiter::default();
        let take = |caller: &str, limit| limiter.window(counter(caller, limit), Window::take);
        assert!(take("refused", 1) && !take("refused", 1));
        for n in 0..3 * MAX_CALLERS {
            assert!(take(&n.to_string(), 300));
            assert!(limiter.0.lock().unwrap().callers.len() <= MAX_CALLERS);
        }
        assert!(!take("refused", 1));
        for n in 0..2 * MAX_CALLERS {
            assert!(take(&n.to_string(), 1));
            assert!(limiter.0.lock().unwrap().callers.len() <= MAX_CALLERS);
        }
    }
}
