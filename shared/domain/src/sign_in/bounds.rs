//! Limits on codes and tries across addresses, and on codes to addresses without an account. `inbox` has the limits for each
//! address.

use std::time::Duration;

use crate::error::Refusal;
use crate::time::{Hour, Timestamp};

/// Maximum codes that a network may request per hour.
pub const CODES_OF_NETWORK: u32 = 10;
/// Maximum codes per day that a network may request for addresses without an account.
pub const STRANGERS_OF_NETWORK: u32 = 10;
/// Maximum wrong codes that a network may try per hour.
pub const WRONG_TRIES_OF_NETWORK: u32 = 30;
/// Maximum codes per hour to addresses of one domain. Codes requested from a network that the address has signed in
/// from don't count.
const CODES_OF_DOMAIN: u32 = 150;
/// Maximum codes per hour overall.
const CODES_OF_ALL: u32 = 300;
/// If codes to this many addresses cause a refusal, bounce or complaint within an hour, addresses without an account
/// receive no codes until the hour ends. Email services suspend senders whose emails bounce, and invented addresses
/// bounce.
pub const MAX_FAILURES: u64 = 5;
/// No codes are sent to an address for this long after it refused a code, bounced or complained.
pub const STOPPED: Duration = Duration::from_hours(30 * 24);

/// The limit on codes to one domain per hour, for an address with or without an account.
#[must_use]
pub fn codes_of_domain(has_account: bool) -> u32 {
    without_what_is_kept(CODES_OF_DOMAIN, has_account)
}

/// The limit on all codes per hour, for an address with or without an account.
#[must_use]
pub fn codes_of_all(has_account: bool) -> u32 {
    without_what_is_kept(CODES_OF_ALL, has_account)
}

/// Reserves a quarter of the codes for addresses with an account.
fn without_what_is_kept(codes: u32, has_account: bool) -> u32 {
    if has_account { codes } else { codes * 3 / 4 }
}

#[must_use]
pub fn over_hourly_limit(limit: u32, now: Timestamp) -> Refusal {
    Refusal::RateLimited { after: wait(now), limit: Some(limit) }
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
    fn a_quarter_of_the_codes_is_kept_for_addresses_with_an_account() {
        assert_eq!((codes_of_all(false), codes_of_all(true)), (225, 300));
        assert_eq!((codes_of_domain(false), codes_of_domain(true)), (112, 150));
    }

    #[test]
    fn a_bound_ends_with_its_hour() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        assert_eq!((wait(at(7_199)), wait(at(7_200))), (1, 3_600));
    }
}
