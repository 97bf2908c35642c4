//! What the table knows of one person: finds it and erases it. The schema says which attributes may name somebody.
//!
//! | file        | what |
//! |-------------|------|
//! | `find`      | reads the table: whom it is about, what is to be erased, what stays |
//! | `erase`     | erases one thing after another, by the transactions of the service |
//! | `forgotten` | remembers who was forgotten, so that no import brings them back |
//! | `leftovers` | finds the person in changes that nobody has followed up on, and in messages of queues |
//!
//! An erasure runs beside the service. It begins with an item that says whom it is about, and removes that item at its end. So
//! an erasure that was killed is finished by the next one, although half of what led to the person is gone.

pub mod erase;
pub mod find;
pub mod forgotten;
pub mod leftovers;
