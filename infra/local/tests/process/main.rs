//! `cargo local` as a process. These tests belong to this package, because cargo builds its binary for them alone.

mod cli;
#[cfg(unix)]
mod killed;
