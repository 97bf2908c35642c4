//! Clients of the sign-in providers. GitHub is OAuth 2 with an API that identifies the user. All other providers are
//! OpenID Connect with discovery.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::request::Builder;
use http::{Request, Uri};
use serde_json::{Map, Value};
use shared::app::App;
use shared::auth::id_token::{BadToken, Expected, IssuerKeys};
use shared::aws::https;
use shared::config::ProviderClient;
use shared::domain::email::mailable;
use shared::domain::origin::is_loopback;
use shared::domain::sign_in::providers::{Protocol, Provider, ProviderAccount};
use shared::domain::sign_in::redirect::{OwnSecrets, Profile, challenge_of};
use shared::domain::time::Timestamp;
use shared::domain::user::{clean_name, is_picture};
use tokio::sync::Mutex;

/// Time limit for all requests to a provider during one call. The function itself times out after ten seconds.
const TIMEOUT: Duration = Duration::from_secs(7);
/// Maximum bytes of a response's body.
const ANSWER_LIMIT: usize = 64 * 1024;
/// The age at which a provider's configuration is fetched again.
const MAX_AGE: Duration = Duration::from_hours(1);
/// Maximum bytes of a picture's address. The address is stored in the flow, so a longer one would raise write costs.
const MAX_PICTURE: usize = 512;
/// The addresses of github.com and its API. Other GitHub servers have the API on the same host.
const GITHUB: (&str, &str) = ("https://github.com", "https://api.github.com");

/// The reason why a provider can't be used. It contains no text from the provider's response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no response within {TIMEOUT:?}")]
    Timeout,
    #[error("no response: {0}")]
    Http(#[from] https::Error),
    #[error("status {0}")]
    Status(u16),
    #[error("{0}")]
    Nonsense(&'static str),
    #[error("the ID token was rejected: {0}")]
    Token(#[from] BadToken),
}

use Failure::Nonsense;

/// This service's OAuth client at a provider.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) settings: &'a ProviderClient,
    pub(crate) issuer: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) wants_address: bool,
}

/// The parameters that the provider adds to the callback.
pub(crate) struct Returning<'a> {
    pub(crate) code: Option<&'a str>,
    /// The parameter `iss` (RFC 9207).
    pub(crate) issuer: Option<&'a str>,
}

/// The connections to providers, and the configuration of those that support discovery.
pub(crate) struct Providers {
    client: https::Client,
    google: Mutex<Option<Discovery>>,
    oidc: Mutex<Option<Discovery>>,
}

/// An OpenID provider's configuration (OpenID Connect Discovery, section 3).
#[derive(Clone)]
struct Discovery {
    asked_at: Timestamp,
    authorize: String,
    token: String,
    user: Option<String>,
    keys: IssuerKeys,
    by_post: bool,
    says_issuer: bool,
}

impl Default for Providers {
    fn default() -> Self {
        let client = https::Client::new(TIMEOUT).limited_to(ANSWER_LIMIT);
        Self { client, google: Mutex::default(), oidc: Mutex::default() }
    }
}

impl<'a> Client<'a> {
    /// Returns `None` if the provider isn't one of the sign-in methods.
    pub(crate) fn new(app: &'a App, provider: Provider, redirect_uri: &'a str) -> Option<Self> {
        let settings = app.config.sign_in.as_ref()?.client(provider)?;
        let issuer = app.config.issuers.of(provider)?;
        Some(Self { settings, issuer, redirect_uri, wants_address: app.config.features.subscriptions })
    }

    fn scope(&self) -> &'static str {
        let facts = self.settings.provider.facts();
        if self.wants_address { facts.scope_with_address } else { facts.scope }
    }

    fn is_github(&self) -> bool {
        self.settings.provider.facts().protocol == Protocol::GitHub
    }

    fn github_api(&self, path: &str) -> String {
        let (github, api) = GITHUB;
        if self.issuer == github { format!("{api}{path}") } else { format!("{}/api/v3{path}", self.issuer) }
    }

    /// Whether we may call this address of the provider. Plain HTTP is allowed only if both the address and the issuer
    /// are on this machine.
    fn is_safe(&self, url: &str) -> bool {
        let host = |url: &Uri| url.host().is_some_and(is_loopback);
        let is_here = || self.issuer.parse().is_ok_and(|issuer: Uri| host(&issuer));
        url.parse().is_ok_and(|url: Uri| match url.scheme_str() {
            Some("https") => url.host().is_some(),
            Some("http") => host(&url) && is_here(),
            _ => false,
        })
    }
}

