//! Pins, approval, rejection and reports of one comment.

use serde_json::json;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::comment::Comment;
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::request::Call;
use shared::http::resource::{CommentPresenter, Data, UserResource};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;

/// Reports of one comment that are listed.
const MAX_REPORTS: usize = 1_000;

pub(crate) async fn pin(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, comment) = pinnable(app, call, id).await?;
    if !comment.is_approved() {
        return Err(not_approved().into());
    }
    if !app.store.pin(&comment, app.clock.now().0).await? {
        return match app.store.find(comment.id, Reading::Consistent).await? {
            None => Err(Refusal::NotFound.into()),
            Some(_) => Err(not_approved().into()),
        };
    }
    present(app, call, &viewer, &comment).await
}

fn not_approved() -> Refusal {
    FieldErrors::one("comment", "Only approved comments can be pinned.")
}

pub(crate) async fn unpin(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, comment) = pinnable(app, call, id).await?;
    app.store.unpin(&comment).await?;
    present(app, call, &viewer, &comment).await
}

async fn pinnable(app: &App, call: &Call, id: &str) -> Result<(Viewer, Comment)> {
    let exists = if app.config.features.pins { Ok(()) } else { Err(Refusal::NotFound) };
    let (viewer, comment) = moderated(app, call, RateClass::Write, exists, id).await?;
    if comment.is_top_level() { Ok((viewer, comment)) } else { Err(Refusal::CannotPinReply.into()) }
}

pub(crate) async fn approve(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, comment) = moderated(app, call, RateClass::Write, Ok(()), id).await?;
    let embedded = app.config.lists.replies_per_parent;
    let comment = app.store.approve(comment, &app.clock, embedded).await?;
    present(app, call, &viewer, &comment.ok_or(Refusal::NotFound)?).await
}

pub(crate) async fn reject(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, comment) = moderated(app, call, RateClass::Write, Ok(()), id).await?;
    let embedded = app.config.lists.replies_per_parent;
    let comment = app.store.reject(comment, &app.clock, embedded).await?;
    present(app, call, &viewer, &comment.ok_or(Refusal::NotFound)?).await
}

/// The newest first, not all of very many.
pub(crate) async fn reports(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (_, comment) = moderated(app, call, RateClass::Read, Ok(()), id).await?;
    Ok(Answer::ok(&Data { data: rows(app, &comment).await? }))
}

pub(crate) async fn dismiss(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (_, comment) = moderated(app, call, RateClass::Write, Ok(()), id).await?;
    let comment = app.store.dismiss_reports(comment, &app.clock).await?.ok_or(Refusal::NotFound)?;
    Ok(Answer::ok(&Data { data: rows(app, &comment).await? }))
}

async fn rows(app: &App, comment: &Comment) -> Result<Vec<serde_json::Value>> {
    let reports = app.store.reports(comment.id, MAX_REPORTS).await?;
    let row = |report: shared::domain::report::Report| {
        json!({
            "id": report.id,
            "reason": report.reason,
            "status": report.status(comment),
            "created_at": Timestamp(report.created_at),
            "user": report.user.map(|user| UserResource {
                id: Some(user),
                name: report.name.clone(),
                avatar: report.avatar.url(),
            }),
        })
    };
    Ok(reports.into_iter().map(row).collect())
}

/// The comment, when a moderator asks.
async fn moderated(
    app: &App,
    call: &Call,
    class: RateClass,
    exists: Result<(), Refusal>,
    id: &str,
) -> Result<(Viewer, Comment)> {
    let find = async {
        let id = id.parse().map_err(|()| Refusal::NotFound)?;
        Ok(app.store.find(id, Reading::Consistent).await?.ok_or(Refusal::NotFound)?)
    };
    let (viewer, found) = app.admit_with(call, class, exists, AuthRequirement::User, find).await?;
    if !policy::may_see(&viewer, &found.comment, &found.ancestors) {
        return Err(Refusal::NotFound.into());
    }
    policy::moderate(&viewer)?;
    Ok((viewer, found.comment))
}

async fn present(app: &App, call: &Call, viewer: &Viewer, comment: &Comment) -> Result<Answer> {
    let known = app.store.threads_and_visitor_states(std::slice::from_ref(comment), &viewer.visitor).await?;
    let (thread, visitor_state) = known.into_values().next().unwrap_or_default();
    let presenter = CommentPresenter {
        config: &app.config,
        viewer,
        thread: &thread,
        visitor_state: &visitor_state,
        now: app.clock.now(),
        language: call.language(),
    };
    Ok(Answer::ok(&Data { data: presenter.present(comment) }))
}
