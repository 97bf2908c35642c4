//! Emulates SES on one machine: the operation `SendEmail` writes emails to a folder, and `/_mail` shows them. As with
//! SES's mailbox simulator, emails to `bounce@` or `complaint@` at any domain cause a bounce or a complaint.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use mail_parser::MessageParser;
use serde_json::{Value, json};
use shared::aws::call::Transport;
use shared::aws::https;
use shared::aws::ses::{RECIPIENT, SEND_EMAIL};
use shared::domain::time::Clock;
use tempfile::TempDir;

use crate::access;
use crate::files;
use crate::queue::Queues;

/// Maximum bytes on a line of an email (RFC 5322).
const MAX_LINE: usize = 998;
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:800px;margin:24px auto;\
padding:0 16px}article{margin:24px 0}iframe{width:100%;height:420px;border:1px solid #888}pre{white-space:pre-wrap}";

/// An email as stored in its file.
#[derive(Clone, Debug)]
pub struct SentMail {
    /// The headers and the body.
    pub raw: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
}

impl SentMail {
    fn read(raw: &str) -> Option<Self> {
        let mail = MessageParser::default().parse(raw.as_bytes())?;
        let to = mail.to().and_then(|to| to.first()?.address()).unwrap_or_default().to_owned();
        let subject = mail.subject().unwrap_or_default().to_owned();
        let text = mail.body_text(0).unwrap_or_default().into_owned();
        let html = mail.body_html(0).unwrap_or_default().into_owned();
        Some(Self { raw: raw.to_owned(), to, subject, text, html })
    }
}

/// Removes the emails in a folder that `picks` selects, and returns their number. The folder may be missing.
///
/// # Errors
///
/// Fails if the folder can't be read, or an email can't be removed.
pub fn remove(folder: &Path, picks: impl Fn(&SentMail) -> bool) -> io::Result<u64> {
    let mut removed = 0;
    for file in if folder.exists() { files(folder)? } else { Vec::new() } {
        if SentMail::read(&String::from_utf8_lossy(&fs::read(&file)?)).is_some_and(|mail| picks(&mail)) {
            fs::remove_file(file)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The emails in a folder, oldest first.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "eml"));
    files.sort();
    Ok(files)
}

#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    queues: Queues,
    /// The queue that receives bounces and complaints.
    feedback: String,
    clock: Clock,
    written: AtomicU64,
    /// The number of upcoming emails to refuse, as SES does beyond its quota.
    refused: AtomicU64,
    /// A recipient that is refused permanently.
    rejected: Mutex<Option<String>>,
    /// Removed when the last handle is dropped.
    _directory: Option<TempDir>,
}

impl Outbox {
    /// Opens the outbox in a folder, which may contain emails from earlier processes.
    ///
    /// # Errors
    ///
    /// Fails if the folder can't be created.
    pub fn open(folder: &Path, queues: Queues, feedback: &str, clock: Clock) -> io::Result<Self> {
        files::make_folder(folder)?;
        Ok(Self::new(folder.to_owned(), None, queues, feedback, clock))
    }