impl Providers {
    /// Returns the provider's address to redirect the reader to.
    ///
    /// # Errors
    ///
    /// When the provider's configuration can't be fetched or used.
    pub(crate) async fn authorize(
        &self,
        client: Client<'_>,
        state: &str,
        own: &OwnSecrets,
        now: Timestamp,
    ) -> Result<String, Failure> {
        let address = if client.is_github() {
            format!("{}/login/oauth/authorize", client.issuer)
        } else {
            within(self.discovery(client, now)).await?.authorize
        };
        let (scope, challenge) = (client.scope(), challenge_of(&own.verifier).unwrap_or_default());
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &client.settings.id),
            ("redirect_uri", client.redirect_uri),
            ("state", state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        fields.extend((!scope.is_empty()).then_some(("scope", scope)));
        fields.extend((!client.is_github()).then_some(("nonce", own.nonce.as_str())));
        let separator = if address.contains('?') { '&' } else { '?' };
        Ok(format!("{address}{separator}{}", encode(&fields)))
    }

    /// Returns the provider's profile of the user who came back.
    ///
    /// # Errors
    ///
    /// When the provider doesn't identify the user, or identifies the user to another client.
    pub(crate) async fn profile(
        &self,
        client: Client<'_>,
        returning: Returning<'_>,
        own: &OwnSecrets,
        now: Timestamp,
    ) -> Result<Profile, Failure> {
        let profile = within(async {
            if client.is_github() {
                self.profile_of_github(client, returning, own).await
            } else {
                self.profile_of_openid(client, returning, own, now).await
            }
        });
        let profile = profile.await?;
        let account = ProviderAccount::new(client.settings.provider, &profile.subject);
        account.map(|_| profile).ok_or(Nonsense("the account has no id"))
    }

    async fn profile_of_github(
        &self,
        client: Client<'_>,
        returning: Returning<'_>,
        own: &OwnSecrets,
    ) -> Result<Profile, Failure> {
        // GitHub's metadata (RFC 8414) has an issuer that ends in this path.
        let is_issuer = |issuer: &str| issuer.strip_suffix("/login/oauth").unwrap_or(issuer) == client.issuer;
        if !returning.issuer.is_none_or(is_issuer) {
            return Err(Nonsense("the response came from another issuer"));
        }
        let token = format!("{}/login/oauth/access_token", client.issuer);
        let tokens = self.exchange(client, &token, true, returning, own).await?;
        let bearer = bearer(&tokens)?;
        let get = |path: &str| Request::get(client.github_api(path)).header(AUTHORIZATION, &bearer);
        let user = object(self.json(get("/user"), String::new()).await?)?;
        let text = |name: &str| user.get(name).and_then(Value::as_str);
        let id = user.get("id").and_then(Value::as_u64).ok_or(Nonsense("the account has no id"))?;
        let mut address = None;
        if client.wants_address {
            // The reader may not have granted the scope.
            address = match self.json(get("/user/emails"), String::new()).await {
                Ok(Value::Array(list)) => list.iter().find(|one| one["primary"] == true).and_then(verified),
                Ok(_) | Err(Failure::Status(_)) => None,
                Err(failure) => return Err(failure),
            };
        }
        Ok(Profile {
            subject: id.to_string(),
            name: text("login").and_then(clean_name),
            picture: text("avatar_url").and_then(picture),
            address,
        })
    }

    async fn profile_of_openid(
        &self,
        client: Client<'_>,
        returning: Returning<'_>,
        own: &OwnSecrets,
        now: Timestamp,
    ) -> Result<Profile, Failure> {
        let discovery = self.discovery(client, now).await?;
        let is_issuer = match returning.issuer {
            Some(issuer) => issuer == client.issuer,
            None => !discovery.says_issuer,
        };
        if !is_issuer {
            return Err(Nonsense("the response came from another issuer"));
        }
        let tokens = self.exchange(client, &discovery.token, discovery.by_post, returning, own).await?;
        let token = tokens.get("id_token").and_then(Value::as_str).ok_or(Nonsense("there is no ID token"))?;
        let expected = Expected { issuer: client.issuer, client_id: &client.settings.id, nonce: &own.nonce };
        let claims = Value::Object(discovery.keys.verify(token, expected, now).await?);
        let mut profile = profile(&claims);
        let is_complete = profile.name.is_some() && (profile.address.is_some() || !client.wants_address);
        if let (Some(user), false, Ok(bearer)) = (&discovery.user, is_complete, bearer(&tokens)) {
            let said = self.json(Request::get(user).header(AUTHORIZATION, bearer), String::new()).await;
            // A failure is ignored, because the ID token already identifies the user.
            if let Some(said) = said.ok().filter(|said| said["sub"].as_str() == Some(&profile.subject)) {
                let more = self::profile(&said);
                profile.name = profile.name.or(more.name);
                profile.picture = profile.picture.or(more.picture);
                profile.address = profile.address.or(more.address);
            }
        }
        profile.address = profile.address.filter(|_| client.wants_address);
        Ok(profile)
    }

