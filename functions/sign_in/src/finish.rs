//! POST `sign_in/finish`. A try is counted before the code is compared.

use shared::app::App;
use shared::domain::avatar::Avatar;
use shared::domain::email::exact;
use shared::domain::sign_in::bounds::{WRONG_TRIES_OF_NETWORK, wait};
use shared::domain::sign_in::inbox::{Flow, Inbox};
use shared::domain::sign_in::keys::{FlowId, FlowKeys, RefreshToken};
use shared::domain::sign_in::{Account, account_of};
use shared::domain::user::{Identity, User, gravatar};
use shared::error::{Fault, Refusal, Result};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::bounds::Bound;
use shared::store::sign_in::RightCode;

use crate::{SignIn, number, text};

pub(crate) async fn finish(sign_in: &SignIn, app: &App, call: &Call) -> Result<Answer> {
    policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins))?;
    let fields = call.json()?;
    let (flow, code) = (text(call, &fields, "flow")?, text(call, &fields, "code")?);
    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let network = keys.network(call.network);
    let too_many = || Refusal::RateLimited(wait(now));
    let wrong = Bound::hourly("wrong codes", &network, WRONG_TRIES_OF_NETWORK);
    if !wrong.has_room(app.store.counted_towards(wrong, now).await?) {
        return Err(too_many().into());
    }
    let Some((id, inbox, flow)) = right_code(app, &keys, flow, code).await? else {
        // Of tries at the same time, no more than the bound hear that they were wrong.
        let is_counted = app.store.count_towards(wrong, now).await?;
        return Err(if is_counted { Refusal::SignInFailed } else { too_many() }.into());
    };
    let Some(email) = keys.open(&flow.address) else { return Err(Refusal::SignInFailed.into()) };
    let (account, subject) = account_of(&app.config.visitor_salt, &email);
    let session = number(&app.random);
    let right = RightCode {
        id: &id,
        flow: &flow,
        inbox,
        account: Account { id: account, subject, epoch: number(&app.random) },
        avatar: if app.config.guests.show_gravatar { gravatar(&exact(&email)) } else { Avatar::Neutral },
        network: &network,
        session,
        now,
    };
    let (user, account) = app.store.begin_session(right).await?.ok_or(Refusal::SignInFailed)?;
    note_moderator(app, &user, &account).await?;
    let token = RefreshToken { account: user.id, nonce: session, generation: 0 };
    sign_in.session(app, &user, &account, &token).await
}

/// The flow whose code it is, with its inbox.
async fn right_code(
    app: &App,
    keys: &FlowKeys,
    flow: &str,
    code: &str,
) -> Result<Option<(FlowId, Inbox, Flow)>, Fault> {
    let Ok(id) = flow.parse::<FlowId>() else { return Ok(None) };
    let tried = app.store.try_code(&id, app.clock.now()).await?;
    let right = tried.filter(|_| keys.is_code(&id, code));
    Ok(right.map(|(inbox, flow)| (id, inbox, flow)))
}

/// Logs the sign-in of a moderator.
async fn note_moderator(app: &App, user: &User, account: &Account) -> Result<(), Fault> {
    let identity = Identity::of_account(account.clone());
    if app.config.names_moderator(&identity) {
        app.store.log_sign_in(user, &app.ids).await?;
    }
    Ok(())
}
