//! Counters of requests a minute, shared by every instance through the table. The write limiter counts each request; the
//! read limiter lets an instance give a caller some reads before it asks, then takes blocks (decisions, section 4).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Store, fault, keys, number, stored, text};
use crate::error::Fault;
use crate::ids::Visitor;
use crate::time::Timestamp;

/// Reads that an instance grants before it asks the table, and takes at once when it does.
const BLOCK: u32 = 10;
/// Seconds within which the same text is a repeat.
const REPEAT: i64 = 60;
/// Seconds that a counter outlives its minute.
const KEPT: i64 = 120;

/// Where a caller stands in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub limit: u32,
    pub remaining: u32,
    /// Whether this request is still within the limit.
    pub allowed: bool,
    /// Seconds until the minute ends, at least 1.
    pub resets_in: u64,
}

/// What this instance knows of the current minute.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    minute: i64,
    callers: HashMap<String, Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    /// Reads let through here.
    used: u32,
    /// Reads that may be let through here, those included.
    granted: u32,
    /// Reads that the table was told of.
    booked: u32,
    /// Reads that other instances had booked when the table was last asked.
    elsewhere: u32,
    /// The table has no more to grant.
    closed: bool,
}

impl Window {
    fn new(limit: u32) -> Self {
        Self { used: 0, granted: BLOCK.min(limit), booked: 0, elsewhere: 0, closed: limit <= BLOCK }
    }

    /// Lets one read through, if any is left.
    fn take(&mut self) -> bool {
        let allowed = self.used < self.granted;
        self.used += u32::from(allowed);
        allowed
    }

    /// How many reads to book: those not yet booked, and a block.
    fn ask(&mut self) -> u32 {
        let reads = (self.used + BLOCK).saturating_sub(self.booked);
        self.booked += reads;
        reads
    }

    /// `counted` is what the table has of everybody's, after an [`ask`](Self::ask).
    fn grant(&mut self, counted: u32, limit: u32) {
        let over = counted.saturating_sub(limit);
        self.granted += BLOCK.saturating_sub(over);
        self.closed |= over > 0;
        self.elsewhere = counted.min(limit).saturating_sub(self.granted);
    }
}

impl Limiter {
    fn window<T>(&self, minute: i64, caller: &str, limit: u32, change: impl FnOnce(&mut Window) -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.minute != minute {
            *known = Minute { minute, callers: HashMap::new() };
        }
        change(known.callers.entry(caller.to_owned()).or_insert_with(|| Window::new(limit)))
    }
}

impl Store {
    /// Counts a write, or an upload, exactly.
    pub async fn count_write(&self, scope: &str, caller: &str, limit: u32, now: Timestamp) -> Result<Standing, Fault> {
        let minute = now.seconds().div_euclid(60);
        let counted = self.book(scope, caller, minute, 1).await?;
        Ok(standing(limit, counted, counted <= limit, now))
    }

    /// Counts a read: exactly while one instance serves the caller, off by a block for each further instance.
    pub async fn count_read(&self, caller: &str, limit: u32, now: Timestamp) -> Result<Standing, Fault> {
        let minute = now.seconds().div_euclid(60);
        let told = |window: &Window, allowed| standing(limit, window.elsewhere + window.used, allowed, now);
        let step = self.limiter.window(minute, caller, limit, |window| {
            let allowed = window.take();
            if allowed || window.closed { Ok(told(window, allowed)) } else { Err(window.ask()) }
        });
        let reads = match step {
            Ok(standing) => return Ok(standing),
            Err(reads) => reads,
        };
        let counted = self.book("r", caller, minute, reads).await?;
        Ok(self.limiter.window(minute, caller, limit, |window| {
            window.grant(counted, limit);
            let allowed = window.take();
            told(window, allowed)
        }))
    }

    /// Whether the same visitor wrote the same by another request within the last minute; from now on, that this one did.
    pub async fn is_repeat(
        &self,
        visitor: &Visitor,
        hash: &str,
        request: String,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let seconds = now.seconds();
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(keys::repeat(visitor, hash).item()))
            .item("x", number(seconds + REPEAT))
            .item("rq", text(request.clone()))
            .condition_expression("attribute_not_exists(pk) OR x <= :now OR rq = :request")
            .expression_attribute_values(":now", number(seconds))
            .expression_attribute_values(":request", text(request));
        Ok(!stored("remembering what was written", put.send().await)?)
    }

    async fn book(&self, scope: &str, caller: &str, minute: i64, count: u32) -> Result<u32, Fault> {
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::limiter(scope, caller, minute).item()))
            .update_expression("ADD n :count SET x = :expires")
            .expression_attribute_values(":count", number(count))
            .expression_attribute_values(":expires", number((minute + 1) * 60 + KEPT))
            .return_values(aws_sdk_dynamodb::types::ReturnValue::UpdatedNew)
            .send()
            .await
            .map_err(|error| fault("counting a request", error))?;
        let counted = answer.attributes.as_ref().and_then(|row| row.get("n")?.as_n().ok()?.parse().ok());
        counted.ok_or_else(|| Fault::new("counting a request", "no count came back"))
    }
}

fn standing(limit: u32, counted: u32, allowed: bool, now: Timestamp) -> Standing {
    let resets_in = 60 - now.seconds().rem_euclid(60);
    Standing { limit, remaining: limit.saturating_sub(counted), allowed, resets_in: resets_in.unsigned_abs().max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one instance lets through of `reads`, with nobody else about; and what it asked of the table.
    fn let_through(limit: u32, reads: u32) -> (u32, u32) {
        let (mut window, mut counted, mut asked, mut allowed) = (Window::new(limit), 0, 0, 0);
        for _ in 0..reads {
            if window.take() {
                allowed += 1;
            } else if !window.closed {
                counted += window.ask();
                asked += 1;
                window.grant(counted, limit);
                allowed += u32::from(window.take());
            }
        }
        (allowed, asked)
    }

    #[test]
    fn one_instance_lets_through_exactly_the_limit() {
        for limit in 1..=305 {
            assert_eq!(let_through(limit, 400).0, limit, "{limit}");
        }
    }

    #[test]
    fn the_table_is_asked_for_no_more_than_a_tenth_of_the_reads() {
        assert_eq!(let_through(300, 10).1, 0);
        assert_eq!(let_through(300, 300), (300, 29));
        assert_eq!(let_through(300, 100_000).1, 30);
    }
}
