//! POST `comments/{id}/like`.

use serde_json::json;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::error::{Refusal, Result};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::store::reactions::Liked;

pub(crate) async fn toggle(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let guests = &app.config.guests;
    let find = super::comment_from_path(app, call, id);
    let (viewer, (found, visitor_state)) =
        app.admit_with(call, RateClass::Write, Ok(()), AuthRequirement::GuestsIf(guests.likes), find).await?;
    let found = super::seen(app, &viewer, found).await?;
    call.comment_key()?;
    let bound = super::bound(app, call, &viewer, "likes", id, guests.likes_per_ip);
    match app.store.toggle_like(&found.comment, visitor_state, &viewer.owners.reactions, bound).await? {
        Liked::Now(liked, likes_count) => Ok(Answer::ok(&json!({ "liked": liked, "likes_count": likes_count }))),
        Liked::Gone => Err(Refusal::NotFound.into()),
        Liked::TooMany => Err(Refusal::RateLimited { after: super::RETRY_AFTER, limit: None }.into()),
    }
}
