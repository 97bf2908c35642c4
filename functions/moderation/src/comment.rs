//! Pins, approval, rejection and reports of one comment.

use serde::Deserialize;
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::comment::Comment;
use shared::domain::rate_limit::RateClass;
use shared::domain::rejection::{Grounds, MAX_NOTE, RejectionReason};
use shared::domain::report::Report;
use shared::domain::time::Timestamp;
use shared::domain::viewer::{Moderator, Viewer};
use shared::domain::visible;
use shared::error::{Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::resource::{Data, UserResource};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;
use shared::store::log::By;
use shared::store::moderation::{Decided, Verdict};

const MAX_REPORTS: usize = 1_000;

/// POST `comments/{id}/pin`
pub(crate) async fn pin(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, comment) = admit_pin_of(app, call, id).await?;
    policy::pinnable(&comment)?;
    if !app.store.pin(&comment, app.by(&moderator)?).await? {
        still_exists(app, &comment).await?;
        return Err(policy::unapproved_pin().into());
    }
    present(app, call, &moderator, &comment).await
}

/// DELETE `comments/{id}/pin`
pub(crate) async fn unpin(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, comment) = admit_pin_of(app, call, id).await?;
    if !app.store.unpin(&comment, app.by(&moderator)?).await? {
        still_exists(app, &comment).await?;
    }
    present(app, call, &moderator, &comment).await
}

/// POST `comments/{id}/approve`
pub(crate) async fn approve(app: &App, call: &Call, id: &str) -> Result<Answer> {
    judge(app, call, id, |_| Verdict::Approve).await
}

/// POST `comments/{id}/reject`
pub(crate) async fn reject(app: &App, call: &Call, id: &str) -> Result<Answer> {
    judge(app, call, id, |input| Verdict::Reject(grounds(input))).await
}

async fn judge(app: &App, call: &Call, id: &str, verdict: impl FnOnce(&mut Input) -> Verdict) -> Result<Answer> {
    let (moderator, comment) = app.admit_moderator_of(call, RateClass::Write, Ok(()), id).await?;
    let mut input = Input::new(call.json()?);
    let seen = input.optional_time("updated_at");
    let verdict = verdict(&mut input);
    input.finish()?;
    decide(app, comment.clone(), &verdict, seen, app.by(&moderator)?).await?;
    let comment = read_again(app, comment).await?;
    present(app, call, &moderator, &comment).await
}

/// Returns the moderator's reason and note. A note without a visible character counts as missing.
pub(crate) fn grounds(input: &mut Input) -> Grounds {
    let reason = input.value("reason").map(|reason| RejectionReason::deserialize(reason).ok());
    if reason == Some(None) {
        input.fail("reason", "The reason must be one of spam, off_topic, offensive, illegal, other.");
    }
    let note = input.optional_text("note", MAX_NOTE);
    input.refuse_unprintable("note", note.as_deref().unwrap_or_default());
    Grounds { reason: reason.flatten(), note: note.filter(|note| !visible::shows_nothing(note)) }
}

/// GET `comments/{id}/reports`: the newest [`MAX_REPORTS`], newest first.
pub(crate) async fn reports(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (_, comment) = app.admit_moderator_of(call, RateClass::Read, Ok(()), id).await?;
    present_reports(app, &comment).await
}

/// POST `comments/{id}/reports/dismiss`
pub(crate) async fn dismiss(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, comment) = app.admit_moderator_of(call, RateClass::Write, Ok(()), id).await?;
    decide(app, comment.clone(), &Verdict::Dismiss, None, app.by(&moderator)?).await?;
    present_reports(app, &read_again(app, comment).await?).await
}

/// Applies a decision, unless the comment is gone or its text has changed since the moderator saw it.
pub(crate) async fn decide(
    app: &App,
    comment: Comment,
    verdict: &Verdict,
    seen: Option<Timestamp>,
    by: By<'_>,
) -> Result<()> {
    match app.store.decide(comment, verdict, seen, by).await? {
        Decided::Done => Ok(()),
        Decided::Edited => Err(Refusal::CommentChanged.into()),
        Decided::Gone => Err(Refusal::NotFound.into()),
    }
}

/// Returns the comment's current state. If it was deleted after the decision, which is already stored and logged,
/// returns `comment`.
async fn read_again(app: &App, comment: Comment) -> Result<Comment> {
    let now = app.store.comment(comment.id, Reading::Consistent).await?;
    Ok(now.filter(|now| !now.is_placeholder).unwrap_or(comment))
}

async fn still_exists(app: &App, comment: &Comment) -> Result<()> {
    let now = app.store.comment_with_ancestors(comment.id, Reading::Consistent).await?.ok_or(Refusal::NotFound)?;
    Ok(policy::exists(&now.comment)?)
}

async fn admit_pin_of(app: &App, call: &Call, id: &str) -> Result<(Moderator, Comment)> {
    let exists = policy::feature(app.config.features.pins);
    let (moderator, comment) = app.admit_moderator_of(call, RateClass::Write, exists, id).await?;
    policy::pin(&app.config, &moderator, &comment)?;
    Ok((moderator, comment))
}

async fn present(app: &App, call: &Call, viewer: &Viewer, comment: &Comment) -> Result<Answer> {
    let known = app.store.threads_and_visitor_states(std::slice::from_ref(comment), &viewer.owners).await?;
    let (thread, visitor_state) = known.into_values().next().unwrap_or_default();
    let presenter = app.presenter(call, viewer, &thread, &visitor_state);
    Ok(Answer::ok(&Data { data: presenter.present(comment) }))
}

async fn present_reports(app: &App, comment: &Comment) -> Result<Answer> {
    let reports = app.store.reports(comment.id, MAX_REPORTS).await?;
    let data: Vec<_> = reports.into_iter().map(|report| present_report(app, &report, comment)).collect();
    Ok(Answer::ok(&Data { data }))
}

fn present_report(app: &App, report: &Report, comment: &Comment) -> Value {
    let user = |id| UserResource::new(&app.config, Some(id), report.name.clone(), &report.avatar);
    json!({
        "id": report.id,
        "reason": report.reason,
        "status": report.status(&comment.resolutions),
        "created_at": report.created_at,
        "user": report.user.map(user),
    })
}
