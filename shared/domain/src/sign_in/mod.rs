//! Sign-in with an emailed code or a provider account. Requesting a code starts a *flow*; the code ends the flow and begins a
//! *session* of the account. An account is an address or a provider account.
//!
//! | file | what |
//! |---|---|
//! | `bounds` | limits on codes and tries, for all callers |
//! | `inbox` | the flows of an address, and the limits on its codes |
//! | `keys` | codes, hashes and refresh tokens |
//! | `providers` | GitHub, Google and OpenID Connect, and the accounts there |
//! | `redirect` | the redirect to a provider and back |
//! | `session` | the sessions of an account |

pub mod bounds;
pub mod inbox;
pub mod keys;
pub mod providers;
pub mod redirect;
pub mod session;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::email;
use crate::ids::UserId;
use crate::secret::Secret;

/// The `iss` of our own tokens. The ids of provider accounts are hashed with another `iss`: this one, a colon and the
/// provider's issuer. No other tokens may have either `iss`.
pub const ISSUER: &str = "svc-pro:sign-in";
pub const CODE_LIFETIME: Duration = Duration::from_mins(10);
/// The lifetime of an access token.
pub const TOKEN_LIFETIME: Duration = Duration::from_mins(10);

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Maximum size of an item that costs one write unit, not counting its key and the digits that its version may gain.
const UNIT: usize = 1_024 - 48;

fn fits_into_one_unit(item: &impl Serialize) -> bool {
    serde_json::to_value(item).is_ok_and(|item| size(&item) <= UNIT)
}

/// The size of a value as `DynamoDB` counts it.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 3 + fields.iter().map(|(name, value)| name.len() + 1 + size(value)).sum::<usize>(),
        Value::Array(elements) => 3 + elements.iter().map(|value| 1 + size(value)).sum::<usize>(),
        Value::String(text) => text.len(),
        // A number takes one byte per two digits, plus one byte.
        number => number.to_string().len().div_ceil(2) + 1,
    }
}

/// An account, as named by an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: UserId,
    /// A hash that is longer than the id, and distinguishes accounts with the same id.
    pub subject: String,
    /// Signing out everywhere changes the account's epoch, which invalidates tokens with another one.
    pub epoch: u64,
}

/// The id and the subject of the account with this address. They depend only on the address and the salt.
#[must_use]
pub fn account_of(salt: &Secret, address: &str) -> (UserId, String) {
    UserId::hashed(salt, ISSUER, &email::exact(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_an_address_in_lower_case_with_its_dots_and_tags() {
        let account = |address| account_of(&Secret::from("salt".to_owned()), address);
        assert_eq!(account("ada@example.org"), account("Ada@Example.ORG"));
        for other in ["ada+x@example.org", "a.da@example.org", "ada@example.com"] {
            assert_ne!(account("ada@example.org"), account(other), "{other}");
        }
        assert_ne!(account("a.da@gmail.com"), account("ada@gmail.com"));
        assert!(account("ada@example.org").0.is_hashed());
    }
}
