//! Calls the endpoints of webhooks. A message names a delivery, whose state is in the table, so a message that arrives
//! late or twice causes no second call. If a worker dies between a call and storing its result, the next worker calls
//! again with the same `webhook-id`.

use std::time::Instant;

use http::header;
use serde::Serialize;
use serde_json::{Value, json};
use shared::app::App;
use shared::aws::queue::MAX_DELAY;
use shared::domain::comment::Comment;
use shared::domain::deliveries::DueWebhook;
use shared::domain::ids::Visitor;
use shared::domain::language::Language;
use shared::domain::thread::VisitorThreadState;
use shared::domain::time::Timestamp;
use shared::domain::viewer::Viewer;
use shared::domain::webhook::{self, Attempt, Delivery, DeliveryStep, Endpoint, EventKind, Subject};
use shared::domain::webhook_url;
use shared::error::Fault;
use shared::http::resource::{CommentPresenter, CommentResource, ThreadResource, VerdictResource};
use shared::store::Reading;

use crate::{Disposition, Senders, Sent, Worker, compose, persist, worker_id};

#[derive(Serialize)]
struct Payload<T> {
    #[serde(rename = "type")]
    event: &'static str,
    timestamp: Timestamp,
    data: T,
}

/// A comment as everyone sees it.
#[derive(Serialize)]
struct CommentData {
    #[serde(flatten)]
    comment: CommentResource,
    thread: ThreadResource,
    /// The reasons why the comment is held, for moderation programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Vec<VerdictResource>>,
}

/// Returns the verdicts that an event includes: an empty list for new public text, `None` for events without new text.
fn verdicts(comment: &Comment, event: EventKind) -> Option<Vec<VerdictResource>> {
    match event {
        EventKind::Pending => Some(comment.verdicts.iter().map(VerdictResource::from).collect()),
        EventKind::Created | EventKind::Updated => Some(Vec::new()),
        _ => None,
    }
}

pub(crate) async fn deliver(
    app: &App,
    senders: &Senders,
    due: &DueWebhook,
    receipt: &str,
) -> Result<Disposition, Fault> {
    let endpoint = if app.config.webhooks.on { app.store.endpoint(due.webhook).await? } else { None };
    let Some(endpoint) = endpoint else { return Ok(Disposition::Done) };
    let now = app.clock.now();
    let new = Delivery::new(due.message.clone(), due.event.clone(), now);
    if !endpoint.enabled {
        app.store.change_delivery(endpoint.id, &due.message, Some(&new), Delivery::give_up).await?;
        return warn(app, senders, &endpoint).await;
    }
    let worker = worker_id(app);
    let take = |delivery: &mut Delivery| delivery.take(now, &worker);
    let taken = app.store.change_delivery(endpoint.id, &due.message, Some(&new), take).await?;
    match taken.map_or(DeliveryStep::Nothing, |(_, step)| step) {
        DeliveryStep::Nothing => return Ok(Disposition::Done),
        DeliveryStep::Wait(until) => return later(app, due, receipt, until).await,
        DeliveryStep::Send(()) => {}
    }
    let body = body(app, due).await?;
    let attempt = call(app, senders, &endpoint, due, body).await;
    note(app, senders, &endpoint, Made { due, receipt, worker: &worker, attempt }).await
}

/// A finished attempt to deliver.
struct Made<'a> {
    due: &'a DueWebhook,
    receipt: &'a str,
    worker: &'a str,
    attempt: Attempt,
}

/// Stores the result of an attempt in the delivery and the endpoint.
async fn note(app: &App, senders: &Senders, endpoint: &Endpoint, made: Made<'_>) -> Result<Disposition, Fault> {
    let Made { due, receipt, worker, attempt } = made;
    let now = app.clock.now();
    let finish = |delivery: &mut Delivery| delivery.finish(worker, attempt.clone(), now);
    let noted = persist(|| app.store.change_delivery(endpoint.id, &due.message, None, finish)).await?;
    let outcome = webhook::Outcome::of(attempt.status);
    let noted_endpoint = app.store.change_endpoint(endpoint.id, |endpoint| endpoint.note_outcome(outcome, now)).await?;
    match noted.and_then(|(delivery, ())| delivery.due()) {
        Some(next) if noted_endpoint.as_ref().is_some_and(|(endpoint, ())| endpoint.enabled) => {
            later(app, due, receipt, next).await
        }
        Some(_) => {
            app.store.change_delivery(endpoint.id, &due.message, None, Delivery::give_up).await?;
            warn(app, senders, endpoint).await
        }
        None => warn(app, senders, endpoint).await,
    }
}

/// Makes the queue redeliver the message at this time. Sends a new message if the queue can delay it that long, because
/// a queue hides only a limited number of messages.
async fn later(app: &App, due: &DueWebhook, receipt: &str, time: Timestamp) -> Result<Disposition, Fault> {
    let delay = app.until(time);
    if delay <= MAX_DELAY {
        app.start_webhook(due.clone(), delay).await?;
        return Ok(Disposition::Done);
    }
    crate::hide(app, receipt, delay).await
}

