//! The whole service on one machine: API Gateway, Lambda, the table and the bucket, as far as the functions can tell.

pub mod access;
pub mod bench;
pub mod bucket;
pub mod check;
pub mod cli;
pub mod data_dir;
pub mod engine;
pub mod gateway;
pub mod log;
pub mod route;
mod server;
pub mod service;
pub mod settings;
pub mod stack;
pub mod stop;
pub mod template;
pub mod trigger;
pub mod website;
