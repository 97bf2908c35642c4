//! GET `moderation/comments`: what waits for a moderator, was reported, or was rejected.

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::list::Place;
use shared::domain::rate_limit::RateClass;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::cursor::CursorSigner;
use shared::http::pagination::{self, Envelope};
use shared::http::request::Call;
use shared::http::resource::CommentPresenter;
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
    let cursor = match paging.place {
        Place::Cursor(cursor) => cursor,
        // Always a walk: nobody counts a queue.
        Place::Page(_) => None,
    };
    let (comments, cursors) = app.store.queue(state, cursor, paging.per_page).await?;
    let known = app.store.threads_and_visitor_states(&comments, &viewer.visitor).await?;
    let now = app.clock.now();
    let data: Vec<_> = comments
        .iter()
        .filter_map(|comment| {
            let (thread, visitor_state) = known.get(&comment.thread)?;
            let presenter =
                CommentPresenter { config, viewer: &viewer, thread, visitor_state, now, language: call.language() };
            let mut resource = presenter.present(comment);
            resource.reports_count = Some(comment.reports);
            Some(resource)
        })
        .collect();
    let close = |cursor| signer.sign(cursor);
    let (next, previous) = (cursors.next.map(close), cursors.previous.map(close));
    Ok(Answer::ok(&Envelope::cursor(call, data, paging.per_page, next, previous))
        .shared(Sharing::Private)
        .in_the_language_asked_for())
}

/// What waits, unless the request says otherwise.
fn state(call: &Call) -> Result<QueueState, Refusal> {
    let name = call.parameter("state").unwrap_or("pending");
    QueueState::parse(name)
        .ok_or_else(|| FieldErrors::one("state", "The state must be one of pending, reported, rejected."))
}
