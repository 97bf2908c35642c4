//! The concepts of the service and their rules, independent of storage and AWS. No I/O.
//!
//! [`policy`] decides who may do what, based on the settings in [`config`], and returns the refusals of [`error`]. [`routes`]
//! is the table of routes. `shared` re-exports these modules for the functions.

pub mod address;
pub mod author;
pub mod avatar;
pub mod claim;
pub mod comment;
pub mod comparable;
pub mod config;
pub mod deliveries;
pub mod email;
pub mod error;
pub mod fold;
pub mod ids;
pub mod job;
pub mod language;
pub mod letters;
pub mod list;
pub mod log;
pub mod mail_keys;
pub mod markdown;
pub mod mend;
pub mod mention;
pub mod name;
pub mod notifications;
pub mod origin;
pub mod person;
pub mod policy;
pub mod prose;
pub mod rate_limit;
pub mod rejection;
pub mod report;
pub mod routes;
pub mod seal;
pub mod secret;
pub mod sign_in;
pub mod source;
pub mod spam;
pub mod steps;
pub mod texts;
pub mod thread;
pub mod time;
pub mod trust;
pub mod user;
pub mod verdict;
pub mod viewer;
pub mod visible;
pub mod webhook;
pub mod webhook_url;