    /// An outbox whose emails are removed when the last handle is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the folder can't be created.
    pub fn temporary(queues: Queues, feedback: &str, clock: Clock) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        Ok(Self::new(directory.path().to_owned(), Some(directory), queues, feedback, clock))
    }

    fn new(folder: PathBuf, directory: Option<TempDir>, queues: Queues, feedback: &str, clock: Clock) -> Self {
        let feedback = feedback.to_owned();
        Self(Arc::new(Shared {
            folder,
            queues,
            feedback,
            clock,
            written: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            rejected: Mutex::default(),
            _directory: directory,
        }))
    }

    /// All emails, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the folder can't be read.
    pub fn mails(&self) -> io::Result<Vec<SentMail>> {
        let files = files(&self.0.folder)?;
        let mails = files.iter().map(|file| Ok(SentMail::read(&String::from_utf8_lossy(&fs::read(file)?))));
        Ok(mails.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The page at `/_mail`. Each email is shown in a frame that can't run scripts.
    #[must_use]
    pub fn page(&self) -> Response<Bytes> {
        let mails = self.mails().unwrap_or_default();
        let shown = mails.iter().rev().map(|mail| {
            format!(
                "<article><h2>{}</h2><p>{}</p>\
                 <iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" srcdoc=\"{}\"></iframe>\
                 <details><summary>Text</summary><pre>{}</pre></details>\
                 <details><summary>Source</summary><pre>{}</pre></details></article>",
                escaped(&mail.subject),
                escaped(&mail.to),
                escaped(&mail.html.replacen("<head>", "<head><base target=\"_blank\">", 1)),
                escaped(&mail.text),
                escaped(&mail.raw),
            )
        });
        let shown = if mails.is_empty() { "<p>No emails yet.</p>".to_owned() } else { shown.collect() };
        let page = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Emails</title>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style>\
             </head><body><h1>Emails</h1>{shown}</body></html>"
        );
        let mut response = Response::new(Bytes::from(page));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        response
    }

    /// Refuses the next `count` emails.
    pub fn refuse(&self, count: u64) {
        self.0.refused.store(count, Ordering::Relaxed);
    }

    /// Refuses emails to this address permanently.
    pub fn reject(&self, address: &str) {
        *self.0.rejected.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.to_owned());
    }

    fn send_email(&self, request: &Value) -> (StatusCode, Value) {
        let from = request["FromEmailAddress"].as_str().unwrap_or_default();
        if let Err(denied) = access::check_mail(from) {
            tracing::error!("{denied}");
            return (StatusCode::FORBIDDEN, json!({ "__type": "AccessDeniedException", "message": denied }));
        }
        let one_less = |left: u64| left.checked_sub(1);
        if self.0.refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return (StatusCode::TOO_MANY_REQUESTS, json!({ "message": "Maximum sending rate exceeded." }));
        }
        let to = request["Destination"]["ToAddresses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rejected = self.0.rejected.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if rejected.is_some_and(|address| to.iter().any(|to| *to == *address)) {
            return (StatusCode::BAD_REQUEST, json!({ "__type": "MessageRejected", "message": "Unknown address." }));
        }
        let raw = request["Content"]["Raw"]["Data"].as_str().and_then(|data| STANDARD.decode(data).ok());
        let Some(raw) = raw.filter(|raw| !raw.is_empty() && !to.is_empty()) else {
            return (StatusCode::BAD_REQUEST, json!({ "message": "An email needs content and a recipient." }));
        };
        if raw.split(|byte| *byte == b'\n').any(|line| line.strip_suffix(b"\r").unwrap_or(line).len() > MAX_LINE) {
            return (StatusCode::BAD_REQUEST, json!({ "message": "A line of the email is too long." }));
        }
        let id = format!("{:013}-{:06}", self.0.clock.now().0, self.0.written.fetch_add(1, Ordering::Relaxed));
        if let Err(error) = files::write(&self.0.folder.join(format!("{id}.eml")), &raw) {
            tracing::error!("writing an email failed: {error}");
            return (StatusCode::INTERNAL_SERVER_ERROR, json!({ "message": "InternalFailure" }));
        }
        for address in to.iter().filter_map(Value::as_str) {
            self.come_back(address, &request["EmailTags"]);
        }
        (StatusCode::OK, json!({ "MessageId": id }))
    }

    fn come_back(&self, address: &str, tags: &Value) {
        let (kind, detail) = match address.split('@').next() {
            Some("bounce") => ("Bounce", json!({ "bounceType": "Permanent", "bounceSubType": "General" })),
            Some("complaint") => ("Complaint", json!({ "complaintFeedbackType": "abuse" })),
            _ => return,
        };
        let tag = tags.as_array().into_iter().flatten().find(|tag| tag["Name"] == RECIPIENT);
        let recipient = tag.map(|tag| tag["Value"].clone()).unwrap_or_default();
        let event = json!({
            "eventType": kind,
            kind.to_lowercase(): detail,
            "mail": { "destination": [address], "tags": { RECIPIENT: [recipient] } },
        });
        let notification = json!({ "Type": "Notification", "Message": event.to_string() });
        if let Err(error) = self.0.queues.put(&self.0.feedback, &notification) {
            tracing::error!("queueing a notification about an email failed: {error}");
        }
    }
}

/// Handles calls from functions in this process, with permissions checked as in AWS.
impl Transport for Outbox {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>> {
        Box::pin(async move {
            let body: Value = serde_json::from_str(request.body()).unwrap_or_default();
            let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
            let (status, answer) = match request.uri().path() {
                SEND_EMAIL if is_json => {
                    let answer = self.send_email(&body);
                    // Yields after accepting the email, so that a test can end the worker before it gets the response.
                    tokio::task::yield_now().await;
                    answer
                }
                other => (StatusCode::NOT_FOUND, json!({ "message": format!("no operation {other}") })),
            };
            let mut response = http::Response::new(answer.to_string().into_bytes());
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use shared::domain::ids::Random;

    use super::*;

    #[test]
    fn selected_emails_in_a_folder_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ada", "bob"] {
            fs::write(folder.path().join(format!("{name}.eml")), format!("To: {name}@example.org\r\n\r\nHi")).unwrap();
        }
        assert_eq!(remove(folder.path(), |mail| mail.to == "ada@example.org").unwrap(), 1);
        assert_eq!(files(folder.path()).unwrap(), [folder.path().join("bob.eml")]);
        assert_eq!(remove(&folder.path().join("none"), |_| true).unwrap(), 0);
    }

    #[test]
    fn the_page_shows_emails_without_letting_them_run_anything() {
        let clock = Clock::system();
        let queues = Queues::temporary(Vec::new(), clock.clone(), Random::system()).unwrap();
        let outbox = Outbox::temporary(queues, "Feedback", clock).unwrap();
        let mail = "Subject: <b>Hello\r\nTo: ada@example.org\r\nContent-Type: text/html\r\n\r\n<p title=\"x\">Hi</p>";
        fs::write(outbox.0.folder.join("1.eml"), mail).unwrap();
        let page = outbox.page();
        assert!(page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
        let page = String::from_utf8(page.body().to_vec()).unwrap();
        assert!(page.contains("<h2>&lt;b&gt;Hello</h2>"), "{page}");
        assert!(page.contains("srcdoc=\"&lt;p title=&quot;x&quot;&gt;Hi&lt;/p&gt;"), "{page}");
        assert!(!page.contains("allow-scripts"), "{page}");
    }
}
