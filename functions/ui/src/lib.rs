//! Everything that a widget needs in addition to comments, and the documentation:
//!
//! - GET `ui` and POST `markdown/preview`
//! - GET `openapi.json` and GET `docs` in `contract.rs`
//! - GET `counts` and GET `{type}/{id}/changes` in `counts.rs`
//! - GET `{type}/{id}/feed.atom` in `feed.rs`
//! - GET `embed.js`, GET `embed/{file}`, GET `moderation.js` and GET `moderate` in `files.rs`

mod contract;
mod counts;
mod feed;
mod files;

use futures_util::future::BoxFuture;
use http::{HeaderValue, header};
use serde_json::json;
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::markdown;
use shared::domain::rate_limit::RateClass;
use shared::domain::texts::Labels;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::resource::Data;
use shared::http::response::{Answer, Sharing};
use shared::http::ui;
use shared::policy;

pub fn handle<'a>(app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
    Box::pin(async move {
        match (call.method.as_str(), call.path().as_slice()) {
            ("GET", ["ui"]) => configuration(app, call).await,
            ("POST", ["markdown", "preview"]) => preview(app, call).await,
            ("GET", ["openapi.json"]) => contract::openapi(app, call).await,
            ("GET", ["docs"]) => contract::docs(app, call).await,
            ("GET", ["counts"]) => counts::counts(app, call).await,
            ("GET", [kind, record, "changes"]) => counts::changes(app, call, kind, record).await,
            ("GET", [kind, record, "feed.atom"]) => feed::feed(app, call, kind, record).await,
            ("GET", ["embed.js"]) => Ok(files::embed()),
            ("GET", ["embed", name]) => files::part(name),
            ("GET", ["moderation.js"]) => Ok(files::moderation()),
            ("GET", ["moderate"]) => Ok(files::moderate()),
            _ => app.unrouted(call).await,
        }
    })
}

/// GET `ui`: the configuration of the widget, or of the moderators' page.
async fn configuration(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Read, Ok(()), AuthRequirement::None).await?;
    let (language, now) = (call.language(), app.clock.now());
    let data = match call.parameter("for") {
        None => ui::configuration(&app.config, &viewer, Labels::of_widget(language), now),
        Some("moderation") => ui::configuration_of_moderation(&app.config, &viewer, language, now),
        Some(_) => return Err(FieldErrors::one("for", "The for parameter must be \"moderation\".").into()),
    };
    let mut answer = Answer::ok(&Data { data })
        .shared(if viewer.user.is_none() { Sharing::Anonymous } else { Sharing::Private })
        .in_the_language_asked_for();
    answer.set(header::CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
    Ok(answer)
}

/// POST `markdown/preview`. Writes nothing, so it counts as a read.
async fn preview(app: &App, call: &Call) -> Result<Answer> {
    let exists = policy::feature(app.config.features.markdown_preview);
    app.admit(call, RateClass::Read, exists, AuthRequirement::None).await?;
    let body = draft(call)?;
    let known = app.store.mentioned_handles(markdown::mentions(&body)).await?;
    let html = markdown::render(&body, &app.config.users_route_prefix, &known);
    Ok(Answer::ok(&json!({ "data": { "html": html } })))
}

fn draft(call: &Call) -> Result<String, Refusal> {
    let mut input = Input::of_reader(call.json()?, call.language());
    let body = input.draft();
    input.finish()?;
    Ok(body)
}
