//! Endpoints for reading and writing comments:
//!
//! - GET `{type}/{id}/comments`, GET `comments/{id}/replies` in `list.rs`
//! - POST `{type}/{id}/comments` in `create.rs`
//! - GET `comments/{id}` in `show.rs`
//! - PATCH and DELETE `comments/{id}` in `change.rs`
//!
//! The gateway also sends this function every request that matches no route.

mod change;
mod create;
mod list;
mod show;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("GET", ["comments", id, "replies"]) => list::replies(app, call, id).await,
            ("GET", ["comments", id]) => show::show(app, call, id).await,
            ("PATCH", ["comments", id]) => change::edit(app, call, id).await,
            ("DELETE", ["comments", id]) => change::delete(app, call, id).await,
            ("GET", [kind, record, "comments"]) => list::thread(app, call, kind, record).await,
            ("POST", [kind, record, "comments"]) => create::create(app, call, kind, record).await,
            _ => app.unrouted(call).await,
        }
    })
}
