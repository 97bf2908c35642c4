//! GET, PUT and DELETE `me/notifications`: a member's email notifications.

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::email::masked;
use shared::domain::mail_keys::Recipient;
use shared::domain::notifications::{Address, Asker, Enrolment, NotificationState, Status, Wants};
use shared::domain::rate_limit::RateClass;
use shared::domain::texts::Errors;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;

/// GET `me/notifications`
pub(crate) async fn show(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Read, exists(app), AuthRequirement::User).await?;
    let recipient = recipient(&viewer)?;
    let mut state = app.store.notification_state(&recipient).await?;
    if app.is_stopped(&recipient, &state.enrolment).await? {
        // The owner of the address unsubscribed it. The member's state is updated only when the next email is due.
        state.stop(app.clock.now(), None);
    }
    Ok(Answer::ok(&resource(app, &state.enrolment)))
}

/// PUT `me/notifications`
pub(crate) async fn update(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Write, exists(app), AuthRequirement::User).await?;
    let recipient = recipient(&viewer)?;
    let mut input = Input::new(call.json()?);
    let wants = Wants {
        replies: input.flag("replies"),
        mentions: input.flag("mentions"),
        own_records: input.flag("own_records"),
    };
    input.finish()?;
    let (mut enrolment, now) = (app.store.notification_state(&recipient).await?.enrolment, app.clock.now());
    enrolment.reopen(now);
    let unknown = || FieldErrors::one("email", Errors::of(call.language()).no_address());
    let address = address(app, call, &viewer, &enrolment).or_else(|| enrolment.given_address().cloned());
    let address = address.ok_or_else(unknown)?;
    let network = app.mail_keys().network(call.network);
    // The response reveals nothing about a claimed address, because only the network's count can refuse it.
    if !address.confirmed && enrolment.status != Status::On && !app.count_asking(&network, &address).await? {
        return Err(Refusal::RateLimited { after: app.until(app.next_hour()).as_secs(), limit: None }.into());
    }
    let name = app.mail_keys().address(&address.sealed).unwrap_or_default();
    let asker = Asker::new(name, address.clone(), network, None);
    let wait = app.config.mail.as_ref().map(|mail| mail.wait).unwrap_or_default();
    let choose = |state: &mut NotificationState| {
        state.enrolment.choose(wants, now);
        if address.confirmed {
            state.enrol(address.clone(), now, wait);
        } else {
            state.claim_address(asker.clone(), now, wait);
        }
    };
    let (state, ()) = app.store.change_notification_state(&recipient, choose).await?;
    app.start_delivery(&recipient, &state).await?;
    Ok(Answer::ok(&resource(app, &state.enrolment)))
}

/// DELETE `me/notifications`. Deleting one's address always works: in read-only mode, for banned members, and after
/// subscriptions were turned off.
pub(crate) async fn destroy(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Forget, Ok(()), AuthRequirement::User).await?;
    app.store.change_notification_state(&recipient(&viewer)?, NotificationState::forget).await?;
    Ok(Answer::no_content())
}

fn exists(app: &App) -> Result<(), Refusal> {
    policy::feature(app.config.features.subscriptions && app.config.mail.is_some())
}

fn recipient(viewer: &Viewer) -> Result<Recipient, Refusal> {
    viewer.user_id().map(Recipient::from).ok_or(Refusal::Unauthenticated)
}

/// Returns the address of the account or of the token. An address that the member has already confirmed needs no new
/// confirmation.
fn address(app: &App, call: &Call, viewer: &Viewer, enrolment: &Enrolment) -> Option<Address> {
    let address = app.member_address(call, viewer.user.as_ref()?)?;
    let is_proven = || app.mail_keys().address(&address.sealed).is_some_and(|name| enrolment.has_proven(&name));
    Some(Address { confirmed: address.confirmed || is_proven(), ..address })
}

fn resource(app: &App, enrolment: &Enrolment) -> Value {
    let email = enrolment.given_address().and_then(|address| app.mail_keys().open(&address.sealed));
    let state = match enrolment.status {
        Status::New | Status::Off => "off",
        Status::Asked => "asked",
        Status::On => "on",
        Status::Bounced => "bounced",
    };
    let wants = enrolment.wants();
    json!({ "data": {
        "email": email.map(|email| masked(&email)),
        "state": state,
        "replies": wants.replies,
        "mentions": wants.mentions,
        "own_records": wants.own_records,
    } })
}
