//! Users as moderators see them, and bans.

use serde::Serialize;
use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::{AuthRequirement, exists};
use shared::domain::ids::UserId;
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::user::{Ban, User};
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Result};
use shared::http::input::Input;
use shared::http::request::{Call, path_id};
use shared::http::resource::{Data, UserResource};
use shared::http::response::Answer;
use shared::policy;
use shared::store::users::{MAX_QUERY, Search};

use crate::walk::Walk;

/// Characters of a ban's reason.
const MAX_REASON: usize = 500;

#[derive(Serialize)]
struct ModeratedUser {
    #[serde(flatten)]
    user: UserResource,
    banned: bool,
    banned_until: Option<Timestamp>,
    reason: Option<String>,
}

impl ModeratedUser {
    fn new(app: &App, user: &User, now: Timestamp) -> Self {
        let ban = user.present_ban(now);
        Self {
            user: UserResource::new(&app.config, Some(user.id), user.shown_name(), &user.avatar),
            banned: ban.is_some(),
            banned_until: ban.and_then(|ban| ban.until).map(Timestamp),
            reason: ban.and_then(|ban| ban.reason.clone()),
        }
    }
}

/// GET `moderation/users`: users whose names contain `q`, or those banned now.
pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Read, Ok(()), AuthRequirement::Moderator).await?;
    policy::moderate(&viewer)?;
    match (call.parameter("q"), call.parameter("banned")) {
        (Some(part), None) => search(app, part).await,
        (None, Some("true")) => banned(app, call).await,
        (None, Some(_)) => Err(FieldErrors::one("banned", "The banned must be true.").into()),
        _ => Err(FieldErrors::one("q", "Either q or banned=true is required.").into()),
    }
}

async fn search(app: &App, part: &str) -> Result<Answer> {
    if !(1..=MAX_QUERY).contains(&part.chars().count()) {
        return Err(FieldErrors::one("q", format!("The q must be 1 to {MAX_QUERY} characters.")).into());
    }
    let now = app.clock.now();
    let found = app.store.find_users(part, Search::EVERYBODY, now).await?;
    let data: Vec<_> = found.iter().map(|user| ModeratedUser::new(app, user, now)).collect();
    Ok(Answer::ok(&Data { data }))
}

async fn banned(app: &App, call: &Call) -> Result<Answer> {
    let walk = Walk::new(app, call, "banned".to_owned())?;
    let now = app.clock.now();
    let (users, cursors) = app.store.banned_users(walk.cursor, walk.per_page, now).await?;
    let data = users.iter().map(|user| ModeratedUser::new(app, user, now)).collect();
    Ok(walk.answer(call, data, cursors)?)
}

/// PUT `users/{id}/ban`
pub(crate) async fn ban(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, id) = find(app, call, id).await?;
    policy::ban(&app.config, &viewer, call.issuer(), id)?;
    let mut input = Input::new(call.json()?);
    let reason = input.optional_line("reason", MAX_REASON);
    let until = input.value("until").and_then(Value::as_str).and_then(Timestamp::parse);
    if input.value("until").is_some() && until.is_none_or(|until| until <= app.clock.now()) {
        input.fail("until", "The until must be a time to come, such as 2030-01-02T03:04:05+00:00.");
    }
    input.finish()?;
    let ban = Ban { until: until.map(|until| until.0), reason: reason.clone() };
    app.store.set_ban(id, Some(ban), app.moderator(&viewer)?).await?;
    Ok(Answer::ok(&json!({ "data": { "user_id": id, "banned_until": until, "reason": reason } })))
}

/// DELETE `users/{id}/ban`
pub(crate) async fn unban(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (viewer, id) = find(app, call, id).await?;
    app.store.set_ban(id, None, app.moderator(&viewer)?).await?;
    Ok(Answer::no_content())
}

/// The caller, who may moderate, and the user whom the path names.
async fn find(app: &App, call: &Call, id: &str) -> Result<(Viewer, UserId)> {
    let id = path_id::<UserId>(id);
    let viewer = app.admit(call, RateClass::Write, exists(&id), AuthRequirement::Moderator).await?;
    policy::moderate(&viewer)?;
    Ok((viewer, id?))
}
