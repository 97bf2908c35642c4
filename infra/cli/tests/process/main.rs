//! `cargo local` as a process. These tests aren't in the package `tests`, because Cargo builds this binary and sets its
//! path only for tests in the same package.

mod backup;
mod cli;
mod demo;
mod export;
mod flags;
mod import;
mod killed;
mod moderate;
mod person;
#[cfg(target_os = "linux")]
mod power;
mod serve;

use std::borrow::BorrowMut;
use std::path::Path;
use std::process::{Command, Output};

use tests::{Service, command};

fn local(words: &[&str]) -> Command {
    command(env!("CARGO_BIN_EXE_comments-server"), words)
}

/// A number from the environment, or else the default `usual`.
#[expect(clippy::disallowed_methods, reason = "no setting of the service")]
fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |count| count.parse().unwrap())
}

fn under(program: &str, words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.args(words).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Runs the command as an unprivileged user, because permissions don't restrict root.
fn unprivileged(command: &Command) -> Command {
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if rustix::process::getuid().is_root() { under("setpriv", &user, command) } else { under("env", &[], command) }
}

/// Limits the size of files, which acts like a full disk.
fn limited(kilobytes: u32, command: &Command) -> Command {
    under("bash", &["-c", &format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"")], command)
}

/// `words` are a subcommand and its options.
fn on_data(words: &[&str], data_dir: &Path) -> Command {
    let mut command = local(words);
    command.arg("--data-dir").arg(data_dir);
    command
}

fn assert_in_order(data_dir: &Path) {
    done(on_data(&["check"], data_dir));
}

/// Runs a command that must succeed.
fn done(mut command: impl BorrowMut<Command>) -> Output {
    let command: &mut Command = command.borrow_mut();
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {printed}{}", stderr(&output));
    output
}

/// Runs a command that must succeed, and returns its standard output.
fn printed(command: impl BorrowMut<Command>) -> String {
    String::from_utf8(done(command).stdout).unwrap()
}

/// Asserts that a command exits with this code, and prints only an error that contains all of `says`.
fn fails(mut command: impl BorrowMut<Command>, code: i32, says: &[&str]) {
    let command: &mut Command = command.borrow_mut();
    let output = command.output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {error}");
    assert!(error.starts_with("error: ") && says.iter().all(|part| error.contains(part)), "{command:?}: {error}");
    assert!(output.stdout.is_empty(), "{command:?}");
}

fn serve(data_dir: &Path) -> Service {
    Service::start(&mut on_data(&["--port", "0"], data_dir), "moderator")
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}
