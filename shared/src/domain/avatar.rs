//! Pictures of people.

use serde::{Deserialize, Serialize};

/// A person's picture, stored in a short form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Avatar {
    /// Gravatar's picture for unknown people.
    #[default]
    Neutral,
    /// The hash of an e-mail address.
    Gravatar(String),
    Picture(String),
}

impl Avatar {
    #[must_use]
    pub fn url(&self) -> String {
        const BASE: &str = "https://www.gravatar.com/avatar/";
        match self {
            Self::Neutral => format!("{BASE}?d=mp"),
            Self::Gravatar(hash) => format!("{BASE}{hash}?d=mp"),
            Self::Picture(url) => url.clone(),
        }
    }
}

impl From<String> for Avatar {
    fn from(text: String) -> Self {
        match text.strip_prefix("g:") {
            Some(hash) => Self::Gravatar(hash.to_owned()),
            None if text.is_empty() => Self::Neutral,
            None => Self::Picture(text),
        }
    }
}

impl From<Avatar> for String {
    fn from(avatar: Avatar) -> Self {
        match avatar {
            Avatar::Neutral => Self::new(),
            Avatar::Gravatar(hash) => format!("g:{hash}"),
            Avatar::Picture(url) => url,
        }
    }
}
