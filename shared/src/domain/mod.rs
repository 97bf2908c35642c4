//! The things that the service is about and their rules, independent of storage and HTTP. No I/O.

pub mod comment;
pub mod email;
pub mod fold;
pub mod ids;
pub mod job;
pub mod language;
pub mod list;
pub mod log;
pub mod mail_keys;
pub mod mailbox;
pub mod markdown;
pub mod origin;
pub mod person;
pub mod rate_limit;
pub mod report;
pub mod seal;
pub mod secret;
pub mod spam;
pub mod texts;
pub mod thread;
pub mod time;
pub mod user;
pub mod viewer;
pub mod visible;
pub mod webhook;
pub mod webhook_url;
