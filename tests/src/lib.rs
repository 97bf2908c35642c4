//! The test harness. A [`World`] is the whole service in this process, on its own table. A [`Service`] is a process of
//! `cargo local`, and a [`Remote`] is a service running anywhere. An [`Actor`] calls any of them. Tests state the
//! expected responses; the harness does not.

mod actor;
mod commands;
mod compare;
mod faults;
mod form;
mod privacy;
mod receiver;
mod remote;
mod replica;
mod response;
mod rounds;
pub mod seed;
mod service;
mod settings;
mod stage;
mod table;
mod twin;
mod world;
mod written;

pub use self::actor::{Actor, by_guest, sign, wants};
pub use self::commands::{erase, export, import};
pub use self::compare::{differ, is_made_of, rounded, rounded_value};
pub use self::faults::Faults;
pub use self::form::{dot, form};
pub use self::privacy::lines_logged;
pub use self::receiver::{Received, Receiver, WEBHOOKS, webhook_message};
pub use self::remote::Remote;
pub use self::response::{TestResponse, ids, reversed, seen};
pub use self::service::{Service, command};
pub use self::settings::{MAIL, MEDIA_BASE, PROVIDERS, SALT, SECRET, SIGN_IN, START, TABLE, setting};
pub use self::stage::{Call, Changes, FREE, Instance, Mark, Stage, Task, in_common};
pub use self::table::Item;
pub use self::world::{Setup, World, code, mail_token};
pub use self::written::{assert_written, committed};
