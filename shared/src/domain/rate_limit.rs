//! Classes of requests that are limited, and a caller's status.

/// Decides which limiters count a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateClass {
    Read,
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
        matches!(self, Self::Read | Self::Changes)
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
            Self::Read => &[Self::Read],
            Self::Changes => &[Self::Changes],
            Self::Write | Self::Forget => &[Self::Write],
            Self::Upload => &[Self::Write, Self::Upload],
        }
    }

    /// Names the class in the key of a counter.
    pub(crate) fn scope(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Changes => "c",
            Self::Write | Self::Forget => "w",
            Self::Upload => "u",
        }
    }
}

/// The state of a caller's limit in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    pub class: RateClass,
    pub limit: u32,
    pub remaining: u32,
    /// Whether this request is still within the limit.
    pub allowed: bool,
    /// Seconds until the minute ends, at least 1.
    pub resets_in: u64,
}
