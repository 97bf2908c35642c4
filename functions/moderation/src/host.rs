//! Descriptions of the records that people comment on.

use serde_json::json;
use shared::app::App;
use shared::app::admission::exists;
use shared::domain::ids::UserId;
use shared::domain::rate_limit::RateClass;
use shared::domain::thread::{MAX_ADDRESS, MAX_TITLE, is_address};
use shared::domain::visible;
use shared::error::Result;
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::moderation::HostRecord;

/// PUT `{type}/{id}`: describes a record. Omitted fields are removed.
pub(crate) async fn describe(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let thread = policy::thread(&app.config, kind, record);
    let moderator = app.admit_moderator(call, RateClass::Write, exists(&thread)).await?;
    let thread = thread?;
    let mut input = Input::new(call.json()?);
    let author = input.optional_id("author_id").map(UserId);
    // A title without visible characters counts as missing, as in imports.
    let title = input.optional_line("title", MAX_TITLE).filter(|title| !visible::shows_nothing(title));
    let url = input.optional_text("url", MAX_ADDRESS);
    if url.as_ref().is_some_and(|url| !is_address(url)) {
        input.fail("url", "The url must be an http or https address, without a user or password.");
    }
    input.finish()?;
    let record = HostRecord { author, title, url };
    app.store.set_record(&thread, &record, &moderator).await?;
    Ok(Answer::ok(&json!({ "data": {
        "type": thread.kind,
        "id": thread.record,
        "author_id": record.author,
        "title": record.title,
        "url": record.url,
    } })))
}
