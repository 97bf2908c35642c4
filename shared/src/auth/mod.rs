//! Bearer tokens: verified signatures and the claims of the user.

mod jwks;
mod jwt;
pub mod own;
mod signature;
pub mod token;
