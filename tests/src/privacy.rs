//! Searches every line that the service logs and every response in the tests for secrets, tokens, IP addresses and
//! email addresses.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use crate::settings::{SALT, SECRET, SEED};

/// The prefix of every guest's key in the tests.
pub(crate) const KEY: &str = "key-of-";

/// Texts that would reveal a secret, a token, a guest's key, an actor's IP address or user agent, or an email address
/// in a log line.
const TRACES: [&str; 8] = [SECRET, SALT, SEED, "eyJ", KEY, "10.0.", "browser/", "@"];
/// Minimum length of a secret that is searched for as a word. Shorter secrets would match many lines.
const MIN_WORD: usize = 8;

static EMAILS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static WORDS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

thread_local! {
    static LINES: Cell<u64> = const { Cell::new(0) };
}

/// Starts searching the log, which the whole process shares.
pub(crate) fn watch_the_log() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| tracing_subscriber::fmt().json().flatten_event(true).with_writer(Watch).init());
}

/// Returns the number of lines that this thread has logged. Each test runs in a separate thread.
pub fn lines_logged() -> u64 {
    LINES.get()
}

/// Forbids this email address in all later responses.
pub(crate) fn hide_email(email: &str) {
    // Skips the invalid addresses that some tests send.
    if email.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.')) {
        EMAILS.lock().unwrap_or_else(PoisonError::into_inner).insert(email.to_owned());
    }
}

/// Forbids this word, a code or a token, in all later lines of the log.
pub(crate) fn hide_word(word: &str) {
    if word.len() >= MIN_WORD {
        WORDS.lock().unwrap_or_else(PoisonError::into_inner).insert(word.to_owned());
    }
}

/// Fails if a response contains a secret of the service, a forbidden email address, or a secret in `own`.
#[track_caller]
pub(crate) fn look_through_answer(answer: &str, own: &[&str]) {
    let emails = EMAILS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for secret in own.iter().copied().chain([SECRET, SALT, SEED]).chain(emails.iter().map(String::as_str)) {
        assert!(!answer.contains(secret), "{secret} is in the answer: {answer}");
    }
}

fn look_through_line(line: &str) {
    for trace in TRACES {
        assert!(!line.contains(trace), "{trace} is in the log: {line}");
    }
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let hidden = WORDS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let word = line.split(|c| !is_of_word(c)).find(|word| hidden.contains(*word));
    assert_eq!(word, None, "in the log: {line}");
    LINES.set(LINES.get() + 1);
    if line.contains(r#""level":"ERROR""#) {
        // Cargo shows this output if the test fails.
        eprint!("{line}");
    }
}

#[derive(Clone, Copy)]
struct Watch;

impl MakeWriter<'_> for Watch {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for Watch {
    /// Called once for each line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        look_through_line(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_noticed_in_the_log_and_in_responses() {
        for line in ["{\"token\":\"eyJhbGciOi\"}", "from 10.0.0.7", "to ada@example.org", SECRET] {
            assert!(std::panic::catch_unwind(|| look_through_line(line)).is_err(), "{line}");
        }
        hide_word("7.8.9.signature");
        assert!(std::panic::catch_unwind(|| look_through_line("{\"token\":\"7.8.9.signature\"}")).is_err());
        hide_email("hidden@example.org");
        for answer in ["{\"email\":\"hidden@example.org\"}", "own token", SALT] {
            let looked = std::panic::catch_unwind(|| look_through_answer(answer, &["own token"]));
            assert!(looked.is_err(), "{answer}");
        }
        look_through_line("{\"route\":\"svc-pro.ui\"}");
        look_through_answer("{\"data\":{}}", &["own token"]);
    }
}
