//! Lists users found by name, and banned users and networks.

use serde::Serialize;
use serde_json::json;
use shared::app::App;
use shared::domain::ids::{CommentId, UserId};
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::user::{NetworkBan, User};
use shared::error::{FieldErrors, Result};
use shared::http::request::Call;
use shared::http::resource::{Data, UserResource};
use shared::http::response::Answer;
use shared::store::bans::Banned;
use shared::store::users::{MAX_QUERY, Search};

use crate::walk::Walk;

#[derive(Serialize)]
struct ModeratedUser {
    #[serde(flatten)]
    user: UserResource,
    banned: bool,
    banned_until: Option<Timestamp>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct BannedNetwork {
    /// Always null, because guests have no id.
    id: Option<UserId>,
    name: String,
    avatar: &'static str,
    banned: bool,
    banned_until: Option<Timestamp>,
    reason: Option<String>,
    network: String,
    comment_id: CommentId,
}

impl BannedNetwork {
    fn new(NetworkBan { network, ban, comment, .. }: NetworkBan, name: Option<String>) -> Self {
        Self {
            id: None,
            name: name.unwrap_or_default(),
            avatar: "",
            banned: true,
            banned_until: ban.until,
            reason: ban.reason,
            network,
            comment_id: comment,
        }
    }
}

impl ModeratedUser {
    fn new(app: &App, user: &User, now: Timestamp) -> Self {
        let ban = user.present_ban(now);
        Self {
            user: UserResource::new(&app.config, Some(user.id), user.shown_name(), &user.avatar),
            banned: ban.is_some(),
            banned_until: ban.and_then(|ban| ban.until),
            reason: ban.and_then(|ban| ban.reason.clone()),
        }
    }
}

/// GET `moderation/users`: users whose names contain `q`, or the users and networks banned now.
pub(crate) async fn list(app: &App, call: &Call) -> Result<Answer> {
    app.admit_moderator(call, RateClass::Read, Ok(())).await?;
    match (call.parameter("q"), call.parameter("banned")) {
        (Some(part), None) => search(app, part).await,
        (None, Some("true")) => banned(app, call).await,
        (None, Some(_)) => Err(FieldErrors::one("banned", "The banned parameter must be true.").into()),
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
    let (found, cursors) = app.store.banned(walk.cursor, walk.per_page, now).await?;
    let present = |banned| match banned {
        Banned::User(user) => json!(ModeratedUser::new(app, &user, now)),
        Banned::Network(ban, name) => json!(BannedNetwork::new(ban, name)),
    };
    let data = found.into_iter().map(present).collect();
    Ok(walk.answer(call, data, cursors)?)
}
