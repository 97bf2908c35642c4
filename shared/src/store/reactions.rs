//! Likes and reports: each is one transaction with the count it changes.

use aws_sdk_dynamodb::types::AttributeValue;

use super::comments::{CommentWithAncestors, id_set};
use super::idempotency::IdempotencyRequest;
use super::keys::{self, RANK_STEP};
use super::threads::VisitorSlot;
use super::transaction::{Outcome, Write};
use super::{ATTEMPTS, Index, Query, Reading, Store, number, read, write};
use crate::domain::comment::Comment;
use crate::domain::ids::{CommentId, IdSource, Visitor};
use crate::domain::list::Order;
use crate::domain::report::Report;
use crate::domain::thread::VisitorThreadState;
use crate::error::Fault;

/// What a toggle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liked {
    /// Liked or not, and how many like it now.
    Now(bool, u64),
    Gone,
    /// Too many guests of this network like it already.
    TooMany,
}

/// How often guests of one network may like one comment, or report it.
#[derive(Clone, Debug)]
pub struct GuestBound {
    /// Keyed hash of the network, the comment and what is bounded.
    pub network: String,
    pub most: u32,
}

impl GuestBound {
    /// Counts one more, if there is room.
    fn take(&self, id: CommentId) -> Write {
        Write::update(keys::guest_bound(id, &self.network), "ADD n :one")
            .when("attribute_not_exists(n) OR n < :bound")
            .with(":one", number(1))
            .with(":bound", number(self.most))
    }

    /// Makes room for another.
    fn give_back(&self, id: CommentId) -> Write {
        Write::update(keys::guest_bound(id, &self.network), "ADD n :less").with(":less", number(-1))
    }
}

/// Says what became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Done,
    Already,
    Gone,
    /// Guests of this network reported it too often already.
    TooMany,
}

impl Store {
    /// The comment, surely as it is now; what is above it, and the visitor's own in its thread, in one further trip.
    pub async fn find_for(
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

    /// Likes the comment, or takes the like back. `bound` is for guests.
    pub async fn toggle_like(
        &self,
        comment: &Comment,
        visitor_state: VisitorThreadState,
        visitor: &Visitor,
        bound: Option<GuestBound>,
    ) -> Result<Liked, Fault> {
        let (mut comment, mut visitor_state) = (comment.clone(), visitor_state);
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if attempt > 0 {
                let thread = comment.thread.clone();
                let Some(now) = self.get(&keys::comment(comment.id), Reading::Consistent).await? else {
                    return Ok(Liked::Gone);
                };
                comment = now;
                let now = self.get(&keys::visitor_state(visitor, &thread), Reading::Consistent).await?;
                visitor_state = now.unwrap_or_default();
            }
            let slot = VisitorSlot::next(&visitor_state, visitor, &comment);
            let on_shelf = if visitor_state.full && !visitor_state.liked.contains(&comment.id.0) {
                let overflow: Option<VisitorThreadState> = self.get(&slot.key, Reading::Consistent).await?;
                overflow.is_some_and(|overflow| overflow.liked.contains(&comment.id.0))
            } else {
                false
            };
            let liked = visitor_state.liked.contains(&comment.id.0);
            let unlike_at = if liked {
                Some(keys::visitor_state(visitor, &comment.thread))
            } else {
                on_shelf.then(|| slot.key.clone())
            };
            let mut writes = match &unlike_at {
                Some(key) => {
                    let entry = Write::update(key.clone(), "DELETE lk :entry").when("contains(lk, :id)");
                    vec![entry, count_like(&comment, -1)]
                }
                None => {
                    let condition = format!("(attribute_not_exists(lk) OR NOT contains(lk, :id)){}", slot.open);
                    let expression = if slot.fills { "ADD lk :entry SET fl = :true" } else { "ADD lk :entry" };
                    let mut entry = Write::update(slot.key, expression).when(condition);
                    if slot.fills {
                        entry = entry.with(":true", AttributeValue::Bool(true));
                    }
                    vec![entry, count_like(&comment, 1)]
                }
            };
            if let Some(entry) = writes.first_mut() {
                *entry = entry.clone().with(":entry", id_set(comment.id)).with(":id", number(comment.id));
            }
            if let Some(bound) = &bound {
                writes.push(match unlike_at {
                    Some(_) => bound.give_back(comment.id),
                    None => bound.take(comment.id),
                });
            }
            match self.transact(writes).await? {
                Outcome::Done if unlike_at.is_some() => return Ok(Liked::Now(false, comment.likes.saturating_sub(1))),
                Outcome::Done => return Ok(Liked::Now(true, comment.likes + 1)),
                Outcome::Failed(places) if places == [2] => return Ok(Liked::TooMany),
                Outcome::Failed(_) => {}
            }
        }
        Err(Fault::transient("liking a comment"))
    }

