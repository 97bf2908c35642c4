//! The whole service on one machine, for production, development and tests: API Gateway, Lambda, the table, the bucket
//! and the queues, and outside production also the mail server.
//!
//! Layers: `access, account, event_filter, files, http_server, publisher ← bucket, data_dir, engine, gateway, queue ←
//! outbox, template, trigger ← settings, stack, token ← service`. A module uses only modules in layers to its left.

pub mod access;
mod account;
pub mod bucket;
pub mod data_dir;
pub mod engine;
mod event_filter;
mod files;
pub mod gateway;
pub mod http_server;
pub mod outbox;
mod publisher;
pub mod queue;
pub mod service;
pub mod settings;
pub mod stack;
pub mod template;
pub mod token;
pub mod trigger;
