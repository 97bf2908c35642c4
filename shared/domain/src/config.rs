//! All settings, read from environment variables once at start, and only here. A value that is not valid stops the start
//! with an error that names the variable, its value and the values that it accepts.

pub mod profile;
mod sign_in;
mod unknown;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env::VarError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::email::{self, is_mailable};
use crate::ids::{ThreadId, UserId};
use crate::list::Sort;
use crate::origin::{self, Origins, is_loopback};
use crate::routes::{is_reserved, reserved_types};
use crate::secret::{self, Secret};
use crate::sign_in::account_of;
use crate::sign_in::providers::{Issuers, Method, ProviderAccount};
use crate::spam;
use crate::user::Identity;
use crate::visible;

pub use self::sign_in::{ProviderClient, SignIn};
pub use self::unknown::UnknownSetting;

const API_PREFIX: &str = "svc/api/v1";
const AKISMET_URL: &str = "https://rest.akismet.com";

/// Bytes of the secret of access tokens of our own.
const MIN_SEED: usize = 32;
/// Bytes of an HS256 secret. A shorter one can be guessed (RFC 7518, section 3.2).
const MIN_SECRET: usize = 32;
/// Bytes of the salt, which keys hashes of addresses. Under a shorter one these can be guessed.
const MIN_SALT: usize = 16;
/// Addresses of `SVC_MODERATION_MAIL`. Each gets a separate email.
const MAX_DIGESTS: usize = 50;
/// What `SVC_THEME` accepts. The first one follows the page.
const THEMES: [&str; 3] = ["auto", "light", "dark"];
/// What settings accept that are the beginning of addresses.
const BASE_URL: &str =
    "an http or https address without user, query and fragment, such as https://comments.example.org";
/// What `SVC_PAGE_URL` accepts. Links to comments have a fragment of their own.
const PAGE_URL: &str = "an http or https address with {type} and {id} behind its host, without user and fragment";
/// Characters of `SVC_SITE_NAME`.
const MAX_SITE_NAME: usize = 100;

#[derive(Debug, thiserror::Error)]
#[error("{variable}{}: expected {accepted}", held.as_ref().map_or_else(String::new, |held| format!("={held:?}")))]
pub struct ConfigError {
    variable: &'static str,
    /// The value; `None` for secrets.
    held: Option<String>,
    accepted: String,
}

/// Checks the value of a secret.
pub type SecretCheck = fn(&Secret) -> Result<(), ConfigError>;

/// The secrets without which a function does not start. It reads those that its environment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Functions that answer callers need what verifies tokens, and the salt.
    Callers,
    /// Functions that hash, sign cursors, or open what is sealed, need the salt.
    Salt,
    Nothing,
}

#[derive(Clone, Debug)]
pub struct Config {
    /// `TABLE_NAME`
    pub table_name: String,
    /// `JOBS_QUEUE_URL`: the queue of the function `jobs`, for functions that start jobs
    pub jobs_queue_url: Option<String>,
    /// `DELIVERIES_QUEUE_URL`: the queue of the function `delivery`, for functions that have something to tell
    pub deliveries_queue_url: Option<String>,
    /// `MEDIA_BUCKET`
    pub media_bucket: String,
    /// `MEDIA_BASE_URL`, without a slash at its end
    pub media_base_url: String,
    /// `SVC_API_PREFIX`, without slashes at its ends
    pub api_prefix: String,
    /// `SVC_PUBLIC_URL`, without the API prefix and without a slash at its end
    pub public_url: Option<String>,
    /// `SVC_TYPES`
    pub types: Vec<String>,
    /// `SVC_CORS_ORIGINS`
    pub cors_origins: Origins,
    pub lists: Lists,
    pub features: Features,
    pub guests: Guests,
    pub spam: Spam,
    pub limits: Limits,
    pub auth: Auth,
    /// `None` without `SVC_MAIL_FROM`
    /// `SVC_PAGE_URL`: the page of a record, with `{type}` and `{id}`
    pub page_url: Option<String>,
    pub mail: Option<Mail>,
    /// `SVC_SITE_NAME`, or the host of `SVC_PAGE_URL` or of `SVC_PUBLIC_URL`
    pub site_name: Option<String>,
    /// `None` without `SVC_SIGN_IN`
    pub sign_in: Option<SignIn>,
    /// `SVC_GITHUB_URL` and `SVC_OIDC_ISSUER`
    pub issuers: Issuers,
    pub webhooks: Webhooks,
    /// `SVC_READ_ONLY`
    pub read_only: bool,
    /// `SVC_CLOSE_AFTER_DAYS`: the age at which a thread closes; `None` means never
    pub close_after: Option<Duration>,
    /// `SVC_REQUIRE_APPROVAL`
    pub require_approval: RequireApproval,
    /// `SVC_REPORT_REASONS`
    pub report_reasons: Vec<String>,
    /// `SVC_THEME`
    pub theme: &'static str,
    /// `SVC_USERS_ROUTE_PREFIX`, without slashes at its ends
    pub users_route_prefix: String,
    /// `SVC_MEDIA_MAX_BYTES`
    pub media_max_bytes: usize,
    /// `SVC_VISITOR_SALT`: keys guests' hashes and signs cursors; empty in a function that needs none
    pub visitor_salt: Secret,
    /// `SVC_EDGE_SECRET`: proves that a request came through CloudFront, whose client address is then trusted
    pub edge_secret: Option<Secret>,
    /// Whether a cache in front of the functions takes most of the reads that are the same for everyone. It does where
    /// there is an edge secret.
    pub at_edge: bool,
    /// `SVC_METRICS_NAMESPACE`: CloudWatch's namespace for the metrics; without it there are none
    pub metrics_namespace: Option<String>,
    /// The names of all variables that were read.
    pub variables: Vec<&'static str>,
}

/// Whose comments wait for a moderator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequireApproval {
    /// `false`: nobody's.
    Never,
    /// `new`: those of writers whom no moderator's decision makes trusted.
    OfNewWriters,
    /// `true`: everyone's.
    Always,
}

#[derive(Clone, Debug)]
pub struct Lists {
    /// `SVC_PER_PAGE`, 1 to 50
    pub per_page: usize,
    /// `SVC_REPLIES_PER_PARENT`, 0 to 20
    pub replies_per_parent: usize,
    /// `SVC_DEFAULT_SORT`
    pub default_sort: Sort,
}

/// `SVC_` and the field's name in capitals.
#[derive(Clone, Debug)]
pub struct Features {
    pub sorting: bool,
    pub reporting: bool,
    pub nesting: bool,
    pub pins: bool,
    pub emoji_picker: bool,
    pub markdown_toolbar: bool,
    pub markdown_preview: bool,
    pub media: bool,
    pub badges: bool,
    pub subscriptions: bool,
    pub realtime: bool,
    pub feeds: bool,
}

#[derive(Clone, Debug)]
pub struct Guests {
    /// `SVC_ALLOW_GUESTS`
    pub allowed: bool,
    /// `SVC_GUEST_LIKES`
    pub likes: bool,
    /// `SVC_GUEST_LIKES_PER_IP`; 0 for no bound
    pub likes_per_ip: u32,
    /// `SVC_GUEST_REPORTS_PER_IP`; 0 for no bound
    pub reports_per_ip: u32,
    /// `SVC_GUEST_REQUIRE_EMAIL`
    pub require_email: bool,
    /// `SVC_GUEST_SHOW_GRAVATAR`
    pub show_gravatar: bool,
}

#[derive(Clone, Debug)]
pub struct Spam {
    /// `SVC_SPAM_DENY`, `SVC_SPAM_REVIEW`, `SVC_SPAM_REVIEW_LINKS`, `SVC_SPAM_DENY_LINKS`
    pub rules: spam::Rules,
    /// `SVC_SPAM_REVIEW_REPEATS`
    pub review_repeats: bool,
    /// `SVC_AKISMET_KEY`
    pub akismet_key: Option<Secret>,
    /// `SVC_AKISMET_URL`
    pub akismet_url: String,
}

