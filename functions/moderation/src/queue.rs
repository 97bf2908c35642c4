//! GET `moderation/comments`: comments that are pending, reported or rejected.

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::list::PagePosition;
use shared::domain::rate_limit::RateClass;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, Envelope};
use shared::http::request::Call;
use shared::http::response::{Answer, Sharing};
use shared::policy;
use shared::store::moderation::QueueState;

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let config = &app.config;
    let viewer = app.admit(call, RateClass::Read, Ok(()), AuthRequirement::User).await?;
    policy::moderate(&viewer)?;
    let state = state(call)?;
    let signer = CursorSigner::new(&config.visitor_salt, format!("queue {}", state.name()));
    let paging = pagination::paging(call, &config.lists, Some(&signer))?;
    let cursor = match paging.position {
        PagePosition::Cursor(cursor) => cursor,
        // Queues are not counted, so they have no numbered pages.
        PagePosition::Page(_) => None,
    };
    let (comments, cursors) = app.store.queue(state, cursor, paging.per_page).await?;
    let known = app.store.threads_and_visitor_states(&comments, &viewer.visitor).await?;
    let data: Vec<_> = comments
        .iter()
        .filter_map(|comment| {
            let (thread, visitor_state) = known.get(&comment.thread)?;
            let mut resource = app.presenter(call, &viewer, thread, visitor_state).present(comment);
            resource.reports_count = Some(comment.reports);
            Some(resource)
        })
        .collect();
    let sign = |cursor| signer.sign(cursor);
    let (next, previous) = (cursors.next.map(sign), cursors.previous.map(sign));
    Ok(Answer::ok(&Envelope::cursor(call, data, paging.per_page, next, previous))
        .shared(Sharing::Private)
        .in_the_language_asked_for())
}

/// Pending comments by default.
fn state(call: &Call) -> Result<QueueState, Refusal> {
    let name = call.parameter("state").unwrap_or("pending");
    QueueState::parse(name)
        .ok_or_else(|| FieldErrors::one("state", "The state must be one of pending, reported, rejected."))
}
