//! GET, PUT and DELETE `me/notifications`: what a member is told by mail.

use serde_json::{Value, json};
use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::domain::email::{is_mailable, masked};
use shared::domain::mail_keys::Recipient;
use shared::domain::mailbox::{Address, Asker, Mailbox, State, Wants};
use shared::domain::rate_limit::RateClass;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::{Call, Credential};
use shared::http::response::Answer;
use shared::policy;

/// GET `me/notifications`
pub(crate) async fn show(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Read, exists(app), AuthRequirement::User).await?;
    let recipient = recipient(&viewer)?;
    let mut mailbox = app.store.mailbox(&recipient).await?;
    if app.is_stopped(&recipient, &mailbox).await? {
        // The next mail would find out.
        mailbox.stop(app.clock.now().0, None);
    }
    Ok(Answer::ok(&resource(app, &mailbox)))
}

/// PUT `me/notifications`
pub(crate) async fn update(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Write, exists(app), AuthRequirement::User).await?;
    let recipient = recipient(&viewer)?;
    let mut input = Input::new(call.json()?);
    let wants = Wants {
        replies: input.flag("replies"),
        mentions: input.flag("mentions"),
        own_records: input.flag("own_records"),
    };
    input.finish()?;
    let (mut mailbox, now) = (app.store.mailbox(&recipient).await?, app.clock.now().0);
    mailbox.reopen(now);
    let unknown = || FieldErrors::one("email", "No e-mail address is known: the token has none that mail can go to.");
    let address = address(app, call, &mailbox).or_else(|| mailbox.given_address().cloned()).ok_or_else(unknown)?;
    let network = app.mail_keys().network(call.network);
    // Whoever claims an address learns nothing of it: only the network is counted before the answer.
    if !address.confirmed && mailbox.state != State::On && !app.count_asking(&network, &address).await? {
        return Err(Refusal::RateLimited(app.until(app.next_hour()).as_secs()).into());
    }
    let name = app.mail_keys().address(&address.sealed).unwrap_or_default();
    let asker = Asker::new(name, address.clone(), network, None);
    let wait = app.config.mail.as_ref().map(|mail| mail.wait).unwrap_or_default();
    let choose = |mailbox: &mut Mailbox| {
        mailbox.choose(wants, now);
        if address.confirmed {
            mailbox.enrol(address.clone(), now, wait);
        } else {
            mailbox.claim(asker.clone(), now, wait);
        }
    };
    let (mailbox, ()) = app.store.change_mailbox(&recipient, choose).await?;
    app.start_delivery(&recipient, &mailbox).await?;
    Ok(Answer::ok(&resource(app, &mailbox)))
}

/// DELETE `me/notifications`. Nobody is kept from being forgotten: not in read-only mode, no banned member, and none after
/// subscriptions were turned off.
pub(crate) async fn destroy(app: &App, call: &Call) -> Result<Answer> {
    let viewer = app.admit(call, RateClass::Forget, Ok(()), AuthRequirement::User).await?;
    app.store.change_mailbox(&recipient(&viewer)?, Mailbox::forget).await?;
    Ok(Answer::no_content())
}

fn exists(app: &App) -> Result<(), Refusal> {
    policy::feature(app.config.features.subscriptions && app.config.mail.is_some())
}

fn recipient(viewer: &Viewer) -> Result<Recipient, Refusal> {
    viewer.user_id().map(Recipient::from).ok_or(Refusal::Unauthenticated)
}

/// The address of the token.
fn address(app: &App, call: &Call, mailbox: &Mailbox) -> Option<Address> {
    let Credential::User(identity) = &call.credential else { return None };
    let email = identity.claims.email.as_deref().filter(|email| is_mailable(email))?;
    let language = call.language().tag().to_owned();
    let keys = app.mail_keys();
    let confirmed = !identity.claims.email_unverified || mailbox.has_proven(&keys.plain_address(email));
    Some(Address { sealed: keys.seal(email), language, confirmed })
}

fn resource(app: &App, mailbox: &Mailbox) -> Value {
    let email = mailbox.given_address().and_then(|address| app.mail_keys().open(&address.sealed));
    let state = match mailbox.state {
        State::New | State::Off => "off",
        State::Asked => "asked",
        State::On => "on",
        State::Bounced => "bounced",
    };
    let wants = mailbox.wants();
    json!({ "data": {
        "email": email.map(|email| masked(&email)),
        "state": state,
        "replies": wants.replies,
        "mentions": wants.mentions,
        "own_records": wants.own_records,
    } })
}