/// Requests per minute.
#[derive(Clone, Debug)]
pub struct Limits {
    /// `SVC_READ_LIMIT`
    pub read: u32,
    /// `SVC_WRITE_LIMIT`
    pub write: u32,
    /// `SVC_UPLOAD_LIMIT`
    pub upload: u32,
}

#[derive(Clone, Debug)]
pub struct Auth {
    /// `SVC_JWT_SECRET`
    pub secret: Option<Secret>,
    /// `SVC_JWKS_URL`
    pub jwks_url: Option<http::Uri>,
    /// `SVC_JWT_ISSUER`
    pub issuer: Option<String>,
    /// `SVC_JWT_AUDIENCE`
    pub audience: Option<String>,
    /// `SVC_MODERATORS`
    pub moderators: Vec<Moderator>,
}

#[derive(Clone, Debug)]
pub struct Mail {
    /// `SVC_MAIL_FROM`: the address that mails come from
    pub from: String,
    /// [`Config::public_url`], the base of links to the service
    pub public_url: String,
    /// [`Config::site_name`]
    pub site_name: String,
    /// `SVC_SMTP_URL`; without it mails go to SES
    pub smtp_url: Option<Secret>,
    /// `SVC_MAIL_WAIT`: how long notices gather before a mail goes
    pub wait: Duration,
    /// `SVC_MODERATION_MAIL`: addresses that get a digest
    pub moderators: Vec<String>,
    /// `SVC_MODERATION_MAIL_FOR`: the digest names new comments that everyone sees too, besides those that wait
    pub digest_has_all: bool,
    /// `MAIL_CONFIGURATION_SET`: of SES, which reports bounces and complaints
    pub configuration_set: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Webhooks {
    /// `SVC_WEBHOOKS`
    pub on: bool,
    /// `SVC_WEBHOOK_PRIVATE`: they may call private addresses, and by http
    pub private: bool,
}

/// Numbers below 2^53 are user ids, `email:` begins an address, `github:`, `google:` and `oidc:` begin an account elsewhere, everything
/// else is the `sub` of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moderator {
    Id(UserId),
    Sub(String),
    /// An address, which only a code of ours proves.
    Email(String),
    /// An account elsewhere, which only its provider proves, by our sign-in.
    Elsewhere(ProviderAccount),
}

impl ConfigError {
    /// For what a setting cannot be where the service runs. `held` is `None` for secrets.
    #[must_use]
    pub fn new(variable: &'static str, held: Option<String>, accepted: &str) -> Self {
        Self { variable, held, accepted: accepted.to_owned() }
    }
}

fn check_length(variable: &'static str, secret: &Secret, least: usize) -> Result<(), ConfigError> {
    if secret.expose().len() >= least {
        return Ok(());
    }
    Err(ConfigError { variable, held: None, accepted: format!("a secret of at least {least} bytes") })
}

fn check_secret(secret: &Secret) -> Result<(), ConfigError> {
    check_length("SVC_JWT_SECRET", secret, MIN_SECRET)
}

fn check_salt(salt: &Secret) -> Result<(), ConfigError> {
    check_length("SVC_VISITOR_SALT", salt, MIN_SALT)
}

fn check_smtp(url: &Secret) -> Result<(), ConfigError> {
    let accepted = "smtp:// or smtps:// with a host, and user and password where the server wants them; @, :, /, ? and # in \
                    them as %40, %3A, %2F, %3F and %23";
    let read = Url::parse(url.expose()).ok();
    // Emails and passwords go to other machines by TLS alone.
    let is_secure = |query: &str| query.split('&').all(|pair| pair == "tls=required" || !pair.starts_with("tls="));
    let fits = |url: &Url| {
        let is_smtp = matches!(url.scheme(), "smtp" | "smtps");
        is_smtp && url.host_str().is_some_and(|host| !host.is_empty()) && url.query().is_none_or(is_secure)
    };
    // A fragment means that a password holds a #, and ends there.
    if read.as_ref().is_some_and(fits) && !url.expose().contains('#') {
        return Ok(());
    }
    Err(ConfigError { variable: "SVC_SMTP_URL", held: None, accepted: accepted.to_owned() })
}

/// Whether records may have this type: up to 64 characters of `A-Z a-z 0-9 . _ ~ -`, and no name of a route.
#[must_use]
pub fn is_type(alias: &str) -> bool {
    let letters = || alias.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b));
    (1..=64).contains(&alias.len()) && letters() && !is_reserved(alias)
}

impl Config {
    /// Reads the process's environment.
    pub fn from_env(needs: Needs) -> Result<Self, ConfigError> {
        Self::from_vars_with(needs, environment)
    }

