//! The sender of a request, as known from the token and the stored user. `policy` decides what a viewer may do.

use std::ops::Deref;

use crate::ids::{UserId, Visitor};
use crate::user::User;

pub struct Viewer {
    pub owners: Owners,
    /// `None` for guests.
    pub user: Option<User>,
    /// Whether the token's claim or `SVC_MODERATORS` grants the moderator role.
    pub has_role: bool,
    /// Whether the user, or the network of a guest who writes, is banned.
    pub banned: bool,
}

/// The owners of a caller's items. They differ only for a guest with a `Comment-Key`.
#[derive(Clone, Debug)]
pub struct Owners {
    /// The writer of comments, and the sender of idempotent requests. A guest with a key is identified by the key.
    pub comments: Visitor,
    /// The owner of likes, reports and repeated texts. A guest is identified by network and user agent.
    pub reactions: Visitor,
}

impl From<Visitor> for Owners {
    fn from(visitor: Visitor) -> Self {
        Self { comments: visitor.clone(), reactions: visitor }
    }
}

impl From<UserId> for Owners {
    fn from(user: UserId) -> Self {
        Visitor::from(user).into()
    }
}

/// A viewer who moderates. Only [`crate::policy::moderate`] creates one.
pub struct Moderator(pub(crate) Viewer);

impl Deref for Moderator {
    type Target = Viewer;

    fn deref(&self) -> &Viewer {
        &self.0
    }
}

impl Viewer {
    /// A viewer without identity, for responses that are the same for everyone.
    #[must_use]
    pub fn nobody() -> Self {
        Self { owners: Visitor::nobody().into(), user: None, has_role: false, banned: false }
    }

    /// Whether the viewer has moderator rights. A ban suspends them.
    pub fn is_moderator(&self) -> bool {
        self.has_role && !self.banned
    }

    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }
}
