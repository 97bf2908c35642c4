//! Threads: list, create, replies, edit, delete; and whatever no route answers.

mod change;
mod create;
mod list;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::domain::ids::{CommentId, ThreadId};
use shared::error::{Refusal, Result};
use shared::http::request::Call;
use shared::http::response::Answer;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("GET", ["comments", id, "replies"]) => list::replies(app, call, id).await,
            ("PATCH", ["comments", id]) => change::edit(app, call, id).await,
            ("DELETE", ["comments", id]) => change::delete(app, call, id).await,
            ("GET", [kind, record, "comments"]) => list::thread(app, call, kind, record).await,
            ("POST", [kind, record, "comments"]) => create::create(app, call, kind, record).await,
            _ => app.unrouted(call).await,
        }
    })
}

/// The thread an address names.
fn thread_id(app: &App, kind: &str, record: &str) -> Result<ThreadId, Refusal> {
    if !app.config.types.iter().any(|alias| alias == kind) {
        return Err(Refusal::UnknownType);
    }
    ThreadId::new(kind, record).ok_or(Refusal::NotFound)
}

/// The comment an address names, be it there or not.
fn comment_id(text: &str) -> Result<CommentId, Refusal> {
    text.parse().map_err(|()| Refusal::NotFound)
}