    /// The variables of the process's environment that are named as settings are and that nothing reads.
    #[must_use]
    pub fn unknown_settings(&self) -> Vec<UnknownSetting> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        unknown::unknown(names, &self.variables)
    }

    /// The page of a record: where it was `said` to be, else as `SVC_PAGE_URL` makes it.
    #[must_use]
    pub fn page_of(&self, thread: &ThreadId, said: Option<&str>) -> Option<String> {
        // Neither part has characters that addresses encode.
        let made = |url: &String| url.replace("{type}", &thread.kind).replace("{id}", &thread.record);
        said.map(str::to_owned).or_else(|| self.page_url.as_ref().map(made))
    }

    /// Whether `SVC_MODERATORS` names this user, by id, by `sub` or by the address of an account.
    #[must_use]
    pub fn names_moderator(&self, user: &Identity) -> bool {
        let has = |(id, subject): (UserId, String)| {
            user.claims.account.is_some() && (id, Some(&subject)) == (user.id, user.subject.as_ref())
        };
        self.auth.moderators.iter().any(|moderator| match moderator {
            Moderator::Id(named) => *named == user.id,
            Moderator::Sub(named) => *named == user.claims.sub,
            Moderator::Email(address) => has(account_of(&self.visitor_salt, address)),
            Moderator::Elsewhere(account) => self.account_elsewhere(account).is_some_and(has),
        })
    }

    /// The ids of those whom `SVC_MODERATORS` names. A `sub` has another id with every issuer of tokens: those looked at are
    /// `issuers`, that of the settings, and none.
    pub fn named_moderators<'a>(&'a self, issuers: &'a [&str]) -> impl Iterator<Item = UserId> + 'a {
        self.auth.moderators.iter().flat_map(move |moderator| match moderator {
            Moderator::Id(id) => vec![*id],
            Moderator::Sub(sub) => {
                let issuers = issuers.iter().copied().chain(self.auth.issuer.as_deref()).chain([""]);
                issuers.map(|issuer| UserId::hashed(&self.visitor_salt, issuer, sub).0).collect()
            }
            Moderator::Email(address) => vec![account_of(&self.visitor_salt, address).0],
            Moderator::Elsewhere(account) => self.account_elsewhere(account).into_iter().map(|(id, _)| id).collect(),
        })
    }

    /// Reads the variables from `var`, for functions that answer requests. Missing and empty ones have the defaults of the
    /// profile.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::from_vars_with(Needs::Callers, var)
    }

    /// The same for functions that may need less.
    pub fn from_vars_with(needs: Needs, var: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let vars = Vars::new(&var)?;
        let config = Self {
            table_name: vars.required("TABLE_NAME", "the name of the table")?,
            jobs_queue_url: vars.text("JOBS_QUEUE_URL"),
            deliveries_queue_url: vars.text("DELIVERIES_QUEUE_URL"),
            media_bucket: vars.text("MEDIA_BUCKET").unwrap_or_default(),
            media_base_url: vars.base_url("MEDIA_BASE_URL")?.unwrap_or_default(),
            api_prefix: vars.path("SVC_API_PREFIX", API_PREFIX)?,
            public_url: vars.public_url()?,
            types: vars.types("SVC_TYPES")?,
            cors_origins: vars.origins("SVC_CORS_ORIGINS")?,
            lists: vars.lists()?,
            features: vars.features()?,
            guests: vars.guests()?,
            spam: vars.spam()?,
            limits: vars.limits()?,
            auth: vars.auth(needs)?,
            page_url: vars.page_url()?,
            mail: vars.mail()?,
            site_name: vars.site_name()?,
            sign_in: vars.sign_in()?,
            issuers: vars.issuers()?,
            webhooks: Webhooks {
                on: vars.switch("SVC_WEBHOOKS", false)?,
                private: vars.switch("SVC_WEBHOOK_PRIVATE", false)?,
            },
            read_only: vars.switch("SVC_READ_ONLY", false)?,
            require_approval: vars.require_approval("SVC_REQUIRE_APPROVAL")?,
            close_after: vars.close_after()?,
            report_reasons: vars.reasons("SVC_REPORT_REASONS")?,
            theme: vars.theme("SVC_THEME")?,
            users_route_prefix: vars.path("SVC_USERS_ROUTE_PREFIX", "users")?,
            media_max_bytes: vars.number("SVC_MEDIA_MAX_BYTES", 4_194_304, 1, 4_194_304)?,
            visitor_salt: vars.visitor_salt(needs)?,
            edge_secret: vars.text("SVC_EDGE_SECRET").map(Secret::from),
            at_edge: vars.text("SVC_EDGE_SECRET").is_some(),
            metrics_namespace: vars.text("SVC_METRICS_NAMESPACE"),
            variables: Vec::new(),
        };
        vars.check_encoding()?;
        Ok(Self { variables: vars.asked.into_inner(), ..config })
    }

    /// The variable of a secret that says where the secret is kept in AWS, and not what it is.
    #[must_use]
    pub fn secret_kept_in_aws(&self) -> Option<&'static str> {
        let secrets = [
            ("SVC_JWT_SECRET", self.auth.secret.as_ref()),
            ("SVC_AKISMET_KEY", self.spam.akismet_key.as_ref()),
            ("SVC_EDGE_SECRET", self.edge_secret.as_ref()),
            ("SVC_SMTP_URL", self.mail.as_ref().and_then(|mail| mail.smtp_url.as_ref())),
            ("SVC_SIGN_IN_SEED", self.sign_in.as_ref().and_then(|sign_in| sign_in.seed.as_ref())),
            ("SVC_VISITOR_SALT", Some(&self.visitor_salt)),
        ];
        let secrets = secrets.into_iter().filter_map(|(name, secret)| Some((name, secret?)));
        let mut secrets = secrets.chain(sign_in::client_secrets(self.sign_in.as_ref()));
        secrets.find(|(_, secret)| secret::is_name(secret.expose())).map(|(name, _)| name)
    }

    /// Whether headers of CORS depend on the page that asks: API Gateway repeats an origin of the list. CloudFront replaces them.
    #[must_use]
    pub fn varies_by_origin(&self) -> bool {
        self.edge_secret.is_none() && !self.cors_origins.is_any()
    }

    /// The secrets, each with the check of its value, which may have been fetched by its name.
    pub fn secrets_mut(&mut self) -> impl Iterator<Item = (&mut Secret, SecretCheck)> {
        let salt = Some(&mut self.visitor_salt).filter(|salt| !salt.expose().is_empty());
        let (seed, clients) = match &mut self.sign_in {
            Some(sign_in) => (sign_in.seed.as_mut(), sign_in.clients.as_mut_slice()),
            None => (None, [].as_mut_slice()),
        };
        let secrets: [(Option<&mut Secret>, SecretCheck); 6] = [
            (self.auth.secret.as_mut(), check_secret),
            (self.spam.akismet_key.as_mut(), |_| Ok(())),
            (self.edge_secret.as_mut(), |_| Ok(())),
            (self.mail.as_mut().and_then(|mail| mail.smtp_url.as_mut()), check_smtp),
            (seed, sign_in::check_seed),
            (salt, check_salt),
        ];
        let clients = clients.iter_mut().map(|client| (Some(&mut client.secret), (|_| Ok(())) as SecretCheck));
        secrets.into_iter().chain(clients).filter_map(|(secret, check)| Some((secret?, check)))
    }
}

/// A variable of the process. A value that is no UTF-8 has U+FFFD in it, which the configuration refuses.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads settings")]
pub fn environment(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(value)) => Some(value.to_string_lossy().into_owned()),
    }
}

