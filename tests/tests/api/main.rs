//! The API's rules, a test each, named as a sentence.

mod auth;
mod capacity;
mod change;
mod contract;
mod create;
mod crossing;
mod cursor;
mod envelope;
mod events;
mod hostile;
mod idempotency;
mod images;
mod likes;
mod limits;
mod list;
mod moderation;
mod permissions;
mod pinned;
mod pins;
mod refusals;
mod reports;
mod routes;
mod ui;
mod unapproved;
mod users;
mod worst;
