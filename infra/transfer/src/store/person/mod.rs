//! Finds and erases everything about one person in the table. The schema says which attributes may identify a person.
//!
//! | file        | what |
//! |-------------|------|
//! | `find`      | reads the table: whom it is about, what is to be erased, what stays |
//! | `erase`     | erases one thing after another, by the transactions of the service |
//! | `forgotten` | remembers who was forgotten, so that no import brings them back |
//! | `leftovers` | finds the person in changes that nobody has followed up on, and in messages of queues |
//!
//! An erasure runs beside the service. It begins by storing whom it is about, and removes that item at its end. So the next
//! erasure finishes a killed one, although half of what identified the person is gone.

pub mod erase;
pub mod find;
pub mod forgotten;
pub mod leftovers;
