//! GET `moderation/log`: what moderators did.

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::log::LogEntry;
use shared::domain::rate_limit::RateClass;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;

use crate::walk::Walk;

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Read, Ok(()), AuthRequirement::Moderator).await?;
    policy::moderate(&viewer)?;
    let walk = Walk::new(app, call, "log".to_owned())?;
    let (entries, cursors) = app.store.log(walk.cursor, walk.per_page).await?;
    Ok(walk.answer(call, entries.iter().map(present).collect(), cursors)?)
}

fn present(entry: &LogEntry) -> Value {
    json!({
        "id": entry.id,
        "created_at": entry.created_at(),
        "moderator": { "id": entry.moderator, "name": entry.name },
        "action": entry.action,
        "comment_id": entry.comment,
        "user_id": entry.user,
        "thread": entry.thread.as_ref().map(|thread| format!("{}/{}", thread.kind, thread.record)),
    })
}
