//! Threads as everyone sees them, so that caches may serve them:
//!
//! - GET `public/{type}/{id}/comments` in `list.rs`
//! - GET `{type}/{id}/comments.html` in `page.rs`, with the HTML in `html.rs`
//!
//! The caller's token, key and language don't affect the response.

mod html;
mod list;
mod page;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("GET", ["public", kind, record, "comments"]) => list::thread(app, call, kind, record).await,
            ("GET", [kind, record, "comments.html"]) => page::page(app, call, kind, record).await,
            _ => app.unrouted(call).await,
        }
    })
}
