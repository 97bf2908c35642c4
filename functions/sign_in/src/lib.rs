//! Sign-in by an emailed code or through a provider, for sites without their own users. Only this function has our
//! client secrets for providers, and the seed from which the keys of access and refresh tokens are derived.
//!
//! | file | route |
//! |---|---|
//! | `start` | POST `sign_in`: requests a code |
//! | `redirect` | POST `sign_in` with `provider`, and GET `sign_in/callback/{provider}` |
//! | `providers` | none: requests to providers |
//! | `finish` | POST `sign_in/finish`: begins a session with the code |
//! | `session` | POST `sign_in/refresh` and `sign_in/end` |
//! | `name` | PUT `me/name` |

mod finish;
mod name;
mod providers;
mod redirect;
mod session;
mod start;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use shared::app::{App, Handler};
use shared::auth::own;
use shared::domain::ids::{ID_BOUND, Random};
use shared::domain::sign_in::keys::{RefreshToken, Seed};
use shared::domain::sign_in::{Account, TOKEN_LIFETIME};
use shared::domain::user::User;
use shared::error::{Fault, FieldErrors, Refusal, Result};
use shared::http::input::wording;
use shared::http::request::Call;
use shared::http::resource::OwnUser;
use shared::http::response::Answer;
use tokio::sync::OnceCell;

use crate::providers::Providers;

/// State that this function needs in addition to the app.
#[derive(Default)]
pub struct SignIn {
    /// The seed, once its public key is in the table.
    seed: OnceCell<Seed>,
    providers: Providers,
}

impl Handler for SignIn {
    fn handle<'a>(&'a self, app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
        Box::pin(async move {
            match (call.method.as_str(), call.path().as_slice()) {
                ("POST", ["sign_in"]) => start::start(self, app, call).await,
                ("GET", ["sign_in", "callback", provider]) => redirect::callback(self, app, call, provider).await,
                ("POST", ["sign_in", "finish"]) => finish::finish(self, app, call).await,
                ("POST", ["sign_in", "refresh"]) => session::refresh(self, app, call).await,
                ("POST", ["sign_in", "end"]) => session::end(self, app, call).await,
                ("PUT", ["me", "name"]) => name::update(app, call).await,
                _ => app.unrouted(call).await,
            }
        })
    }
}

impl SignIn {
    /// Returns the seed. Publishes its public key first, so that other functions can verify the first token that this
    /// instance signs.
    async fn seed(&self, app: &App) -> Result<&Seed, Fault> {
        let publish = || async {
            let missing = || Fault::new("signing in", "SVC_SIGN_IN_SEED is not set");
            let seed = app.config.sign_in.as_ref().and_then(|sign_in| sign_in.seed.as_ref()).ok_or_else(missing)?;
            let seed = Seed::new(seed);
            app.store.publish_key(&seed.public(), app.clock.now()).await?;
            Ok(seed)
        };
        self.seed.get_or_try_init(publish).await
    }

    /// Returns the data of a response that begins or continues a session.
    async fn session(&self, app: &App, user: &User, account: &Account, token: &RefreshToken) -> Result<Value> {
        let seed = self.seed(app).await?;
        Ok(json!({
            "access_token": own::sign(seed, account, app.clock.now())?,
            "expires_in": TOKEN_LIFETIME.as_secs(),
            "refresh_token": seed.write(token),
            "user": OwnUser::new(&app.config, user),
        }))
    }
}

/// Returns a random number that identifies a session or an epoch.
fn number(random: &Random) -> u64 {
    u64::from_be_bytes(random.bytes()) % ID_BOUND
}

/// Reads a text field. Returns an empty string if the field is missing.
fn text<'a>(call: &Call, fields: &'a Map<String, Value>, field: &'static str) -> Result<&'a str, Refusal> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => {
            let (errors, name) = wording(Some(call.language()), field);
            Err(FieldErrors::one(field, errors.not_text(&name)))
        }
    }
}
