//! Who is asking: made from the request and what the table knows of the user. What a viewer may do is policy's.

use crate::domain::ids::{UserId, Visitor};
use crate::domain::user::User;

pub struct Viewer {
    /// Whom likes, reports and unapproved comments belong to.
    pub visitor: Visitor,
    /// `None` for guests.
    pub user: Option<User>,
    /// By the token's claim or by `SVC_MODERATORS`.
    pub moderator: bool,
    pub banned: bool,
}

impl Viewer {
    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }
}
