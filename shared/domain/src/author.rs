//! Authors of comments. An author's comments can be listed by time and rejected together.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// A user, or all guests of one network, which its keyed hash identifies. Serialized as `u` and the user's id, or `n` and the
/// hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Author {
    User(UserId),
    Network(String),
}

impl From<UserId> for Author {
    fn from(id: UserId) -> Self {
        Self::User(id)
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "u{id}"),
            Self::Network(hash) => write!(f, "n{hash}"),
        }
    }
}

impl From<Author> for String {
    fn from(author: Author) -> Self {
        author.to_string()
    }
}

impl TryFrom<String> for Author {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let user = text.strip_prefix('u').and_then(|id| id.parse().ok()).map(Self::User);
        let network = || text.strip_prefix('n').map(|hash| Self::Network(hash.to_owned()));
        user.or_else(network).ok_or("no author")
    }
}
