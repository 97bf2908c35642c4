//! A process of `cargo local`.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use http::Uri;
use shared::aws::https;
use tempfile::NamedTempFile;

use crate::Actor;

/// Maximum wait for a response, on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns a command for `program` with these arguments, without the service and AWS settings in the tests'
/// environment.
#[must_use]
pub fn command(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ["SVC_", "AWS_", "COMMENTS_"].iter().any(|of| name.starts_with(of))) {
            command.env_remove(name);
        }
    }
    command.args(words);
    command
}

/// A running process. Killed when dropped.
pub struct Service {
    process: Child,
    /// Kept open, so that the process can continue printing.
    output: BufReader<ChildStdout>,
    /// The lines printed until the service was ready.
    pub printed: Vec<String>,
    log: NamedTempFile,
    client: https::Client,
}

impl Service {
    /// Starts the program and waits for its last line of output at startup, which begins with `ready`.
    pub fn start(command: &mut Command, ready: &str) -> Self {
        Self::try_start(command, ready).unwrap_or_else(|log| panic!("{command:?} ended before it was ready: {log}"))
    }

    /// Like [`Self::start`], but if the program ends before it is ready, returns its log as the error.
    pub fn try_start(command: &mut Command, ready: &str) -> Result<Self, String> {
        let log = NamedTempFile::new().expect("a temporary file");
        let stderr = OpenOptions::new().append(true).open(log.path()).expect("a second handle");
        let mut process = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let client = https::Client::new(PATIENCE);
        let mut service = Self { process, output, printed: Vec::new(), log, client };
        while !service.printed.last().is_some_and(|line| line.starts_with(ready)) {
            let mut line = String::new();
            if service.output.read_line(&mut line).expect("the output is text") == 0 {
                return Err(service.log());
            }
            service.printed.push(line.trim().to_owned());
        }
        Ok(service)
    }

    /// Returns the last word of the printed line that begins with `label`.
    #[track_caller]
    #[must_use]
    pub fn said(&self, label: &str) -> &str {
        let line = self.printed.iter().find(|line| line.starts_with(label));
        line.and_then(|line| line.split_whitespace().last())
            .unwrap_or_else(|| panic!("no {label} in {:#?}", self.printed))
    }

    pub fn log(&self) -> String {
        let log = fs::read(self.log.path()).expect("the log is there");
        String::from_utf8_lossy(&log).into_owned()
    }

    #[must_use]
    pub fn guest(&self) -> Actor {
        self.at(self.said("API"))
    }

    #[must_use]
    pub fn member(&self) -> Actor {
        self.guest().with_token(self.said("member"))
    }

    #[must_use]
    pub fn at(&self, url: &str) -> Actor {
        Actor::at(&url.parse::<Uri>().expect("an address"), &self.client)
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("the process is ours").is_none()
    }

    pub fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }

    #[cfg(unix)]
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Stops the process, and returns the lines that it printed since it was ready.
    #[cfg(unix)]
    pub fn stop_reading(mut self) -> Vec<String> {
        self.signal("TERM");
        let lines = self.output.by_ref().lines().collect::<Result<_, _>>().expect("the output is text");
        assert!(self.wait().success());
        lines
    }

    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("the process is ours")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