struct Vars<'a> {
    var: &'a dyn Fn(&str) -> Option<String>,
    /// The defaults of the profile. `SVC_PROFILE` is read before all else.
    defaults: profile::Defaults,
    /// The names that were asked for.
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Vars<'a> {
    fn new(var: &'a dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let vars = Vars { var, defaults: &[], asked: RefCell::default() };
        let profile = vars.text("SVC_PROFILE").unwrap_or_else(|| profile::DEFAULT.to_owned());
        let defaults = profile::defaults(&profile);
        let defaults =
            defaults.ok_or_else(|| vars.wrong("SVC_PROFILE", profile::PROFILES.map(|(name, _)| name).join(" or ")))?;
        Ok(Self { defaults, ..vars })
    }

    fn text(&self, name: &'static str) -> Option<String> {
        self.asked.borrow_mut().push(name);
        let set = (self.var)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let default =
            || self.defaults.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
        set.or_else(default)
    }

    /// The error for a variable, without the value of a secret.
    fn wrong(&self, variable: &'static str, accepted: impl fmt::Display) -> ConfigError {
        let secret = ["SECRET", "SALT", "SEED", "KEY", "SMTP_URL"].iter().any(|kind| variable.ends_with(kind));
        let held = (!secret).then(|| self.text(variable).unwrap_or_default());
        ConfigError { variable, held, accepted: accepted.to_string() }
    }

    fn required(&self, name: &'static str, accepted: &str) -> Result<String, ConfigError> {
        self.text(name).ok_or_else(|| self.wrong(name, accepted))
    }

    fn switch(&self, name: &'static str, default: bool) -> Result<bool, ConfigError> {
        match self.text(name).map(|value| value.to_ascii_lowercase()).as_deref() {
            None => Ok(default),
            Some("true" | "1" | "on" | "yes") => Ok(true),
            Some("false" | "0" | "off" | "no") => Ok(false),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    fn require_approval(&self, name: &'static str) -> Result<RequireApproval, ConfigError> {
        if self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("new")) {
            return Ok(RequireApproval::OfNewWriters);
        }
        match self.switch(name, false) {
            Ok(true) => Ok(RequireApproval::Always),
            Ok(false) => Ok(RequireApproval::Never),
            Err(_) => Err(self.wrong(name, "true, false or new")),
        }
    }

    fn number<T>(&self, name: &'static str, default: T, least: T, most: T) -> Result<T, ConfigError>
    where
        T: FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.wrong(name, format_args!("a whole number from {least} to {most}")))
    }

    fn list(&self, name: &'static str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    fn close_after(&self) -> Result<Option<Duration>, ConfigError> {
        let days: u32 = self.number("SVC_CLOSE_AFTER_DAYS", 0, 0, 36_500)?;
        Ok((days > 0).then(|| Duration::from_hours(24 * u64::from(days))))
    }

    fn lists(&self) -> Result<Lists, ConfigError> {
        Ok(Lists {
            per_page: self.number("SVC_PER_PAGE", 10, 1, 50)?,
            replies_per_parent: self.number("SVC_REPLIES_PER_PARENT", 3, 0, 20)?,
            default_sort: self.sort("SVC_DEFAULT_SORT")?,
        })
    }

    fn features(&self) -> Result<Features, ConfigError> {
        Ok(Features {
            sorting: self.switch("SVC_SORTING", true)?,
            reporting: self.switch("SVC_REPORTING", true)?,
            nesting: self.switch("SVC_NESTING", true)?,
            pins: self.switch("SVC_PINS", true)?,
            emoji_picker: self.switch("SVC_EMOJI_PICKER", true)?,
            markdown_toolbar: self.switch("SVC_MARKDOWN_TOOLBAR", true)?,
            markdown_preview: self.switch("SVC_MARKDOWN_PREVIEW", true)?,
            media: self.switch("SVC_MEDIA", true)?,
            badges: self.switch("SVC_BADGES", true)?,
            subscriptions: self.switch("SVC_SUBSCRIPTIONS", false)?,
            realtime: self.switch("SVC_REALTIME", false)?,
            feeds: self.switch("SVC_FEEDS", true)?,
        })
    }

    fn guests(&self) -> Result<Guests, ConfigError> {
        Ok(Guests {
            allowed: self.switch("SVC_ALLOW_GUESTS", false)?,
            likes: self.switch("SVC_GUEST_LIKES", false)?,
            likes_per_ip: self.number("SVC_GUEST_LIKES_PER_IP", 50, 0, 1_000_000)?,
            reports_per_ip: self.number("SVC_GUEST_REPORTS_PER_IP", 5, 0, 1_000_000)?,
            require_email: self.switch("SVC_GUEST_REQUIRE_EMAIL", true)?,
            show_gravatar: self.switch("SVC_GUEST_SHOW_GRAVATAR", true)?,
        })
    }

    fn spam(&self) -> Result<Spam, ConfigError> {
        Ok(Spam {
            rules: spam::Rules {
                deny: self.list("SVC_SPAM_DENY"),
                review: self.list("SVC_SPAM_REVIEW"),
                review_links: self.number("SVC_SPAM_REVIEW_LINKS", 10, 0, 10_000)?,
                deny_links: self.number("SVC_SPAM_DENY_LINKS", 50, 0, 10_000)?,
            },
            review_repeats: self.switch("SVC_SPAM_REVIEW_REPEATS", false)?,
            akismet_key: self.text("SVC_AKISMET_KEY").map(Secret::from),
            akismet_url: self.base_url("SVC_AKISMET_URL")?.unwrap_or_else(|| AKISMET_URL.to_owned()),
        })
    }

    fn limits(&self) -> Result<Limits, ConfigError> {
        Ok(Limits {
            read: self.number("SVC_READ_LIMIT", 300, 1, 1_000_000)?,
            write: self.number("SVC_WRITE_LIMIT", 60, 1, 1_000_000)?,
            upload: self.number("SVC_UPLOAD_LIMIT", 10, 1, 1_000_000)?,
        })
    }

    fn visitor_salt(&self, needs: Needs) -> Result<Secret, ConfigError> {
        let salt = self.text("SVC_VISITOR_SALT").map(Secret::from);
        match salt.filter(|_| needs != Needs::Nothing) {
            Some(salt) if secret::is_name(salt.expose()) => Ok(salt),
            Some(salt) => check_salt(&salt).map(|()| salt),
            None if needs == Needs::Nothing => Ok(Secret::from(String::new())),
            None => Err(self.wrong("SVC_VISITOR_SALT", "a secret that is used for nothing else")),
        }
    }

    fn auth(&self, needs: Needs) -> Result<Auth, ConfigError> {
        let auth = Auth {
            secret: self.text("SVC_JWT_SECRET").map(Secret::from),
            jwks_url: self.address("SVC_JWKS_URL", "an https address without user and fragment")?,
            issuer: self.text("SVC_JWT_ISSUER"),
            audience: self.text("SVC_JWT_AUDIENCE"),
            moderators: self.moderators("SVC_MODERATORS")?,
        };
        // A secret that is named by its ARN is checked once it is fetched.
        if let Some(secret) = auth.secret.as_ref().filter(|secret| !secret::is_name(secret.expose())) {
            check_secret(secret)?;
        }
        match &auth.jwks_url {
            None if auth.secret.is_none() && needs == Needs::Callers => {
                Err(self.wrong("SVC_JWT_SECRET", "a secret, unless SVC_JWKS_URL is set"))
            }
            Some(url) if url.scheme_str() != Some("https") && !url.host().is_some_and(is_loopback) => {
                Err(self.wrong("SVC_JWKS_URL", "an https address without user and fragment"))
            }
            Some(_) if auth.issuer.is_none() && auth.audience.is_none() => {
                Err(self.wrong("SVC_JWKS_URL", "SVC_JWT_ISSUER or SVC_JWT_AUDIENCE to be set too"))
            }
            _ => Ok(auth),
        }
    }

    fn moderators(&self, name: &'static str) -> Result<Vec<Moderator>, ConfigError> {
        let moderator = |text: String| match text.strip_prefix("email:") {
            Some(address) if is_mailable(address.trim()) => Ok(Moderator::Email(email::exact(address))),
            Some(_) => Err(self.wrong(name, "ids and subs, and e-mail addresses after email:, separated by commas")),
            None => match sign_in::provider_account(&text) {
                Some(account) => account.map(Moderator::Elsewhere).map_err(|_| {
                    self.wrong(
                        name,
                        "ids and subs, and ids of accounts after github:, google: or oidc:, such as github:583231",
                    )
                }),
                None => Ok(text.parse().map_or(Moderator::Sub(text), Moderator::Id)),
            },
        };
        self.list(name).into_iter().map(moderator).collect()
    }

    /// `None` without a sender. What is wrong is refused then too.
    fn mail(&self) -> Result<Option<Mail>, ConfigError> {
        let (wait, moderators) = (self.number("SVC_MAIL_WAIT", 60, 0, 3_600)?, self.moderation_mail()?);
        let (from, page_url) = (self.mail_from()?, self.page_url()?);
        let (site_name, smtp_url) = (self.site_name()?, self.smtp_url()?);
        let digest_has_all = self.digest_has_all()?;
        let Some(from) = from else { return Ok(None) };
        let needed = |name, accepted: &str| self.wrong(name, format_args!("{accepted}, because SVC_MAIL_FROM is set"));
        let public_url = self.public_url()?;
        let public_url = public_url.ok_or_else(|| needed("SVC_PUBLIC_URL", BASE_URL))?;
        let is_for_sign_in_alone =
            !self.methods()?.is_empty() && !self.switch("SVC_SUBSCRIPTIONS", false)? && moderators.is_empty();
        if page_url.is_none() && !is_for_sign_in_alone {
            return Err(needed("SVC_PAGE_URL", PAGE_URL));
        }
        Ok(Some(Mail {
            from,
            public_url,
            site_name: site_name.unwrap_or_default(),
            smtp_url,
            wait: Duration::from_secs(wait),
            moderators,
            digest_has_all,
            configuration_set: self.text("MAIL_CONFIGURATION_SET"),
        }))
    }

    /// A function whose environment has `SVC_MAIL_FROM`, even an empty one, has a part in emails: there subscriptions and
    /// sign-in need a sender.
    fn mail_from(&self) -> Result<Option<String>, ConfigError> {
        match self.text("SVC_MAIL_FROM") {
            Some(from) if is_mailable(&from) => Ok(Some(from)),
            Some(_) => Err(self.wrong("SVC_MAIL_FROM", "an e-mail address")),
            None if (self.var)("SVC_MAIL_FROM").is_some() => {
                let needed = |reason: &str| {
                    Err(self.wrong("SVC_MAIL_FROM", format_args!("an e-mail address, because {reason}")))
                };
                if self.switch("SVC_SUBSCRIPTIONS", false)? {
                    return needed("SVC_SUBSCRIPTIONS is on");
                }
                if self.methods()?.contains(&Method::Email) {
                    return needed("SVC_SIGN_IN has email");
                }
                if self.text("SVC_MODERATION_MAIL").is_some() {
                    return needed("SVC_MODERATION_MAIL is set");
                }
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn page_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(url) = self.text("SVC_PAGE_URL") else { return Ok(None) };
        let behind_host = url.split_once("://").and_then(|(_, rest)| rest.find(['/', '?']).map(|end| &rest[end..]));
        let has_both = behind_host.is_some_and(|behind| behind.contains("{type}") && behind.contains("{id}"));
        let is_page = has_both && web_address(&filled(&url)).is_some() && !filled(&url).contains(['{', '}']);
        if is_page { Ok(Some(url)) } else { Err(self.wrong("SVC_PAGE_URL", PAGE_URL)) }
    }

    /// The name of the site, or the host of its pages.
    fn site_name(&self) -> Result<Option<String>, ConfigError> {
        let host = || host_of(&self.text("SVC_PAGE_URL").or_else(|| self.text("SVC_PUBLIC_URL"))?);
        let name = self.text("SVC_SITE_NAME").or_else(host);
        let fits = |name: &String| {
            visible::is_plain_line(name) && !visible::shows_nothing(name) && name.chars().count() <= MAX_SITE_NAME
        };
        if name.as_ref().is_none_or(fits) {
            return Ok(name);
        }
        let accepted = format!("a name of at most {MAX_SITE_NAME} visible characters in one line");
        Err(self.wrong("SVC_SITE_NAME", accepted))
    }

    fn moderation_mail(&self) -> Result<Vec<String>, ConfigError> {
        let addresses = self.list("SVC_MODERATION_MAIL");
        if addresses.len() <= MAX_DIGESTS && addresses.iter().all(|address| is_mailable(address)) {
            return Ok(addresses);
        }
        let accepted = format!("at most {MAX_DIGESTS} e-mail addresses, separated by commas");
        Err(self.wrong("SVC_MODERATION_MAIL", accepted))
    }

    fn digest_has_all(&self) -> Result<bool, ConfigError> {
        match self.text("SVC_MODERATION_MAIL_FOR").as_deref() {
            None | Some("waiting") => Ok(false),
            Some("all") => Ok(true),
            Some(_) => Err(self.wrong("SVC_MODERATION_MAIL_FOR", "waiting or all")),
        }
    }

    /// The address of the SMTP server. One that is named by its ARN is checked after it is fetched.
    fn smtp_url(&self) -> Result<Option<Secret>, ConfigError> {
        let url = self.text("SVC_SMTP_URL").map(Secret::from);
        if let Some(url) = url.as_ref().filter(|url| !secret::is_name(url.expose())) {
            check_smtp(url)?;
        }
        Ok(url)
    }

    fn types(&self, name: &'static str) -> Result<Vec<String>, ConfigError> {
        let mut types = self.list(name);
        if self.text(name).is_none() {
            types = vec!["posts".to_owned()];
        }
        if !types.is_empty() && types.iter().all(|alias| is_type(alias)) {
            return Ok(types);
        }
        let reserved: Vec<_> = reserved_types().collect::<BTreeSet<_>>().into_iter().collect();
        let reserved = reserved.join(", ");
        let accepted = format!("aliases of letters, digits and . _ ~ -, separated by commas, none of {reserved}");
        Err(self.wrong(name, accepted))
    }

    fn origins(&self, name: &'static str) -> Result<Origins, ConfigError> {
        let text = self.text(name).unwrap_or_else(|| "*".to_owned());
        let accepted = "*, or origins as browsers send them, such as https://example.org, without path and default port, \
                        separated by commas";
        Origins::parse(&text).ok_or_else(|| self.wrong(name, accepted))
    }

    fn reasons(&self, name: &'static str) -> Result<Vec<String>, ConfigError> {
        if self.text(name).is_none() {
            return Ok(["spam", "inappropriate", "offensive", "other"].map(str::to_owned).to_vec());
        }
        let reasons = self.list(name);
        if reasons.is_empty() { Err(self.wrong(name, "reasons, separated by commas")) } else { Ok(reasons) }
    }

    fn sort(&self, name: &'static str) -> Result<Sort, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(Sort::Newest) };
        Sort::parse(&text).ok_or_else(|| self.wrong(name, Sort::NAMES.join(", ")))
    }

    fn theme(&self, name: &'static str) -> Result<&'static str, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(THEMES[0]) };
        let theme = THEMES.into_iter().find(|theme| *theme == text);
        theme.ok_or_else(|| self.wrong(name, THEMES.join(", ")))
    }

    /// A path of one or more segments, without slashes at its ends.
    fn path(&self, name: &'static str, default: &str) -> Result<String, ConfigError> {
        let path = self.text(name).unwrap_or_else(|| default.to_owned());
        let path = path.trim_matches('/');
        let segment = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b))
        };
        if path.split('/').all(segment) {
            return Ok(path.to_owned());
        }
        Err(self.wrong(name, "path segments of letters, digits and . _ ~ -"))
    }

    fn address(&self, name: &'static str, accepted: &str) -> Result<Option<http::Uri>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        web_address(&text).map(Some).ok_or_else(|| self.wrong(name, accepted))
    }

    /// An address that paths are appended to, without a slash at its end.
    fn base_url(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        match self.address(name, BASE_URL)? {
            Some(address) if address.query().is_some() => Err(self.wrong(name, BASE_URL)),
            Some(_) => Ok(self.text(name).map(|text| text.trim_end_matches('/').to_owned())),
            None => Ok(None),
        }
    }

    fn public_url(&self) -> Result<Option<String>, ConfigError> {
        let prefix = self.path("SVC_API_PREFIX", API_PREFIX)?;
        let Some(url) = self.base_url("SVC_PUBLIC_URL")? else { return Ok(None) };
        let base = without_prefix(&url, &prefix);
        if without_prefix(base, &prefix) != base {
            return Err(self.wrong("SVC_PUBLIC_URL", format_args!("{BASE_URL}, without /{prefix} at its end")));
        }
        Ok(Some(base.to_owned()))
    }

    /// Refuses values that aren't UTF-8, which U+FFFD reveals.
    fn check_encoding(&self) -> Result<(), ConfigError> {
        let asked = self.asked.borrow().clone();
        let broken = asked.into_iter().find(|name| self.text(name).is_some_and(|value| value.contains('\u{FFFD}')));
        broken.map_or(Ok(()), |name| Err(self.wrong(name, "text in UTF-8")))
    }
}