    /// Stores a report under a new id, once a visitor. `bound` is for guests.
    pub async fn report(
        &self,
        ids: &IdSource,
        comment: &Comment,
        visitor_state: VisitorThreadState,
        report: Report,
        bound: Option<&GuestBound>,
        idempotency: Option<&IdempotencyRequest>,
    ) -> Result<Reported, Fault> {
        let (mut visitor_state, mut report) = (visitor_state, report);
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if attempt > 0 {
                let now = self.get(&keys::visitor_state(&report.visitor, &comment.thread), Reading::Consistent).await?;
                visitor_state = now.unwrap_or_default();
            }
            if visitor_state.reported.contains(&comment.id.0) {
                return Ok(Reported::Already);
            }
            report.id = ids.next().0;
            let slot = VisitorSlot::next(&visitor_state, &report.visitor, comment);
            let expression = if slot.fills { "ADD rd :entry SET fl = :true" } else { "ADD rd :entry" };
            let mut entry = Write::update(slot.key, expression)
                .when(format!("(attribute_not_exists(rd) OR NOT contains(rd, :id)){}", slot.open))
                .with(":entry", id_set(comment.id))
                .with(":id", number(comment.id));
            if slot.fills {
                entry = entry.with(":true", AttributeValue::Bool(true));
            }
            let reported = Write::update(keys::comment(comment.id), "ADD rp :one SET ro = :true")
                .when("attribute_exists(pk)")
                .with(":one", number(1))
                .with(":true", AttributeValue::Bool(true));
            let mut writes = vec![
                reported,
                entry,
                Write::put(write(&keys::report(comment.id, report.id), &report)?).when("attribute_not_exists(pk)"),
                Write::put(keys::queue("reported", comment.id).item()),
            ];
            let bounded = writes.len();
            writes.extend(bound.map(|bound| bound.take(comment.id)));
            writes.extend(idempotency.map(|idempotency| idempotency.write(())).transpose()?);
            match self.transact(writes).await? {
                Outcome::Done => return Ok(Reported::Done),
                Outcome::Failed(places) if places.contains(&0) => return Ok(Reported::Gone),
                // A full visit changes no more, so the entry is in its overflow.
                Outcome::Failed(places) if places.contains(&1) && visitor_state.full => return Ok(Reported::Already),
                Outcome::Failed(places) if bound.is_some() && places == [bounded] => return Ok(Reported::TooMany),
                Outcome::Failed(_) => {}
            }
        }
        Err(Fault::transient("reporting a comment"))
    }

    /// At most `limit` reports of a comment, the newest first.
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

fn count_like(comment: &Comment, change: i8) -> Write {
    let key = keys::comment(comment.id);
    if !comment.is_top_level() {
        return Write::update(key, "ADD lc :change").when("attribute_exists(pk)").with(":change", number(change));
    }
    let step = if change < 0 { format!("-{RANK_STEP}") } else { RANK_STEP.to_owned() };
    Write::update(key, "ADD lc :change, l :step")
        .when("attribute_exists(pk)")
        .with(":change", number(change))
        .with(":step", number(step))
}
