//! Endpoints for moderators, and for the host application, which authenticates as a moderator:
//!
//! - POST and DELETE `comments/{id}/pin`, POST `comments/{id}/approve` and `comments/{id}/reject`, GET
//!   `comments/{id}/reports`, POST `comments/{id}/reports/dismiss` in `comment.rs`
//! - GET `moderation/comments` in `queue.rs`, with its filters in `filter.rs`
//! - GET `users/{id}/comments` in `queue.rs`
//! - POST `moderation/comments` in `bulk.rs`
//! - GET `moderation/users` in `user.rs`
//! - PUT and DELETE `users/{id}/ban`, PUT `comments/{id}/ban`, DELETE `moderation/networks/{network}/ban` in `ban.rs`
//! - GET `moderation/log` in `log.rs`
//! - `moderation/webhooks` and everything below it in `webhook.rs`
//! - POST `{type}/{id}/close` and `{type}/{id}/open` in `thread.rs`
//! - PUT `{type}/{id}` in `host.rs`
//!
//! `walk.rs` has the code that the lists share.

mod ban;
mod bulk;
mod comment;
mod filter;
mod host;
mod log;
mod queue;
mod thread;
mod user;
mod walk;
mod webhook;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("POST", ["comments", id, "pin"]) => comment::pin(app, call, id).await,
            ("DELETE", ["comments", id, "pin"]) => comment::unpin(app, call, id).await,
            ("POST", ["comments", id, "approve"]) => comment::approve(app, call, id).await,
            ("POST", ["comments", id, "reject"]) => comment::reject(app, call, id).await,
            ("GET", ["comments", id, "reports"]) => comment::reports(app, call, id).await,
            ("POST", ["comments", id, "reports", "dismiss"]) => comment::dismiss(app, call, id).await,
            ("GET", ["moderation", "comments"]) => queue::list(app, call).await,
            ("POST", ["moderation", "comments"]) => bulk::decide(app, call).await,
            ("GET", ["moderation", "users"]) => user::list(app, call).await,
            ("GET", ["moderation", "log"]) => log::list(app, call).await,
            ("GET", ["moderation", "webhooks"]) => webhook::list(app, call).await,
            ("POST", ["moderation", "webhooks"]) => webhook::create(app, call).await,
            ("PATCH", ["moderation", "webhooks", id]) => webhook::update(app, call, id).await,
            ("DELETE", ["moderation", "webhooks", id]) => webhook::destroy(app, call, id).await,
            ("POST", ["moderation", "webhooks", id, "test"]) => webhook::test(app, call, id).await,
            ("GET", ["moderation", "webhooks", id, "deliveries"]) => webhook::deliveries(app, call, id).await,
            ("POST", ["moderation", "webhooks", id, "deliveries", message, "redeliver"]) => {
                webhook::redeliver(app, call, id, message).await
            }
            ("PUT", ["comments", id, "ban"]) => ban::of_comment(app, call, id).await,
            ("DELETE", ["moderation", "networks", network, "ban"]) => ban::unban_network(app, call, network).await,
            ("GET", ["users", id, "comments"]) => queue::of_user(app, call, id).await,
            ("PUT", ["users", id, "ban"]) => ban::of_user(app, call, id).await,
            ("DELETE", ["users", id, "ban"]) => ban::unban_user(app, call, id).await,
            ("POST", [kind, record, "close"]) => thread::set_closed(app, call, kind, record, true).await,
            ("POST", [kind, record, "open"]) => thread::set_closed(app, call, kind, record, false).await,
            ("PUT", [kind, record]) => host::describe(app, call, kind, record).await,
            _ => app.unrouted(call).await,
        }
    })
}
