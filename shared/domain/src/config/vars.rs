//! Reads environment variables by the type of their value.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use url::Url;

use super::{ConfigError, profile};
use crate::{origin, visible};

/// Describes the accepted values of settings that contain a base address.
pub(super) const BASE_URL: &str =
    "an http or https address without user, query or fragment, such as https://comments.example.org";

pub(super) struct Vars<'a> {
    pub(super) var: &'a dyn Fn(&str) -> Option<String>,
    /// The profile's defaults; empty while `SVC_PROFILE` itself is read.
    defaults: profile::Defaults,
    /// The names of the variables read so far.
    pub(super) asked: RefCell<Vec<&'static str>>,
}

/// Whether this is the address of a discovery document, which owners may mistake for the issuer or the key set.
pub(super) fn is_discovery_document(address: &str) -> bool {
    address.trim_end_matches('/').ends_with("/.well-known/openid-configuration")
}

impl<'a> Vars<'a> {
    pub(super) fn new(var: &'a dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let vars = Vars { var, defaults: &[], asked: RefCell::default() };
        let profile = vars.text("SVC_PROFILE").unwrap_or_else(|| profile::DEFAULT.to_owned());
        let defaults = profile::defaults(&profile);
        let defaults =
            defaults.ok_or_else(|| vars.wrong("SVC_PROFILE", profile::PROFILES.map(|(name, _)| name).join(" or ")))?;
        Ok(Self { defaults, ..vars })
    }

    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        self.asked.borrow_mut().push(name);
        let set = (self.var)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let default =
            || self.defaults.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
        set.or_else(default)
    }

    /// The error for an invalid variable. It omits the value of a secret.
    pub(super) fn wrong(&self, variable: &'static str, accepted: impl fmt::Display) -> ConfigError {
        let secret = ["SECRET", "SALT", "SEED", "KEY", "SMTP_URL"].iter().any(|kind| variable.ends_with(kind));
        let held = (!secret).then(|| self.text(variable).unwrap_or_default());
        ConfigError { variable, held, accepted: accepted.to_string() }
    }

    pub(super) fn required(&self, name: &'static str, accepted: &str) -> Result<String, ConfigError> {
        self.text(name).ok_or_else(|| self.wrong(name, accepted))
    }

    pub(super) fn switch(&self, name: &'static str, default: bool) -> Result<bool, ConfigError> {
        match self.text(name).map(|value| value.to_ascii_lowercase()).as_deref() {
            None => Ok(default),
            Some("true" | "1" | "on" | "yes") => Ok(true),
            Some("false" | "0" | "off" | "no") => Ok(false),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    pub(super) fn number<T>(&self, name: &'static str, default: T, least: T, most: T) -> Result<T, ConfigError>
    where
        T: FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.wrong(name, format_args!("a whole number from {least} to {most}")))
    }

    /// The entries of a list, without duplicates.
    pub(super) fn list(&self, name: &'static str) -> Vec<String> {
        distinct(self.entries(name), str::to_owned)
    }

    /// The entries of a list. Full-width and Arabic commas also separate them. Entries without visible characters are
    /// skipped.
    pub(super) fn entries(&self, name: &'static str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split([',', '，', '،'])
            .map(str::trim)
            .filter(|entry| !visible::shows_nothing(entry))
            .map(str::to_owned)
            .collect()
    }

    /// A path of one or more segments, without leading or trailing slashes.
    pub(super) fn path(&self, name: &'static str, default: &str) -> Result<String, ConfigError> {
        let path = self.text(name).unwrap_or_else(|| default.to_owned());
        let path = path.trim_matches('/');
        if path.split('/').all(is_segment) {
            return Ok(path.to_owned());
        }
        Err(self.wrong(name, "path segments of letters, digits and . _ ~ -"))
    }

    pub(super) fn address(&self, name: &'static str, accepted: &str) -> Result<Option<http::Uri>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        web_address(&text).map(Some).ok_or_else(|| self.wrong(name, accepted))
    }

    /// A base address for paths, without a trailing slash.
    pub(super) fn base_url(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        match self.address(name, BASE_URL)? {
            Some(address) if address.query().is_some() => Err(self.wrong(name, BASE_URL)),
            Some(_) => Ok(self.text(name).map(|text| text.trim_end_matches('/').to_owned())),
            None => Ok(None),
        }
    }

    /// Rejects values that weren't valid UTF-8, which contain U+FFFD.
    pub(super) fn check_encoding(&self) -> Result<(), ConfigError> {
        let asked = self.asked.borrow().clone();
        let broken = asked.into_iter().find(|name| self.text(name).is_some_and(|value| value.contains('\u{FFFD}')));
        broken.map_or(Ok(()), |name| Err(self.wrong(name, "text in UTF-8")))
    }
}

/// Whether `part` can be a segment of a path: `A-Z a-z 0-9 . _ ~ -`, but neither `.` nor `..`, which browsers resolve.
pub(super) fn is_segment(part: &str) -> bool {
    let is_name = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._~-".contains(&b));
    is_name && !["", ".", ".."].contains(&part)
}

/// Parses an http or https address without credentials or a fragment. `None` if the text is anything else.
pub(super) fn web_address(text: &str) -> Option<http::Uri> {
    let uri: http::Uri = text.parse().ok()?;
    let authority = origin::authority(uri.authority()?.as_str())?;
    let is_host = Url::parse(text).is_ok() && origin::is_host(authority.host());
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let is_decodable =
        text.split('%').skip(1).all(|rest| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2);
    (is_web && is_host && is_decodable && !text.contains('#')).then_some(uri)
}

/// Removes entries with the same key as an earlier entry.
pub(super) fn distinct(mut entries: Vec<String>, key: fn(&str) -> String) -> Vec<String> {
    let mut seen = BTreeSet::new();
    entries.retain(|entry| seen.insert(key(entry)));
    entries
}
