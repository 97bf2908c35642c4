//! Settings for sign-in: its methods, and our clients at the providers.

use super::ConfigError;
use super::auth::check_length;
use super::mail::MAX_SITE_NAME;
use super::vars::{BASE_URL, Vars, is_discovery_document, web_address};
use crate::ids::UserId;
use crate::origin::is_loopback;
use crate::secret::{self, Secret};
use crate::sign_in::providers::{Issuers, Method, Provider, ProviderAccount};
use crate::visible;

/// Minimum length of the seed, in bytes.
pub const MIN_SEED: usize = 32;
const GITHUB: &str = "https://github.com";
/// Describes the accepted values of settings that contain a provider's address.
const PROVIDER_URL: &str = "an https address without user, query, fragment or /.well-known/openid-configuration, such as https://id.example.org";

#[derive(Clone, Debug)]
pub struct SignIn {
    /// `SVC_SIGN_IN`, in the order given
    pub methods: Vec<Method>,
    /// Our clients at the providers among the methods; empty in functions other than `sign_in`.
    pub clients: Vec<ProviderClient>,
    /// `SVC_OIDC_NAME`, which `oidc` requires; empty if it isn't set
    pub oidc_name: String,
    /// `SVC_SIGN_IN_SEED`: the seed of the keys that sign access and refresh tokens; only the function `sign_in` has it
    pub seed: Option<Secret>,
}

/// Our OAuth client at a provider.
#[derive(Clone, Debug)]
pub struct ProviderClient {
    pub provider: Provider,
    /// `SVC_…_CLIENT_ID`
    pub id: String,
    /// `SVC_…_CLIENT_SECRET`
    pub secret: Secret,
}

impl SignIn {
    #[must_use]
    pub fn has(&self, method: Method) -> bool {
        self.methods.contains(&method)
    }

    #[must_use]
    pub fn client(&self, provider: Provider) -> Option<&ProviderClient> {
        self.clients.iter().find(|client| client.provider == provider)
    }
}

fn client_variables(provider: Provider) -> [&'static str; 2] {
    match provider {
        Provider::GitHub => ["SVC_GITHUB_CLIENT_ID", "SVC_GITHUB_CLIENT_SECRET"],
        Provider::Google => ["SVC_GOOGLE_CLIENT_ID", "SVC_GOOGLE_CLIENT_SECRET"],
        Provider::Oidc => ["SVC_OIDC_CLIENT_ID", "SVC_OIDC_CLIENT_SECRET"],
    }
}

/// The address of GitHub or a GitHub Enterprise server, even if it was given as the address of its API.
fn without_api(url: &str) -> &str {
    match url.trim_end_matches('/') {
        "https://api.github.com" => GITHUB,
        url => url.strip_suffix("/api/v3").unwrap_or(url),
    }
}

pub(super) fn check_seed(seed: &Secret) -> Result<(), ConfigError> {
    check_length("SVC_SIGN_IN_SEED", seed, MIN_SEED)
}

pub(super) fn client_secrets(sign_in: Option<&SignIn>) -> impl Iterator<Item = (&'static str, &Secret)> {
    let clients = sign_in.into_iter().flat_map(|sign_in| &sign_in.clients);
    clients.map(|client| (client_variables(client.provider)[1], &client.secret))
}

/// Parses a provider account as written in `SVC_MODERATORS`, such as `github:583231`. `None` if the text names no provider.
pub(super) fn provider_account(text: &str) -> Option<Result<ProviderAccount, &'static str>> {
    Provider::of_id(text.split_once(':')?.0).map(|_| text.parse())
}

impl super::Config {
    /// The user id and the subject of a provider account; `None` if the provider's issuer isn't set.
    #[must_use]
    pub fn account_elsewhere(&self, account: &ProviderAccount) -> Option<(UserId, String)> {
        self.issuers.account(&self.visitor_salt, account)
    }
}

