//! Interprets the records of the table's stream and performs the short tasks that they require. These tasks are safe to repeat.
//! Walks over many items are jobs (`store/jobs.rs`).

use aws_smithy_types::DateTime;
use serde::de::DeserializeOwned;

use super::keys::{self, Scope};
use super::lists::walk::Window;
use super::schema::{SK, counted, log};
use super::{Reading, Store, placement};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, fingerprint};
use crate::domain::job::RejectRecent;
use crate::domain::list::Order;
use crate::domain::log::LogEntry;
use crate::domain::time::Timestamp;
use crate::domain::user::User;
use crate::error::Fault;

/// Maximum replies of one parent that are compared with an index. If a parent has more replies, none of them is promoted.
const MAX_COMPARED: usize = 10_000;

impl Store {
    /// Updates the user directory after a rename, so that searches find the user only by the new name. Returns false if the
    /// user has changed again, because that change has a separate event.
    pub async fn rename_in_directory(&self, before: &User, after: &User) -> Result<bool, Fault> {
        let Some(user) = self.user(before.id, Reading::Consistent).await? else { return Ok(false) };
        self.forget_directory(before, &user).await?;
        if !user.looks_like(after) {
            return Ok(false);
        }
        self.settle_directory(user).await?;
        Ok(true)
    }

    /// Makes the oldest separate replies of `parent` inline if there is room, for example after inline replies were
    /// deleted. Until then, lists are still correct, because they also read separate replies.
    ///
    /// Inline replies must be the oldest ones, but a lagging index may not list the oldest reply yet. So nothing is promoted
    /// unless the index lists exactly the replies that the parent counts. Otherwise, the parent's next change triggers another
    /// attempt.
    pub async fn promote_below(&self, parent: &Comment) -> Result<(), Fault> {
        if placement::promotable(parent, self.embedded) == 0 {
            return Ok(());
        }
        // The event may be out of date.
        let Some(parent) = self.get::<Comment>(&keys::comment(parent.id), Reading::Consistent).await? else {
            return Ok(());
        };
        let count = usize::try_from(parent.replies).unwrap_or(usize::MAX);
        if placement::promotable(&parent, self.embedded) == 0 || count > MAX_COMPARED {
            return Ok(());
        }
        let replies = self
            .positions(keys::replies(parent.id, Scope::Everyone), Window::first(Order::OldestFirst, count + 1))
            .await?;
        if replies.len() != count || fingerprint(replies.iter().copied()) != parent.fingerprint {
            return Ok(());
        }
        // If a condition fails, the parent has changed, and the event of that change triggers another attempt.
        self.transact(placement::promotion(&parent, &replies, self.embedded)).await.map(drop)
    }
}

#[derive(Debug)]
pub struct Record<'a> {
    /// The same for each delivery of the record.
    pub id: &'a str,
    /// When the change was made, exact to the second.
    pub at: Timestamp,
    pub change: Change,
}

/// The content of a record, by the kind of the changed item.
#[derive(Debug)]
pub enum Change {
    Comment(Box<Images<Comment>>),
    User(Box<Images<User>>),
    /// The log entry of a ban that rejects recent comments.
    Banned(Box<LogEntry>),
    /// A comment above this reply is shown for the first time.
    ReplyShown(CommentId),
    /// A change that requires no work.
    Other,
}

/// An item before a change (`None` if it is new) and after it (`None` if it was deleted).
#[derive(Debug)]
pub struct Images<T> {
    pub old: Option<T>,
    pub new: Option<T>,
}

impl<T: DeserializeOwned> Images<T> {
    fn read(change: &serde_json::Value) -> Result<Box<Self>, Fault> {
        Ok(Box::new(Self { old: image(change, "OldImage")?, new: image(change, "NewImage")? }))
    }
}

impl<'a> Record<'a> {
    /// Parses one element of the event's `Records`.
    pub fn read(record: &'a serde_json::Value) -> Result<Self, Fault> {
        let change = &record["dynamodb"];
        let id = record["eventID"].as_str().unwrap_or_default();
        let seconds = change["ApproximateCreationDateTime"].as_f64().unwrap_or_default();
        let at = Timestamp(DateTime::from_secs_f64(seconds).secs() * 1000);
        let change = match change["Keys"][SK]["S"].as_str() {
            Some("C") => Change::Comment(Images::read(change)?),
            Some("U") => Change::User(Images::read(change)?),
            Some(_) if change["NewImage"].get(log::REJECTS).is_some() => {
                image(change, "NewImage")?.map_or(Change::Other, Change::Banned)
            }
            Some(key) if change["NewImage"][counted::IS_FIRST]["BOOL"] == true => {
                keys::counted_by(key).map_or(Change::Other, Change::ReplyShown)
            }
            _ => Change::Other,
        };
        Ok(Self { id, at, change })
    }

