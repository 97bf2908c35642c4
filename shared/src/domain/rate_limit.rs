//! Classes of requests that are limited, and a caller's status.

use crate::domain::time::Timestamp;

/// Read units that a read may cost, and write units that a write may cost, before it counts once more.
const READ_UNITS: f64 = 10.0;
const WRITE_UNITS: f64 = 20.0;

/// Decides which limiters count a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateClass {
    Read,
    /// A feed, or a page of comments over the default size. It reserves what it may cost, in read units.
    LargeRead {
        units: u32,
    },
    /// Reads of `changes`, which pages repeat for as long as they are open.
    Changes,
    Write,
    Upload,
    /// A write that makes the service forget the caller.
    Forget,
}

impl RateClass {
    /// Whether it is no write.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::LargeRead { .. } | Self::Changes)
    }

    /// Whether read-only mode and bans refuse it. Nobody is kept from being forgotten.
    #[must_use]
    pub fn is_restricted(self) -> bool {
        matches!(self, Self::Write | Self::Upload)
    }

    /// The limiters that count it.
    #[must_use]
    pub fn limiters(self) -> &'static [Self] {
        match self {
            Self::Read | Self::LargeRead { .. } => &[Self::Read],
            Self::Changes => &[Self::Changes],
            Self::Write | Self::Forget => &[Self::Write],
            Self::Upload => &[Self::Write, Self::Upload],
        }
    }

    /// For how many requests one counts that cost the table so many units: read units of a read, write units of a write.
    #[must_use]
    pub fn worth(self, units: f64) -> u32 {
        let begun = (units / if self.is_read() { READ_UNITS } else { WRITE_UNITS }).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative, and saturating"
        )]
        let requests = begun as u32;
        requests.max(1)
    }

    /// For how many requests one counts until it is known what it cost.
    #[must_use]
    pub fn reserves(self) -> u32 {
        if let Self::LargeRead { units } = self { self.worth(units.into()) } else { 1 }
    }

    /// Names the class in the key of a counter.
    pub(crate) fn scope(self) -> &'static str {
        match self {
            Self::Read | Self::LargeRead { .. } => "r",
            Self::Changes => "c",
            Self::Write | Self::Forget => "w",
            Self::Upload => "u",
        }
    }
}

/// The state of a caller's limit in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// The limiter.
    pub class: RateClass,
    /// When the request was counted.
    pub at: Timestamp,
    /// For how many requests it was counted.
    pub counted: u32,
    pub limit: u32,
    pub remaining: u32,
    /// Whether this request is still within the limit.
    pub allowed: bool,
    /// Seconds until the minute ends, at least 1.
    pub resets_in: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_for_every_ten_read_units_or_twenty_write_units_begun() {
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
        }
        assert_eq!(
            [RateClass::Read, RateClass::LargeRead { units: 101 }, RateClass::Write].map(RateClass::reserves),
            [1, 11, 1]
        );
    }
}
