//! Hashes of people's addresses, which are stored in addition to the sealed ones. Gravatar's hash, which anyone with a list
//! of addresses can find, is stored only where `SVC_GUEST_SHOW_GRAVATAR` is on. A keyed hash stays with a guest's comment, so
//! that the guest can be found.

use super::Store;
use crate::domain::avatar::Avatar;
use crate::domain::comment::Comment;
use crate::domain::person::PersonHashes;
use crate::domain::report::Report;
use crate::domain::secret::Secret;
use crate::domain::user::User;

#[derive(Clone, Debug)]
pub struct Addresses {
    /// `None` where the salt is not known.
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

    /// The hash of an address as it may be kept.
    pub fn keyed(&self, hash: &str) -> Option<String> {
        self.hashes.as_ref().map(|hashes| hashes.address(hash))
    }
}

impl Store {
    /// A picture as it may be kept.
    pub(super) fn kept_picture(&self, avatar: Avatar) -> Avatar {
        let is_kept = avatar.hash().is_none() || self.addresses.as_ref().is_none_or(Addresses::has_gravatars);
        if is_kept { avatar } else { Avatar::Neutral }
    }

    /// A comment as it may be kept.
    #[must_use]
    pub fn kept_comment(&self, comment: Comment) -> Comment {
        let hash = comment.avatar.hash().filter(|_| comment.user.is_none());
        let keyed = self.addresses.as_ref().zip(hash).and_then(|(addresses, hash)| addresses.keyed(hash));
        Comment { address: comment.address.or(keyed), avatar: self.kept_picture(comment.avatar.clone()), ..comment }
    }

    /// A user as it may be kept.
    #[must_use]
    pub fn kept_user(&self, user: User) -> User {
        User { avatar: self.kept_picture(user.avatar), ..user }
    }

    /// A report as it may be kept.
    #[must_use]
    pub fn kept_report(&self, report: Report) -> Report {
        Report { avatar: self.kept_picture(report.avatar), ..report }
    }
}
