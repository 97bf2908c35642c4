//! GET `moderation/log`: the actions of moderators.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::ids::{CommentId, UserId};
use shared::domain::log::LogEntry;
use shared::domain::rate_limit::RateClass;
use shared::domain::viewer::Viewer;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::store::Reading;

use crate::walk::Walk;

/// Maximum characters of a comment's text in an entry.
const EXCERPT: usize = 80;

pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let moderator = app.admit_moderator(call, RateClass::Read, Ok(())).await?;
    let walk = Walk::new(app, call, "log".to_owned())?;
    let (entries, cursors) = app.store.log(walk.cursor, walk.per_page).await?;
    let (names, excerpts) = try_join(names(app, &moderator, &entries), excerpts(app, &entries)).await?;
    let mut envelope = walk.envelope(call, entries.iter().map(|entry| present(entry, &excerpts)).collect(), cursors)?;
    envelope.names = Some(names);
    Ok(Answer::ok(&envelope))
}

/// Returns the current names of the users in these entries.
async fn names(app: &App, viewer: &Viewer, entries: &[LogEntry]) -> Result<BTreeMap<UserId, String>> {
    let mut ids: BTreeSet<UserId> = entries.iter().flat_map(|entry| [entry.moderator, entry.user]).flatten().collect();
    // The viewer's item has already been read.
    let own = viewer.user.as_ref().filter(|user| ids.remove(&user.id));
    let mut names = app.store.names_of(ids).await?;
    names.extend(own.map(|user| (user.id, user.name.clone())));
    Ok(names)
}

/// Returns the writers and the first words of the comments in these entries, as they are now.
async fn excerpts(app: &App, entries: &[LogEntry]) -> Result<BTreeMap<CommentId, Value>> {
    let ids: BTreeSet<CommentId> = entries.iter().filter_map(|entry| entry.comment).collect();
    let comments = app.store.comments_by_id(ids.into_iter().collect(), Reading::Eventual).await?;
    let comments = comments.iter().filter(|comment| !comment.is_placeholder);
    let words = |body: &str| body.chars().take(EXCERPT).collect::<String>();
    Ok(comments.map(|comment| (comment.id, json!({ "name": comment.name, "text": words(&comment.body) }))).collect())
}

fn present(entry: &LogEntry, excerpts: &BTreeMap<CommentId, Value>) -> Value {
    json!({
        "id": entry.id,
        "created_at": entry.created_at(),
        "moderator": { "id": entry.moderator, "name": entry.name },
        "action": entry.action,
        "comment_id": entry.comment,
        "user_id": entry.user,
        "excerpt": entry.comment.and_then(|id| excerpts.get(&id)),
        "thread": entry.thread.as_ref().map(|thread| format!("{}/{}", thread.kind, thread.record)),
    })
}
