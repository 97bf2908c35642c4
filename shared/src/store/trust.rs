//! What moderators have decided about a writer: two sets of ids on the row of the user, or of the guest's key. They change in
//! the transaction of the decision.

use std::collections::{HashMap, HashSet};

use super::keys::{self, Key, Span};
use super::schema::{guest, user};
use super::transaction::Write;
use super::{Index, Query, Reading, Store, id_set, number, number_set, read};
use crate::domain::author::Author;
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, UserId, Visitor};
use crate::domain::list::Order;
use crate::domain::trust::{Decided, MOST, Trust};
use crate::error::Fault;

/// Comments that one look for a comment that earns trust takes in. The next look of a member goes on from there.
const MOST_LOOKED_AT: usize = 50;
/// Comments that are read together, after the first. Looking at so many in vain is worth a note, which costs as much.
const AT_ONCE: usize = 10;

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
        Ok(Some(enter(row(key, comment.user), &before, comment.id, decided)))
    }

    /// The change for a decision that the comment is as already: its writer's row is to say so too, without an entry of the log. So
    /// it does not where the comment was shown without a decision.
    pub(super) async fn note_standing(&self, comment: &Comment, decided: Decided) -> Result<Option<Write>, Fault> {
        let Some(key) = keys::trust(&comment.visitor()) else { return Ok(None) };
        let before = self.one_item(&key, Reading::Consistent).await?;
        let before: Trust = before.map(read).transpose()?.unwrap_or_default();
        let is_new = before.after(comment.id, decided) != before;
        Ok(is_new.then(|| enter(row(key, comment.user), &before, comment.id, decided)))
    }

    /// The trust in a writer of whom it says nothing good yet, with a comment that earns it: one that was shown before trust was
    /// asked for, or imported. Guests' comments are listed by network, which a guest may change, so that no look goes on from another.
    pub async fn look_back(&self, writer: &Visitor, author: &Author, known: Trust) -> Result<Trust, Fault> {
        let Some(key) = keys::trust(writer) else { return Ok(known) };
        let listed = self.listed_after(author, known.looked_at).await?;
        let update = row(key.clone(), writer.user());
        let update = match self.first_that_earns_trust(writer, &listed).await? {
            Some(earned) => update
                .add(guest::APPROVED, id_set(earned))
                // It was rejected meanwhile.
                .when(format!("attribute_not_exists({0}) OR NOT contains({0}, :id)", guest::REJECTED))
                .with(":id", number(earned.0)),
            None => match listed.last() {
                Some(last) if writer.user().is_some() && listed.len() >= AT_ONCE => {
                    update.set(user::LOOKED_AT, number(last.0))
                }
                _ => return Ok(known),
            },
        };
        let item = match self.update("looking for an earlier comment", update).await? {
            Some(item) => Some(item),
            None => self.one_item(&key, Reading::Consistent).await?,
        };
        Ok(item.map(read).transpose()?.unwrap_or_default())
    }

    /// Comments above this id: a user's oldest ones, and of a network, which many guests may share, the newest.
    async fn listed_after(&self, author: &Author, last: Option<CommentId>) -> Result<Vec<CommentId>, Fault> {
        let order = match author {
            Author::User(_) => Order::OldestFirst,
            Author::Network(_) => Order::NewestFirst,
        };
        let query = Query {
            index: Index::Author,
            partition: keys::author(author),
            bounds: last.map(|last| Span::above(last).numbers()),
            order,
            limit: MOST_LOOKED_AT,
        };
        let (listed, _) = self.query(&query, None).await?;
        Ok(listed.iter().filter_map(keys::comment_of).collect())
    }

    async fn first_that_earns_trust(&self, writer: &Visitor, listed: &[CommentId]) -> Result<Option<CommentId>, Fault> {
        let (first, rest) = listed.split_at(listed.len().min(1));
        for some in first.chunks(1).chain(rest.chunks(AT_ONCE)) {
            let items = self.batch_get(some.iter().map(|id| keys::comment(*id)).collect(), Reading::Eventual).await?;
            let comments: Vec<Comment> = items.into_values().map(read).collect::<Result<_, _>>()?;
            let earning = comments.iter().filter(|comment| comment.earns_trust() && comment.is_by(writer));
            if let Some(first) = earning.map(|comment| comment.id).min() {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// Lets the next look begin anew: comments of other times were imported for the user.
    pub async fn look_again(&self, id: UserId) -> Result<(), Fault> {
        let update = Write::update(keys::user(id)).remove(user::LOOKED_AT).exists();
        self.update("looking at comments again", update).await.map(drop)
    }
}

/// A change of the row that has the trust in a writer. That of a user has the id, also of one who has never signed in.
fn row(key: Key, user: Option<UserId>) -> Write {
    let update = Write::update(key);
    user.into_iter().fold(update, |update, id| update.set(user::ID, number(id.0)))
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
