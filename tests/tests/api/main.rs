//! The API's rules, a test each, named as a sentence.

mod auth;
mod change;
mod contract;
mod create;
mod cursor;
mod envelope;
mod limits;
mod list;
mod pinned;
mod ui;
mod unapproved;
