//! The code that the functions share. On the way of a request, [`app`] calls a function's handler, which reads the request
//! ([`http`]), asks [`policy`], calls the [`store`] and shapes the answer ([`http`]).
//!
//! Layers: `domain ← routes, error ← aws ← auth ← config ← policy, store ← http ← app`. A module uses what is to the left
//! of it and never what is to the right; `layers.rs` of the package `tests` holds it.

pub mod app;
pub mod auth;
pub mod aws;
pub mod config;
pub mod domain;
pub mod error;
pub mod http;
pub mod policy;
pub mod routes;
pub mod store;
