//! Likes and reports. Each is written in the same transaction as the count that it changes.

use super::comments::{CommentWithAncestors, as_reported, present};
use super::idempotency::IdempotencyRequest;
use super::keys::{self, Key};
use super::moderation::resolutions;
use super::placement;
use super::schema::{comment, guest_bound, visitor_state};
use super::threads::VisitorSlot;
use super::transaction::{Label, Outcome, Write, absent};
use super::{Index, Query, Reading, Store, id_set, number, read, write, yes};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, IdSource, ThreadId, Visitor};
use crate::domain::list::Order;
use crate::domain::report::{Report, newest};
use crate::domain::thread::VisitorThreadState;
use crate::error::Fault;

/// The result of [`Store::toggle_like`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liked {
    /// Whether the visitor now likes the comment, and the number of likes.
    Now(bool, u64),
    Gone,
    /// Too many guests on this network already like the comment.
    TooMany,
}

/// The limit on likes, or on reports, of one comment by guests of one network.
#[derive(Clone, Debug)]
pub struct GuestBound {
    /// Keyed hash of the network, the comment and the kind of reaction.
    pub network: String,
    pub most: u32,
}

impl GuestBound {
    /// Counts one more reaction, on condition that the limit isn't reached.
    fn take(&self, id: CommentId) -> Write {
        Write::update(keys::guest_bound(id, &self.network))
            .add(guest_bound::COUNT, number(1))
            .when(format!("attribute_not_exists({0}) OR {0} < :bound", guest_bound::COUNT))
            .with(":bound", number(self.most))
            .label(Label::GuestBound)
    }

    fn give_back(&self, id: CommentId) -> Write {
        Write::update(keys::guest_bound(id, &self.network)).add(guest_bound::COUNT, number(-1))
    }
}

/// The input of [`Store::report`].
#[derive(Debug)]
pub struct NewReport<'a> {
    pub comment: Comment,
    /// The report without id and time.
    pub report: Report,
    /// The reporter's thread state.
    pub visitor_state: VisitorThreadState,
    /// The limit, if the reporter is a guest.
    pub bound: Option<&'a GuestBound>,
    pub idempotency: Option<&'a IdempotencyRequest>,
}

impl NewReport<'_> {
    /// Dates the report after every known decision about the comment, so that none of them covers the report.
    fn date(&mut self, ids: &IdSource) {
        let decided = self.comment.resolutions.last();
        let floor = decided.map_or(CommentId(0), |decided| CommentId::last_of(decided.until));
        let id = ids.after(floor, 0);
        (self.report.id, self.report.created_at) = (id.0, id.created_at());
    }

    /// The writes of the report, on condition that the comment's reports and resolutions are unchanged since it was read.
    fn writes(&self) -> Result<Vec<Write>, Fault> {
        let (id, report) = (self.comment.id, &self.report);
        let slot = VisitorSlot::next(&self.visitor_state, &report.visitor, &self.comment);
        let newest = newest(self.comment.newest_reports.iter().cloned().chain([report.into()]));
        let newest = serde_dynamo::to_attribute_value(newest);
        let newest = newest.map_err(|error| Fault::new("serializing reports", error))?;
        let comment = Write::update(keys::comment(id))
            .add(comment::REPORTS, number(1))
            .set(comment::REPORTED, yes())
            .set(comment::NEWEST_REPORTS, newest);
        let mut writes = vec![
            present(as_reported(comment, &self.comment))
                .still(comment::RESOLUTIONS, resolutions(&self.comment.resolutions)?),
            slot.enter(visitor_state::REPORTED, id),
            Write::put(write(&keys::report(id, report.id), report)?).when(absent()),
            Write::put(keys::queue("reported", id).item()),
        ];
        writes.extend(self.bound.map(|bound| bound.take(id)));
        writes.extend(self.idempotency.map(|idempotency| idempotency.write(())).transpose()?);
        Ok(writes)
    }
}

/// The result of [`Store::report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Done,
    Already,
    Gone,
    /// Guests on this network have already reported the comment too often.
    TooMany,
}

impl Store {
    /// The comment, read consistently, with its ancestors and the visitor's thread state, which take one more round trip.
    /// `None` if the comment or an ancestor doesn't exist.
    pub async fn comment_with_visitor_state(
        &self,
        id: CommentId,
        visitor: &Visitor,
    ) -> Result<Option<(CommentWithAncestors, VisitorThreadState)>, Fault> {
        let Some(comment) = self.get::<Comment>(&keys::comment(id), Reading::Consistent).await? else {
            return Ok(None);
        };
        let visitor_state = keys::visitor_state(visitor, &comment.thread);
        let above: Vec<_> = comment.ancestors.iter().map(|id| keys::comment(*id)).collect();
        let wanted = above.iter().cloned().chain([visitor_state.clone()]).collect();
        let mut items = self.batch_get(wanted, Reading::Eventual).await?;
        self.complete(&above, &mut items).await?;
        let visitor_state = items.remove(&visitor_state).map(read).transpose()?.unwrap_or_default();
        let ancestors =
            above.iter().map(|key| items.remove(key).map(read).transpose()).collect::<Result<Vec<_>, _>>()?;
        let ancestors: Option<Vec<Comment>> = ancestors.into_iter().collect();
        Ok(ancestors.map(|ancestors| (CommentWithAncestors { comment, ancestors }, visitor_state)))
    }

