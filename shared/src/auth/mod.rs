//! Bearer tokens: verified signatures and the claims of the user.

pub mod id_token;
mod jwks;
mod jwt;
pub mod own;
mod signature;
pub mod token;
