//! Settings for email, and for the names and addresses that emails show.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use super::vars::{BASE_URL, Vars, distinct, web_address};
use super::{API_PREFIX, ConfigError, without_prefix};
use crate::email::{self, is_mailable};
use crate::origin;
use crate::secret::{self, Secret};
use crate::sign_in::providers::Method;
use crate::visible;

/// Maximum addresses in `SVC_MODERATION_MAIL`. Each gets a separate email.
pub(super) const MAX_DIGESTS: usize = 50;
/// Describes the accepted values of `SVC_PAGE_URL`. A fragment isn't accepted, because links to comments add their own.
const PAGE_URL: &str =
    "an http or https address with {type} and {id} after its host, without credentials or a fragment";
/// Maximum characters in `SVC_SITE_NAME` and `SVC_OIDC_NAME`.
pub(super) const MAX_SITE_NAME: usize = 100;

#[derive(Clone, Debug)]
pub struct Mail {
    /// `SVC_MAIL_FROM`: the sender of emails
    pub from: String,
    /// [`super::Config::public_url`], the base of links to the service
    pub public_url: String,
    pub site_name: String,
    /// `SVC_SMTP_URL`; `None` sends emails through SES
    pub smtp_url: Option<Secret>,
    /// `SVC_MAIL_WAIT`: the time for which notifications are collected before an email is sent
    pub wait: Duration,
    /// `SVC_MODERATION_MAIL`: addresses that get a digest
    pub moderators: Vec<String>,
    /// `SVC_MODERATION_MAIL_FOR`: whether the digest also lists new public comments, not only held and reported ones
    pub digest_has_all: bool,
    /// `MAIL_CONFIGURATION_SET`: the SES configuration set that reports bounces and complaints
    pub configuration_set: Option<String>,
}

pub(super) fn check_smtp(url: &Secret) -> Result<(), ConfigError> {
    let accepted = "smtp:// or smtps:// with a host (no IPv6 address), and a user and password if the server \
                    requires them; in these, write @, :, /, ? and # as %40, %3A, %2F, %3F and %23";
    let read = Url::parse(url.expose()).ok();
    // Emails and passwords are sent to other machines only over TLS, so `tls` may only be `required`.
    let is_secure = |url: &Url| url.query_pairs().all(|(name, value)| name != "tls" || value == "required");
    let fits = |url: &Url| {
        let is_smtp = matches!(url.scheme(), "smtp" | "smtps");
        // The SMTP library would look up an IPv6 address as a host name.
        let is_host = url.host_str().is_some_and(|host| origin::is_host(host) && !host.starts_with('['));
        let is_text =
            |text: &str| percent_decode_str(text).decode_utf8().is_ok_and(|text| !text.contains(char::is_control));
        let is_login = url.username().is_empty() == url.password().is_none()
            && is_text(url.username())
            && url.password().is_none_or(is_text);
        is_smtp && is_host && is_login && url.port() != Some(0) && is_secure(url)
    };
    // A fragment means that the password contains an unescaped #.
    if read.as_ref().is_some_and(fits) && !url.expose().contains('#') {
        return Ok(());
    }
    Err(ConfigError { variable: "SVC_SMTP_URL", held: None, accepted: accepted.to_owned() })
}

