//! Counts requests per minute and caller, across all instances through the table. Once an instance knows that a caller
//! is over the limit, it refuses that caller without accessing the table.
//!
//! **Writes** are each counted in the table. A write that costs more than twenty units, except a bulk decision, counts
//! as several writes: the surplus is added before the response is sent. Concurrent writes don't see each other's
//! surplus, so in the worst case each of the sixty writes per minute has the maximum cost.
//!
//! **Reads** are granted in blocks. An instance allows a caller's first block before it accesses the table. The cost of a read
//! beyond ten units is known only afterwards, and counts with the next block.
//!
//! A large read is a feed, or a page of comments over the default size. It reserves its maximum cost. An instance
//! allows a caller's first large read like any other read. Later large reads reserve in the table before they run,
//! unless the granted reads cover them. A feed reserves again once it knows how many comments are above its entries,
//! before it reads these comments. The unused part of a reservation is granted again. If more than `MAX_UNUSED` granted
//! reads are unused, all but one block are returned to the table. If a large read is refused, its reservation is
//! returned as well, except for one read.
//!
//! Each further instance lets the caller exceed the limit by at most nine cheap reads and one page of the largest comments.
//! `infra/measure/README.md` lists the units.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::schema::{PK, limiter, repeat};
use super::transaction::Write;
use super::{Store, keys, number, text};
use crate::domain::ids::Visitor;
use crate::domain::rate_limit::{Limiter, RateClass, RateLimitStatus};
use crate::domain::time::{CLOCK_TOLERANCE, Timestamp};
use crate::error::Fault;

/// Number of reads that an instance grants before it accesses the table, and that it then books in the table at a time.
const BLOCK: u32 = 10;
/// Maximum granted reads that an instance keeps unused. If more are unused, it returns all but one block to the table,
/// so that other instances can use them.
const MAX_UNUSED: u32 = 2 * BLOCK;
/// Maximum callers that an instance stores.
const MAX_CALLERS: usize = 10_000;
/// The same text by the same visitor within this time is a repeat.
const REPEAT: Duration = Duration::from_mins(1);
/// Lifetime of a counter after its minute.
const COUNTER_TTL: Duration = Duration::from_mins(2);
/// No request takes this many minutes.
const LONGEST_REQUEST: i64 = 5;

type Turn = tokio::sync::Mutex<()>;

/// A counter, its caller, and the limit per minute.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    pub class: RateClass,
    pub limiter: Limiter,
    pub caller: &'a str,
    pub limit: u32,
    pub now: Timestamp,
}

impl Counter<'_> {
    fn minute(&self) -> i64 {
        self.now.seconds().div_euclid(60)
    }

    /// The status of a request when `counted` requests have been counted in the minute so far.
    fn status(&self, counted: u32, allowed: bool) -> RateLimitStatus {
        let resets_in = 60 - self.now.seconds().rem_euclid(60);
        RateLimitStatus {
            class: self.class,
            limiter: self.limiter,
            at: self.now,
            counted: 1,
            limit: self.limit,
            remaining: if allowed { self.limit.saturating_sub(counted) } else { 0 },
            allowed,
            resets_in: resets_in.unsigned_abs().max(1),
        }
    }
}

#[derive(Debug, Default)]
pub struct Counts(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    minute: i64,
    callers: HashMap<(Limiter, String), Window>,
}

/// This instance's counts for one caller in the current minute.
#[derive(Clone, Debug, Default)]
struct Window {
    /// Requests counted by this instance. A running request counts as its reservation.
    used: u32,
    /// Requests that this instance is adding to the table's count.
    asking: u32,
    /// Requests that the table counts for this instance.
    held: u32,
    /// Reads that this instance may let through: the first block, then the reads booked in the table within the limit.
    granted: u32,
    /// Requests of other instances, as of the table's last response.
    elsewhere: u32,
    /// Whether a large read has been allowed.
    has_reserved: bool,
    /// Whether the limit leaves nothing more to book. The caller is then refused once `granted` is used up.
    closed: bool,
    /// Locked by the read that changes the table's count, so that other reads wait and can use the reads that it books.
    turn: Arc<Turn>,
}

impl Window {
    fn new(limiter: Limiter, limit: u32) -> Self {
        match limiter {
            Limiter::Read | Limiter::Changes => {
                Self { granted: BLOCK.min(limit), closed: limit <= BLOCK, ..Self::default() }
            }
            Limiter::Write | Limiter::Upload => Self::default(),
        }
    }

