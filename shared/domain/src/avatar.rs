//! Avatars of users and guests.

use serde::{Deserialize, Serialize};

const GRAVATAR: &str = "https://www.gravatar.com/avatar/";

/// A person's picture, serialized as a string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Avatar {
    /// No picture. The person's initials are shown instead.
    #[default]
    Neutral,
    /// The hash of an email address, which anyone with a list of addresses can reverse.
    Gravatar(String),
    Picture(String),
}

impl Avatar {
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Neutral => String::new(),
            Self::Gravatar(hash) => format!("{GRAVATAR}{hash}?d=mp"),
            Self::Picture(url) => url.clone(),
        }
    }

    #[must_use]
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Gravatar(hash) => Some(hash),
            Self::Neutral | Self::Picture(_) => None,
        }
    }
}

impl From<String> for Avatar {
    fn from(text: String) -> Self {
        match text.strip_prefix("g:") {
            Some(hash) => Self::Gravatar(hash.to_owned()),
            None if text.is_empty() || is_generic(&text) => Self::Neutral,
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

/// Whether `url` is Gravatar's default picture, which earlier versions stored for people without a picture.
fn is_generic(url: &str) -> bool {
    let rest = url.split_once("gravatar.com/avatar").map(|(_, rest)| rest.trim_start_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generic_gravatar_counts_as_no_picture() {
        for url in [
            "https://www.gravatar.com/avatar/?d=mp",
            "http://gravatar.com/avatar?s=80",
            "https://secure.gravatar.com/avatar/",
        ] {
            assert_eq!(Avatar::from(url.to_owned()), Avatar::Neutral, "{url}");
        }
        for url in ["https://www.gravatar.com/avatar/00ff?d=mp", "https://pictures.example/avatar/?d=mp"] {
            assert_eq!(Avatar::from(url.to_owned()).url(), url);
        }
    }
}
