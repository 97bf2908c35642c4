//! POST `sign_in`. The answer is the same for every address, and the mail is sent later, so that neither the answer nor its time
//! tells who has an account.

use std::time::Duration;

use http::header;
use serde_json::json;
use shared::app::App;
use shared::domain::deliveries::Message;
use shared::domain::email::{MAX_EMAIL, is_mailable};
use shared::domain::origin;
use shared::domain::sign_in::bounds::{CODES_OF_DOMAIN, CODES_OF_NETWORK, codes_of_all, wait};
use shared::domain::sign_in::inbox::{Asker, Flow};
use shared::domain::sign_in::keys::{FlowId, FlowKeys, nonce};
use shared::domain::sign_in::{CODE_LIFETIME, account_of};
use shared::error::{Fault, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::sign_in::CodeBound;

pub(crate) async fn start(app: &App, call: &Call) -> Result<Answer> {
    policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins))?;
    let email = email(call)?;
    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let network = keys.network(call.network);
    if !app.store.count_code(CodeBound::Network(&network), CODES_OF_NETWORK, now).await? {
        return Err(Refusal::RateLimited(wait(now)).into());
    }
    let id = FlowId { inbox: keys.inbox(&email), nonce: nonce(app.random.bytes()) };
    let flow = Flow::new(id.nonce.clone(), &host(app, call), call.language().tag().to_owned(), keys.seal(&email), now);
    if is_allowed(app, &keys, &id, &email, network, &flow).await? {
        app.deliveries()?.send(&Message::Code { flow: id.clone() }, Duration::ZERO).await?;
    }
    Ok(Answer::created(&json!({ "data": { "flow": id.to_string(), "expires_in": CODE_LIFETIME.as_secs() } })))
}

/// The address, without the white space around it.
fn email(call: &Call) -> Result<String, Refusal> {
    let mut input = Input::new(call.json()?);
    let email = input.required_text("email", MAX_EMAIL).trim().to_owned();
    if !email.is_empty() && !is_mailable(&email) {
        input.fail("email", "The email must be an e-mail address in ASCII.");
    }
    input.finish()?;
    Ok(email)
}

/// The host of the page that asks, for the mail.
fn host(app: &App, call: &Call) -> String {
    let asking = call.header(header::ORIGIN).and_then(origin::of);
    let own = || app.config.public_url.as_deref().and_then(origin::of);
    let origin = asking.or_else(own).unwrap_or_default();
    origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned()
}

/// Whether the code may be sent: within the bounds of the address, of its domain and of all. Counts it, and adds the flow to the
/// inbox. The address is looked at first, so that what it refuses does not count against others.
async fn is_allowed(
    app: &App,
    keys: &FlowKeys,
    id: &FlowId,
    email: &str,
    network: String,
    flow: &Flow,
) -> Result<bool, Fault> {
    let (store, now) = (&app.store, app.clock.now());
    let (account, _) = account_of(&app.config.visitor_salt, email);
    let (inbox, sessions) = futures_util::try_join!(store.inbox(&id.inbox), store.sessions(account))?;
    let is_known = sessions.as_ref().is_some_and(|sessions| sessions.knows(&network));
    let asker = Asker { network, is_known };
    if !inbox.has_room(&asker, now) {
        return Ok(false);
    }
    let domain = keys.domain(email);
    let bounds = [
        ("a domain", CodeBound::Domain(&domain), CODES_OF_DOMAIN),
        ("all", CodeBound::All, codes_of_all(sessions.is_some())),
    ];
    for (whose, bound, most) in bounds {
        if !store.count_code(bound, most, now).await? {
            tracing::warn!(most, "no code is sent: the bound of {whose} is reached");
            return Ok(false);
        }
    }
    store.start_flow(&id.inbox, flow, &asker, now).await
}
