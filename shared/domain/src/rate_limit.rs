//! The cost of requests, the limiters that count them, and a caller's status.

use crate::time::Timestamp;

/// The read units of a read, and the write units of a write, that count as one request.
const READ_UNITS: f64 = 10.0;
const WRITE_UNITS: f64 = 20.0;

/// A counter of a caller's requests per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limiter {
    Read,
    Changes,
    Write,
    Upload,
}

impl Limiter {
    /// Names the limiter in the key of a counter.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Changes => "c",
            Self::Write => "w",
            Self::Upload => "u",
        }
    }
}

/// Decides which limiters count a request, and as how many requests they count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    Read,
    /// A feed, or a page with more comments than the default. The largest possible cost, in read units, is reserved.
    LargeRead {
        units: u32,
    },
    /// Reads of `changes`, which pages repeat for as long as they are open.
    Changes,
    Write,
    /// A decision about many comments, which counts as one write.
    Bulk,
    Upload,
    /// A write that deletes data about the caller.
    Forget,
}

impl RateClass {
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::LargeRead { .. } | Self::Changes)
    }

    /// Whether read-only mode and bans refuse the request. Deleting one's address is always possible.
    #[must_use]
    pub fn is_restricted(self) -> bool {
        matches!(self, Self::Write | Self::Bulk | Self::Upload)
    }

    /// The limiter that counts the request's cost.
    #[must_use]
    pub fn limiter(self) -> Limiter {
        match self {
            Self::Read | Self::LargeRead { .. } => Limiter::Read,
            Self::Changes => Limiter::Changes,
            Self::Write | Self::Bulk | Self::Upload | Self::Forget => Limiter::Write,
        }
    }

    /// A second limiter, which counts the request as one, whatever its cost. `None` unless the request is an upload.
    #[must_use]
    pub fn second_limiter(self) -> Option<Limiter> {
        (self == Self::Upload).then_some(Limiter::Upload)
    }

    /// The number of requests that a request of this cost counts as. `units` are read units for a read and write units for a
    /// write.
    #[must_use]
    pub fn worth(self, units: f64) -> u32 {
        let each = match self {
            Self::Read | Self::LargeRead { .. } | Self::Changes => READ_UNITS,
            Self::Write | Self::Upload | Self::Forget => WRITE_UNITS,
            Self::Bulk => return 1,
        };
        let begun = (units / each).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative, and saturating"
        )]
        let requests = begun as u32;
        requests.max(1)
    }

    /// The number of requests that a request counts as until its cost is known.
    #[must_use]
    pub fn reserves(self) -> u32 {
        if let Self::LargeRead { units } = self { self.worth(units.into()) } else { 1 }
    }
}

/// The state of a caller's limit in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    pub class: RateClass,
    pub limiter: Limiter,
    pub at: Timestamp,
    /// The number of requests that the request was counted as.
    pub counted: u32,
    pub limit: u32,
    pub remaining: u32,
    pub allowed: bool,
    /// Seconds until the minute ends, at least 1.
    pub resets_in: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_for_every_ten_read_units_or_twenty_write_units_started() {
        for (units, reads, writes) in [
            (0.0, 1, 1),
            (10.0, 1, 1),
            (10.5, 2, 1),
            (20.0, 2, 1),
            (20.5, 3, 2),
            (127.0, 13, 7),
            (1e30, u32::MAX, u32::MAX),
        ] {
            assert_eq!((RateClass::Read.worth(units), RateClass::Write.worth(units)), (reads, writes), "{units}");
            assert_eq!(RateClass::Bulk.worth(units), 1, "{units}");
        }
        assert_eq!(
            [RateClass::Read, RateClass::LargeRead { units: 101 }, RateClass::Write].map(RateClass::reserves),
            [1, 11, 1]
        );
    }
}
