//! Bans of users, and the description of the records that are commented on.

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::{AuthRequirement, exists};
use shared::domain::ids::UserId;
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::user::Ban;
use shared::error::Result;
use shared::http::input::Input;
use shared::http::request::{Call, path_id};
use shared::http::response::Answer;
use shared::policy;
use shared::store::moderation::HostRecord;

/// Characters of a ban's reason.
const MAX_REASON: usize = 500;
/// Characters of a record's title.
const MAX_TITLE: usize = 300;
/// Characters of a record's address.
const MAX_URL: usize = 2_048;

/// PUT `users/{id}/ban`
pub(crate) async fn ban(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let id = find_user(app, call, id).await?;
    let mut input = Input::new(call.json()?);
    let reason = input.optional_text("reason", MAX_REASON);
    let until = input.value("until").and_then(Value::as_str).and_then(Timestamp::parse);
    if input.value("until").is_some() && until.is_none_or(|until| until <= app.clock.now()) {
        input.fail("until", "The until must be a time to come, such as 2030-01-02T03:04:05+00:00.");
    }
    input.finish()?;
    let ban = Ban { until: until.map(|until| until.0), reason: reason.clone() };
    app.store.set_ban(id, Some(ban)).await?;
    Ok(Answer::ok(&json!({ "data": { "user_id": id, "banned_until": until, "reason": reason } })))
}

/// DELETE `users/{id}/ban`
pub(crate) async fn unban(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let id = find_user(app, call, id).await?;
    app.store.set_ban(id, None).await?;
    Ok(Answer::no_content())
}

/// The user whom the path names, once the caller may moderate.
async fn find_user(app: &App, call: &Call, id: &str) -> Result<UserId> {
    let id = path_id::<UserId>(id);
    let viewer = app.admit(call, RateClass::Write, exists(&id), AuthRequirement::User).await?;
    policy::moderate(&viewer)?;
    Ok(id?)
}

/// PUT `{type}/{id}`: describes a record. Omitted fields are removed.
pub(crate) async fn describe(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let thread = policy::thread(&app.config, kind, record);
    let viewer = app.admit(call, RateClass::Write, exists(&thread), AuthRequirement::User).await?;
    policy::moderate(&viewer)?;
    let thread = thread?;
    let mut input = Input::new(call.json()?);
    let author = input.optional_id("author_id").map(UserId);
    let title = input.optional_text("title", MAX_TITLE);
    let url = input.optional_text("url", MAX_URL);
    if url.as_ref().is_some_and(|url| !is_web(url)) {
        input.fail("url", "The url must be an http or https address.");
    }
    input.finish()?;
    let record = HostRecord { author, title, url };
    app.store.set_record(&thread, &record).await?;
    Ok(Answer::ok(&json!({ "data": {
        "type": thread.kind,
        "id": thread.record,
        "author_id": record.author,
        "title": record.title,
        "url": record.url,
    } })))
}

fn is_web(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}