impl Vars<'_> {
    /// The methods in `SVC_SIGN_IN`; empty if sign-in is off. `true` is short for `email`.
    pub(super) fn methods(&self) -> Result<Vec<Method>, ConfigError> {
        const NAME: &str = "SVC_SIGN_IN";
        if let Ok(on) = self.switch(NAME, false) {
            return Ok(if on { vec![Method::Email] } else { Vec::new() });
        }
        let mut methods = Vec::new();
        for name in self.entries(NAME) {
            let method = Method::ALL.into_iter().find(|method| method.id() == name);
            match method.filter(|method| !methods.contains(method)) {
                Some(method) => methods.push(method),
                None => return Err(self.wrong_methods()),
            }
        }
        if methods.is_empty() { Err(self.wrong_methods()) } else { Ok(methods) }
    }

    fn wrong_methods(&self) -> ConfigError {
        let ids = Method::ALL.map(Method::id).join(", ");
        self.wrong("SVC_SIGN_IN", format_args!("true, false, or any of {ids}, each once, separated by commas"))
    }

    pub(super) fn issuers(&self) -> Result<Issuers, ConfigError> {
        let github = self.provider_url("SVC_GITHUB_URL")?;
        Ok(Issuers {
            github: github.map_or_else(|| GITHUB.to_owned(), |url| without_api(&url).to_owned()),
            oidc: self.provider_url("SVC_OIDC_ISSUER")?,
        })
    }

    fn provider_url(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_safe = |url: &http::Uri| {
            let is_private = url.scheme_str() == Some("https") || url.host().is_some_and(is_loopback);
            is_private && !text.contains('?') && !is_discovery_document(&text)
        };
        match web_address(&text).filter(is_safe) {
            Some(_) => Ok(Some(text)),
            None => Err(self.wrong(name, PROVIDER_URL)),
        }
    }

    /// Reads the sign-in settings; `None` if sign-in is off. `SVC_SIGN_IN_SEED` is present, even if empty, only in the function
    /// that signs access tokens.
    pub(super) fn sign_in(&self) -> Result<Option<SignIn>, ConfigError> {
        let seed = self.text("SVC_SIGN_IN_SEED").map(Secret::from);
        let signs = (self.var)("SVC_SIGN_IN_SEED").is_some();
        let (methods, oidc_name) = (self.methods()?, self.oidc_name()?);
        let clients = self.clients(&methods, signs)?;
        if let Some(seed) = seed.as_ref().filter(|seed| !secret::is_name(seed.expose())) {
            check_seed(seed)?;
        }
        if methods.is_empty() {
            return Ok(None);
        }
        let needed = |name, accepted: &str| self.wrong(name, format_args!("{accepted}, because SVC_SIGN_IN is on"));
        if self.text("SVC_PUBLIC_URL").is_none() {
            return Err(needed("SVC_PUBLIC_URL", BASE_URL));
        }
        if self.origins("SVC_CORS_ORIGINS")?.has_any_host() {
            return Err(needed("SVC_CORS_ORIGINS", "a list of origins"));
        }
        if signs && seed.is_none() {
            return Err(needed("SVC_SIGN_IN_SEED", "a secret that isn't used for anything else"));
        }
        if methods.contains(&Method::Provider(Provider::Oidc)) {
            let needed = |name, accepted: &str| self.needed_by(Provider::Oidc, name, accepted);
            if self.text("SVC_OIDC_ISSUER").is_none() {
                return Err(needed("SVC_OIDC_ISSUER", PROVIDER_URL));
            }
            if oidc_name.is_empty() {
                return Err(needed("SVC_OIDC_NAME", "the name that the button shows"));
            }
        }
        Ok(Some(SignIn { methods, clients, oidc_name, seed }))
    }

    fn needed_by(&self, provider: Provider, name: &'static str, accepted: &str) -> ConfigError {
        self.wrong(name, format_args!("{accepted}, because SVC_SIGN_IN lists {}", provider.facts().id))
    }

    /// Our clients at the providers among `methods`; empty unless `signs`. The variables of all providers are read, so that
    /// none is reported as unknown.
    fn clients(&self, methods: &[Method], signs: bool) -> Result<Vec<ProviderClient>, ConfigError> {
        let mut clients = Vec::new();
        for provider in [Provider::GitHub, Provider::Google, Provider::Oidc] {
            let [id, secret] = client_variables(provider);
            let values = [self.text(id), self.text(secret)];
            if !signs || !methods.contains(&Method::Provider(provider)) {
                continue;
            }
            let [client, hidden] = values;
            let client = client.ok_or_else(|| self.needed_by(provider, id, "the id of your client at the provider"));
            let hidden = hidden.ok_or_else(|| self.needed_by(provider, secret, "the secret of your client"));
            clients.push(ProviderClient { provider, id: client?, secret: Secret::from(hidden?) });
        }
        Ok(clients)
    }

    /// The name on the OpenID Connect button; empty if it isn't set.
    fn oidc_name(&self) -> Result<String, ConfigError> {
        let Some(name) = self.text("SVC_OIDC_NAME") else { return Ok(String::new()) };
        if visible::is_plain_line(&name) && !visible::shows_nothing(&name) && name.chars().count() <= MAX_SITE_NAME {
            return Ok(name);
        }
        Err(self
            .wrong("SVC_OIDC_NAME", format_args!("a name of at most {MAX_SITE_NAME} visible characters on one line")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{identity, with_all};
    use super::*;
    use crate::sign_in::Account;

    const PROVIDERS: [(&str, &str); 13] = [
        ("SVC_SIGN_IN", "github, email,oidc,google"),
        ("SVC_SIGN_IN_SEED", "a seed of at least thirty-two bytes"),
        ("SVC_MAIL_FROM", "comments@example.org"),
        ("SVC_PUBLIC_URL", "https://api.example.org"),
        ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}"),
        ("SVC_CORS_ORIGINS", "https://www.example.org"),
        ("SVC_GITHUB_CLIENT_ID", "g"),
        ("SVC_GITHUB_CLIENT_SECRET", "hush-github"),
        ("SVC_GOOGLE_CLIENT_ID", "o"),
        ("SVC_GOOGLE_CLIENT_SECRET", "hush-google"),
        ("SVC_OIDC_ISSUER", "https://id.example.org/realm/"),
        ("SVC_OIDC_CLIENT_ID", "c"),
        ("SVC_OIDC_NAME", "Company"),
    ];

    fn with(changed: &[(&'static str, &'static str)]) -> Result<super::super::Config, ConfigError> {
        let secret = [("SVC_OIDC_CLIENT_SECRET", "hush-oidc")];
        let all = [changed, &PROVIDERS[..], &secret].concat();
        with_all(&all)
    }

    #[test]
    fn methods_are_listed_in_their_order() {
        let config = with(&[]).unwrap();
        let sign_in = config.sign_in.as_ref().unwrap();
        assert_eq!(
            sign_in.methods.iter().map(|method| method.id()).collect::<Vec<_>>(),
            ["github", "email", "oidc", "google"]
        );
        assert_eq!((sign_in.clients.len(), sign_in.client(Provider::Google).unwrap().id.as_str()), (3, "o"));
        assert_eq!((config.issuers.github.as_str(), sign_in.oidc_name.as_str()), ("https://github.com", "Company"));
        assert_eq!(config.issuers.oidc.as_deref(), Some("https://id.example.org/realm/"), "as the provider writes it");
        assert!(!format!("{config:?}").contains("hush"));
        let only = |value| with(&[("SVC_SIGN_IN", value)]).unwrap().sign_in.map(|sign_in| sign_in.methods);
        for (value, methods) in [
            ("", None),
            ("false", None),
            ("true", Some(vec![Method::Email])),
            ("github", Some(vec![Method::Provider(Provider::GitHub)])),
        ] {
            assert_eq!(only(value), methods, "{value}");
        }
        for value in ["github,github", "true,github", "GitHub", "facebook", ",", "email;github"] {
            let error = with(&[("SVC_SIGN_IN", value)]).unwrap_err().to_string();
            assert!(error.starts_with("SVC_SIGN_IN=") && error.contains("email, github, google, oidc"), "{error}");
        }
    }

    #[test]
    fn a_sign_in_method_requires_the_settings_of_its_provider() {
        for (missing, because) in [
            ("SVC_GITHUB_CLIENT_ID", "github"),
            ("SVC_GITHUB_CLIENT_SECRET", "github"),
            ("SVC_GOOGLE_CLIENT_ID", "google"),
            ("SVC_GOOGLE_CLIENT_SECRET", "google"),
            ("SVC_OIDC_CLIENT_ID", "oidc"),
            ("SVC_OIDC_CLIENT_SECRET", "oidc"),
            ("SVC_OIDC_ISSUER", "oidc"),
            ("SVC_OIDC_NAME", "oidc"),
        ] {
            let error = with(&[(missing, "")]).unwrap_err().to_string();
            assert!(error.starts_with(missing) && error.ends_with(&format!("SVC_SIGN_IN lists {because}")), "{error}");
            assert!(with(&[(missing, ""), ("SVC_SIGN_IN", "email")]).is_ok(), "{missing}");
        }
        // A sender is allowed without email sign-in, because `cargo local --sign-in` always sets one.
        assert!(with(&[("SVC_SIGN_IN", "github"), ("SVC_PAGE_URL", "")]).is_ok());
        let without_mail = [("SVC_MAIL_FROM", ""), ("SVC_SIGN_IN", "github")];
        assert!(with(&without_mail).is_ok() && with(&without_mail[..1]).is_err());
        for missing in ["SVC_PUBLIC_URL", "SVC_CORS_ORIGINS"] {
            let error = with(&[("SVC_SIGN_IN", "github"), ("SVC_MAIL_FROM", ""), (missing, "")]).unwrap_err();
            assert!(error.to_string().starts_with(missing), "{error}");
        }
    }

    #[test]
    fn functions_that_sign_no_tokens_need_no_provider_clients() {
        let others: Vec<_> = PROVIDERS.into_iter().filter(|(name, _)| !name.contains("CLIENT")).collect();
        let others: Vec<_> = others.into_iter().filter(|(name, _)| *name != "SVC_SIGN_IN_SEED").collect();
        let sign_in = with_all(&others).unwrap().sign_in.unwrap();
        assert!(sign_in.methods.len() == 4 && sign_in.clients.is_empty());
    }

    #[test]
    fn a_provider_is_reached_by_https_unless_it_is_on_this_machine() {
        for variable in ["SVC_GITHUB_URL", "SVC_OIDC_ISSUER"] {
            for good in ["https://id.example", "https://id.example:8443/a/b", "http://localhost:1", "http://[::1]:1"] {
                assert!(with(&[(variable, good)]).is_ok(), "{good}");
            }
            for bad in [
                "http://id.example",
                "https://ada@id.example",
                "https://id.example?a",
                "https://id.example/?",
                "https://id.example/#a",
                "id.example",
                "ftp://id.example",
                "http://localhost.evil.example",
                "https://id.example/.well-known/openid-configuration",
                "https://id.example/.well-known/openid-configuration/",
            ] {
                let error = with(&[(variable, bad)]).unwrap_err().to_string();
                assert!(error.starts_with(variable) && error.contains(PROVIDER_URL), "{error}");
            }
        }
        for url in
            ["https://git.example", "https://git.example/", "https://git.example/api/v3", "https://git.example/api/v3/"]
        {
            assert_eq!(with(&[("SVC_GITHUB_URL", url)]).unwrap().issuers.github, "https://git.example");
        }
        assert_eq!(with(&[("SVC_GITHUB_URL", "https://api.github.com")]).unwrap().issuers.github, GITHUB);
    }

    #[test]
    fn a_provider_account_in_the_settings_makes_only_itself_a_moderator() {
        let config = with(&[("SVC_MODERATORS", "github: 7, oidc:ada")]).unwrap();
        let holder = |text: &str| {
            let (id, subject) = config.account_elsewhere(&text.parse().unwrap()).unwrap();
            identity(&config, "x", Some(Account { id, subject, epoch: 1 }))
        };
        assert!(config.names_moderator(&holder("github:7")) && config.names_moderator(&holder("oidc:ada")));
        for other in ["github:8", "google:7", "oidc:7"] {
            assert!(!config.names_moderator(&holder(other)), "{other}");
        }
        assert!(!config.names_moderator(&identity(&config, "github:7", None)), "a token of the host's");
        assert!(config.named_moderators(&[]).any(|id| id == holder("github:7").id));
        for bad in ["github:ada", "github:", "oidc:"] {
            let error = with(&[("SVC_MODERATORS", bad)]).unwrap_err().to_string();
            assert!(error.starts_with("SVC_MODERATORS=") && error.contains("github:"), "{error}");
        }
    }
}
