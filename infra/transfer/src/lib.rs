//! Moves data in and out of a table: imports from other systems, exports, and one person's data, which it can also erase.
//! Checks a table, too. `store` reads and writes the table.

pub mod check;
pub mod export;
pub mod import;
pub mod lease;
pub mod person;
pub mod store;
