//! Verifies bearer tokens and reads their claims.

pub mod id_token;
mod jwks;
mod jwt;
pub mod own;
mod signature;
pub mod token;