    fn counted(&self) -> u32 {
        self.elsewhere.saturating_add(self.used)
    }

    /// Allows a read that counts as `reads` reads, if the granted reads cover it. A single granted read suffices for the first
    /// large read, and for any read once the limit is reached. Returns false if the read must first reserve in the table, or is
    /// over the limit.
    fn take(&mut self, reads: u32) -> bool {
        let is_covered = self.used.saturating_add(reads) <= self.granted;
        let allowed = self.used < self.granted && (is_covered || self.closed || !self.has_reserved);
        if allowed {
            self.used = self.used.saturating_add(reads);
            self.has_reserved |= reads > 1;
        }
        allowed
    }

    /// The number of requests to book: those not yet booked, plus `more`. At least one, because another booking may be in
    /// progress.
    fn ask(&mut self, more: u32) -> u32 {
        let known = self.held.saturating_add(self.asking);
        let count = self.used.saturating_add(more).saturating_sub(known).max(1);
        self.asking = self.asking.saturating_add(count);
        count
    }

    /// Records that `count` requests were booked (see [`ask`](Self::ask)), and that the table now counts `counted` in total.
    fn learn(&mut self, count: u32, counted: u32, limit: u32) {
        // The first booking includes the reads of the first block, so they aren't counted twice.
        self.granted = if self.held == 0 { 0 } else { self.granted };
        self.asking = self.asking.saturating_sub(count);
        self.held = self.held.saturating_add(count);
        let over = counted.saturating_sub(limit);
        self.granted = self.granted.saturating_add(count.saturating_sub(over));
        // `counted` may already include requests that this instance is still booking.
        self.elsewhere = counted.saturating_sub(self.held.saturating_add(self.asking));
        self.closed |= over > 0;
    }

    /// Records that `count` requests could not be booked.
    fn give_up(&mut self, count: u32) {
        self.asking = self.asking.saturating_sub(count);
    }

    /// Replaces a read's reservation with its cost.
    fn settle(&mut self, reserved: u32, cost: u32) {
        self.used = self.used.saturating_add(cost).saturating_sub(reserved);
    }

    /// Takes excess unused reads from this window, and returns their number. The caller returns them to the table.
    fn give_back(&mut self) -> u32 {
        let unused = self.held.saturating_sub(self.used);
        if unused <= MAX_UNUSED {
            return 0;
        }
        let back = unused - BLOCK;
        self.held -= back;
        self.granted = self.granted.min(self.held);
        back
    }

    /// Like [`Self::give_back`], for a large read that was booked but refused. One read stays booked for it.
    fn give_back_refused(&mut self) -> u32 {
        let kept = self.granted.max(self.used.saturating_add(1));
        let back = self.held.saturating_sub(kept);
        self.held -= back;
        back
    }

    /// Counts a write that will be booked together with the next one. Returns whether it is within the limit.
    fn owe(&mut self, limit: u32) -> bool {
        self.used = self.used.saturating_add(1);
        self.closed |= self.counted() > limit;
        !self.closed
    }

    /// Whether this caller is refused without reading the table.
    fn is_used_up(&self) -> bool {
        self.closed && self.used >= self.granted
    }

    fn has_room(&self, limit: u32) -> bool {
        !self.closed && self.counted() < limit
    }
}

impl Counts {
    fn window<T>(&self, counter: Counter<'_>, change: impl FnOnce(&mut Window) -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.minute < counter.minute() || known.minute > counter.minute() + LONGEST_REQUEST {
            // A new minute has begun, or the clock was set back.
            *known = Minute { minute: counter.minute(), callers: HashMap::new() };
        } else if known.minute > counter.minute() {
            // The request began in an earlier minute, and must not reset the counts of the new minute.
            return change(&mut Window::new(counter.limiter, counter.limit));
        }
        let key = (counter.limiter, counter.caller.to_owned());
        if known.callers.len() >= MAX_CALLERS && !known.callers.contains_key(&key) {
            known.make_room();
        }
        change(known.callers.entry(key).or_insert_with(|| Window::new(counter.limiter, counter.limit)))
    }
}

impl Minute {
    /// Drops the callers that aren't refused. If too many are refused, drops all callers.
    fn make_room(&mut self) {
        self.callers.retain(|_, window| window.closed);
        if self.callers.len() > MAX_CALLERS / 2 {
            self.callers.clear();
        }
    }
}

impl Store {
    /// Whether a write may start its reads before it is counted, because it is within the limit as far as this instance knows.
    pub fn has_room(&self, counter: Counter<'_>) -> bool {
        self.counts.window(counter, |window| window.has_room(counter.limit))
    }

