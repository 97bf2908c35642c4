//! Finds and erases everything about one person in the table. The schema marks the attributes that may identify a
//! person.
//!
//! | file        | what |
//! |-------------|------|
//! | `find`      | reads the table for data that identifies the person, items to erase, and items that stay |
//! | `erase`     | erases one item after another, in the transactions of the service |
//! | `forgotten` | records erased people, so that no import brings them back |
//! | `leftovers` | finds the person in unprocessed changes and in queue messages |
//!
//! An erasure runs beside the service. It first stores the data that identifies the person, and removes it at the end.
//! The next erasure can therefore finish an interrupted one, although part of that data is gone from the table.

pub mod erase;
pub mod find;
pub mod forgotten;
pub mod leftovers;
