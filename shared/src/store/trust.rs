//! What moderators have decided about a writer: two sets of ids on the row of the user, or of the guest's key. They change in
//! the transaction of the decision.

use std::collections::{HashMap, HashSet};

use super::keys::{self, Key};
use super::schema::{guest, user};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, id_set, number, number_set, read, yes};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, UserId, Visitor};
use crate::domain::list::Order;
use crate::domain::trust::{Decided, MOST, Trust};
use crate::error::Fault;

/// Comments of a writer that are looked at for one that everyone sees.
const LOOKED_AT: usize = 10;

impl Store {
    /// The trust in a guest with a key.
    pub async fn trust_in_guest(&self, guest: &Visitor) -> Result<Trust, Fault> {
        let Some(key) = keys::trust(guest) else { return Ok(Trust::default()) };
        let item = self.one_item(&key, Reading::Eventual).await?;
        Ok(item.map(read).transpose()?.unwrap_or_default())
    }

    /// The trust in each of the writers whom trust is about: members, and guests with a key.
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

    /// The change of the writer's row that belongs to a decision. `None` for guests without a key.
    pub(super) async fn note_decision(&self, comment: &Comment, decided: Decided) -> Result<Option<Write>, Fault> {
        let Some(key) = keys::trust(&comment.visitor()) else { return Ok(None) };
        let before = self.one_item(&key, Reading::Consistent).await?;
        let before: Trust = before.map(read).transpose()?.unwrap_or_default();
        // A row of a user has the id, also of one who has never signed in.
        let update = Write::update(key);
        let update = comment.user.into_iter().fold(update, |update, id| update.set(user::ID, number(id.0)));
        Ok(Some(enter(update, &before, comment.id, decided)))
    }

    /// The trust in a member, with a comment that was shown before trust was asked for. Looks for it once: what is shown later
    /// may be shown by trust alone, which is no approval.
    pub async fn look_back(&self, id: UserId) -> Result<Trust, Fault> {
        let doing = "looking for an earlier comment";
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let update = Write::update(keys::user(id))
                .set(user::ID, number(id.0))
                .set(user::LOOKED_BACK, yes())
                .still(user::LOOKED_BACK, None);
            let update = match self.oldest_shown(id).await? {
                Some(shown) => update
                    .add(user::APPROVED, id_set(shown))
                    // It was rejected meanwhile.
                    .when(format!("attribute_not_exists({0}) OR NOT contains({0}, :id)", user::REJECTED))
                    .with(":id", number(shown.0)),
                None => update,
            };
            if let Some(item) = self.update(doing, update).await? {
                return read(item);
            }
            let known = self.user(id, Reading::Consistent).await?.map(|user| user.trust).unwrap_or_default();
            if known.looked_back {
                return Ok(known);
            }
        }
    }

    /// The oldest comment of a member that everyone may see, among the oldest [`LOOKED_AT`].
    async fn oldest_shown(&self, id: UserId) -> Result<Option<CommentId>, Fault> {
        let partition = keys::author(&id.into());
        let order = Order::OldestFirst;
        let query = Query { index: Index::Author, partition, bounds: None, order, limit: LOOKED_AT };
        let (oldest, _) = self.query(&query, None).await?;
        for id in oldest.iter().filter_map(keys::comment_of) {
            let comment: Option<Comment> = self.get(&keys::comment(id), Reading::Eventual).await?;
            if comment.is_some_and(|comment| comment.may_count()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// Moves the comment from one set to the other. Decisions about several comments of a writer do not fail each other, unless a
/// set is full.
fn enter(update: Write, before: &Trust, id: CommentId, decided: Decided) -> Write {
    let (joined, left, members) = match decided {
        Decided::Approved => (guest::APPROVED, guest::REJECTED, before.approved()),
        Decided::Rejected => (guest::REJECTED, guest::APPROVED, before.rejected()),
    };
    let update = update.subtract(left, id_set(id));
    if members.len() < MOST {
        let has_room = format!("attribute_not_exists({joined}) OR size({joined}) < :most");
        return update.add(joined, id_set(id)).when(has_room).with(":most", number(MOST));
    }
    match decided {
        Decided::Approved => update,
        Decided::Rejected => {
            let after = before.after(id, decided);
            update.assign(joined, number_set(after.rejected())).still(joined, number_set(members))
        }
    }
}
