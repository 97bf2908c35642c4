//! Bans of users and of the networks of guests.

use std::time::Duration;

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::exists;
use shared::domain::author::Author;
use shared::domain::comment::Comment;
use shared::domain::ids::{UserId, is_keyed_hash};
use shared::domain::rate_limit::RateClass;
use shared::domain::time::Timestamp;
use shared::domain::user::Ban;
use shared::domain::viewer::Moderator;
use shared::error::Result;
use shared::http::input::Input;
use shared::http::request::{Call, path_id};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;

/// Maximum characters of a ban's reason.
const MAX_REASON: usize = 500;
/// Default and maximum durations of a network ban. Both are short, because addresses are reassigned to other people.
const NETWORK_BAN: Duration = Duration::from_hours(24);
const LONGEST_NETWORK_BAN: Duration = Duration::from_hours(30 * 24);

struct BanInput {
    until: Option<Timestamp>,
    reason: Option<String>,
    /// Whether the ban also rejects the writer's recent comments.
    rejects: bool,
}

impl BanInput {
    fn read(app: &App, call: &Call, longest: Option<Duration>) -> Result<Self> {
        let mut input = Input::new(call.json()?);
        let reason = input.optional_line("reason", MAX_REASON);
        let rejects = input.flag("reject_recent");
        let now = app.clock.now();
        let until = input.value("until").and_then(Value::as_str).and_then(Timestamp::parse);
        if input.value("until").is_some() && until.is_none_or(|until| until <= now) {
            input.fail("until", "The until must be a future time, for example 2030-01-02T03:04:05+00:00.");
        }
        if let Some((until, longest)) = until.zip(longest)
            && until > now + longest
        {
            input.fail("until", format!("The until can be at most {} days ahead.", longest.as_secs() / 86_400));
        }
        input.finish()?;
        Ok(Self { until, reason, rejects })
    }

    fn ban(&self) -> Ban {
        Ban { until: self.until, reason: self.reason.clone(), first: None }
    }
}

/// PUT `users/{id}/ban`
pub(crate) async fn of_user(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, id) = find(app, call, id).await?;
    may_ban(app, call, &moderator, id).await?;
    let input = BanInput::read(app, call, None)?;
    app.store.set_ban(id, Some(input.ban()), input.rejects, app.by(&moderator)?).await?;
    let BanInput { until, reason, .. } = input;
    Ok(Answer::ok(&json!({ "data": { "user_id": id, "banned_until": until, "reason": reason } })))
}

/// Refuses to ban the caller, and moderators named in the settings. If the user's id is a hash, the issuer is read from
/// the user's item. Before the first sign-in there is no item, so the caller's issuer is tried too.
async fn may_ban(app: &App, call: &Call, moderator: &Moderator, user: UserId) -> Result<()> {
    let known = if user.is_hashed() { app.store.user(user, Reading::Eventual).await? } else { None };
    let of_user = known.as_ref().and_then(|known| known.issuer.as_deref());
    let issuers: Vec<&str> = of_user.into_iter().chain(call.issuer()).collect();
    Ok(policy::ban(&app.config, moderator, &issuers, user)?)
}

/// DELETE `users/{id}/ban`
pub(crate) async fn unban_user(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, id) = find(app, call, id).await?;
    app.store.set_ban(id, None, false, app.by(&moderator)?).await?;
    Ok(Answer::no_content())
}

/// PUT `comments/{id}/ban`: bans the user who wrote it, or the guest's network.
pub(crate) async fn of_comment(app: &App, call: &Call, id: &str) -> Result<Answer> {
    let (moderator, comment) = app.admit_moderator_of(call, RateClass::Write, Ok(()), id).await?;
    match policy::banned_for(&comment)? {
        Author::User(user) => of_writer(app, call, &moderator, user).await,
        Author::Network(network) => of_network(app, call, &moderator, &comment, &network).await,
    }
}

async fn of_writer(app: &App, call: &Call, moderator: &Moderator, user: UserId) -> Result<Answer> {
    may_ban(app, call, moderator, user).await?;
    let input = BanInput::read(app, call, None)?;
    app.store.set_ban(user, Some(input.ban()), input.rejects, app.by(moderator)?).await?;
    Ok(present(Some(user), None, input))
}

async fn of_network(app: &App, call: &Call, moderator: &Moderator, comment: &Comment, network: &str) -> Result<Answer> {
    let mut input = BanInput::read(app, call, Some(LONGEST_NETWORK_BAN))?;
    input.until = input.until.or_else(|| Some(app.clock.now() + NETWORK_BAN));
    app.store.ban_network(network, comment, input.ban(), input.rejects, app.by(moderator)?).await?;
    Ok(present(None, Some(network), input))
}

fn present(user: Option<UserId>, network: Option<&str>, BanInput { until, reason, .. }: BanInput) -> Answer {
    let data = json!({ "user_id": user, "network": network, "banned_until": until, "reason": reason });
    Answer::ok(&json!({ "data": data }))
}

/// DELETE `moderation/networks/{network}/ban`
pub(crate) async fn unban_network(app: &App, call: &Call, network: &str) -> Result<Answer> {
    let moderator = app.admit_moderator(call, RateClass::Write, Ok(())).await?;
    // Networks are named only by keyed hashes, and the table refuses long keys.
    if is_keyed_hash(network) {
        app.store.unban_network(network, app.by(&moderator)?).await?;
    }
    Ok(Answer::no_content())
}

async fn find(app: &App, call: &Call, id: &str) -> Result<(Moderator, UserId)> {
    let id = path_id::<UserId>(id);
    let moderator = app.admit_moderator(call, RateClass::Write, exists(&id)).await?;
    Ok((moderator, id?))
}
