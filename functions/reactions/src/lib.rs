//! POST `comments/{id}/like` in `like.rs` and POST `comments/{id}/report` in `report.rs`.

mod like;
mod report;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::domain::ids::keyed_hash;
use shared::domain::thread::VisitorThreadState;
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::request::{Call, path_id};
use shared::http::response::Answer;
use shared::policy;
use shared::store::comments::CommentWithAncestors;
use shared::store::reactions::GuestBound;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("POST", ["comments", id, "like"]) => like::toggle(app, call, id).await,
            ("POST", ["comments", id, "report"]) => report::report(app, call, id).await,
            _ => app.unrouted(call).await,
        }
    })
}

/// `Retry-After` in seconds when a network has reached its limit. The limit never resets, so this only keeps clients
/// from retrying sooner.
const RETRY_AFTER: u64 = 86_400;

/// Returns the limit on a comment's likes or reports (`action`) by guests from one network. `None` for users, and when
/// `most` is 0.
fn bound(app: &App, call: &Call, viewer: &Viewer, action: &str, id: &str, most: u32) -> Option<GuestBound> {
    (viewer.user.is_none() && most > 0).then(|| GuestBound {
        network: keyed_hash(&app.config.visitor_salt, &[action, &call.network.to_string(), id]),
        most,
    })
}

async fn comment_from_path(app: &App, call: &Call, id: &str) -> Result<(CommentWithAncestors, VisitorThreadState)> {
    Ok(app
        .store
        .comment_with_visitor_state(path_id(id)?, &app.owners(call).reactions)
        .await?
        .ok_or(Refusal::NotFound)?)
}

/// Returns the comment, if the viewer may see it. Reads the comment again, consistently, if it seems hidden.
async fn seen(app: &App, viewer: &Viewer, found: CommentWithAncestors) -> Result<CommentWithAncestors> {
    let seen = |found: &CommentWithAncestors| policy::see(viewer, &found.comment, &found.ancestors).is_ok();
    Ok(app.store.reread_unless(Some(found), seen).await?.ok_or(Refusal::NotFound)?)
}