    /// Likes the comment, or removes the like. `bound` is the limit for guests.
    pub async fn toggle_like(
        &self,
        comment: &Comment,
        mut visitor_state: VisitorThreadState,
        visitor: &Visitor,
        bound: Option<GuestBound>,
    ) -> Result<Liked, Fault> {
        let mut comment = comment.clone();
        // Doesn't use `change`, because another attempt also reads the visitor's thread state again.
        let mut attempts = self.attempts("liking a comment");
        loop {
            if attempts.next().await? {
                let now: Option<Comment> = self.get(&keys::comment(comment.id), Reading::Consistent).await?;
                let Some(now) = now.filter(|now| !now.is_placeholder) else { return Ok(Liked::Gone) };
                comment = now;
                visitor_state = self.visitor_state(visitor, &comment.thread).await?;
            }
            let slot = VisitorSlot::next(&visitor_state, visitor, &comment);
            let liked_in = self.liked_in(&comment, &visitor_state, visitor, &slot).await?;
            let is_liked = liked_in.is_none();
            let (likes, writes) = match liked_in {
                Some(key) => (comment.likes.saturating_sub(1), unlike(&comment, key, bound.as_ref())),
                None => (comment.likes + 1, like(&comment, slot, bound.as_ref())),
            };
            match self.transact(writes).await? {
                Outcome::Done => return Ok(Liked::Now(is_liked, likes)),
                Outcome::Failed(failed) if failed.is_only(Label::GuestBound) => return Ok(Liked::TooMany),
                Outcome::Failed(_) => {}
            }
        }
    }

    /// The key of the visitor's item that contains the like, if the visitor likes the comment. `slot` is the slot for a new
    /// like.
    async fn liked_in(
        &self,
        comment: &Comment,
        visitor_state: &VisitorThreadState,
        visitor: &Visitor,
        slot: &VisitorSlot,
    ) -> Result<Option<Key>, Fault> {
        if visitor_state.liked.contains(&comment.id.0) {
            return Ok(Some(keys::visitor_state(visitor, &comment.thread)));
        }
        if !visitor_state.full {
            return Ok(None);
        }
        let overflow: Option<VisitorThreadState> = self.get(&slot.key, Reading::Consistent).await?;
        let is_liked = overflow.is_some_and(|overflow| overflow.liked.contains(&comment.id.0));
        Ok(is_liked.then(|| slot.key.clone()))
    }

    async fn visitor_state(&self, visitor: &Visitor, thread: &ThreadId) -> Result<VisitorThreadState, Fault> {
        Ok(self.get(&keys::visitor_state(visitor, thread), Reading::Consistent).await?.unwrap_or_default())
    }

    /// Stores a report with a new id and the current time. A visitor can report a comment only once.
    pub async fn report(&self, ids: &IdSource, mut new: NewReport<'_>) -> Result<Reported, Fault> {
        // Doesn't use `change`, because another attempt also reads the visitor's thread state again, and uses a new time.
        new.report = self.kept_report(new.report);
        let mut attempts = self.attempts("reporting a comment");
        loop {
            if attempts.next().await? {
                let now: Option<Comment> = self.get(&keys::comment(new.comment.id), Reading::Consistent).await?;
                let Some(now) = now.filter(|now| !now.is_placeholder) else { return Ok(Reported::Gone) };
                new.comment = now;
                new.visitor_state = self.visitor_state(&new.report.visitor, &new.comment.thread).await?;
            }
            if new.visitor_state.reported.contains(&new.comment.id.0) {
                return Ok(Reported::Already);
            }
            new.date(ids);
            match self.transact(new.writes()?).await? {
                Outcome::Done => return Ok(Reported::Done),
                // A full item gains no more entries, so the entry is in the overflow item.
                Outcome::Failed(failed) if failed.includes(Label::Entry) && new.visitor_state.full => {
                    return Ok(Reported::Already);
                }
                Outcome::Failed(failed) if failed.is_only(Label::GuestBound) => return Ok(Reported::TooMany),
                Outcome::Failed(_) => {}
            }
        }
    }

    /// Reports of a comment, newest first, at most `limit`.
    pub async fn reports(&self, id: CommentId, limit: usize) -> Result<Vec<Report>, Fault> {
        let query = Query {
            index: Index::Table(Reading::Eventual),
            partition: keys::comment_partition(id),
            bounds: Some(keys::reports()),
            order: Order::NewestFirst,
            limit,
        };
        self.query_all(query).await?.into_iter().map(read).collect()
    }
}

fn like(comment: &Comment, slot: VisitorSlot, bound: Option<&GuestBound>) -> Vec<Write> {
    let mut writes = vec![slot.enter(visitor_state::LIKED, comment.id), count_like(comment, 1)];
    writes.extend(bound.map(|bound| bound.take(comment.id)));
    writes
}

/// `liked_in` is the key of the visitor's item that contains the like.
fn unlike(comment: &Comment, liked_in: Key, bound: Option<&GuestBound>) -> Vec<Write> {
    let entry = Write::update(liked_in)
        .subtract(visitor_state::LIKED, id_set(comment.id))
        .when(format!("contains({0}, :id)", visitor_state::LIKED));
    let mut writes = vec![entry.with(":id", number(comment.id.0)), count_like(comment, -1)];
    writes.extend(bound.map(|bound| bound.give_back(comment.id)));
    writes
}

fn count_like(comment: &Comment, change: i64) -> Write {
    present(add_likes(comment, change))
}

/// Changes the comment's number of likes, and its rank, which only top-level comments have.
pub fn add_likes(comment: &Comment, change: i64) -> Write {
    let write = Write::update(keys::comment(comment.id)).add(comment::LIKES, number(change));
    if comment.is_top_level() { write.add(comment::LIKES_RANK, placement::rank_change(change)) } else { write }
}
