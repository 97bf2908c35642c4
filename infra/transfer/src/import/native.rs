//! What only an export of a table holds: comments that keep their ids, likes by voter, reports, users with their bans,
//! tombstones.
//!
//! `scratch` keeps it, `locate` finds which of it is new, and `write` writes it. Everything else about a comment goes the way
//! of other formats.

mod locate;
mod salt;
mod scratch;
#[cfg(test)]
mod tests;
mod write;

pub use self::salt::OtherSalt;
pub(super) use self::salt::Salts;
pub(super) use self::scratch::SCHEMA;
