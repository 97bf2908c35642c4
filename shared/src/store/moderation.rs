//! The operations of moderators: the queue, pins, approval and rejection, resolving reports. And what the host says about
//! a record.

use std::collections::BTreeSet;
use std::future::ready;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::comments::{Plan, as_read, change_queues, join_thread, leave_thread, present, state_text};
use super::erasure::ERASED;
use super::keys::{self, Item};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window, merge};
use super::placement::{self, ReplyPlace};
use super::transaction::{Label, Outcome, Write};
use super::{Index, Query, Reading, Store, number, read, text, yes};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::list::{Cursor, Order};
use crate::domain::report::{ReportStatus, Resolution};
use crate::domain::time::Clock;
use crate::error::Fault;

/// Resolutions kept for one comment. When there are more, the oldest is dropped, and the next one covers its reports.
const MAX_RESOLUTIONS: usize = 20;

/// The moderators' queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    Pending,
    Reported,
    Rejected,
}

impl QueueState {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Reported, Self::Rejected].into_iter().find(|state| state.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Reported => "reported",
            Self::Rejected => "rejected",
        }
    }
}

/// What the host says about a commented record.
#[derive(Clone, Debug, Default)]
pub struct HostRecord {
    pub author: Option<UserId>,
    pub title: Option<String>,
    pub url: Option<String>,
}

impl Store {
    /// A page of a queue, newest first.
    pub async fn queue(
        &self,
        state: QueueState,
        cursor: Option<Cursor>,
        per_page: usize,
    ) -> Result<(Vec<Comment>, PageCursors), Fault> {
        let walk = Walk::new(Order::NewestFirst, cursor);
        let Window { span, order, limit } = walk.window(per_page + 1);
        let shards = (0..keys::QUEUE_SHARDS).map(|shard| {
            let partition = keys::queue_partition(state.name(), shard);
            self.query_all(Query {
                index: Index::Table(Reading::Eventual),
                partition,
                bounds: Some(span.texts()),
                order,
                limit,
            })
        });
        let ids = try_join_all(shards).await?.into_iter().map(|entries| {
            let id = |entry: &Item| keys::queued_comment(entry.get("sk")?.as_s().ok()?);
            entries.iter().filter_map(id).collect()
        });
        let mut ids: Vec<CommentId> = merge(ids, order, |id| *id);
        let more = walk.cut(&mut ids, per_page);
        let cursors = walk.cursors(ids.first().copied(), ids.last().copied(), more);
        Ok((self.queued(ids).await?, cursors))
    }

    /// The queued comments. Left out are those that no longer exist, or below one that no longer exists: their entries stay
    /// until the event of the deletion is handled.
    async fn queued(&self, ids: Vec<CommentId>) -> Result<Vec<Comment>, Fault> {
        let wanted: Vec<_> = ids.into_iter().map(keys::comment).collect();
        let mut found = self.batch_get(wanted.clone(), Reading::Consistent).await?;
        let comments: Vec<Comment> =
            wanted.iter().filter_map(|key| found.remove(key)).map(read).collect::<Result<_, _>>()?;
        let above: BTreeSet<CommentId> =
            comments.iter().flat_map(|comment| comment.ancestors.iter().copied()).collect();
        let above = self.batch_get(above.into_iter().map(keys::comment).collect(), Reading::Consistent).await?;
        let whole = |comment: &Comment| comment.ancestors.iter().all(|id| above.contains_key(&keys::comment(*id)));
        Ok(comments.into_iter().filter(whole).collect())
    }

    /// Pins an approved top-level comment in place of any other. False when it no longer exists, is not approved or is a
    /// placeholder.
    pub async fn pin(&self, comment: &Comment, at: i64) -> Result<bool, Fault> {
        let pin = AttributeValue::M(
            [("c".to_owned(), number(comment.id)), ("at".to_owned(), number(at))].into_iter().collect(),
        );
        let writes = vec![
            Write::update(keys::thread(&comment.thread))
                .set("pin", pin)
                .when("attribute_not_exists(pin) OR pin.c <> :id")
                .with(":id", number(comment.id))
                .label(Label::Pin),
            present(Write::check(keys::comment(comment.id), "attribute_not_exists(s)")),
        ];
        Ok(match self.transact(writes).await? {
            Outcome::Done => true,
            // The comment is pinned already.
            Outcome::Failed(failed) => failed.is_only(Label::Pin),
        })
    }

    /// Unpins the comment, if it is pinned.
    pub async fn unpin(&self, comment: &Comment) -> Result<(), Fault> {
        let unpin = Write::update(keys::thread(&comment.thread))
            .remove("pin")
            .when("pin.c = :id")
            .with(":id", number(comment.id));
        self.transact(vec![unpin]).await.map(drop)
    }

    /// Makes the comment visible to everyone. `None` when it no longer exists.
    pub async fn approve(&self, comment: Comment, clock: &Clock) -> Result<Option<Comment>, Fault> {
        let seen = comment.edited_at;
        let plan = |comment: Comment| async move {
            // A text that the moderator did not see stays in review, or goes there if it was not visible before.
            let unseen = comment.edited_at != seen;
            let in_review = unseen && (comment.in_review || !comment.is_approved());
            let decided = Comment { state: State::Approved, in_review, ..comment.clone() };
            let decision = Decision::new(&comment, decided, clock, ReportStatus::Reviewed);
            if comment.is_approved() { Ok(decision.into_plan()) } else { self.show(decision).await }
        };
        self.change("approving a comment", comment, plan).await
    }

