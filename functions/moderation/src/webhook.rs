//! Webhooks: GET and POST `moderation/webhooks`, PATCH and DELETE `moderation/webhooks/{id}`, POST `…/test`, GET
//! `…/deliveries`, POST `…/deliveries/{message}/redeliver`.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use shared::app::App;
use shared::domain::deliveries::DueWebhook;
use shared::domain::ids::{CommentId, hex};
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::viewer::Moderator;
use shared::domain::webhook::{
    Delivery, Endpoint, EndpointId, Event, EventKind, MAX_ENDPOINTS, MessageId, Status, new_secret,
};
use shared::domain::webhook_url;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::{Call, path_id};
use shared::http::resource::Data;
use shared::http::response::Answer;
use shared::policy;

use crate::walk::Walk;

#[derive(Serialize)]
struct EndpointResource {
    id: EndpointId,
    url: String,
    events: Vec<&'static str>,
    enabled: bool,
    /// Present only in the response that creates the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl From<&Endpoint> for EndpointResource {
    fn from(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id,
            url: endpoint.url.clone(),
            events: endpoint.events.iter().map(|event| event.name()).collect(),
            enabled: endpoint.enabled,
            secret: None,
        }
    }
}

#[derive(Serialize)]
struct DeliveryResource {
    id: MessageId,
    event: &'static str,
    comment_id: Option<CommentId>,
    status: Status,
    attempts: Vec<AttemptResource>,
}

#[derive(Serialize)]
struct AttemptResource {
    at: Timestamp,
    status: Option<u16>,
    ms: u64,
}

impl From<&Delivery> for DeliveryResource {
    fn from(delivery: &Delivery) -> Self {
        let attempts = delivery.attempts.iter().map(|attempt| AttemptResource {
            at: attempt.at,
            status: attempt.status,
            ms: attempt.took,
        });
        Self {
            id: delivery.message.clone(),
            event: delivery.event.kind.name(),
            comment_id: delivery.event.subject.as_ref().map(|subject| subject.comment),
            status: delivery.status,
            attempts: attempts.collect(),
        }
    }
}

/// GET `moderation/webhooks`
pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    admit(app, call, RateClass::Read).await?;
    let endpoints = app.store.endpoints().await?;
    Ok(Answer::ok(&Data { data: endpoints.iter().map(EndpointResource::from).collect::<Vec<_>>() }))
}

/// POST `moderation/webhooks`
pub(crate) async fn create(app: &App, call: &Call) -> Result<Answer> {
    let moderator = admit(app, call, RateClass::Write).await?;
    let fields = Fields::read(app, call, true)?;
    let secret = new_secret(&app.random);
    let endpoint = Endpoint {
        id: EndpointId(0),
        version: 0,
        url: fields.url.unwrap_or_default(),
        events: fields.events.unwrap_or_default(),
        enabled: fields.enabled.unwrap_or(true),
        secret: app.webhook_seal().close(secret.expose()),
        failing_since: None,
        warning_due: false,
    };
    let added = app.store.add_endpoint(endpoint, app.by(&moderator)?).await?;
    let too_many = || FieldErrors::one("url", format!("There can be at most {MAX_ENDPOINTS} webhooks."));
    let mut data = EndpointResource::from(&added.ok_or_else(too_many)?);
    data.secret = Some(secret.expose().to_owned());
    Ok(Answer::created(&Data { data }))
}

/// PATCH `moderation/webhooks/{id}`. Omitted fields keep their values.
pub(crate) async fn update(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let moderator = admit(app, call, RateClass::Write).await?;
    let endpoint = find(app, id).await?;
    let fields = Fields::read(app, call, false)?;
    let change = |endpoint: &mut Endpoint| {
        endpoint.move_to(fields.url.clone().unwrap_or_else(|| endpoint.url.clone()));
        endpoint.events = fields.events.clone().unwrap_or_else(|| endpoint.events.clone());
        endpoint.enable(fields.enabled.unwrap_or(endpoint.enabled));
    };
    let changed = app.store.edit_endpoint(endpoint.id, app.by(&moderator)?, change).await?;
    let changed = changed.ok_or(Refusal::NotFound)?;
    Ok(Answer::ok(&Data { data: EndpointResource::from(&changed) }))
}

/// DELETE `moderation/webhooks/{id}`
pub(crate) async fn destroy(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let moderator = admit(app, call, RateClass::Write).await?;
    let endpoint = find(app, id).await?;
    let removed = app.store.remove_endpoint(endpoint.id, app.by(&moderator)?).await?;
    if removed { Ok(Answer::no_content()) } else { Err(Refusal::NotFound.into()) }
}

