//! How many codes are sent and tried in an hour, whoever asks. `inbox` has the bounds of one address.

use crate::domain::time::{Hour, Timestamp};

/// Codes that a network may ask for.
pub const CODES_OF_NETWORK: u32 = 10;
/// Wrong codes that a network may try.
pub const WRONG_TRIES_OF_NETWORK: u32 = 30;
/// Codes that go to addresses of one domain.
pub const CODES_OF_DOMAIN: u32 = 150;
/// Codes that go out at all.
const CODES_OF_ALL: u32 = 300;
/// Those among them that only addresses with an account may get.
const KEPT_FOR_ACCOUNTS: u32 = CODES_OF_ALL / 4;

/// What stands for everybody in the key of a bound.
pub const ALL: &str = "all";

/// How many codes may have been sent before one to this address.
#[must_use]
pub fn codes_of_all(has_account: bool) -> u32 {
    if has_account { CODES_OF_ALL } else { CODES_OF_ALL - KEPT_FOR_ACCOUNTS }
}

/// Seconds until the next hour begins.
#[must_use]
pub fn wait(now: Timestamp) -> u64 {
    (Hour::of(now).after(1).start().seconds() - now.seconds()).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_all_codes_is_kept_for_addresses_with_an_account() {
        assert_eq!((codes_of_all(false), codes_of_all(true)), (225, 300));
    }

    #[test]
    fn a_bound_ends_with_its_hour() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        assert_eq!((wait(at(7_199)), wait(at(7_200))), (1, 3_600));
    }
}
