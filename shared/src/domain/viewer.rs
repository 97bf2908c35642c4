//! The sender of a request, from its token and the stored user. `policy` decides what a viewer may do.

use crate::domain::ids::{UserId, Visitor};
use crate::domain::user::User;

pub struct Viewer {
    /// The owner of the viewer's likes, reports and comments.
    pub visitor: Visitor,
    /// `None` for guests.
    pub user: Option<User>,
    /// By the token's claim or by `SVC_MODERATORS`.
    pub has_role: bool,
    pub banned: bool,
}

impl Viewer {
    /// A banned moderator is none.
    pub fn is_moderator(&self) -> bool {
        self.has_role && !self.banned
    }

    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }
}
