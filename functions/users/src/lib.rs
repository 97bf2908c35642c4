//! GET `users`, which finds users to mention in a comment, and email settings:
//!
//! - GET, PUT and DELETE `me/notifications` in `notifications.rs`
//! - GET and POST `mail/{token}` in `mail.rs`

mod mail;
mod notifications;

use futures_util::future::BoxFuture;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::request::Call;
use shared::http::resource::{Data, UserResource};
use shared::http::response::Answer;
use shared::store::users::{MAX_QUERY, Search};

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("GET", ["users"]) => search(app, call).await,
            ("GET", ["me", "notifications"]) => notifications::show(app, call).await,
            ("PUT", ["me", "notifications"]) => notifications::update(app, call).await,
            ("DELETE", ["me", "notifications"]) => notifications::destroy(app, call).await,
            ("GET", ["mail", token]) => mail::show(app, call, token).await,
            ("POST", ["mail", token]) => mail::act(app, call, token).await,
            _ => app.unrouted(call).await,
        }
    })
}

async fn search(app: &App, call: &Call) -> Result<Answer> {
    app.admit(call, RateClass::Read, Ok(()), AuthRequirement::User).await?;
    let part = call.parameter("q").unwrap_or_default();
    if !(1..=MAX_QUERY).contains(&part.chars().count()) {
        return Err(invalid().into());
    }
    let found = app.store.find_users(part, Search::MENTIONS, app.clock.now()).await?;
    let data: Vec<UserResource> =
        found.into_iter().map(|user| UserResource::new(&app.config, Some(user.id), user.name, &user.avatar)).collect();
    Ok(Answer::ok(&Data { data }))
}

fn invalid() -> Refusal {
    FieldErrors::one("q", format!("The q must be 1 to {MAX_QUERY} characters."))
}
