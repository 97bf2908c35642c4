//! Sends emails (notifications of comments, confirmations of addresses, emails to moderators, sign-in codes) and calls
//! webhooks. A message from the queue `Deliveries` names a recipient, a sign-in flow or a webhook delivery. Messages
//! about bounces and complaints come from SES. Every message may arrive late, or twice. An email is repeated only if
//! the result of sending it is unknown or wasn't recorded; both emails have the same `Message-ID`.
//!
//! | file | purpose |
//! |---|---|
//! | `content` | reads the comments of an email in their current state |
//! | `asking` | decides whether a confirmation may be sent to an address now |
//! | `code` | sends a sign-in code |
//! | `compose` | writes the email |
//! | `mailer` | hands the email to a mail server |
//! | `feedback` | handles bounces and complaints |
//! | `webhook` | calls the endpoints of webhooks |

mod asking;
mod code;
mod compose;
mod content;
mod feedback;
mod mailer;
mod webhook;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::App;
use shared::aws::outbound::Outbound;
use shared::aws::ses::RawMail;
use shared::config::Mail;
use shared::domain::deliveries::Message;
use shared::domain::ids::hex;
use shared::domain::mail_keys::Recipient;
use shared::domain::notifications::{self, Kind, MailStep, NotificationState};
use shared::domain::time::Timestamp;
use shared::error::Fault;

pub use self::mailer::{Mailer, Tally};

/// Delays before retries of recording a result.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(9),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    Done,
    /// The queue redelivers the message.
    Later,
}

/// The clients that send emails and call webhooks.
pub struct Senders {
    /// `None` while email is off.
    pub mailer: Option<Mailer>,
    pub outbound: Outbound,
}

enum Sent {
    Accepted,
    Refused,
    /// Nothing is left to send.
    Dropped,
    /// Not to be sent before this time.
    PutOff(Timestamp),
}

/// The emails to send. If there are none, `sent` is the result to record.
struct Content {
    mails: Vec<RawMail>,
    /// Notices that are left out because the comment's text is pending or its rejection was undone. They may be sent
    /// later.
    aside: BTreeSet<u64>,
    sent: Sent,
}

impl Default for Content {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Content {
    fn of(mails: Vec<RawMail>) -> Self {
        Self { mails, aside: BTreeSet::new(), sent: Sent::Dropped }
    }
}

/// Handles a batch of messages, as Lambda receives it from SQS. Returns the ids of the messages to deliver again.
pub async fn handle(app: &App, senders: &Senders, event: &Value) -> Value {
    let messages = event["Records"].as_array().into_iter().flatten();
    // Concurrent, so that a slow server delays only one message.
    let failures = join_all(messages.map(|message| async move {
        let outcome = follow(app, senders, message).await.unwrap_or_else(|fault| {
            tracing::error!(error = fault.chain(), message = message["messageId"].as_str(), "delivery failed");
            Disposition::Later
        });
        (outcome == Disposition::Later).then(|| json!({ "itemIdentifier": message["messageId"] }))
    }));
    json!({ "batchItemFailures": failures.await.into_iter().flatten().collect::<Vec<_>>() })
}

async fn follow(app: &App, senders: &Senders, message: &Value) -> Result<Disposition, Fault> {
    let body = serde_json::from_str(message["body"].as_str().unwrap_or_default());
    let receipt = message["receiptHandle"].as_str().unwrap_or_default();
    match body.map_err(|error| Fault::new("reading a message of the queue Deliveries", error))? {
        Message::Webhook(due) => webhook::deliver(app, senders, &due, receipt).await,
        // No mailer means that email was turned off while the message waited.
        Message::Mail { recipient } => match app.config.mail.as_ref().zip(senders.mailer.as_ref()) {
            Some((mail, mailer)) => Worker::new(app, mailer, mail).deliver(&recipient, receipt).await,
            None => Ok(Disposition::Done),
        },
        Message::Code { flow } => match app.config.mail.as_ref().zip(senders.mailer.as_ref()) {
            Some((mail, mailer)) => Worker::new(app, mailer, mail).send_code(&flow, receipt).await,
            None => Ok(Disposition::Done),
        },
        Message::Feedback { text } => feedback::follow(app, &text).await.map(|()| Disposition::Done),
    }
}

/// Returns a random id that identifies the owner of a claim ([`shared::domain::claim::Claim`]).
fn worker_id(app: &App) -> String {
    hex(&app.random.bytes::<8>())
}

struct Worker<'a> {
    app: &'a App,
    mailer: &'a Mailer,
    mail: &'a Mail,
    /// The owner id in this worker's claims.
    name: String,
}