    /// The comment, if it was rejected, or rejected again on other grounds.
    #[must_use]
    pub fn rejected(&self) -> Option<&Comment> {
        let Change::Comment(images) = &self.change else { return None };
        let (old, new) = images.old.as_ref().zip(images.new.as_ref())?;
        let is_new = old.state != State::Rejected || old.grounds() != new.grounds();
        (new.state == State::Rejected && is_new).then_some(new)
    }

    #[must_use]
    pub fn event(&self) -> Option<Event<'_>> {
        match &self.change {
            Change::Comment(images) => Event::of_comment(images.old.as_ref(), images.new.as_ref(), self.at),
            Change::User(images) => {
                // A user without a name has not signed in yet, or has an account and chooses a name later.
                let is_known = |old: &&User| !old.name.is_empty() || old.account.is_some();
                let known = images.old.as_ref().filter(is_known).zip(images.new.as_ref());
                known.filter(|(old, new)| !old.looks_like(new)).map(|(old, new)| Event::UserRenamed(old, new))
            }
            Change::Banned(entry) => RejectRecent::of(entry).map(Event::RecentRejected),
            Change::ReplyShown(reply) => Some(Event::ReplyShown(*reply)),
            Change::Other => None,
        }
    }
}

/// A change that requires work. Times are exact to the second.
#[derive(Debug)]
pub enum Event<'a> {
    /// A comment was created, but not by an import.
    CommentCreated(&'a Comment),
    CommentRemoved(&'a Comment, Timestamp),
    /// A comment was approved, or lost its approval: the comment after the change.
    CommentShownOrHidden(&'a Comment, Timestamp),
    /// An approved comment became a placeholder.
    BecamePlaceholder(&'a Comment),
    /// Any other change of a comment: the comment after the change, and the effect on the moderators' queues.
    CommentChanged(&'a Comment, Option<Queueing>),
    /// A comment above this reply is shown for the first time.
    ReplyShown(CommentId),
    /// A user or network was banned, and recent comments should be rejected.
    RecentRejected(RejectRecent),
    /// A user's name or picture changed: the user before and after.
    UserRenamed(&'a User, &'a User),
}

impl<'a> Event<'a> {
    fn of_comment(old: Option<&'a Comment>, new: Option<&'a Comment>, at: Timestamp) -> Option<Self> {
        match (old, new) {
            // Imported comments need no event, because imports count the comments that they write.
            (None, Some(new)) => new.is_announced().then_some(Self::CommentCreated(new)),
            (Some(old), None) => Some(Self::CommentRemoved(old, at)),
            (Some(old), Some(new)) if old.is_approved() != new.is_approved() => {
                Some(Self::CommentShownOrHidden(new, at))
            }
            (Some(old), Some(new)) if old.may_count() != new.may_count() => Some(Self::BecamePlaceholder(new)),
            (Some(old), Some(new)) => {
                let joined = new.waits_for_moderators() && !old.waits_for_moderators();
                let accepted = old.in_review && !new.in_review;
                let queueing = joined.then_some(Queueing::Joined).or(accepted.then_some(Queueing::TextAccepted));
                Some(Self::CommentChanged(new, queueing))
            }
            (None, None) => None,
        }
    }
}

/// The effect of a comment's change on the moderators' queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    Joined,
    /// A moderator has accepted the edit of an approved comment.
    TextAccepted,
}

fn image<T: DeserializeOwned>(change: &serde_json::Value, name: &str) -> Result<Option<T>, Fault> {
    let doing = "reading a record of the stream";
    match change.get(name) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(image) => {
            let item: serde_dynamo::Item =
                serde_json::from_value(image.clone()).map_err(|error| Fault::new(doing, error))?;
            serde_dynamo::from_item(item).map(Some).map_err(|error| Fault::new(doing, error))
        }
    }
}