    /// The refusal if this instance's counts show that the caller is over the limit.
    pub fn known_refusal(&self, counter: Counter<'_>) -> Option<RateLimitStatus> {
        let used_up = self.counts.window(counter, |window| window.is_used_up());
        used_up.then(|| counter.status(counter.limit, false))
    }

    /// Counts a write or an upload in the table. Once this instance has booked a request of the caller in this minute, a
    /// request that is `refused` for another reason is counted only in memory. The next request that isn't refused books it
    /// too.
    pub async fn count_write(&self, counter: Counter<'_>, refused: bool) -> Result<RateLimitStatus, Fault> {
        let step = self.counts.window(counter, |window| {
            if refused && window.held + window.asking > 0 {
                let allowed = window.owe(counter.limit);
                return Ok(counter.status(window.counted(), allowed));
            }
            window.used = window.used.saturating_add(1);
            Err(window.ask(0))
        });
        let count = match step {
            Ok(status) => return Ok(status),
            Err(count) => count,
        };
        let counted = self.ask(counter, count).await;
        if counted.is_err() {
            // The request is refused, so it doesn't count.
            self.counts.window(counter, |window| window.used = window.used.saturating_sub(1));
        }
        counted.map(|counted| counter.status(counted, counted <= counter.limit))
    }

    /// Counts `more` writes for a completed write, which can't be refused anymore. If the table can't be updated, they are
    /// booked with the next write.
    pub async fn count_surplus(&self, counter: Counter<'_>, more: u32) -> Option<RateLimitStatus> {
        let count = self.counts.window(counter, |window| {
            window.used = window.used.saturating_add(more);
            window.ask(0)
        });
        match self.ask(counter, count).await {
            Ok(counted) => Some(counter.status(counted, true)),
            Err(fault) => {
                tracing::warn!(error = fault.chain(), "a write's surplus is counted with the next write");
                None
            }
        }
    }

    /// Counts a read as `reads` reads. The count is exact while only one instance serves the caller. Each further instance may
    /// let through an additional block or one large read.
    pub async fn count_read(&self, counter: Counter<'_>, reads: u32) -> Result<RateLimitStatus, Fault> {
        let take = || {
            self.counts.window(counter, |window| {
                let allowed = window.take(reads);
                let known = allowed || window.closed;
                known.then(|| RateLimitStatus { counted: reads, ..counter.status(window.counted(), allowed) })
            })
        };
        if let Some(status) = take() {
            return Ok(status);
        }
        let turn = self.counts.window(counter, |window| Arc::clone(&window.turn));
        let _turn = turn.lock().await;
        let mut has_asked = false;
        loop {
            if let Some(status) = take() {
                if has_asked && reads > 1 && !status.allowed {
                    self.give_back(counter, Window::give_back_refused).await;
                }
                return Ok(status);
            }
            has_asked = true;
            // Books this read and `BLOCK - 1` others, besides reads that aren't booked yet.
            let count = self.counts.window(counter, |window| window.ask(reads - 1 + BLOCK));
            self.ask(counter, count).await?;
        }
    }

    /// Replaces the `reserved` reads with the actual cost of a read. A surplus is booked with the next block.
    pub async fn settle_read(&self, counter: Counter<'_>, reserved: u32, cost: u32) -> RateLimitStatus {
        self.counts.window(counter, |window| window.settle(reserved, cost));
        if reserved > 1 {
            let turn = self.counts.window(counter, |window| Arc::clone(&window.turn));
            let _turn = turn.lock().await;
            self.give_back(counter, Window::give_back).await;
        }
        self.counts.window(counter, |window| counter.status(window.counted(), true))
    }

    /// Returns reads to the table. `unused` determines the number of reads. The caller must have locked the window's `turn`.
    async fn give_back(&self, counter: Counter<'_>, unused: impl FnOnce(&mut Window) -> u32) {
        let back = self.counts.window(counter, unused);
        if back == 0 {
            return;
        }
        let counted = self.book(counter, -i64::from(back)).await;
        self.counts.window(counter, |window| match &counted {
            Ok(counted) => window.closed = *counted > counter.limit,
            Err(_) => window.held = window.held.saturating_add(back),
        });
        if let Err(fault) = counted {
            tracing::warn!(error = fault.chain(), "unused reads not returned yet");
        }
    }