    /// Makes the comment visible to its writer alone. `None` when it no longer exists.
    pub async fn reject(&self, comment: Comment, clock: &Clock) -> Result<Option<Comment>, Fault> {
        let plan = |comment: Comment| async move {
            let decided = Comment { state: State::Rejected, in_review: false, ..comment.clone() };
            let decision = Decision::new(&comment, decided, clock, ReportStatus::Reviewed);
            if comment.is_approved() { self.hide(decision).await } else { Ok(decision.into_plan()) }
        };
        self.change("rejecting a comment", comment, plan).await
    }

    /// From approved to rejected.
    async fn hide(&self, decision: Decision<'_>) -> Result<Plan, Fault> {
        let comment = decision.before;
        let Some(parent) = comment.parent() else {
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            let (rejection, queues) = decision.placed(false).into_writes();
            let mut writes = placement::demote_all(comment, rejection);
            writes.extend(queues);
            writes.push(leave_thread(comment, &thread));
            writes.push(placement::gain_own(comment, false));
            return Ok(Plan::Together(writes));
        };
        let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
            return Ok(Plan::Gone);
        };
        let (_, visitor_state) = self.thread_and_visitor_state(&comment.thread, &comment.visitor()).await?;
        let is_inline = placement::own_is_inline(&parent, &visitor_state);
        let (rejection, queues) = decision.placed(is_inline).into_writes();
        let mut writes = vec![rejection];
        writes.extend(queues);
        writes.push(placement::lose(parent.id, comment));
        writes.push(Write::put(keys::hidden_reply(parent.id, comment.id).item()));
        writes.push(placement::gain_own(comment, is_inline));
        Ok(Plan::Together(writes))
    }

    /// From pending or rejected to approved.
    pub(super) async fn show(&self, decision: Decision<'_>) -> Result<Plan, Fault> {
        let comment = decision.before;
        let mut writes = vec![placement::lose_own(comment)];
        let is_inline = if let Some(parent) = comment.parent() {
            let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
                return Ok(Plan::Gone);
            };
            let place = ReplyPlace::below(&parent, comment.id, self.embedded);
            writes.extend(place.gain(&parent, comment.id, self.embedded));
            writes.push(Write::delete(keys::hidden_reply(parent.id, comment.id)));
            place.is_inline
        } else {
            writes.push(join_thread(comment));
            false
        };
        let (approval, queues) = decision.placed(is_inline).into_writes();
        writes.push(approval);
        writes.extend(queues);
        Ok(Plan::Together(writes))
    }

    /// Dismisses the reports so far. `None` when the comment no longer exists.
    pub async fn dismiss_reports(&self, comment: Comment, clock: &Clock) -> Result<Option<Comment>, Fault> {
        let plan = |comment: Comment| {
            ready(Ok(Decision::new(&comment, comment.clone(), clock, ReportStatus::Dismissed).into_plan()))
        };
        self.change("dismissing reports", comment, plan).await
    }

    /// Replaces all that the host said about the record.
    pub async fn set_record(&self, thread: &ThreadId, record: &HostRecord) -> Result<(), Fault> {
        let update = Write::update(keys::thread(thread))
            .assign("au", record.author.map(number))
            .assign("ti", record.title.clone().map(text))
            .assign("url", record.url.clone().map(text));
        self.update("describing a record", update).await.map(drop)
    }
}

/// What a moderator decides about a comment, as a write of its item. The reports so far are resolved by it.
pub(super) struct Decision<'a> {
    before: &'a Comment,
    after: Comment,
    write: Write,
}

impl<'a> Decision<'a> {
    pub(super) fn new(before: &'a Comment, after: Comment, clock: &Clock, status: ReportStatus) -> Self {
        let after = Comment { reported: false, ..after };
        let mut write = as_read(Write::update(keys::comment(before.id)), before);
        write = match before.reports {
            0 => write.when("attribute_not_exists(rp) OR rp = :none").with(":none", number(0)),
            reports => write.still("rp", Some(number(reports))),
        };
        write = write.still("ro", before.reported.then(yes));
        if before.reported {
            write = write.remove("ro");
            // The clock is read after the reports were.
            if let Ok(resolutions) = resolutions(before, Resolution { until: clock.now().0, status }) {
                write = write.set("rs", resolutions);
            }
        }
        if before.state != after.state {
            write = write.assign("s", state_text(after.state).map(text));
        }
        if before.in_review != after.in_review {
            write = write.assign("rv", after.in_review.then(yes));
        }
        Self { before, after, write }
    }

    /// It becomes a placeholder.
    pub(super) fn erasing(mut self) -> Self {
        let write = self.write.set("ph", yes()).remove("a");
        self.write = ERASED.into_iter().fold(write, Write::remove);
        self
    }

    /// With the index keys of the comment's new place.
    fn placed(mut self, is_inline: bool) -> Self {
        for (name, value) in placement::index_keys(&self.after, is_inline) {
            self.write = self.write.set(name, value);
        }
        self
    }

    /// The write of the comment, and those of the queues.
    pub(super) fn into_writes(self) -> (Write, Vec<Write>) {
        (self.write, change_queues(self.before, &self.after))
    }

    /// The plan when the comment stays in its place.
    fn into_plan(self) -> Plan {
        if !self.write.has_changes() {
            return Plan::Nothing;
        }
        let (write, queues) = self.into_writes();
        Plan::Together(std::iter::once(write).chain(queues).collect())
    }
}

/// The resolutions of a comment after another one, as stored.
fn resolutions(comment: &Comment, next: Resolution) -> Result<AttributeValue, serde_dynamo::Error> {
    let mut resolutions = comment.resolutions.clone();
    resolutions.push(next);
    if resolutions.len() > MAX_RESOLUTIONS {
        resolutions.remove(0);
    }
    serde_dynamo::to_attribute_value(resolutions)
}