/// Returns the body to send. It has the comment in its current state, only its ids if it was deleted, or no data for a
/// test.
async fn body(app: &App, due: &DueWebhook) -> Result<String, Fault> {
    let data = match &due.event.subject {
        None => json!({}),
        Some(subject) if due.event.kind == EventKind::Deleted => ids(subject),
        Some(subject) => match app.store.comment(subject.comment, Reading::Consistent).await? {
            Some(comment) if !comment.is_placeholder => present(app, &comment, due.event.kind).await?,
            _ => ids(subject),
        },
    };
    let (event, timestamp) = (due.event.kind.name(), due.event.at);
    let payload = Payload { event, timestamp, data };
    serde_json::to_string(&payload).map_err(|error| Fault::new("serializing a webhook", error))
}

fn ids(subject: &Subject) -> Value {
    let Subject { comment, parent, thread } = subject;
    json!({ "id": comment, "parent_id": parent, "thread": { "type": thread.kind, "id": thread.record } })
}

/// Returns the comment as everyone sees it. Pending text is included only in the event `comment.pending`.
async fn present(app: &App, comment: &Comment, event: EventKind) -> Result<Value, Fault> {
    let thread = app.store.thread(&comment.thread, Reading::Eventual).await?;
    let owners = Visitor(String::new()).into();
    let everyone = Viewer { owners, user: None, has_role: false, banned: false };
    let now = app.clock.now();
    let presenter = CommentPresenter {
        config: &app.config,
        viewer: &everyone,
        thread: &thread,
        visitor_state: &VisitorThreadState::default(),
        now,
        relative_to: now,
        language: Language::default(),
    };
    let thread = ThreadResource::new(&app.config, &comment.thread, &thread);
    let data = CommentData { comment: presenter.present(comment), thread, verdicts: verdicts(comment, event) };
    let mut data = serde_json::to_value(data).map_err(|error| Fault::new("serializing a webhook", error))?;
    if let Some(fields) = data.as_object_mut().filter(|_| comment.is_queued() && event != EventKind::Pending) {
        fields.retain(|name, _| !["body", "html"].contains(&name.as_str()));
    }
    Ok(data)
}

async fn call(app: &App, senders: &Senders, endpoint: &Endpoint, due: &DueWebhook, body: String) -> Attempt {
    let at = app.clock.now();
    let started = Instant::now();
    let status = match request(app, endpoint, due, body) {
        None => {
            tracing::warn!(webhook = endpoint.id.0, "a webhook's address or secret is no longer valid; add it again");
            None
        }
        Some(request) => match senders.outbound.send(request).await {
            Ok(status) => Some(status.as_u16()),
            Err(error) => {
                tracing::info!(webhook = endpoint.id.0, %error, "a webhook did not respond");
                None
            }
        },
    };
    Attempt { at, status, took: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX) }
}

/// Returns `None` when the settings no longer allow the address, or the secret was sealed with another salt.
fn request(app: &App, endpoint: &Endpoint, due: &DueWebhook, body: String) -> Option<http::Request<String>> {
    let url = webhook_url::parse(&endpoint.url, app.config.webhooks.private).ok()?;
    let secret = app.webhook_seal().open(&endpoint.secret)?.into();
    let (message, at) = (due.message.to_string(), app.clock.now());
    let request = http::Request::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "comment-thread-webhooks")
        .header("webhook-signature", webhook::signature(&secret, &message, at, &body))
        .header("webhook-timestamp", at.seconds())
        .header("webhook-id", message);
    request.body(body).ok()
}

/// Warns the moderators by email, once, that an endpoint was disabled because it failed. Retries if the email is
/// refused.
async fn warn(app: &App, senders: &Senders, endpoint: &Endpoint) -> Result<Disposition, Fault> {
    let claim = |endpoint: &mut Endpoint| std::mem::take(&mut endpoint.warning_due);
    let Some((endpoint, true)) = app.store.change_endpoint(endpoint.id, claim).await? else {
        return Ok(Disposition::Done);
    };
    tracing::warn!(webhook = endpoint.id.0, "a webhook was disabled: it failed for five days");
    let mail = app.config.mail.as_ref().filter(|mail| !mail.moderators.is_empty());
    let Some((mail, mailer)) = mail.zip(senders.mailer.as_ref()) else { return Ok(Disposition::Done) };
    let worker = Worker::new(app, mailer, mail);
    let name = format!("webhook {} {:?}", endpoint.id, endpoint.failing_since.map(|since| since.0));
    let page = worker.moderation_page();
    let mails = worker.to_moderators(&name, |letter| compose::webhook_disabled(letter, &endpoint.url, &page))?;
    if let Some(Sent::Refused) = worker.send(&mails).await {
        app.store.change_endpoint(endpoint.id, |endpoint| endpoint.warning_due = true).await?;
        return Ok(Disposition::Later);
    }
    Ok(Disposition::Done)
}
