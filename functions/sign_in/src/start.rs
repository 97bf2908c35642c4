//! POST `sign_in` with an address. The response and the calls to the table and the queue are the same for every
//! address, so that neither the response nor its timing reveals who has an account.

use std::time::Duration;

use http::header;
use serde_json::json;
use shared::app::App;
use shared::domain::deliveries::Message;
use shared::domain::email::{MAX_EMAIL, mailable};
use shared::domain::origin;
use shared::domain::sign_in::bounds::{
    CODES_OF_NETWORK, MAX_FAILURES, STRANGERS_OF_NETWORK, codes_of_all, codes_of_domain, over_hourly_limit,
};
use shared::domain::sign_in::inbox::{Asker, Flow};
use shared::domain::sign_in::keys::{FlowId, FlowKeys, nonce};
use shared::domain::sign_in::providers::Method;
use shared::domain::sign_in::{CODE_LIFETIME, account_of};
use shared::domain::texts::Errors;
use shared::error::{Fault, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::bounds::Bound;
use shared::store::sign_in::{FAILED_CODES, FlowStart};

use crate::{SignIn, redirect};

pub(crate) async fn start(sign_in: &SignIn, app: &App, call: &Call) -> Result<Answer> {
    policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins))?;
    let input = Input::of_reader(call.json()?, call.language());
    let takes_email = app.config.sign_in.as_ref().is_some_and(|sign_in| sign_in.has(Method::Email));
    if input.value("provider").is_some() || !takes_email {
        return redirect::start(sign_in, app, call, input).await;
    }
    let email = email(input)?;
    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let network = keys.network(call.network);
    if !app.store.count_towards(Bound::hourly("codes", &network, CODES_OF_NETWORK), now).await? {
        return Err(over_hourly_limit(CODES_OF_NETWORK, now).into());
    }
    let id = FlowId { inbox: keys.inbox(&email), nonce: nonce(app.random.bytes()) };
    let flow = Flow::new(id.nonce.clone(), &host(app, call), call.language().tag().to_owned(), keys.seal(&email), now);
    begin(app, &keys, &id, &email, network, &flow).await?;
    // Sent after the flow is stored, because the function `delivery` reads the flow.
    app.deliveries()?.send(&Message::Code { flow: id.clone() }, Duration::ZERO).await?;
    Ok(Answer::created(&json!({ "data": { "flow": id.to_string(), "expires_in": CODE_LIFETIME.as_secs() } })))
}

fn email(mut input: Input) -> Result<String, Refusal> {
    let typed = input.required_text("email", MAX_EMAIL);
    let email = mailable(&typed);
    if email.is_none() && !typed.trim().is_empty() {
        input.fail_as("email", Errors::ascii_address);
    }
    input.finish()?;
    Ok(email.unwrap_or_default())
}

/// Returns the host of the requesting page, for the email.
fn host(app: &App, call: &Call) -> String {
    let asking = call.header(header::ORIGIN).and_then(origin::of);
    let own = || app.config.public_url.as_deref().and_then(origin::of);
    let origin = asking.or_else(own).unwrap_or_default();
    origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned()
}

/// Adds the flow to its inbox, unless codes to the address are stopped or a limit on codes is reached.
async fn begin(
    app: &App,
    keys: &FlowKeys,
    id: &FlowId,
    email: &str,
    network: String,
    flow: &Flow,
) -> Result<(), Fault> {
    let (store, now) = (&app.store, app.clock.now());
    let (account, _) = account_of(&app.config.visitor_salt, email);
    let (address, domain) = (keys.address(email), keys.domain(email));
    let of_domain = |has_account| Bound::hourly("codes of a domain", &domain, codes_of_domain(has_account));
    let of_all = |has_account| Bound::hourly("codes of all", Bound::ALL, codes_of_all(has_account));
    let (inbox, sessions, is_stopped, failures, sent_to_domain, sent_to_all) = futures_util::try_join!(
        store.inbox(&id.inbox),
        store.sessions(account),
        store.are_codes_stopped(&address, now),
        store.counted_towards(FAILED_CODES, now),
        store.counted_towards(of_domain(true), now),
        store.counted_towards(of_all(true), now),
    )?;
    let has_account = sessions.is_some();
    let is_known = sessions.is_some_and(|sessions| sessions.contains(&network));
    let asker = Asker { network, is_known };
    let (all, domain) = (of_all(has_account), of_domain(has_account));
    let domain = if is_known { Bound::counter("codes of known networks", &asker.network) } else { domain };
    let refusal = if !inbox.has_room(flow, &asker, now) {
        Some("a limit of the address is reached")
    } else if is_stopped {
        Some("codes to the address are stopped")
    } else if !has_account && failures >= MAX_FAILURES {
        Some("too many addresses refused codes this hour")
    } else if !all.has_room(sent_to_all) {
        Some("the hourly limit on all codes is reached")
    } else if !is_known && !domain.has_room(sent_to_domain) {
        Some("the hourly limit on codes to the domain is reached")
    } else {
        None
    };
    let is_strange = !has_account && refusal.is_none();
    let of_network = Bound::daily("codes of strangers", &asker.network, STRANGERS_OF_NETWORK);
    let of_network = if is_strange { of_network } else { Bound::counter("other codes", &asker.network) };
    let refusal = if store.count_towards(of_network, now).await? {
        refusal
    } else {
        Some("the network's daily limit on codes to addresses without an account is reached")
    };
    let is_started = if refusal.is_none() {
        let inbox = (id.inbox.as_str(), inbox);
        store.start_flow(FlowStart { inbox, flow, asker: &asker, bounds: [domain, all], now }).await?
    } else {
        store.refuse_flow(&asker.network, now).await?;
        false
    };
    if !is_started {
        tracing::warn!("no code sent: {}", refusal.unwrap_or("a limit has just been reached"));
    }
    Ok(())
}
