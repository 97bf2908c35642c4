//! GET `moderation/comments`: what waits for a moderator, was reported, or was rejected.

use shared::app::App;
use shared::app::admission::Door;
use shared::domain::list::Place;
use shared::domain::rate_limit::Kind;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::cursor::Seal;
use shared::http::pagination::{self, Envelope};
use shared::http::request::Call;
use shared::http::resource::Light;
use shared::http::response::{Answer, Sharing};
use shared::policy;
use shared::store::moderation::QueueState;

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let config = &app.config;
    let viewer = app.admit(call, Kind::Read, Ok(()), Door::Users).await?;
    policy::moderate(&viewer)?;
    let state = state(call)?;
    let seal = Seal::new(&config.visitor_salt, format!("queue {}", state.name()));
    let paging = pagination::paging(call, &config.lists, Some(&seal))?;
    let cursor = match paging.place {
        Place::Cursor(cursor) => cursor,
        // Always a walk: nobody counts a queue.
        Place::Page(_) => None,
    };
    let (comments, neighbours) = app.store.queue(state, cursor, paging.per_page).await?;
    let known = app.store.threads_and_visits(&comments, &viewer.visitor).await?;
    let now = app.clock.now();
    let data: Vec<_> = comments
        .iter()
        .filter_map(|comment| {
            let (thread, visit) = known.get(&comment.thread)?;
            let light = Light { config, viewer: &viewer, thread, visit, now, language: call.language() };
            let mut resource = light.show(comment);
            resource.reports_count = Some(comment.reports);
            Some(resource)
        })
        .collect();
    let close = |cursor| seal.close(cursor);
    let (next, previous) = (neighbours.next.map(close), neighbours.previous.map(close));
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
