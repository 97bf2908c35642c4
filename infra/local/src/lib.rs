//! The whole service on one machine, for development and tests: API Gateway, Lambda, the table and the bucket.
//!
//! Layers: `access, account, data_dir, publisher, server ← bucket, engine, gateway ← template, trigger ← settings,
//! stack, token ← service ← bench, check ← commands`. A module uses the modules of the layers to its left; a test in
//! `layers.rs` checks it.

pub mod access;
mod account;
pub mod bench;
pub mod bucket;
pub mod check;
pub mod commands;
pub mod data_dir;
pub mod engine;
pub mod gateway;
#[cfg(test)]
mod layers;
mod publisher;
mod server;
pub mod service;
pub mod settings;
pub mod stack;
pub mod template;
pub mod token;
pub mod trigger;
