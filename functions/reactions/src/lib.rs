//! Likes and reports (spec, sections 4.6 and 4.7).

mod like;
mod report;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::error::{Refusal, Result};
use shared::http::{Answer, Call};
use shared::policy;
use shared::store::comments::Found;
use shared::store::threads::Visit;
use shared::viewer::Viewer;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("POST", ["comments", id, "like"]) => like::toggle(app, call, id).await,
            ("POST", ["comments", id, "report"]) => report::report(app, call, id).await,
            _ => app.unrouted(call).await,
        }
    })
}

/// The comment an address names and what the visitor did in its thread; read beside `admit`, which decides first.
async fn find(app: &App, call: &Call, id: &str) -> Result<Option<(Found, Visit)>> {
    match id.parse() {
        Ok(id) => Ok(app.store.find_for(id, &app.visitor(call)).await?),
        Err(()) => Ok(None),
    }
}

async fn seen(app: &App, viewer: &Viewer, found: Option<(Found, Visit)>) -> Result<(Found, Visit)> {
    let (found, visit) = found.ok_or(Refusal::NotFound)?;
    let seen = |found: &Found| policy::may_see(viewer, &found.comment, &found.ancestors);
    Ok((app.store.confirm(Some(found), seen).await?.ok_or(Refusal::NotFound)?, visit))
}