/// POST `moderation/webhooks/{id}/test`
pub(crate) async fn test(app: &App, call: &Call, id: &str) -> Result<Answer> {
    admit(app, call, RateClass::Write).await?;
    let endpoint = find_enabled(app, id).await?;
    let now = app.clock.now();
    let cause = hex(&app.random.bytes::<16>());
    let message = MessageId::new(endpoint.id, EventKind::Test, &cause, now);
    let new = Delivery::new(message, Event { kind: EventKind::Test, at: now, subject: None }, now);
    send(app, endpoint.id, &new.message, Some(&new)).await
}

/// GET `moderation/webhooks/{id}/deliveries`
pub(crate) async fn deliveries(app: &App, call: &Call, id: &str) -> Result<Answer> {
    admit(app, call, RateClass::Read).await?;
    let endpoint = find(app, id).await?;
    let walk = Walk::new(app, call, format!("webhook {}", endpoint.id))?;
    let (deliveries, cursors) = app.store.deliveries(endpoint.id, walk.cursor, walk.per_page).await?;
    Ok(walk.answer(call, deliveries.iter().map(DeliveryResource::from).collect(), cursors)?)
}

/// POST `moderation/webhooks/{id}/deliveries/{message}/redeliver`
pub(crate) async fn redeliver(app: &App, call: &Call, id: &str, message: &str) -> Result<Answer> {
    admit(app, call, RateClass::Write).await?;
    let endpoint = find_enabled(app, id).await?;
    let message: MessageId = message.parse().map_err(|_| Refusal::NotFound)?;
    send(app, endpoint.id, &message, None).await
}

/// Sends a delivery again. Creates a missing delivery from `new`.
async fn send(app: &App, endpoint: EndpointId, message: &MessageId, new: Option<&Delivery>) -> Result<Answer> {
    let now = app.clock.now();
    let send_again = |delivery: &mut Delivery| delivery.send_again(now);
    let changed = app.store.change_delivery(endpoint, message, new, send_again).await?;
    let (delivery, ()) = changed.ok_or(Refusal::NotFound)?;
    let event = delivery.event.clone();
    let due = DueWebhook { webhook: endpoint, message: message.clone(), event };
    app.start_webhook(due, Duration::ZERO).await?;
    Ok(Answer::json(StatusCode::ACCEPTED, &Data { data: DeliveryResource::from(&delivery) }))
}

/// Admits a moderator, if webhooks are on.
async fn admit(app: &App, call: &Call, class: RateClass) -> Result<Moderator> {
    let exists = policy::feature(app.config.webhooks.on);
    app.admit_moderator(call, class, exists).await
}

async fn find(app: &App, id: &str) -> Result<Endpoint> {
    let id = path_id::<EndpointId>(id)?;
    app.store.endpoint(id).await?.ok_or_else(|| Refusal::NotFound.into())
}

async fn find_enabled(app: &App, id: &str) -> Result<Endpoint> {
    let endpoint = find(app, id).await?;
    if endpoint.enabled { Ok(endpoint) } else { Err(FieldErrors::one("enabled", "The webhook is disabled.").into()) }
}

struct Fields {
    url: Option<String>,
    events: Option<BTreeSet<EventKind>>,
    enabled: Option<bool>,
}

impl Fields {
    /// `required`: whether `url` and `events` must be present.
    fn read(app: &App, call: &Call, required: bool) -> Result<Self, Refusal> {
        let mut input = Input::new(call.json()?);
        let url = input.optional_text("url", webhook_url::MAX_URL);
        let url = url.and_then(|url| match webhook_url::parse(&url, app.config.webhooks.private) {
            Ok(url) => Some(url),
            Err(reason) => {
                input.fail("url", reason);
                None
            }
        });
        if required && input.value("url").is_none() {
            input.fail("url", "The url field is required.");
        }
        let events = input.value("events").map(events).transpose();
        let events = events.unwrap_or_else(|reason| {
            input.fail("events", reason);
            None
        });
        if required && input.value("events").is_none() {
            input.fail("events", "The events field is required.");
        }
        let enabled = input.value("enabled").is_some().then(|| input.flag("enabled"));
        input.finish()?;
        Ok(Self { url, events, enabled })
    }
}

fn events(value: &Value) -> Result<BTreeSet<EventKind>, String> {
    let names = || EventKind::OF_COMMENTS.map(EventKind::name).join(", ");
    let named = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let events: Option<BTreeSet<_>> = named.iter().map(|name| name.as_str().and_then(EventKind::parse)).collect();
    let events = events.filter(|events| !events.is_empty());
    events.ok_or_else(|| format!("The events must be a list of at least one of {}.", names()))
}
