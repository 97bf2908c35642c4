//! Hashes of people's email addresses, stored in addition to the sealed addresses. Gravatar's hash, which anyone with a list of
//! addresses can reverse, is stored only if `SVC_GUEST_SHOW_GRAVATAR` is on. A guest's comment stores a keyed hash, so that the
//! guest can be found by address.

use super::Store;
use crate::domain::avatar::Avatar;
use crate::domain::comment::Comment;
use crate::domain::person::PersonHashes;
use crate::domain::report::Report;
use crate::domain::secret::Secret;
use crate::domain::user::User;

#[derive(Clone, Debug)]
pub struct Addresses {
    /// `None` if the salt is unknown.
    hashes: Option<PersonHashes>,
    has_gravatars: bool,
}

impl Addresses {
    #[must_use]
    pub fn new(salt: Option<&Secret>, has_gravatars: bool) -> Self {
        Self { hashes: salt.map(PersonHashes::new), has_gravatars }
    }

    pub fn has_gravatars(&self) -> bool {
        self.has_gravatars
    }

    /// A keyed hash of an address's hash. Unlike the hash itself, it may always be stored.
    pub fn keyed(&self, hash: &str) -> Option<String> {
        self.hashes.as_ref().map(|hashes| hashes.address(hash))
    }
}

impl Store {
    /// The picture, or a neutral one if it may not be stored.
    pub(super) fn kept_picture(&self, avatar: Avatar) -> Avatar {
        let is_kept = avatar.hash().is_none() || self.addresses.as_ref().is_none_or(Addresses::has_gravatars);
        if is_kept { avatar } else { Avatar::Neutral }
    }

    /// The comment, with only the picture and the address hash that may be stored.
    #[must_use]
    pub fn kept_comment(&self, comment: Comment) -> Comment {
        let hash = comment.avatar.hash().filter(|_| comment.user.is_none());
        let keyed = self.addresses.as_ref().zip(hash).and_then(|(addresses, hash)| addresses.keyed(hash));
        Comment { address: comment.address.or(keyed), avatar: self.kept_picture(comment.avatar.clone()), ..comment }
    }

    #[must_use]
    pub fn kept_user(&self, user: User) -> User {
        User { avatar: self.kept_picture(user.avatar), ..user }
    }

    #[must_use]
    pub fn kept_report(&self, report: Report) -> Report {
        Report { avatar: self.kept_picture(report.avatar), ..report }
    }
}
