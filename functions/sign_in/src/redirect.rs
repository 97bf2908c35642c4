//! Redirects to a provider and back: POST `sign_in` with `provider`, and GET `sign_in/callback/{provider}`.

use http::{HeaderValue, StatusCode, header};
use maud::html;
use serde_json::json;
use shared::app::App;
use shared::domain::origin;
use shared::domain::sign_in::bounds::{over_hourly_limit, wait};
use shared::domain::sign_in::keys::{FlowKeys, nonce};
use shared::domain::sign_in::providers::{Provider, ProviderAccount};
use shared::domain::sign_in::redirect::{
    CALLBACKS_OF_NETWORK, FLOW_LIFETIME, FLOWS_OF_NETWORK, OwnSecrets, Profile, RedirectFlow, Returned, Started,
    is_challenge, return_to,
};
use shared::domain::texts::Pages;
use shared::error::{Fault, FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::page;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::store::bounds::Bound;
use url::Url;

use crate::SignIn;
use crate::providers::{Client, Failure, Returning};

/// Sent in the fragment instead of a code when the sign-in failed.
const FAILED: &str = "failed";

/// Starts a flow, and returns the provider's address to redirect the reader to.
pub(crate) async fn start(sign_in: &SignIn, app: &App, call: &Call, mut input: Input) -> Result<Answer> {
    let provider = input.value("provider").and_then(|id| id.as_str()).and_then(Provider::of_id);
    let redirect_uri = provider.map(|provider| callback_of(call, provider)).unwrap_or_default();
    let client = provider.and_then(|provider| Client::new(app, provider, &redirect_uri));
    let Some(client) = client.filter(|_| input.value("email").is_none()) else {
        let message =
            "The provider must be one of ui.sign_in_methods other than email, and can't be combined with an email.";
        return Err(FieldErrors::one("provider", message).into());
    };
    let text = |name: &str| input.value(name).and_then(|value| value.as_str()).map(str::to_owned);
    let challenge = text("challenge").filter(|text| is_challenge(text));
    let page = text("return_to").filter(|page| returns_to(app, call, page).is_some());
    if challenge.is_none() {
        input.fail("challenge", "The challenge must be the S256 challenge of a verifier (RFC 7636).");
    }
    if page.is_none() {
        let message = "must be the URL of a page on a listed origin, in at most 2000 ASCII characters";
        input.fail("return_to", format!("The return_to {message}."));
    }
    let (challenge, page) = input.finish_with(challenge.zip(page))?;

    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let bound = keys.network(call.network);
    if !app.store.count_towards(Bound::hourly("redirects", &bound, FLOWS_OF_NETWORK), now).await? {
        return Err(over_hourly_limit(FLOWS_OF_NETWORK, now).into());
    }
    let state = nonce(app.random.bytes());
    let verifier = [nonce(app.random.bytes()), nonce(app.random.bytes())].concat();
    let own = OwnSecrets { verifier, nonce: nonce(app.random.bytes()) };
    let url = match sign_in.providers.authorize(client, &state, &own, now).await {
        Ok(url) => url,
        Err(failure) => {
            warn(client, &failure);
            return Err(Refusal::Unavailable.into());
        }
    };
    let page = page.split('#').next().unwrap_or_default().to_owned();
    let started = Started { return_to: page, secrets: keys.seal_of_redirect(&own) };
    let (id, flow) = (client.settings.provider.facts().id, keys.redirect(&state));
    let item = RedirectFlow::new(id, &challenge, started, now);
    app.store.start_redirect(&keys.redirect_name(&flow), &item).await?;
    Ok(Answer::created(&json!({ "data": { "flow": flow, "url": url, "expires_in": FLOW_LIFETIME.as_secs() } })))
}

/// GET `sign_in/callback/{provider}`, which the provider redirects the reader to.
pub(crate) async fn callback(sign_in: &SignIn, app: &App, call: &Call, id: &str) -> Result<Answer> {
    let provider = Provider::of_id(id).ok_or(Refusal::NotFound)?;
    let redirect_uri = callback_of(call, provider);
    let client = Client::new(app, provider, &redirect_uri).ok_or(Refusal::NotFound)?;
    let (keys, now) = (FlowKeys::new(&app.config.visitor_salt), app.clock.now());
    let bound = keys.network(call.network);
    if !app.store.count_towards(Bound::hourly("callbacks", &bound, CALLBACKS_OF_NETWORK), now).await? {
        let mut page = sentence(call, StatusCode::TOO_MANY_REQUESTS, |texts| texts.sign_in_too_often());
        page.set(header::RETRY_AFTER, HeaderValue::from(wait(now)));
        page.set_rate_limit(CALLBACKS_OF_NETWORK, 0);
        return Ok(page);
    }
    let flow = keys.redirect(only(call, "state").unwrap_or_default());
    let name = keys.redirect_name(&flow);
    let started = app.store.change_redirect(&name, |item| item.take(id, now)).await?;
    let to = started.as_ref().and_then(|started| returns_to(app, call, &started.return_to));
    let own = started.as_ref().and_then(|started| keys.open_of_redirect::<OwnSecrets>(&started.secrets));
    let Some((to, own)) = to.zip(own) else {
        return Ok(sentence(call, StatusCode::BAD_REQUEST, |texts| texts.sign_in_is_over()));
    };
    // A parameter that appears twice counts as missing. A repeated `iss` also invalidates the code, because a missing
    // `iss` may be accepted.
    let is_doubled = call.query.iter().any(|(name, _)| name == "iss") && only(call, "iss").is_none();
    let code = only(call, "code").filter(|_| !is_doubled);
    let returning = Returning { code, issuer: only(call, "iss") };
    let code = match sign_in.providers.profile(client, returning, &own, now).await {
        Ok(profile) => comes_back(app, call, &keys, &flow, &ProviderOf { provider, profile }).await?,
        Err(failure) => {
            warn(client, &failure);
            None
        }
    };
    Ok(redirect(to, &flow, code.as_deref().unwrap_or(FAILED)))
}

struct ProviderOf {
    provider: Provider,
    profile: Profile,
}

/// Makes a code for the page, and stores the account. Returns `None` if the flow has ended meanwhile.
async fn comes_back(
    app: &App,
    call: &Call,
    keys: &FlowKeys,
    flow: &str,
    of: &ProviderOf,
) -> Result<Option<String>, Fault> {
    let account = ProviderAccount { provider: of.provider, subject: of.profile.subject.clone() };
    let Some((user, _)) = app.config.account_elsewhere(&account) else { return Ok(None) };
    let code = nonce(app.random.bytes());
    let picture = of.profile.picture.clone().filter(|_| app.config.guests.show_gravatar);
    let returned = Returned {
        code: keys.redirect_code(flow, &code),
        network: keys.wider_network(call.network),
        profile: keys.seal_of_redirect(&Profile { picture, ..of.profile.clone() }),
    };
    let now = app.clock.now();
    let note = |item: &mut RedirectFlow| item.comes_back(user, returned.clone(), now);
    let is_noted = app.store.change_redirect(&keys.redirect_name(flow), note).await?;
    Ok(is_noted.then_some(code))
}

/// Sends the reader back to the page. The code is in the fragment, which browsers don't send to servers.
fn redirect(mut to: Url, flow: &str, code: &str) -> Answer {
    to.set_fragment(Some(&format!("comment-sign-in={flow}.{code}")));
    let mut answer = Answer::new(StatusCode::SEE_OTHER, "text/plain", Vec::new());
    if let Ok(location) = HeaderValue::from_str(to.as_str()) {
        answer.set(header::LOCATION, location);
    }
    answer.set(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

fn sentence(call: &Call, status: StatusCode, says: impl Fn(&Pages) -> &'static str) -> Answer {
    let texts = Pages::of(call.language());
    page::of_one_sentence(status, texts.language(), texts.sign_in(), says(&texts), &html! {})
}

/// Returns our callback, as registered with the provider.
fn callback_of(call: &Call, provider: Provider) -> String {
    format!("{}/sign_in/callback/{}", call.base_url, provider.facts().id)
}

fn returns_to(app: &App, call: &Call, page: &str) -> Option<Url> {
    return_to(page, &app.config.cors_origins, origin::of(&call.base_url).as_deref())
}

/// Returns the value of a parameter that appears exactly once.
fn only<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    let mut values = call.query.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
    values.next().filter(|_| values.next().is_none())
}

fn warn(client: Client<'_>, failure: &Failure) {
    tracing::warn!(provider = client.settings.provider.facts().id, "a reader could not sign in: {failure}");
}
