//! POST `sign_in/finish`. A wrong code is counted before the response reports it.

use serde_json::{Map, Value, json};
use shared::app::App;
use shared::domain::avatar::Avatar;
use shared::domain::email::exact;
use shared::domain::sign_in::bounds::{WRONG_TRIES_OF_NETWORK, over_hourly_limit};
use shared::domain::sign_in::inbox::{Flow, Inbox};
use shared::domain::sign_in::keys::{FlowId, FlowKeys, RefreshToken};
use shared::domain::sign_in::providers::{Provider, ProviderAccount};
use shared::domain::sign_in::redirect::{Finish, Profile, RedirectFlow, challenge_of};
use shared::domain::sign_in::{Account, account_of};
use shared::domain::user::{Identity, User, gravatar};
use shared::error::{Error, Fault, Refusal, Result};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::bounds::Bound;
use shared::store::sign_in::{Proven, RightCode};

use crate::{SignIn, number, text};

/// The caller's proven identity.
enum Proof {
    /// The address that the code was emailed to.
    Address {
        id: FlowId,
        inbox: Inbox,
        flow: Flow,
        email: String,
    },
    Elsewhere {
        account: ProviderAccount,
        profile: Profile,
    },
}

pub(crate) async fn finish(sign_in: &SignIn, app: &App, call: &Call) -> Result<Answer> {
    policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins))?;
    let fields = call.json()?;
    let (flow, code) = (text(call, &fields, "flow")?, text(call, &fields, "code")?);
    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let network = keys.network(call.network);
    let too_many = || over_hourly_limit(WRONG_TRIES_OF_NETWORK, now);
    let wrong = Bound::hourly("wrong codes", &network, WRONG_TRIES_OF_NETWORK);
    if !wrong.has_room(app.store.counted_towards(wrong, now).await?) {
        return Err(too_many().into());
    }
    // Only the ids of flows with emailed codes contain a dot.
    let proof = match flow.parse::<FlowId>() {
        Ok(id) => address(app, &keys, id, code).await?,
        Err(_) => elsewhere(app, call, &keys, &fields, (flow, code)).await?,
    };
    let Some(proof) = proof else {
        // When concurrent attempts exceed the limit, the error doesn't reveal that the code is wrong.
        let is_counted = app.store.count_towards(wrong, now).await?;
        return Err(if is_counted { Refusal::SignInFailed } else { too_many() }.into());
    };
    let shows_pictures = app.config.guests.show_gravatar;
    let (ids, address, avatar) = match &proof {
        Proof::Address { flow, email, .. } => {
            let avatar = if shows_pictures { gravatar(&exact(email)) } else { Avatar::Neutral };
            (Some(account_of(&app.config.visitor_salt, email)), Some(flow.address.clone()), avatar)
        }
        Proof::Elsewhere { account, profile } => {
            let picture = profile.picture.clone().filter(|_| shows_pictures);
            let address = profile.address.as_ref().map(|address| keys.seal(address));
            (app.config.account_elsewhere(account), address, picture.map_or(Avatar::Neutral, Avatar::from))
        }
    };
    let (id, subject) = ids.ok_or(Refusal::SignInFailed)?;
    let code = match &proof {
        Proof::Address { id, inbox, flow, .. } => Some(RightCode { id, flow, inbox: inbox.clone() }),
        Proof::Elsewhere { .. } => None,
    };
    let session = number(&app.random);
    let account = Account { id, subject, epoch: number(&app.random) };
    let proven = Proven { code, address, account, avatar, network: &network, session, now };
    let (user, account) = app.store.begin_session(proven).await?.ok_or(Refusal::SignInFailed)?;
    note_moderator(app, &user, &account).await?;
    let token = RefreshToken { account: user.id, nonce: session, generation: 0 };
    let mut data = sign_in.session(app, &user, &account, &token).await?;
    if let Proof::Elsewhere { account, profile } = proof {
        data["account"] = json!(account.to_string());
        data["suggested_name"] = json!(suggested_name(app, call, profile.name, &user).await?);
    }
    Ok(Answer::ok(&json!({ "data": data })))
}

/// Returns the address of the flow, if the code is right.
async fn address(app: &App, keys: &FlowKeys, id: FlowId, code: &str) -> Result<Option<Proof>, Fault> {
    let tried = app.store.try_code(&id, app.clock.now()).await?;
    let right = tried.filter(|_| keys.is_code(&id, code));
    Ok(right.and_then(|(inbox, flow)| {
        let email = keys.open(&flow.address)?;
        Some(Proof::Address { id, inbox, flow, email })
    }))
}

/// Returns the account of a visitor who returned from a provider.
async fn elsewhere(
    app: &App,
    call: &Call,
    keys: &FlowKeys,
    fields: &Map<String, Value>,
    (flow, code): (&str, &str),
) -> Result<Option<Proof>, Fault> {
    let challenge = fields.get("verifier").and_then(Value::as_str).and_then(challenge_of);
    let (code, network) = (keys.redirect_code(flow, code), keys.wider_network(call.network));
    let given = Finish { code: &code, challenge: challenge.as_deref(), network: &network };
    let now = app.clock.now();
    let finish = |item: &mut RedirectFlow| item.finish(&given, now);
    let finished = app.store.finish_redirect(&keys.redirect_name(flow), finish).await?;
    Ok(finished.and_then(|(provider, profile)| {
        let (provider, profile) = (Provider::of_id(&provider)?, keys.open_of_redirect::<Profile>(&profile)?);
        let account = ProviderAccount { provider, subject: profile.subject.clone() };
        Some(Proof::Elsewhere { account, profile })
    }))
}

/// Returns the name at the provider, unless it would be refused.
async fn suggested_name(app: &App, call: &Call, name: Option<String>, user: &User) -> Result<Option<String>, Fault> {
    let Some(name) = name else { return Ok(None) };
    match app.refuse_lookalike(call, "name", &name, Some(user.id)).await {
        Ok(()) => Ok(Some(name)),
        Err(Error::Refused(_)) => Ok(None),
        Err(Error::Fault(fault)) => Err(fault),
    }
}

async fn note_moderator(app: &App, user: &User, account: &Account) -> Result<(), Fault> {
    let identity = Identity::of_account(account.clone());
    if app.config.names_moderator(&identity) {
        app.store.log_sign_in(user, &app.ids).await?;
    }
    Ok(())
}
