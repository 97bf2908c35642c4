//! Closes and reopens threads.

use serde_json::json;
use shared::app::App;
use shared::app::admission::exists;
use shared::domain::rate_limit::RateClass;
use shared::error::Result;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;

/// POST `{type}/{id}/close` and `{type}/{id}/open`. The thread may be empty.
pub(crate) async fn set_closed(app: &App, call: &Call, kind: &str, record: &str, closed: bool) -> Result<Answer> {
    let thread = policy::thread(&app.config, kind, record);
    let moderator = app.admit_moderator(call, RateClass::Write, exists(&thread)).await?;
    app.store.set_closed(&thread?, closed, app.by(&moderator)?).await?;
    Ok(Answer::ok(&json!({ "data": { "closed": closed } })))
}
