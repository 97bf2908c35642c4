//! What must not be told: every line that the suite logs and every answer that it gets is looked through for secrets,
//! tokens, addresses and e-mail addresses.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use crate::{SALT, SECRET};

/// What log lines would hold if they held a token, an actor's address, an actor's user agent or an e-mail address.
const TRACES: [&str; 6] = [SECRET, SALT, "eyJ", "10.0.", "browser/", "@"];

static EMAILS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

thread_local! {
    static LINES: Cell<u64> = const { Cell::new(0) };
}

/// From now on; the log is one for the whole process.
pub(crate) fn watch_the_log() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| tracing_subscriber::fmt().json().flatten_event(true).with_writer(Watch).init());
}

/// How many lines this thread logged so far, all of them looked through. A test has a thread of its own.
pub fn lines_logged() -> u64 {
    LINES.get()
}

/// The service was told this address; no answer may hold it.
pub(crate) fn hide_email(email: &str) {
    // Wrong ones are sent too.
    if email.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.')) {
        EMAILS.lock().unwrap_or_else(PoisonError::into_inner).insert(email.to_owned());
    }
}

/// `own` is what only the caller knows.
#[track_caller]
pub(crate) fn look_through_answer(answer: &str, own: &[&str]) {
    let emails = EMAILS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for secret in own.iter().copied().chain([SECRET, SALT]).chain(emails.iter().map(String::as_str)) {
        assert!(!answer.contains(secret), "the answer tells {secret}: {answer}");
    }
}

fn look_through_line(line: &str) {
    for trace in TRACES {
        assert!(!line.contains(trace), "the log tells {trace}: {line}");
    }
    LINES.set(LINES.get() + 1);
    if line.contains(r#""level":"ERROR""#) {
        // The test's own output has it, when the test fails.
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
    /// One call a line.
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
    fn what_tells_is_noticed() {
        for line in ["{\"token\":\"eyJhbGciOi\"}", "from 10.0.0.7", "to ada@example.org", SECRET] {
            assert!(std::panic::catch_unwind(|| look_through_line(line)).is_err(), "{line}");
        }
        hide_email("hidden@example.org");
        for answer in ["{\"email\":\"hidden@example.org\"}", "own token", SALT] {
            let looked = std::panic::catch_unwind(|| look_through_answer(answer, &["own token"]));
            assert!(looked.is_err(), "{answer}");
        }
        look_through_line("{\"route\":\"svc-pro.ui\"}");
        look_through_answer("{\"data\":{}}", &["own token"]);
    }
}
