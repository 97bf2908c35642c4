//! What the functions share. The way through a request is always down: a function's handler reads it ([`http`],
//! [`admission`], [`input`]), asks [`policy`], calls the [`store`], and shapes the answer ([`resource`], [`page`],
//! [`error`]).

pub mod admission;
pub mod app;
pub mod aws;
pub mod comment;
pub mod config;
pub mod error;
pub mod fold;
pub mod http;
pub mod https;
pub mod ids;
pub mod input;
pub mod labels;
pub mod lambda;
pub mod language;
#[cfg(test)]
mod loopback;
pub mod markdown;
pub mod origin;
pub mod page;
pub mod policy;
pub mod quality;
mod record;
pub mod resource;
pub mod route;
pub mod screening;
pub mod secrets;
pub mod spam;
pub mod store;
pub mod time;
pub mod token;
pub mod viewer;
pub mod visible;