    /// Whether the visitor wrote the same text in another request within the last minute. If not, records the text of
    /// this request.
    pub async fn is_repeat(
        &self,
        visitor: &Visitor,
        hash: &str,
        request: String,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let mut item = keys::repeat(visitor, hash).item();
        item.insert(repeat::EXPIRES.to_owned(), number((now + REPEAT).seconds()));
        item.insert(repeat::REQUEST.to_owned(), text(request.clone()));
        let put = Write::put(item)
            .when(format!(
                "attribute_not_exists({0}) OR {1} <= :now OR {1} > :latest OR {2} = :request",
                PK,
                repeat::EXPIRES,
                repeat::REQUEST
            ))
            .with(":now", number(now.seconds()))
            .with(":latest", number((now + REPEAT + CLOCK_TOLERANCE).seconds()))
            .with(":request", text(request));
        Ok(!self.put("remembering a text", put).await?)
    }

    /// Books the requests that the window [asked](Window::ask) for. Returns the table's count.
    async fn ask(&self, counter: Counter<'_>, count: u32) -> Result<u32, Fault> {
        let counted = self.book(counter, count.into()).await;
        self.counts.window(counter, |window| match counted {
            Ok(counted) => window.learn(count, counted, counter.limit),
            Err(_) => window.give_up(count),
        });
        counted
    }

