//! PUT `me/name`.

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::rate_limit::RateClass;
use shared::error::{Refusal, Result};
use shared::http::input::Input;
use shared::http::request::{Call, Credential};
use shared::http::resource::{Data, OwnUser};
use shared::http::response::Answer;
use shared::policy;
use shared::store::sign_in::Renamed;

pub(crate) async fn update(app: &App, call: &Call) -> Result<Answer> {
    let exists = policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins));
    let viewer = app.admit(call, RateClass::Write, exists, AuthRequirement::User).await?;
    let Credential::User(identity) = &call.credential else { return Err(Refusal::Unauthenticated.into()) };
    let account = policy::own_account(identity)?;
    let mut input = Input::of_reader(call.json()?, call.language());
    let name = input.name("name");
    input.finish()?;
    app.refuse_lookalike(call, "name", &name, Some(account.id)).await?;
    let now = app.clock.now();
    let user = match app.store.rename_account(account, &name, now).await? {
        Renamed::Done(user) => user,
        Renamed::NotBefore(from) => {
            let after = from.since(now.start_of_second()).as_secs();
            return Err(Refusal::RateLimited { after, limit: None }.into());
        }
        Renamed::SignedOut => return Err(Refusal::Unauthenticated.into()),
    };
    if viewer.has_role {
        app.keep_moderator_name(&user).await?;
    }
    Ok(Answer::ok(&Data { data: OwnUser::new(&app.config, &user) }))
}
