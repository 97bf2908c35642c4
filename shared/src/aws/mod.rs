//! How the functions reach AWS, and HTTPS servers at all.

mod call;
pub mod config;
pub mod https;
#[cfg(test)]
pub(crate) mod loopback;
pub mod secrets;
