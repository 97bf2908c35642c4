//! The trust in a writer: the ids of approved and rejected comments, as two sets in the user's or guest's item. A moderator's
//! decision changes the sets in the same transaction.

use std::collections::{HashMap, HashSet};

use super::keys::{self, Key};
use super::schema::{guest, user};
use super::transaction::Write;
use super::{Reading, Store, id_set, number, number_set, read};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, UserId, Visitor};
use crate::domain::trust::{Decided, MAX_TRUSTED_IDS, Trust};
use crate::error::Fault;

impl Store {
    /// The trust in a guest; none without a `Comment-Key`.
    pub async fn trust_in_guest(&self, guest: &Visitor) -> Result<Trust, Fault> {
        let Some(key) = keys::trust(guest) else { return Ok(Trust::default()) };
        let item = self.one_item(&key, Reading::Eventual).await?;
        Ok(item.map(read).transpose()?.unwrap_or_default())
    }

    /// The trust in each of these writers. Omits guests without a `Comment-Key`, who have no trust.
    pub async fn trust_in_all(&self, writers: HashSet<Visitor>) -> Result<HashMap<Visitor, Trust>, Fault> {
        let keyed: Vec<(Visitor, Key)> =
            writers.into_iter().filter_map(|writer| keys::trust(&writer).map(|key| (writer, key))).collect();
        let wanted = keyed.iter().map(|(_, key)| key.clone()).collect();
        let mut items = self.batch_get(wanted, Reading::Eventual).await?;
        let trust = |(writer, key)| {
            let trust = items.remove(&key).map(read).transpose()?;
            Ok((writer, trust.unwrap_or_default()))
        };
        keyed.into_iter().map(trust).collect()
    }

    /// The update that adds a decision to the writer's item; `None` for guests without a `Comment-Key`.
    pub(super) async fn note_decision(&self, comment: &Comment, decided: Decided) -> Result<Option<Write>, Fault> {
        let Some(key) = keys::trust(&comment.visitor()) else { return Ok(None) };
        let before = self.one_item(&key, Reading::Consistent).await?;
        let before: Trust = before.map(read).transpose()?.unwrap_or_default();
        Ok(Some(enter(row(key, comment.user), &before, comment.id, decided)))
    }

    /// Like [`Self::note_decision`], for a decision that doesn't change the comment and isn't logged, such as approving a
    /// comment that became public without a decision. `None` if the item already contains the decision.
    pub(super) async fn note_standing(&self, comment: &Comment, decided: Decided) -> Result<Option<Write>, Fault> {
        let Some(key) = keys::trust(&comment.visitor()) else { return Ok(None) };
        let before = self.one_item(&key, Reading::Consistent).await?;
        let before: Trust = before.map(read).transpose()?.unwrap_or_default();
        let is_new = before.after(comment.id, decided) != before;
        Ok(is_new.then(|| enter(row(key, comment.user), &before, comment.id, decided)))
    }
}

/// An update of the item with a writer's trust. It also sets a user's id, because the user's item may not exist yet.
fn row(key: Key, user: Option<UserId>) -> Write {
    let update = Write::update(key);
    user.into_iter().fold(update, |update, id| update.set(user::ID, number(id.0)))
}

/// Moves the comment to the set for this decision, from the opposite set. A full set of approvals gains no comment, and
/// a full set of rejections keeps the newest. Concurrent decisions about several comments of a writer don't conflict,
/// unless a set is full.
fn enter(update: Write, before: &Trust, id: CommentId, decided: Decided) -> Write {
    let (joined, left, members) = match decided {
        Decided::Approved => (guest::APPROVED, guest::REJECTED, before.approved()),
        Decided::Rejected => (guest::REJECTED, guest::APPROVED, before.rejected()),
    };
    let update = update.subtract(left, id_set(id));
    if members.len() < MAX_TRUSTED_IDS {
        let has_room = format!("attribute_not_exists({joined}) OR size({joined}) < :most");
        return update.add(joined, id_set(id)).when(has_room).with(":most", number(MAX_TRUSTED_IDS));
    }
    match decided {
        Decided::Approved => update,
        Decided::Rejected => {
            let after = before.after(id, decided);
            update.assign(joined, number_set(after.rejected())).still(joined, number_set(members))
        }
    }
}
