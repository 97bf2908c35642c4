//! POST `comments/{id}/report`.

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::domain::report::Report;
use shared::domain::time::Timestamp;
use shared::domain::viewer::Viewer;
use shared::domain::visible;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::{Input, MAX_REPORT_DETAILS};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::idempotency::PriorResult;
use shared::store::reactions::{NewReport, Reported};

pub(crate) async fn report(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let exists = policy::feature(app.config.features.reporting);
    let idempotency = app.idempotency(call);
    let prior = app.store.prior_result::<()>(idempotency.as_ref().ok().and_then(Option::as_ref));
    let read = async { Ok(tokio::join!(super::comment_from_path(app, call, id), prior)) };
    let (viewer, (found, prior)) =
        app.admit_with(call, RateClass::Write, exists, AuthRequirement::GuestsIf(true), read).await?;
    let (found, visitor_state) = found?;
    let found = super::seen(app, &viewer, found).await?;
    call.comment_key()?;
    let reason = reason(app, call)?;
    let idempotency = idempotency?;
    match prior? {
        PriorResult::Nothing => {}
        PriorResult::Same(()) => return Ok(done()),
        PriorResult::Other => return Err(FieldErrors::used_key().into()),
    }
    let bound = super::bound(app, call, &viewer, "reports", id, app.config.guests.reports_per_ip);
    let new = NewReport {
        comment: found.comment,
        report: new_report(&viewer, reason),
        visitor_state,
        bound: bound.as_ref(),
        idempotency: idempotency.as_ref(),
    };
    match app.store.report(&app.ids, new).await? {
        Reported::Done => Ok(done()),
        Reported::Already => match app.store.prior_result::<()>(idempotency.as_ref()).await? {
            PriorResult::Same(()) => Ok(done()),
            _ => Err(Refusal::AlreadyReported.into()),
        },
        Reported::Gone => Err(Refusal::NotFound.into()),
        Reported::TooMany => Err(Refusal::RateLimited { after: super::RETRY_AFTER, limit: None }.into()),
    }
}

/// Returns a report without its id and time, which the store sets.
fn new_report(viewer: &Viewer, reason: String) -> Report {
    let user = viewer.user.as_ref();
    Report {
        id: 0,
        reason,
        created_at: Timestamp(0),
        visitor: viewer.owners.reactions.clone(),
        user: viewer.user_id(),
        name: user.map(|user| user.name.clone()).unwrap_or_default(),
        avatar: user.map(|user| user.avatar.clone()).unwrap_or_default(),
    }
}

fn done() -> Answer {
    Answer::created(&json!({ "reported": true }))
}

/// Returns the reason as stored: `reason`, or `reason: details`.
fn reason(app: &App, call: &Call) -> Result<String, Refusal> {
    let reasons = &app.config.report_reasons;
    let mut input = Input::of_reader(call.json()?, call.language());
    let reason = input.value("reason").and_then(Value::as_str).map(str::to_owned);
    let reason = reason.filter(|reason| reasons.contains(reason));
    if reason.is_none() {
        input.fail_as("reason", |errors, question| errors.reason(question, &reasons.join(", ")));
    }
    let details = input.optional_text("additional_details", MAX_REPORT_DETAILS);
    input.refuse_unprintable("additional_details", details.as_deref().unwrap_or_default());
    let reason = input.finish_with(reason)?;
    Ok(match details.as_deref().map(str::trim).filter(|details| !visible::shows_nothing(details)) {
        Some(details) => format!("{reason}: {details}"),
        None => reason,
    })
}
