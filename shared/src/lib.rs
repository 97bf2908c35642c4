//! The code that the functions share. For each request, [`app`] calls a function's handler, which reads the request ([`http`]),
//! consults [`policy`], calls the [`store`] and shapes the response ([`http`]).
//!
//! Layers: `aws ← auth ← store ← http ← app`. A module uses only modules to its left. The crate `domain`, which doesn't
//! use AWS, is below all of them.

pub mod app;
pub mod auth;
pub mod aws;
pub mod http;
pub mod store;

pub use domain;
pub use domain::{config, error, policy, routes};