impl Vars<'_> {
    /// Reads the email settings; `None` without a sender. Invalid values are rejected even without one.
    pub(super) fn mail(&self) -> Result<Option<Mail>, ConfigError> {
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

    /// `SVC_MAIL_FROM` is present, even if empty, in functions that handle email. In those functions, subscriptions,
    /// sign-in by email and moderators' digests require a sender.
    pub(super) fn mail_from(&self) -> Result<Option<String>, ConfigError> {
        match self.text("SVC_MAIL_FROM") {
            Some(from) if is_mailable(&from) => Ok(Some(from)),
            Some(_) => Err(self.wrong("SVC_MAIL_FROM", "an email address")),
            None if (self.var)("SVC_MAIL_FROM").is_some() => {
                let needed =
                    |reason: &str| Err(self.wrong("SVC_MAIL_FROM", format_args!("an email address, because {reason}")));
                if self.switch("SVC_SUBSCRIPTIONS", false)? {
                    return needed("SVC_SUBSCRIPTIONS is on");
                }
                if self.methods()?.contains(&Method::Email) {
                    return needed("SVC_SIGN_IN lists email");
                }
                if self.text("SVC_MODERATION_MAIL").is_some() {
                    return needed("SVC_MODERATION_MAIL is set");
                }
                Ok(None)
            }
            None => Ok(None),
        }
    }

    pub(super) fn page_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(url) = self.text("SVC_PAGE_URL") else { return Ok(None) };
        let behind_host = url.split_once("://").and_then(|(_, rest)| rest.find(['/', '?']).map(|end| &rest[end..]));
        let has_both = behind_host.is_some_and(|behind| behind.contains("{type}") && behind.contains("{id}"));
        let is_page = has_both && web_address(&filled(&url)).is_some() && !filled(&url).contains(['{', '}']);
        if is_page { Ok(Some(url)) } else { Err(self.wrong("SVC_PAGE_URL", PAGE_URL)) }
    }

    /// The name of the site, or else the host of its pages or of the service.
    pub(super) fn site_name(&self) -> Result<Option<String>, ConfigError> {
        let host = || host_of(&self.text("SVC_PAGE_URL").or_else(|| self.text("SVC_PUBLIC_URL"))?);
        let name = self.text("SVC_SITE_NAME").or_else(host);
        let fits = |name: &String| {
            visible::is_plain_line(name) && !visible::shows_nothing(name) && name.chars().count() <= MAX_SITE_NAME
        };
        if name.as_ref().is_none_or(fits) {
            return Ok(name);
        }
        let accepted = format!("a name of at most {MAX_SITE_NAME} visible characters on one line");
        Err(self.wrong("SVC_SITE_NAME", accepted))
    }

    pub(super) fn moderation_mail(&self) -> Result<Vec<String>, ConfigError> {
        let addresses = distinct(self.list("SVC_MODERATION_MAIL"), email::exact);
        if addresses.len() <= MAX_DIGESTS && addresses.iter().all(|address| is_mailable(address)) {
            return Ok(addresses);
        }
        let accepted = format!("at most {MAX_DIGESTS} email addresses, separated by commas");
        Err(self.wrong("SVC_MODERATION_MAIL", accepted))
    }

    pub(super) fn digest_has_all(&self) -> Result<bool, ConfigError> {
        match self.text("SVC_MODERATION_MAIL_FOR").as_deref() {
            None | Some("waiting") => Ok(false),
            Some("all") => Ok(true),
            Some(_) => Err(self.wrong("SVC_MODERATION_MAIL_FOR", "waiting or all")),
        }
    }

    /// An address given as an ARN is checked after it has been fetched.
    pub(super) fn smtp_url(&self) -> Result<Option<Secret>, ConfigError> {
        let url = self.text("SVC_SMTP_URL").map(Secret::from);
        if let Some(url) = url.as_ref().filter(|url| !secret::is_name(url.expose())) {
            check_smtp(url)?;
        }
        Ok(url)
    }

    pub(super) fn public_url(&self) -> Result<Option<String>, ConfigError> {
        let prefix = self.path("SVC_API_PREFIX", API_PREFIX)?;
        let Some(url) = self.base_url("SVC_PUBLIC_URL")? else { return Ok(None) };
        let base = without_prefix(&url, &prefix);
        if without_prefix(base, &prefix) != base {
            return Err(self.wrong("SVC_PUBLIC_URL", format_args!("{BASE_URL}, without /{prefix} at its end")));
        }
        Ok(Some(base.to_owned()))
    }
}

/// Replaces the placeholders in an address with sample values.
fn filled(url: &str) -> String {
    url.replace("{type}", "posts").replace("{id}", "1")
}

fn host_of(url: &str) -> Option<String> {
    web_address(&filled(url))?.host().map(str::to_owned)
}
