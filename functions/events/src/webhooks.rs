//! Notifies webhooks of changes to comments: queues a message for each webhook that wants the event. The function
//! `delivery` then calls the webhook.

use std::time::Duration;

use futures_util::future::try_join_all;
use shared::app::App;
use shared::domain::comment::Comment;
use shared::domain::deliveries::DueWebhook;
use shared::domain::webhook::{Endpoint, Event, EventKind, MessageId, Subject, events_of};
use shared::error::Fault;
use shared::store::events::{Change, Record};

/// The endpoints, read at most once per batch of records, and only if there is an event for them.
#[derive(Default)]
pub(crate) struct Endpoints(Option<Vec<Endpoint>>);

impl Endpoints {
    async fn all(&mut self, app: &App) -> Result<&[Endpoint], Fault> {
        if self.0.is_none() {
            self.0 = Some(app.store.endpoints().await?);
        }
        Ok(self.0.as_deref().unwrap_or_default())
    }
}

/// Queues the webhook messages for a stream record. `shown` is the comment, if the record made it public. Safe to
/// repeat, because message ids are derived from the record.
pub(crate) async fn notify(
    app: &App,
    endpoints: &mut Endpoints,
    record: &Record<'_>,
    shown: Option<&Comment>,
) -> Result<(), Fault> {
    if !app.config.webhooks.on {
        return Ok(());
    }
    let (old, new) = match &record.change {
        Change::Comment(images) => (images.old.as_ref(), images.new.as_ref()),
        Change::User(_) | Change::Banned(_) | Change::ReplyShown(_) | Change::Other => (None, None),
    };
    let events = events_of(old, new, shown.is_some());
    let comment = new.or(old).or(shown);
    let Some(comment) = comment.filter(|_| !events.is_empty()) else { return Ok(()) };
    let endpoints = endpoints.all(app).await?;
    let message = |endpoint: &Endpoint, kind: EventKind| DueWebhook {
        webhook: endpoint.id,
        message: MessageId::new(endpoint.id, kind, record.id, record.at),
        event: Event { kind, at: record.at, subject: Some(Subject::of(comment)) },
    };
    let of_event = |event: EventKind| {
        let wanting = endpoints.iter().filter(move |endpoint| endpoint.wants(event));
        wanting.map(move |endpoint| message(endpoint, event))
    };
    let messages = events.iter().copied().flat_map(of_event);
    try_join_all(messages.map(|due| app.start_webhook(due, Duration::ZERO))).await.map(drop)
}
