//! Access to AWS and to HTTPS servers.

pub mod call;
pub mod config;
pub mod https;
#[cfg(test)]
pub(crate) mod loopback;
pub mod outbound;
pub mod queue;
pub mod secrets;
pub mod ses;
