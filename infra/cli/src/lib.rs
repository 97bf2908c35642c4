//! The command line of `comments-server`, which `cargo local` runs.

pub mod commands;
