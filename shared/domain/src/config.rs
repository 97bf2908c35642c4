//! All settings. They are read from environment variables once, at startup, and nowhere else. An invalid value aborts
//! startup with an error that names the variable, its value (unless it is a secret) and the accepted values.

mod auth;
mod mail;
pub mod profile;
mod sign_in;
#[cfg(test)]
mod tests;
mod unknown;
mod vars;

use std::collections::BTreeSet;
use std::env::VarError;
use std::time::Duration;

use crate::ids::ThreadId;
use crate::list::Sort;
use crate::origin::Origins;
use crate::routes::{is_reserved, reserved_types};
use crate::secret::Secret;
use crate::sign_in::providers::Issuers;
use crate::spam;
use crate::visible;

use self::vars::Vars;

pub use self::auth::{Auth, MIN_SALT, MIN_SECRET, Moderator, SecretCheck};
pub use self::mail::Mail;
pub use self::sign_in::{MIN_SEED, ProviderClient, SignIn};
pub use self::unknown::UnknownSetting;

const API_PREFIX: &str = "svc/api/v1";
const AKISMET_URL: &str = "https://rest.akismet.com";
/// The values of `SVC_THEME`. The first is the default and follows the theme of the host page.
const THEMES: [&str; 3] = ["auto", "light", "dark"];

#[derive(Debug, thiserror::Error)]
#[error("{variable}{}: expected {accepted}", held.as_ref().map_or_else(String::new, |held| format!("={held:?}")))]
pub struct ConfigError {
    variable: &'static str,
    /// `None` for secrets.
    held: Option<String>,
    accepted: String,
}

/// The secrets that a function needs to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Functions that serve callers need the keys that verify tokens, and the salt.
    Callers,
    /// Functions that hash, sign cursors or open sealed values need the salt.
    Salt,
    Nothing,
}

#[derive(Clone, Debug)]
pub struct Config {
    /// `TABLE_NAME`: the DynamoDB table
    pub table_name: String,
    /// `JOBS_QUEUE_URL`: the queue of the function `jobs`, for functions that start jobs
    pub jobs_queue_url: Option<String>,
    /// `DELIVERIES_QUEUE_URL`: the queue of the function `delivery`, for functions that start deliveries
    pub deliveries_queue_url: Option<String>,
    pub media_bucket: String,
    /// `MEDIA_BASE_URL`, without a trailing slash
    pub media_base_url: String,
    /// `SVC_API_PREFIX`, without leading or trailing slashes
    pub api_prefix: String,
    /// `SVC_PUBLIC_URL`, without the API prefix or a trailing slash
    pub public_url: Option<String>,
    pub types: Vec<String>,
    pub cors_origins: Origins,
    pub lists: Lists,
    pub features: Features,
    pub guests: Guests,
    pub spam: Spam,
    pub limits: Limits,
    pub auth: Auth,
    /// `SVC_PAGE_URL`: the address of a record's page, with the placeholders `{type}` and `{id}`
    pub page_url: Option<String>,
    /// `None` without `SVC_MAIL_FROM`
    pub mail: Option<Mail>,
    /// `SVC_SITE_NAME`, or else the host of `SVC_PAGE_URL` or `SVC_PUBLIC_URL`
    pub site_name: Option<String>,
    /// `None` if sign-in is off
    pub sign_in: Option<SignIn>,
    /// `SVC_GITHUB_URL` and `SVC_OIDC_ISSUER`
    pub issuers: Issuers,
    pub webhooks: Webhooks,
    pub read_only: bool,
    /// `SVC_CLOSE_AFTER_DAYS`: the age at which a thread closes; `None` means never
    pub close_after: Option<Duration>,
    pub require_approval: RequireApproval,
    pub report_reasons: Vec<String>,
    pub theme: &'static str,
    /// `SVC_USERS_ROUTE_PREFIX`, without leading or trailing slashes
    pub users_route_prefix: String,
    pub media_max_bytes: usize,
    /// `SVC_VISITOR_SALT`: the key for hashes, sealed values and signatures of cursors; empty in functions that don't
    /// need it
    pub visitor_salt: Secret,
    /// `SVC_EDGE_SECRET`: proves that a request came through CloudFront, so its header with the client's address is
    /// trusted
    pub edge_secret: Option<Secret>,
    /// Whether a cache in front of the functions serves most reads that are the same for everyone. True if an edge secret is
    /// set.
    pub at_edge: bool,
    /// `SVC_METRICS_NAMESPACE`: the CloudWatch namespace for metrics; `None` turns metrics off
    pub metrics_namespace: Option<String>,
    /// The names of all variables that were read.
    pub variables: Vec<&'static str>,
}

/// The comments that need a moderator's approval. Suspected spam needs it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequireApproval {
    /// `false`: none.
    Never,
    /// `new`: comments of writers who aren't trusted yet.
    OfNewWriters,
    /// `true`: all.
    Always,
}

#[derive(Clone, Debug)]
pub struct Lists {
    /// `SVC_PER_PAGE`, 1 to 50
    pub per_page: usize,
    /// `SVC_REPLIES_PER_PARENT`, 0 to 20
    pub replies_per_parent: usize,
    pub default_sort: Sort,
}