    /// Exchanges the reader's code for tokens.
    async fn exchange(
        &self,
        client: Client<'_>,
        url: &str,
        by_post: bool,
        returning: Returning<'_>,
        own: &OwnSecrets,
    ) -> Result<Map<String, Value>, Failure> {
        let code = returning.code.ok_or(Nonsense("the provider sent the reader back without a code"))?;
        let (id, secret) = (client.settings.id.as_str(), client.settings.secret.expose());
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", client.redirect_uri),
            ("code_verifier", &own.verifier),
        ];
        let mut request = Request::post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if by_post {
            fields.extend([("client_id", id), ("client_secret", secret)]);
        } else {
            // The id and the secret are form-encoded first (RFC 6749, section 2.3.1).
            let encoded = [id, secret].map(|text| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>());
            request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(encoded.join(":"))));
        }
        object(self.json(request, encode(&fields)).await?)
    }

    /// Returns the provider's configuration, cached for an hour.
    async fn discovery(&self, client: Client<'_>, now: Timestamp) -> Result<Discovery, Failure> {
        let known = if client.settings.provider == Provider::Google { &self.google } else { &self.oidc };
        let mut known = known.lock().await;
        if let Some(discovery) = known.as_ref().filter(|known| known.asked_at.is_within(MAX_AGE, now)) {
            return Ok(discovery.clone());
        }
        let url = format!("{}/.well-known/openid-configuration", client.issuer.trim_end_matches('/'));
        let said = self.json(Request::get(url), String::new()).await?;
        if said["issuer"].as_str() != Some(client.issuer) {
            return Err(Nonsense("the discovery document names a different issuer"));
        }
        let endpoint = |name: &str| said[name].as_str().filter(|url| client.is_safe(url)).map(str::to_owned);
        let needed = |name: &str| endpoint(name).ok_or(Nonsense("discovery has no endpoint that is safe to call"));
        let keys: Uri = needed("jwks_uri")?.parse().map_err(|_| Nonsense("jwks_uri isn't a valid address"))?;
        let lists = |method: &str| {
            let listed = said["token_endpoint_auth_methods_supported"].as_array();
            listed.is_some_and(|listed| listed.iter().any(|one| one == method))
        };
        let kept = known.take().map(|known| known.keys).filter(|known| *known.url() == keys);
        let discovery = Discovery {
            asked_at: now,
            authorize: needed("authorization_endpoint")?,
            token: needed("token_endpoint")?,
            user: endpoint("userinfo_endpoint"),
            keys: kept.unwrap_or_else(|| IssuerKeys::new(keys, self.client.clone())),
            by_post: lists("client_secret_post") && !lists("client_secret_basic"),
            says_issuer: said["authorization_response_iss_parameter_supported"] == true,
        };
        *known = Some(discovery.clone());
        Ok(discovery)
    }

    async fn json(&self, request: Builder, body: String) -> Result<Value, Failure> {
        let request = request
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("comments/", env!("CARGO_PKG_VERSION")))
            .body(body)
            .map_err(|_| Nonsense("an address cannot be called"))?;
        let answer = self.client.send(request).await?;
        if answer.status() != http::StatusCode::OK {
            return Err(Failure::Status(answer.status().as_u16()));
        }
        serde_json::from_slice(answer.body()).map_err(|_| Nonsense("the response isn't JSON"))
    }
}

fn encode(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

async fn within<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(Failure::Timeout))
}

fn object(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Nonsense("the response isn't an object")),
    }
}

fn bearer(tokens: &Map<String, Value>) -> Result<String, Failure> {
    let token = tokens.get("access_token").and_then(Value::as_str).ok_or(Nonsense("there is no access token"))?;
    Ok(format!("Bearer {token}"))
}

/// Reads the profile from the claims of an ID token, or from userinfo.
fn profile(claims: &Value) -> Profile {
    let text = |name: &str| claims[name].as_str();
    Profile {
        subject: text("sub").unwrap_or_default().to_owned(),
        name: text("name").and_then(clean_name),
        picture: text("picture").and_then(picture),
        address: (claims["email_verified"] == true).then(|| text("email").and_then(mailable)).flatten(),
    }
}

/// Returns the address, if GitHub has verified it.
fn verified(one: &Value) -> Option<String> {
    one["email"].as_str().filter(|_| one["verified"] == true).and_then(mailable)
}

fn picture(url: &str) -> Option<String> {
    (is_picture(url) && url.len() <= MAX_PICTURE).then(|| url.to_owned())
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").finish_non_exhaustive()
    }
}
