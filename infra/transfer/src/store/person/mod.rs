//! Finds and erases everything about one person in the table. The schema says which attributes may identify a person.
//!
//! | file        | what |
//! |-------------|------|
//! | `find`      | reads the table: who the person is, what to erase, what stays |
//! | `erase`     | erases one thing after another, by the transactions of the service |
//! | `forgotten` | remembers who was forgotten, so that no import brings them back |
//! | `leftovers` | finds the person in changes that were not followed up, and in messages of queues |
//!
//! An erasure runs beside the service. It first stores who the person is, and removes that item at its end. So the next
//! erasure can finish a killed one, although half of what identified the person is gone.

pub mod erase;
pub mod find;
pub mod forgotten;
pub mod leftovers;
