//! The command line of `cargo local`. The binary is `local`.

pub mod commands;