/// Where the accounts of providers are, for commands that need no other setting.
///
/// # Errors
///
/// When an address is not valid.
pub fn issuers(var: impl Fn(&str) -> Option<String>) -> Result<Issuers, ConfigError> {
    Vars::new(&var)?.issuers()
}

/// What is before the API prefix in an address of the service. Owners paste the base of the routes as well.
#[must_use]
pub fn without_prefix<'a>(url: &'a str, prefix: &str) -> &'a str {
    let url = url.trim_end_matches('/');
    // A host may be called like the prefix.
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|start| &rest[start..]));
    let own = path.and_then(|path| path.strip_suffix(prefix)?.strip_suffix('/'));
    own.map_or(url, |own| url[..url.len() - path.map_or(0, str::len) + own.len()].trim_end_matches('/'))
}

/// An http or https address of a host, without user and fragment.
fn web_address(text: &str) -> Option<http::Uri> {
    let uri: http::Uri = text.parse().ok()?;
    let authority = origin::authority(uri.authority()?.as_str())?;
    let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    let is_host = authority.host().starts_with('[') || is_name(authority.host());
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_web && is_host && !text.contains('#')).then_some(uri)
}

/// An address with values in place of its placeholders.
fn filled(url: &str) -> String {
    url.replace("{type}", "posts").replace("{id}", "1")
}

