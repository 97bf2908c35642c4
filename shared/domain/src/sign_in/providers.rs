//! Provider accounts that readers sign in with: GitHub, Google, and any other OpenID Connect provider. They are never
//! linked to each other or to the account of an address, because we don't trust an address from a provider as much as
//! our own proof.

use std::fmt;
use std::str::FromStr;

use super::ISSUER;
use crate::ids::{UserId, is_subject};
use crate::secret::Secret;

/// The issuer of Google's tokens.
const GOOGLE: &str = "https://accounts.google.com";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A code that we email.
    Email,
    Provider(Provider),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    GitHub,
    Google,
    Oidc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OAuth 2 with an API that identifies the user.
    GitHub,
    /// OpenID Connect with discovery.
    OpenId,
}

/// The constants of a provider. Its other properties are settings.
#[derive(Debug)]
pub struct Facts {
    /// The provider's name in settings, addresses and [`ProviderAccount`]s.
    pub id: &'static str,
    pub protocol: Protocol,
    /// The scopes that we request, without and with access to the email address.
    pub scope: &'static str,
    pub scope_with_address: &'static str,
    is_subject: fn(&str) -> bool,
}

const OPENID: Facts = Facts {
    id: "oidc",
    protocol: Protocol::OpenId,
    scope: "openid profile",
    scope_with_address: "openid profile email",
    is_subject,
};

impl Method {
    pub const ALL: [Self; 4] = [
        Self::Email,
        Self::Provider(Provider::GitHub),
        Self::Provider(Provider::Google),
        Self::Provider(Provider::Oidc),
    ];

    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Provider(provider) => provider.facts().id,
        }
    }
}

impl Provider {
    #[must_use]
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::GitHub => &Facts {
                id: "github",
                protocol: Protocol::GitHub,
                scope: "",
                scope_with_address: "user:email",
                is_subject: |id| id.parse().is_ok_and(|number: u64| number > 0 && number.to_string() == id),
            },
            Self::Google => &Facts { id: "google", ..OPENID },
            Self::Oidc => &OPENID,
        }
    }

    #[must_use]
    pub fn of_id(id: &str) -> Option<Self> {
        [Self::GitHub, Self::Google, Self::Oidc].into_iter().find(|provider| provider.facts().id == id)
    }
}

/// A provider account, written `github:583231`. A comma, which separates accounts in settings, is written `%2C`, and a percent
/// sign `%25`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAccount {
    pub provider: Provider,
    pub subject: String,
}

impl FromStr for ProviderAccount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(id, subject)| Some((Provider::of_id(id)?, subject.trim())));
        let (provider, subject) = parts.ok_or("expected a provider account, such as github:7")?;
        Self::new(provider, &subject.replace("%2C", ",").replace("%2c", ",").replace("%25", "%"))
            .ok_or("not an account id")
    }
}

impl fmt::Display for ProviderAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject.replace('%', "%25").replace(',', "%2C");
        write!(f, "{}:{subject}", self.provider.facts().id)
    }
}

impl ProviderAccount {
    /// A provider account; `None` if the provider never assigns this subject.
    #[must_use]
    pub fn new(provider: Provider, subject: &str) -> Option<Self> {
        (provider.facts().is_subject)(subject).then(|| Self { provider, subject: subject.to_owned() })
    }
}

/// The issuer of each provider's accounts. Accounts of another issuer belong to other people.
#[derive(Clone, Debug)]
pub struct Issuers {
    /// `SVC_GITHUB_URL`, without a trailing slash
    pub github: String,
    /// `SVC_OIDC_ISSUER`, as the provider writes it
    pub oidc: Option<String>,
}

impl Issuers {
    #[must_use]
    pub fn of(&self, provider: Provider) -> Option<&str> {
        match provider {
            Provider::GitHub => Some(&self.github),
            Provider::Google => Some(GOOGLE),
            Provider::Oidc => self.oidc.as_deref(),
        }
    }

    /// The user id and subject of the account in this service; `None` if the provider's issuer isn't set.
    #[must_use]
    pub fn account(&self, salt: &Secret, account: &ProviderAccount) -> Option<(UserId, String)> {
        let issuer = self.of(account.provider)?;
        Some(UserId::hashed(salt, &format!("{ISSUER}:{issuer}"), &account.subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_written_with_the_name_of_its_provider() {
        for text in ["github:1", "github:18446744073709551615", "google:1234567890", "oidc:a:b c", "oidc:é"] {
            assert_eq!(text.parse::<ProviderAccount>().unwrap().to_string(), text);
        }
        for subject in ["uid=ada,ou=people", "100%", "a%2Cb%25", "%,%"] {
            let account = ProviderAccount::new(Provider::Oidc, subject).unwrap();
            let text = account.to_string();
            assert!(!text.contains(','), "{text}");
            assert_eq!(text.parse(), Ok(account));
        }
        let long = format!("oidc:{}", "x".repeat(256));
        for text in ["github:", "github:0", "github:01", "github:ada", "github:-1", "github:18446744073709551616"] {
            assert!(text.parse::<ProviderAccount>().is_err(), "{text}");
        }
        for text in ["oidc:", "email:1", "GitHub:1", "ada", &long] {
            assert!(text.parse::<ProviderAccount>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_subject_of_another_issuer_is_another_user() {
        let salt = Secret::from("salt".to_owned());
        let id = |github: &str, oidc: Option<&str>, account: &str| {
            let issuers = Issuers { github: github.to_owned(), oidc: oidc.map(str::to_owned) };
            issuers.account(&salt, &account.parse().unwrap())
        };
        let github = id("https://github.com", None, "github:7").unwrap();
        assert!(github.0.is_hashed());
        assert_eq!(Some(&github), id("https://github.com", Some("https://a.test"), "github:7").as_ref());
        assert_eq!(github, UserId::hashed(&salt, "svc-pro:sign-in:https://github.com", "7"));
        let others = [
            id("https://git.example", None, "github:7"),
            id("https://github.com", None, "google:7"),
            id("https://github.com", Some("https://a.test"), "oidc:7"),
            id("https://github.com", Some("https://a.test/"), "oidc:7"),
        ];
        assert!(others.iter().flatten().all(|other| *other != github) && others[2] != others[3]);
        assert_eq!(id("https://github.com", None, "oidc:7"), None);
    }
}