    /// Adds to the table's count, and returns the new count.
    async fn book(&self, counter: Counter<'_>, count: i64) -> Result<u32, Fault> {
        let doing = "counting a request";
        let minute = counter.minute();
        let end = Timestamp::from_seconds((minute + 1) * 60);
        let update = Write::update(keys::limiter(counter.limiter.scope(), counter.caller, minute))
            .add(limiter::COUNT, number(count))
            .set(limiter::EXPIRES, number((end + COUNTER_TTL).seconds()));
        let row = self.update(doing, update).await?;
        let counted: Option<i64> = row.as_ref().and_then(|row| row.get(limiter::COUNT)?.as_n().ok()?.parse().ok());
        let counted = counted.ok_or_else(|| Fault::new(doing, "no count came back"))?;
        Ok(u32::try_from(counted.max(0)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_request_of_the_minute_before_does_not_reset_the_counts() {
        let counts = Counts::default();
        let at = |now| Counter {
            class: RateClass::Write,
            limiter: Limiter::Write,
            caller: "ada",
            limit: 1,
            now: Timestamp(now),
        };
        counts.window(at(60_000), |window| window.closed = true);
        counts.window(at(59_999), |window| window.used += 1);
        assert!(counts.window(at(60_001), |window| window.closed));
    }

    #[test]
    fn reads_count_on_after_the_clock_was_set_back() {
        let counts = Counts::default();
        let take = |now| counts.window(Counter { now, ..counter("ada", 1) }, |window| window.take(1));
        let (ahead, now) = (Timestamp(400 * 24 * 3_600_000), Timestamp(0));
        assert_eq!([ahead, ahead, now, now, now].map(take), [true, false, true, false, false]);
    }

    /// Instances that serve one caller in turn, and the table's count.
    struct Instances {
        windows: Vec<Window>,
        counted: u32,
        limit: u32,
    }

    impl Instances {
        fn new(count: usize, limit: u32) -> Self {
            Self { windows: vec![Window::new(Limiter::Read, limit); count], counted: 0, limit }
        }

        /// Begins a read with this reservation. Returns whether the instance allows it.
        fn begin(&mut self, instance: usize, reserved: u32) -> bool {
            let window = &mut self.windows[instance];
            let mut has_asked = false;
            while !window.take(reserved) {
                if window.closed {
                    let back = if has_asked && reserved > 1 { window.give_back_refused() } else { 0 };
                    self.give_back(instance, back);
                    return false;
                }
                let count = window.ask(reserved - 1 + BLOCK);
                self.counted += count;
                window.learn(count, self.counted, self.limit);
                has_asked = true;
            }
            true
        }

        fn finish(&mut self, instance: usize, reserved: u32, cost: u32) {
            let window = &mut self.windows[instance];
            window.settle(reserved, cost);
            let back = if reserved > 1 { window.give_back() } else { 0 };
            self.give_back(instance, back);
        }

        fn give_back(&mut self, instance: usize, back: u32) {
            if back > 0 {
                self.counted -= back;
                self.windows[instance].closed = self.counted > self.limit;
            }
        }

        /// Performs a read with this reservation and cost. Returns whether the instance allows it.
        fn read(&mut self, instance: usize, reserved: u32, cost: u32) -> bool {
            let passes = self.begin(instance, reserved);
            if passes {
                self.finish(instance, reserved, cost);
            }
            passes
        }

        fn used(&self) -> u32 {
            self.windows.iter().map(|window| window.used).sum()
        }
    }

    /// Performs reads with this reservation and cost through one instance. Returns how many it allows, and how often it
    /// accesses the table.
    fn let_through(limit: u32, reads: u32, (reserved, cost): (u32, u32)) -> (u32, u32) {
        let (mut instances, mut allowed, mut asked) = (Instances::new(1, limit), 0, 0);
        for _ in 0..reads {
            let before = instances.counted;
            allowed += u32::from(instances.read(0, reserved, cost));
            asked += u32::from(instances.counted > before);
        }
        (allowed, asked)
    }

    #[test]
    fn each_further_instance_overshoots_or_undershoots_the_limit_by_a_bounded_number_of_reads() {
        const LARGEST: u32 = 70;
        let mut random = 1_u64;
        let mut below = |bound: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(random >> 33).unwrap() % bound
        };
        for limit in [1, 10, 11, 60, 300] {
            for count in 1..=8_u32 {
                let mut instances = Instances::new(usize::try_from(count).unwrap(), limit);
                for _ in 0..2_000 {
                    let instance = usize::try_from(below(count)).unwrap();
                    let reserved = if below(2) == 0 { 1 } else { 2 + below(LARGEST - 1) };
                    let used = instances.used();
                    let passes = instances.read(instance, reserved, 1 + below(reserved));
                    assert!(passes || used + count * MAX_UNUSED >= limit, "{used} of {limit} by {count}");
                    assert!(!passes || used < limit + (count - 1) * (BLOCK + LARGEST), "{used} of {limit} by {count}");
                }
            }
        }
    }

    #[test]
    fn large_reads_that_were_refused_leave_one_read_each_in_the_table() {
        let mut instances = Instances::new(21, 300);
        assert!((0..20).all(|instance| instances.read(instance, 28, 1)));
        let passed: Vec<usize> = (0..20).filter(|instance| instances.begin(*instance, 28)).collect();
        assert_eq!(passed.len(), 8);
        for instance in passed {
            instances.finish(instance, 28, 1);
        }
        assert!((0..100).all(|_| instances.read(20, 1, 1)), "{} counted", instances.counted);
    }

    #[test]
    fn one_instance_lets_reads_through_for_what_they_cost() {
        const SINGLE: [(u32, u32); 5] = [(1, 1), (1, 2), (1, 7), (1, 50), (1, 1_000)];
        const LARGE: [(u32, u32); 6] = [(2, 1), (11, 2), (11, 11), (70, 2), (70, 70), (70, 90)];
        for limit in 1..=305 {
            for read in SINGLE.into_iter().chain(LARGE) {
                assert_eq!(let_through(limit, 400, read).0, limit.div_ceil(read.1), "{limit}, {read:?}");
            }
        }
    }

    #[test]
    fn cheap_pages_reserve_reads_from_the_table_in_blocks() {
        let (allowed, asked) = let_through(300, 100, (11, 1));
        assert!(allowed == 100 && asked <= 11, "{allowed}, {asked}");
    }

    #[test]
    fn no_more_than_a_tenth_of_the_reads_reach_the_table() {
        assert_eq!(let_through(300, 10, (1, 1)).1, 0);
        assert_eq!(let_through(300, 300, (1, 1)), (300, 29));
        assert_eq!(let_through(300, 100_000, (1, 1)).1, 30);
    }

    fn counter(caller: &str, limit: u32) -> Counter<'_> {
        Counter { class: RateClass::Read, limiter: Limiter::Read, caller, limit, now: Timestamp(0) }
    }

    #[test]
    fn an_instance_keeps_a_bounded_number_of_callers_and_refused_ones_longest() {
        let counts = Counts::default();
        let take = |caller: &str, limit| counts.window(counter(caller, limit), |window| window.take(1));
        assert!(take("refused", 1) && !take("refused", 1));
        for n in 0..3 * MAX_CALLERS {
            assert!(take(&n.to_string(), 300));
            assert!(counts.0.lock().unwrap().callers.len() <= MAX_CALLERS);
        }
        assert!(!take("refused", 1));
        for n in 0..2 * MAX_CALLERS {
            assert!(take(&n.to_string(), 1));
            assert!(counts.0.lock().unwrap().callers.len() <= MAX_CALLERS);
        }
    }
}