/// Each field's variable is `SVC_` followed by the field's name in upper case.
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
    /// `SVC_GUEST_LIKES_PER_IP`; 0 means no limit
    pub likes_per_ip: u32,
    /// `SVC_GUEST_REPORTS_PER_IP`; 0 means no limit
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
    pub akismet_key: Option<Secret>,
    pub akismet_url: String,
}

/// Requests per minute: `SVC_READ_LIMIT`, `SVC_WRITE_LIMIT` and `SVC_UPLOAD_LIMIT`.
#[derive(Clone, Debug)]
pub struct Limits {
    pub read: u32,
    pub write: u32,
    pub upload: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Webhooks {
    /// `SVC_WEBHOOKS`
    pub on: bool,
    /// `SVC_WEBHOOK_PRIVATE`: whether webhooks may use http and private addresses
    pub private: bool,
}

impl ConfigError {
    /// The error for a setting that the server or the CLI finds missing or invalid. `held` is `None` for secrets.
    #[must_use]
    pub fn new(variable: &'static str, held: Option<String>, accepted: &str) -> Self {
        Self { variable, held, accepted: accepted.to_owned() }
    }
}

/// Whether records may have this type: up to 64 characters of `A-Z a-z 0-9 . _ ~ -`, neither `.` nor `..`, and not the
/// first segment of a route.
#[must_use]
pub fn is_type(alias: &str) -> bool {
    alias.len() <= 64 && vars::is_segment(alias) && !is_reserved(alias)
}

impl Config {
    pub fn from_env(needs: Needs) -> Result<Self, ConfigError> {
        Self::from_vars_with(needs, environment)
    }

    /// Environment variables that are named like settings but aren't read.
    #[must_use]
    pub fn unknown_settings(&self) -> Vec<UnknownSetting> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        unknown::unknown(names, &self.variables)
    }

    /// The address of a record's page: `said` if it is given, otherwise built from `SVC_PAGE_URL`.
    #[must_use]
    pub fn page_of(&self, thread: &ThreadId, said: Option<&str>) -> Option<String> {
        // Types and record ids contain no characters that need percent-encoding.
        let made = |url: &String| url.replace("{type}", &thread.kind).replace("{id}", &thread.record);
        said.map(str::to_owned).or_else(|| self.page_url.as_ref().map(made))
    }

    /// Reads the settings from `var`, for functions that serve requests. Optional variables that are missing or empty
    /// get their defaults.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::from_vars_with(Needs::Callers, var)
    }

    /// Like [`Self::from_vars`], for functions that may need fewer secrets.
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

    /// Whether CORS headers depend on the requesting page: API Gateway echoes a listed origin, unless CloudFront replaces the
    /// headers.
    #[must_use]
    pub fn varies_by_origin(&self) -> bool {
        self.edge_secret.is_none() && !self.cors_origins.is_any()
    }
}

/// Reads an environment variable. Invalid UTF-8 becomes U+FFFD, which [`Config`] rejects.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads settings")]
pub fn environment(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(value)) => Some(value.to_string_lossy().into_owned()),
    }
}

impl Vars<'_> {
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
        let accepted =
            format!("aliases of at most 64 letters, digits and . _ ~ -, separated by commas, none of {reserved}");
        Err(self.wrong(name, accepted))
    }

    fn origins(&self, name: &'static str) -> Result<Origins, ConfigError> {
        let text = self.text(name).unwrap_or_else(|| "*".to_owned());
        let accepted = "*, or origins as browsers send them, such as https://example.org, without a path or \
                        default port, separated by commas";
        Origins::parse(&text).ok_or_else(|| self.wrong(name, accepted))
    }

    fn reasons(&self, name: &'static str) -> Result<Vec<String>, ConfigError> {
        if self.text(name).is_none() {
            return Ok(["spam", "inappropriate", "offensive", "other"].map(str::to_owned).to_vec());
        }
        let reasons = self.list(name);
        if !reasons.is_empty() && reasons.iter().all(|reason| visible::is_plain_line(reason)) {
            return Ok(reasons);
        }
        Err(self.wrong(
            name,
            "one or more visible reasons, without control characters or bidirectional overrides, separated by commas",
        ))
    }

    fn sort(&self, name: &'static str) -> Result<Sort, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(Sort::Newest) };
        Sort::parse(&text).ok_or_else(|| self.wrong(name, format_args!("one of {}", Sort::NAMES.join(", "))))
    }

    fn theme(&self, name: &'static str) -> Result<&'static str, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(THEMES[0]) };
        let theme = THEMES.into_iter().find(|theme| *theme == text);
        theme.ok_or_else(|| self.wrong(name, format_args!("one of {}", THEMES.join(", "))))
    }
}

/// Reads the issuers of provider accounts, for commands that need no other settings.
pub fn issuers(var: impl Fn(&str) -> Option<String>) -> Result<Issuers, ConfigError> {
    Vars::new(&var)?.issuers()
}

/// Removes the API prefix from the end of the service's address, because owners sometimes include it.
#[must_use]
pub fn without_prefix<'a>(url: &'a str, prefix: &str) -> &'a str {
    let url = url.trim_end_matches('/');
    // The host may have the same name as the prefix, so only the path is compared.
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|start| &rest[start..]));
    let own = path.and_then(|path| path.strip_suffix(prefix)?.strip_suffix('/'));
    own.map_or(url, |own| url[..url.len() - path.map_or(0, str::len) + own.len()].trim_end_matches('/'))
}
