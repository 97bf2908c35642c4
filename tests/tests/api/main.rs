//! The API's rules, a test each, named as a sentence.

mod change;
mod create;
mod cursor;
mod list;
mod pinned;
mod unapproved;