impl<'a> Worker<'a> {
    fn new(app: &'a App, mailer: &'a Mailer, mail: &'a Mail) -> Self {
        Self { app, mailer, mail, name: worker_id(app) }
    }

    async fn deliver(&self, recipient: &Recipient, receipt: &str) -> Result<Disposition, Fault> {
        let now = self.app.clock.now();
        let take = |state: &mut NotificationState| state.take(now, &self.name);
        let (state, step) = self.app.store.change_notification_state(recipient, take).await?;
        let mail = match step {
            MailStep::Nothing => return Ok(Disposition::Done),
            MailStep::Wait(until) => return self.later(receipt, until).await,
            MailStep::Send(mail) => mail,
        };
        let (kind, content) = match mail {
            notifications::Mail::Confirm(asker) => {
                (Kind::Confirmation, self.confirmation(recipient, &state, &asker).await)
            }
            notifications::Mail::Notify(..) if self.app.is_stopped(recipient, &state.enrolment).await? => {
                self.app.stop_recipient(recipient).await?;
                return Ok(Disposition::Done);
            }
            notifications::Mail::Notify(ids, more) if recipient.is_moderators() => {
                (Kind::Digest, content::digest(self, &state, &ids, more).await.map(Content::of))
            }
            notifications::Mail::Notify(ids, more) => {
                (Kind::Notifications, content::notifications(self, recipient, &state, &ids, more).await)
            }
        };
        let Content { mails, aside, sent } = content.unwrap_or_else(|fault| {
            tracing::error!(error = fault.chain(), "email not composed");
            Content { sent: Sent::Refused, ..Content::default() }
        });
        let sent = if mails.is_empty() { Some(sent) } else { self.send(&mails).await };
        // If the result is unknown, the claim keeps the email from being sent again before the claim ends.
        let Some(sent) = sent else { return self.later(receipt, state.due().unwrap_or(now)).await };
        self.finish(recipient, kind, &sent, &aside).await?;
        Ok(Disposition::Done)
    }

    /// Sends the same email to one or more addresses. It counts as accepted if it was accepted for at least one
    /// address, so that no one gets it twice. Returns `None` if the result is unknown.
    async fn send(&self, mails: &[RawMail]) -> Option<Sent> {
        // Concurrent, because the claim lasts only a little longer than sending one email.
        let sent = join_all(mails.iter().map(|mail| self.mailer.send(mail))).await;
        for error in sent.iter().filter_map(|sent| sent.as_ref().err()) {
            tracing::warn!(%error, unknown = error.unknown, "email not sent");
        }
        if sent.iter().any(Result::is_ok) {
            return Some(Sent::Accepted);
        }
        let unknown = sent.iter().any(|sent| sent.as_ref().is_err_and(|error| error.unknown));
        (!unknown).then_some(Sent::Refused)
    }

    async fn finish(&self, recipient: &Recipient, kind: Kind, sent: &Sent, aside: &BTreeSet<u64>) -> Result<(), Fault> {
        let (now, wait) = (self.app.clock.now(), self.mail.wait);
        let finish = |state: &mut NotificationState| {
            if !state.is_claimed_by(&self.name) {
                return;
            }
            match sent {
                Sent::Refused => return state.refused(now, wait),
                Sent::PutOff(until) => return state.put_off(*until),
                Sent::Accepted | Sent::Dropped => state.set_aside(aside),
            }
            match sent {
                Sent::Accepted => state.accepted(now, wait, kind),
                _ if kind == Kind::Confirmation => state.dismiss(),
                _ => state.dropped(now, wait, kind),
            }
        };
        let (state, ()) = persist(|| self.app.store.change_notification_state(recipient, finish)).await?;
        self.app.start_delivery(recipient, &state).await
    }

    /// Makes the queue redeliver the message at this time.
    async fn later(&self, receipt: &str, time: Timestamp) -> Result<Disposition, Fault> {
        hide(self.app, receipt, self.app.until(time)).await
    }
}

/// Makes the queue redeliver the message after this delay.
async fn hide(app: &App, receipt: &str, delay: Duration) -> Result<Disposition, Fault> {
    app.deliveries()?.hide(receipt, delay).await?;
    Ok(Disposition::Later)
}

/// Records the result of an email or a call. Retries several times, because an unrecorded email or call is repeated.
async fn persist<T, F: Future<Output = Result<T, Fault>>>(write: impl Fn() -> F) -> Result<T, Fault> {
    let mut pauses = PAUSES.into_iter();
    loop {
        match (write().await, pauses.next()) {
            (Err(fault), Some(pause)) if fault.transient => tokio::time::sleep(pause).await,
            (result, _) => return result,
        }
    }
}
