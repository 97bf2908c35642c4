//! GET `moderation/log`: what moderators did.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::app::App;
use shared::domain::ids::UserId;
use shared::domain::log::LogEntry;
use shared::domain::rate_limit::RateClass;
use shared::domain::viewer::Viewer;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;

use crate::walk::Walk;

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let moderator = app.admit_moderator(call, RateClass::Read, Ok(())).await?;
    let walk = Walk::new(app, call, "log".to_owned())?;
    let (entries, cursors) = app.store.log(walk.cursor, walk.per_page).await?;
    let mut envelope = walk.envelope(call, entries.iter().map(present).collect(), cursors)?;
    envelope.names = Some(names(app, &moderator, &entries).await?);
    Ok(Answer::ok(&envelope))
}

/// The present names of the users in these entries.
async fn names(app: &App, viewer: &Viewer, entries: &[LogEntry]) -> Result<BTreeMap<UserId, String>> {
    let mut ids: BTreeSet<UserId> = entries.iter().flat_map(|entry| [entry.moderator, entry.user]).flatten().collect();
    // The viewer's row was read before.
    let own = viewer.user.as_ref().filter(|user| ids.remove(&user.id));
    let mut names = app.store.names_of(ids).await?;
    names.extend(own.map(|user| (user.id, user.name.clone())));
    Ok(names)
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
