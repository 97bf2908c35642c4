//! Bearer tokens: verified signatures and the claims of the user.

mod jwks;
mod signature;
pub mod token;
