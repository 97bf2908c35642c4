//! Sign-in: what a bearer token says of its user, once its signature is verified.

mod jwks;
mod signature;
pub mod token;
