//! Likes and reports (spec, sections 4.6 and 4.7).

mod like;
mod report;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::domain::ids::keyed_hash;
use shared::domain::thread::VisitorThreadState;
use shared::domain::viewer::Viewer;
use shared::error::{Refusal, Result};
use shared::http::request::Call;
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

/// Guests who change their user agent wait this long, in seconds: nothing they do soon will be let through.
const RETRY_AFTER: u64 = 86_400;

/// How often guests of the caller's network may do `what` to a comment. `None` for users, and when `most` is 0.
fn bound(app: &App, call: &Call, viewer: &Viewer, what: &str, id: &str, most: u32) -> Option<GuestBound> {
    (viewer.user.is_none() && most > 0).then(|| GuestBound {
        network: keyed_hash(&app.config.visitor_salt, &[what, &call.network.to_string(), id]),
        most,
    })
}

/// The comment an address names and what the visitor did in its thread.
async fn find(app: &App, call: &Call, id: &str) -> Result<(CommentWithAncestors, VisitorThreadState)> {
    let id = id.parse().map_err(|()| Refusal::NotFound)?;
    Ok(app.store.find_for(id, &app.visitor(call)).await?.ok_or(Refusal::NotFound)?)
}

/// What was found, when the viewer may see it.
async fn seen(app: &App, viewer: &Viewer, found: CommentWithAncestors) -> Result<CommentWithAncestors> {
    let seen = |found: &CommentWithAncestors| policy::may_see(viewer, &found.comment, &found.ancestors);
    Ok(app.store.confirm(Some(found), seen).await?.ok_or(Refusal::NotFound)?)
}