/// The host of an address, which may have placeholders in it.
fn host_of(url: &str) -> Option<String> {
    web_address(&filled(url))?.host().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::Account;
    use crate::user::Claims;

    fn with(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
        with_all(&[(name, value)])
    }

    pub(super) fn with_all(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_vars(|asked| match (asked, settings.iter().find(|(name, _)| *name == asked)) {
            (_, Some((_, value))) => Some((*value).to_owned()),
            ("TABLE_NAME", None) => Some("comments".to_owned()),
            ("SVC_JWT_SECRET" | "SVC_VISITOR_SALT", None) => Some("a secret of at least thirty-two bytes".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn settings_have_their_documented_defaults() {
        let config = with("", "").unwrap();
        assert_eq!(config.api_prefix, "svc/api/v1");
        assert_eq!(config.types, ["posts"]);
        assert_eq!((config.lists.per_page, config.lists.replies_per_parent), (10, 3));
        assert!(config.features.sorting && !config.features.realtime && !config.guests.allowed);
        assert_eq!((config.limits.read, config.limits.write, config.limits.upload), (300, 60, 10));
        assert_eq!((config.spam.rules.review_links, config.spam.rules.deny_links), (10, 50));
        assert_eq!(config.report_reasons, ["spam", "inappropriate", "offensive", "other"]);
    }

    #[test]
    fn a_profile_gives_defaults_to_variables_that_are_not_set() {
        let defaults = |settings: &[(&str, &str)]| {
            let config = with_all(settings).unwrap();
            let guests = config.guests;
            let of_guests = (guests.allowed, guests.likes, guests.require_email, guests.show_gravatar);
            (of_guests, config.require_approval)
        };
        let (nobody, new) = (RequireApproval::Never, RequireApproval::OfNewWriters);
        let (members, blog) = (((false, false, true, true), nobody), ((true, true, false, false), new));
        for (settings, expected) in [
            (&[][..], members),
            (&[("SVC_PROFILE", "members")], members),
            (&[("SVC_PROFILE", "")], members),
            (&[("SVC_PROFILE", " blog ")], blog),
            (&[("SVC_PROFILE", "blog"), ("SVC_ALLOW_GUESTS", "false")], ((false, true, false, false), new)),
            (
                &[("SVC_PROFILE", "blog"), ("SVC_GUEST_REQUIRE_EMAIL", "true"), ("SVC_GUEST_LIKES", " ")],
                ((true, true, true, false), new),
            ),
            (&[("SVC_PROFILE", "blog"), ("SVC_REQUIRE_APPROVAL", "false")], ((true, true, false, false), nobody)),
        ] {
            assert_eq!(defaults(settings), expected, "{settings:?}");
        }
        let error = with("SVC_PROFILE", "shop").unwrap_err().to_string();
        assert_eq!(error, r#"SVC_PROFILE="shop": expected members or blog"#);
    }

    #[test]
    fn the_digest_of_a_blog_has_all_comments_unless_it_says_otherwise() {
        let has_all =
            |settings: &[(&str, &str)]| with_all(&[&MAIL[..], settings].concat()).unwrap().mail.unwrap().digest_has_all;
        assert!(!has_all(&[]) && has_all(&[("SVC_MODERATION_MAIL_FOR", "all")]));
        assert!(has_all(&[("SVC_PROFILE", "blog")]));
        assert!(!has_all(&[("SVC_PROFILE", "blog"), ("SVC_MODERATION_MAIL_FOR", "waiting")]));
    }

    #[test]
    fn approval_is_required_of_nobody_of_everyone_or_of_new_writers() {
        for (value, expected) in [
            ("", RequireApproval::Never),
            ("false", RequireApproval::Never),
            ("TRUE", RequireApproval::Always),
            ("New", RequireApproval::OfNewWriters),
        ] {
            assert_eq!(with("SVC_REQUIRE_APPROVAL", value).unwrap().require_approval, expected, "{value}");
        }
        let error = with("SVC_REQUIRE_APPROVAL", "old").unwrap_err().to_string();
        assert_eq!(error, r#"SVC_REQUIRE_APPROVAL="old": expected true, false or new"#);
    }

    #[test]
    fn an_empty_value_is_the_default() {
        assert_eq!(with("SVC_PER_PAGE", " ").unwrap().lists.per_page, 10);
    }

    #[test]
    fn an_error_names_the_variable_its_value_and_the_values_that_it_accepts() {
        let error = with("SVC_PER_PAGE", "51").unwrap_err().to_string();
        assert_eq!(error, r#"SVC_PER_PAGE="51": expected a whole number from 1 to 50"#);
        let error = with("SVC_PINS", "maybe").unwrap_err().to_string();
        assert_eq!(error, r#"SVC_PINS="maybe": expected true or false"#);
        for (name, value) in [
            ("SVC_TYPES", "posts,users"),
            ("SVC_TYPES", "a/b"),
            ("SVC_TYPES", ","),
            ("SVC_CORS_ORIGINS", "example.org"),
            ("SVC_CORS_ORIGINS", "https://example.org/"),
            ("SVC_DEFAULT_SORT", "best"),
            ("SVC_THEME", "purple"),
            ("SVC_API_PREFIX", "a//b"),
            ("SVC_API_PREFIX", "../x"),
            ("SVC_PUBLIC_URL", "example.org"),
            ("SVC_JWKS_URL", "ftp://example.org/keys"),
            ("SVC_READ_LIMIT", "0"),
            ("SVC_MEDIA_MAX_BYTES", "-1"),
        ] {
            assert!(with(name, value).unwrap_err().to_string().starts_with(name), "{name}={value}");
        }
    }

    #[test]
    fn the_public_url_may_be_the_base_of_the_routes() {
        let base = |url: &str, prefix: &str| {
            with_all(&[("SVC_PUBLIC_URL", url), ("SVC_API_PREFIX", prefix)]).unwrap().public_url.unwrap()
        };
        for (url, prefix, expected) in [
            ("http://127.0.0.1:3000/svc/api/v1", "", "http://127.0.0.1:3000"),
            ("https://api.example.org/svc/api/v1/", "", "https://api.example.org"),
            ("https://example.org/talk/svc/api/v1", "", "https://example.org/talk"),
            ("https://api.example.org/c", "/c/", "https://api.example.org"),
            ("https://api.example.org/", "c", "https://api.example.org"),
            ("https://example.org/talk/", "", "https://example.org/talk"),
            // Only whole segments of the path, and only at its end.
            ("https://api.example.org/xsvc/api/v1", "", "https://api.example.org/xsvc/api/v1"),
            ("https://api.example.org/svc/api/v1/x", "", "https://api.example.org/svc/api/v1/x"),
            ("https://svc/api/v1", "", "https://svc/api/v1"),
            ("https://c", "c", "https://c"),
        ] {
            assert_eq!(base(url, prefix), expected, "{url} {prefix}");
        }
        for (url, prefix) in [
            ("https://api.example.org/svc/api/v1/svc/api/v1", ""),
            ("http://127.0.0.1:3000/talk/svc/api/v1/svc/api/v1/", ""),
            ("https://example.org/c/c", "c"),
        ] {
            let error = with_all(&[("SVC_PUBLIC_URL", url), ("SVC_API_PREFIX", prefix)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("SVC_PUBLIC_URL={url:?}: expected ")), "{error}");
        }
        let mail = [&MAIL[..], &[("SVC_PUBLIC_URL", "https://api.example.org/svc/api/v1")]].concat();
        let mail: Vec<_> = mail.into_iter().rev().collect();
        assert_eq!(with_all(&mail).unwrap().mail.unwrap().public_url, "https://api.example.org");
    }

    #[test]
    fn an_address_that_cannot_be_right_stops_the_start() {
        const BASES: [&str; 3] = ["SVC_PUBLIC_URL", "SVC_AKISMET_URL", "MEDIA_BASE_URL"];
        const PAGE: &str = "https://www.example.org/{type}/{id}";
        let wrong = |name: &str, value: &str| {
            let error = with_all(&[(name, value), ("SVC_JWT_ISSUER", "x")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}={value:?}: expected ")), "{error}");
        };
        for name in ["SVC_PUBLIC_URL", "SVC_AKISMET_URL", "MEDIA_BASE_URL", "SVC_JWKS_URL"] {
            for value in [
                "example.org",
                "//example.org",
                "ftp://example.org",
                "https://",
                "https://:3000",
                "https://*",
                "https://example.org:99999",
                "https://example.org:",
                "https://ada:pw@example.org",
                "https://example.org/#top",
                "https://example.org, https://example.com",
            ] {
                wrong(name, value);
            }
        }
        for name in BASES {
            for value in ["https://example.org?a=b", "https://example.org/?"] {
                wrong(name, value);
            }
        }
        for value in [
            "https://www.example.org/{type}",
            "https://{type}.example.org/{id}",
            "https://{type}/{id}",
            "https://www.example.org/{type}/{ID}",
            "https://www.example.org/{type}/{id}/{slug}",
            "https://www.example.org/#/{type}/{id}",
            "https://ada:pw@www.example.org/{type}/{id}",
            "www.example.org/{type}/{id}",
        ] {
            wrong("SVC_PAGE_URL", value);
        }
        for value in [PAGE, "http://127.0.0.1:3000/?{type}={id}", "http://[::1]:3000?{id}&{type}"] {
            assert!(with("SVC_PAGE_URL", value).is_ok(), "{value}");
        }
    }

    #[test]
    fn a_value_that_is_no_utf_8_stops_the_start() {
        let broken = String::from_utf8_lossy(b"caf\xe9, casino").into_owned();
        let error = with_all(&[("SVC_SPAM_DENY", &broken)]).unwrap_err().to_string();
        assert_eq!(error, "SVC_SPAM_DENY=\"caf\u{FFFD}, casino\": expected text in UTF-8");
        let error = with_all(&[("SVC_AKISMET_KEY", &broken)]).unwrap_err().to_string();
        assert_eq!(error, "SVC_AKISMET_KEY: expected text in UTF-8");
    }

    #[test]
    fn no_type_is_the_first_segment_of_a_route() {
        for reserved in reserved_types() {
            let error = with("SVC_TYPES", reserved).unwrap_err().to_string();
            let accepted = "none of comments, counts, docs, embed, embed.js, mail, markdown, me, media, moderate, \
                            moderation, moderation.js, openapi.json, public, sign_in, ui, users";
            assert!(error.ends_with(accepted), "{error}");
        }
        assert_eq!(with("SVC_TYPES", "posts, type,openapi").unwrap().types, ["posts", "type", "openapi"]);
    }

    #[test]
    fn secrets_are_required_and_never_shown() {
        let error = with("SVC_JWT_SECRET", "").unwrap_err().to_string();
        assert!(error.contains("SVC_JWKS_URL"), "{error}");
        assert!(with("SVC_VISITOR_SALT", "").is_err());
        let hush = "hush, which is thirty-two bytes.";
        assert!(!format!("{:?}", with("SVC_JWT_SECRET", hush).unwrap()).contains("hush"));
    }

    #[test]
    fn a_function_without_callers_starts_without_their_secrets() {
        let with = |needs, named: &'static str| {
            let asked = [("TABLE_NAME", "comments"), (named, "a salt of 18 bytes")];
            let value =
                |name: &str| asked.iter().find(|(asked, _)| *asked == name).map(|(_, value)| (*value).to_owned());
            Config::from_vars_with(needs, value)
        };
        assert!(with(Needs::Callers, "SVC_VISITOR_SALT").is_err());
        assert!(with(Needs::Salt, "SVC_VISITOR_SALT").is_ok() && with(Needs::Salt, "").is_err());
        assert!(with(Needs::Nothing, "").is_ok_and(|config| config.visitor_salt.expose().is_empty()));
    }

    #[test]
    fn a_secret_of_fewer_than_32_bytes_stops_the_start() {
        for short in ["x", "thirty-one bytes and not one mo"] {
            let error = with("SVC_JWT_SECRET", short).unwrap_err().to_string();
            assert_eq!(error, "SVC_JWT_SECRET: expected a secret of at least 32 bytes");
        }
        assert!(with("SVC_JWT_SECRET", "thirty-two bytes, and not a more").is_ok());
        assert!(with("SVC_JWT_SECRET", "é é é é é é é é é é é").is_ok());
    }

    #[test]
    fn a_salt_of_fewer_than_16_bytes_stops_the_start() {
        for short in ["a", "fifteen bytes !"] {
            let error = with("SVC_VISITOR_SALT", short).unwrap_err().to_string();
            assert_eq!(error, "SVC_VISITOR_SALT: expected a secret of at least 16 bytes");
        }
        assert!(with("SVC_VISITOR_SALT", "sixteen bytes !!").is_ok());
    }

    #[test]
    fn a_key_set_is_fetched_over_https_or_from_this_machine() {
        let jwks = |url| with_all(&[("SVC_JWKS_URL", url), ("SVC_JWT_AUDIENCE", "comments")]);
        for url in [
            "https://id.example.org/keys",
            "http://localhost:8080/keys",
            "http://127.0.0.1:9/keys",
            "http://127.1.2.3/keys",
            "http://[::1]:9/keys",
        ] {
            assert!(jwks(url).is_ok(), "{url}");
        }
        for url in ["http://id.example.org/keys", "http://localhost.example.org/", "http://10.0.0.1/", "http://[::2]/"]
        {
            let error = jwks(url).unwrap_err().to_string();
            assert_eq!(error, format!("SVC_JWKS_URL={url:?}: expected an https address without user and fragment"));
        }
    }

    #[test]
    fn a_key_set_needs_an_issuer_or_an_audience() {
        let url = ("SVC_JWKS_URL", "https://id.example.org/keys");
        let error = with_all(&[url]).unwrap_err().to_string();
        assert!(error.starts_with("SVC_JWKS_URL=") && error.contains("SVC_JWT_ISSUER or SVC_JWT_AUDIENCE"), "{error}");
        for beside in ["SVC_JWT_ISSUER", "SVC_JWT_AUDIENCE"] {
            assert!(with_all(&[url, (beside, "x")]).is_ok());
        }
    }

    const MAIL: [(&str, &str); 3] = [
        ("SVC_MAIL_FROM", "comments@example.org"),
        ("SVC_PUBLIC_URL", "https://api.example.org/"),
        ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}"),
    ];

    #[test]
    fn mail_needs_a_sender_a_base_of_links_and_the_addresses_of_pages() {
        let mail = with_all(&MAIL).unwrap().mail.unwrap();
        assert_eq!(
            (mail.site_name.as_str(), mail.wait, mail.moderators.len()),
            ("www.example.org", Duration::from_mins(1), 0)
        );
        let post = ThreadId::new("posts", "a:1").unwrap();
        let config = with_all(&MAIL).unwrap();
        let page = |said: Option<&str>| config.page_of(&post, said);
        assert_eq!(page(None).as_deref(), Some("https://www.example.org/posts/a:1"));
        assert_eq!(page(Some("https://example.org/x")).as_deref(), Some("https://example.org/x"));
        assert_eq!(with_all(&[]).unwrap().page_of(&post, None), None);
        for missing in ["SVC_PUBLIC_URL", "SVC_PAGE_URL"] {
            let rest: Vec<_> = MAIL.into_iter().filter(|(name, _)| *name != missing).collect();
            let error = with_all(&rest).unwrap_err().to_string();
            assert!(error.starts_with(missing) && error.contains("SVC_MAIL_FROM is set"), "{error}");
        }
    }

    #[test]
    fn subscriptions_need_a_sender_of_whoever_is_given_one() {
        assert!(with("SVC_SUBSCRIPTIONS", "true").unwrap().mail.is_none());
        let error = with_all(&[("SVC_SUBSCRIPTIONS", "true"), ("SVC_MAIL_FROM", "")]).unwrap_err().to_string();
        assert!(error.starts_with("SVC_MAIL_FROM=") && error.contains("SVC_SUBSCRIPTIONS"), "{error}");
        assert!(with("SVC_MAIL_FROM", "").unwrap().mail.is_none());
    }

    #[test]
    fn a_digest_needs_a_sender_of_whoever_is_given_one() {
        assert!(with("SVC_MODERATION_MAIL", "mods@example.org").unwrap().mail.is_none());
        let digest = [("SVC_MODERATION_MAIL", "mods@example.org"), ("SVC_MAIL_FROM", "")];
        let error = with_all(&digest).unwrap_err().to_string();
        assert_eq!(error, "SVC_MAIL_FROM=\"\": expected an e-mail address, because SVC_MODERATION_MAIL is set");
    }

    #[test]
    fn a_secret_that_is_kept_in_aws_is_named() {
        let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf";
        for name in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "SVC_AKISMET_KEY", "SVC_EDGE_SECRET"] {
            assert_eq!(with_all(&[(name, arn)]).unwrap().secret_kept_in_aws(), Some(name));
        }
        assert_eq!(with("", "").unwrap().secret_kept_in_aws(), None);
    }

    #[test]
    fn settings_of_mail_that_are_not_valid_stop_the_start() {
        let too_many = ["mods@example.org"; MAX_DIGESTS + 1].join(",");
        for (name, value) in [
            ("SVC_MAIL_FROM", "Comments <comments@example.org>"),
            ("SVC_PAGE_URL", "https://www.example.org/{type}"),
            ("SVC_PAGE_URL", "ftp://www.example.org/{type}/{id}"),
            ("SVC_MODERATION_MAIL", "mods@example.org,nobody"),
            ("SVC_MODERATION_MAIL", &too_many),
            ("SVC_MODERATION_MAIL_FOR", "pending"),
            ("SVC_SITE_NAME", "a\u{7}b"),
            ("SVC_SITE_NAME", "gro.elpmaxe\u{202e}"),
            ("SVC_SITE_NAME", "Example\u{2028}Blog"),
            ("SVC_SITE_NAME", "\u{200b}"),
            ("SVC_MAIL_WAIT", "3601"),
            ("SVC_SMTP_URL", "https://user:hush@example.org"),
            ("SVC_SMTP_URL", "smtp://user:hush#hush@example.org"),
            ("SVC_SMTP_URL", "smtp://user:hush@example.org?tls=opportunistic"),
            ("SVC_SMTP_URL", "smtp://user:hush@example.org:99999"),
            ("SVC_SMTP_URL", "smtp://user:hush@"),
        ] {
            let settings: Vec<_> =
                MAIL.into_iter().filter(|(other, _)| *other != name).chain([(name, value)]).collect();
            for error in [with_all(&settings), with_all(&[(name, value)])].map(|config| config.unwrap_err().to_string())
            {
                assert!(error.starts_with(name) && !error.contains("hush"), "{error}");
            }
        }
        for url in [
            "smtp://mail.example.org:587?tls=required",
            "smtps://user:pass%40word@mail.example.org",
            "arn:aws:ssm:eu-west-1:1:parameter/smtp",
        ] {
            assert!(with_all(&[&MAIL[..], &[("SVC_SMTP_URL", url)]].concat()).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_edge_secret_says_that_there_is_an_edge() {
        assert!(with("SVC_EDGE_SECRET", "edge").unwrap().at_edge && !with("", "").unwrap().at_edge);
    }

    #[test]
    fn moderators_are_ids_below_two_to_the_53_and_subs() {
        let config = with("SVC_MODERATORS", "7, ada,9007199254740991,9007199254740992").unwrap();
        let sub = |text: &str| Moderator::Sub(text.to_owned());
        let id = |id| Moderator::Id(UserId(id));
        assert_eq!(config.auth.moderators, [id(7), sub("ada"), id(9_007_199_254_740_991), sub("9007199254740992")]);
        let names = |sub: &str| config.names_moderator(&identity(&config, sub, None));
        assert!(names("7") && names("ada") && !names("8") && !names("Ada"));
    }

    pub(super) fn identity(config: &Config, sub: &str, account: Option<Account>) -> Identity {
        Identity::new(
            Claims { sub: sub.to_owned(), account: account.map(Box::new), ..Claims::default() },
            &config.visitor_salt,
        )
    }

    #[test]
    fn an_address_makes_a_moderator_of_its_account_and_of_nobody_else() {
        let config = with("SVC_MODERATORS", "email: Ada@Example.org").unwrap();
        let account = |address| {
            let (id, subject) = account_of(&config.visitor_salt, address);
            Account { id, subject, epoch: 1 }
        };
        let names = |sub: &str, account| config.names_moderator(&identity(&config, sub, account));
        assert!(names("x", Some(account("ada@example.org"))));
        assert!(!names("x", Some(account("ada+x@example.org"))) && !names("x", Some(account("eve@example.org"))));
        for sub in ["ada@example.org", "email:ada@example.org", "email: Ada@Example.org"] {
            assert!(!names(sub, None), "{sub}");
        }
        assert!(config.named_moderators(&[]).any(|id| id == account("ada@example.org").id));
        let error = with("SVC_MODERATORS", "email:ada").unwrap_err().to_string();
        assert!(error.starts_with("SVC_MODERATORS=") && error.contains("after email:"), "{error}");
    }

    const SIGN_IN: [(&str, &str); 5] = [
        ("SVC_SIGN_IN", "true"),
        ("SVC_SIGN_IN_SEED", "a seed of at least thirty-two bytes"),
        ("SVC_MAIL_FROM", "comments@example.org"),
        ("SVC_PUBLIC_URL", "https://api.example.org"),
        ("SVC_CORS_ORIGINS", "https://www.example.org"),
    ];

    #[test]
    fn sign_in_needs_a_sender_a_base_of_links_a_list_of_origins_and_a_seed() {
        let config = with_all(&SIGN_IN).unwrap();
        assert!(config.sign_in.is_some() && config.mail.is_some() && config.page_url.is_none());
        assert_eq!(config.site_name.as_deref(), Some("api.example.org"));
        for (missing, value) in [
            ("SVC_MAIL_FROM", ""),
            ("SVC_PUBLIC_URL", ""),
            ("SVC_CORS_ORIGINS", ""),
            ("SVC_CORS_ORIGINS", "*"),
            ("SVC_CORS_ORIGINS", "https://*"),
            ("SVC_CORS_ORIGINS", "https://www.example.org, http://*"),
            ("SVC_SIGN_IN_SEED", ""),
        ] {
            let others = SIGN_IN.into_iter().filter(|(name, _)| *name != missing);
            let error = with_all(&others.chain([(missing, value)]).collect::<Vec<_>>()).unwrap_err().to_string();
            assert!(error.starts_with(missing) && error.contains("because"), "{error}");
        }
        let seed = [("SVC_SIGN_IN_SEED", "a short seed")];
        let error = with_all(&[&seed[..], &SIGN_IN].concat()).unwrap_err().to_string();
        assert_eq!(error, "SVC_SIGN_IN_SEED: expected a secret of at least 32 bytes");
        assert!(with("SVC_SIGN_IN_SEED", "").unwrap().sign_in.is_none());
    }

    #[test]
    fn other_functions_sign_nothing_and_send_no_mails() {
        let others = SIGN_IN.into_iter().filter(|(name, _)| !["SVC_SIGN_IN_SEED", "SVC_MAIL_FROM"].contains(name));
        let config = with_all(&others.collect::<Vec<_>>()).unwrap();
        assert!(config.sign_in.unwrap().seed.is_none() && config.mail.is_none());
    }
}
