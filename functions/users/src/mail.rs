//! GET and POST `mail/{token}`: the pages that links in emails lead to. GET only describes the link's action, because
//! mail servers follow links. The buttons on the page perform it.

use std::convert::Infallible;

use futures_util::stream;
use http::{StatusCode, header};
use maud::html;
use multer::Multipart;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::mail_keys::{Link, Purpose, Recipient};
use shared::domain::notifications::NotificationState;
use shared::domain::rate_limit::RateClass;
use shared::domain::texts::{Mails, Pages};
use shared::error::{FieldErrors, Result};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::http::{page, quality};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Confirm,
    Mute,
    Stop,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Mute => "mute",
            Self::Stop => "stop",
        }
    }

    /// Returns the buttons of a link's page.
    fn offered(purpose: &Purpose) -> Vec<Self> {
        match purpose {
            Purpose::Confirm { .. } => vec![Self::Confirm, Self::Stop],
            Purpose::Stop { thread: Some(_) } => vec![Self::Mute, Self::Stop],
            Purpose::Stop { thread: None } => vec![Self::Stop],
        }
    }
}

pub(crate) async fn show(app: &App, call: &Call, token: &str) -> Result<Answer> {
    app.admit(call, RateClass::Read, Ok(()), AuthRequirement::None).await?;
    let texts = Pages::of(call.language());
    let Some(link) = app.mail_keys().link(token, app.clock.now()) else {
        return Ok(page(call, StatusCode::NOT_FOUND, texts.no_link(), &[]));
    };
    Ok(question(call, StatusCode::OK, &link))
}

/// Returns the page that describes the link's action, with its buttons.
fn question(call: &Call, status: StatusCode, link: &Link) -> Answer {
    let texts = Pages::of(call.language());
    let asks = match link.purpose {
        Purpose::Confirm { .. } => texts.asks_to_confirm(),
        Purpose::Stop { .. } => texts.asks_to_stop(),
    };
    page(call, status, asks, &Action::offered(&link.purpose))
}

/// Performs the action of a link. Not rate-limited, so that neither other traffic from a network nor read-only mode can
/// block an unsubscription. An invalid token costs a hash. A valid one costs a few reads, plus writes if something
/// changes, which happens at most once a minute for repeated unsubscriptions.
pub(crate) async fn act(app: &App, call: &Call, token: &str) -> Result<Answer> {
    let texts = Pages::of(call.language());
    let Some(link) = app.mail_keys().link(token, app.clock.now()) else {
        return Ok(page(call, StatusCode::NOT_FOUND, texts.no_link(), &[]));
    };
    let Some(action) = action(&fields(call).await, &link) else { return not_offered(call, &link) };
    let says = match (action, &link.purpose) {
        (Action::Confirm, Purpose::Confirm { asker, .. }) if confirm(app, &link.recipient, asker).await? => {
            texts.confirmed()
        }
        (Action::Confirm, _) => texts.nothing_to_confirm(),
        (Action::Mute, Purpose::Stop { thread: Some(thread) }) => {
            app.store.change_notification_state(&link.recipient, |state| state.enrolment.mute(thread)).await?;
            texts.muted()
        }
        (_, purpose) => {
            let confirmed_address_hash = match purpose {
                Purpose::Confirm { asker, .. } => Some(asker.as_str()),
                Purpose::Stop { .. } => None,
            };
            app.stop_mails(&link.recipient, confirmed_address_hash).await?;
            texts.stopped()
        }
    };
    Ok(page(call, StatusCode::OK, says, &[]))
}

/// Returns the page with the buttons to a browser, and the error to a program.
fn not_offered(call: &Call, link: &Link) -> Result<Answer> {
    let accepted = call.header(header::ACCEPT).unwrap_or_default();
    if quality::members(accepted).any(|(kind, weight)| kind == "text/html" && weight > 0) {
        return Ok(question(call, StatusCode::UNPROCESSABLE_ENTITY, link));
    }
    Err(FieldErrors::one("action", "The action must be one that the page offers.").into())
}

/// Confirms this request. Returns false if it no longer exists, or if the owner of the address unsubscribed it.
async fn confirm(app: &App, recipient: &Recipient, asker: &str) -> Result<bool> {
    let now = app.clock.now();
    let wait = app.config.mail.as_ref().map(|mail| mail.wait).unwrap_or_default();
    let enrolment = app.store.notification_state(recipient).await?.enrolment;
    if let Some(address) = enrolment.given_address()
        && app.is_stopped_at(recipient, &enrolment, address).await?
    {
        return Ok(false);
    }
    let change = |state: &mut NotificationState| {
        let before = state.clone();
        let is_done = state.confirm(asker, now, wait);
        (is_done, is_done && (*state != before || state.is_overdue(now)))
    };
    let (state, (is_done, needs_message)) = app.store.change_notification_state(recipient, change).await?;
    // The link may be older than the setting, and nothing is sent while email is off.
    if needs_message && app.config.mail.is_some() {
        app.start_delivery(recipient, &state).await?;
    }
    Ok(is_done)
}

/// Returns the action of the pressed button, or of a mail program's one-click unsubscribe (RFC 8058).
fn action(fields: &[(String, String)], link: &Link) -> Option<Action> {
    let is = |name: &str, value: &str| fields.iter().any(|(field, given)| field == name && given == value);
    if is("List-Unsubscribe", "One-Click") {
        return Some(Action::Stop);
    }
    Action::offered(&link.purpose).into_iter().find(|action| is("action", action.name()))
}

/// Returns the fields of a form, in either of the encodings that mail programs send. A malformed form has no fields.
async fn fields(call: &Call) -> Vec<(String, String)> {
    match call.header(header::CONTENT_TYPE).and_then(|kind| multer::parse_boundary(kind).ok()) {
        Some(boundary) => parts(call.body.clone(), boundary).await.unwrap_or_default(),
        None => form_urlencoded::parse(&call.body).into_owned().collect(),
    }
}

async fn parts(body: Vec<u8>, boundary: String) -> multer::Result<Vec<(String, String)>> {
    let body = stream::iter([Ok::<_, Infallible>(body)]);
    let mut parts = Multipart::new(body, boundary);
    let mut fields = Vec::new();
    while let Some(part) = parts.next_field().await? {
        let name = part.name().unwrap_or_default().to_owned();
        fields.push((name, part.text().await?));
    }
    Ok(fields)
}

fn page(call: &Call, status: StatusCode, says: &str, offered: &[Action]) -> Answer {
    let (texts, links) = (Pages::of(call.language()), Mails::of(call.language()));
    let label = |action: &Action| match action {
        Action::Confirm => links.confirm_link(),
        Action::Mute => links.mute(),
        Action::Stop => links.stop(),
    };
    let form = html! {
        @if !offered.is_empty() {
            form method="post" {
                @for action in offered {
                    button name="action" value=(action.name()) { (label(action)) }
                }
            }
        }
    };
    page::of_one_sentence(status, texts.language(), texts.title(), says, &form)
}
