//! The whole service on one machine, for development and tests: API Gateway, Lambda, the table, the bucket, the
//! queues and the mail server.
//!
//! Layers: `access, account, event_filter, files, publisher, server, temporary ← bucket, data_dir, engine, gateway, queue ← outbox,
//! template, trigger ← settings, stack, token ← service ← bench, check, import ← export ← person ← commands`. A module
//! uses the modules of the layers to its left; a test in `layers.rs` checks it.

pub mod access;
mod account;
pub mod bench;
pub mod bucket;
pub mod check;
pub mod commands;
pub mod data_dir;
pub mod engine;
mod event_filter;
pub mod export;
mod files;
pub mod gateway;
pub mod import;
#[cfg(test)]
mod layers;
pub mod outbox;
pub mod person;
mod publisher;
pub mod queue;
pub mod server;
pub mod service;
pub mod settings;
pub mod stack;
pub mod template;
pub mod temporary;
pub mod token;
pub mod trigger;
