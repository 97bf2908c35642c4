//! What moderators do: pins, the queue, approval and rejection, what they make of reports, what the host says of a record.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::comments::{
    Count, as_read, change_queues, hidden_is_inline, hide, ids, index_keys, leave_thread, lose, same_inline,
    same_state, state_text, unhide, with_inline,
};
use super::keys::{self, Item, Scope};
use super::lists::PageCursors;
use super::lists::walk::{Walk, Window, merge};
use super::transaction::{Outcome, Write};
use super::{ATTEMPTS, Index, Query, Reading, Store, changes, fault, number, read, text};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::list::{Cursor, Order};
use crate::domain::report::{ReportStatus, Resolution};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::domain::time::Clock;
use crate::error::Fault;

/// Settlements kept of one comment; the oldest two are joined when there are more.
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

/// What the host says of a commented record.
#[derive(Clone, Debug, Default)]
pub struct Record {
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
        let wanted: Vec<_> = ids.into_iter().map(keys::comment).collect();
        let mut found = self.batch_get(wanted.clone(), Reading::Consistent).await?;
        // An entry may outlive its comment for the moment until the stream is handled, and a comment the one above it.
        let comments: Vec<Comment> =
            wanted.iter().filter_map(|key| found.remove(key)).map(read).collect::<Result<_, _>>()?;
        let above: BTreeSet<CommentId> =
            comments.iter().flat_map(|comment| comment.ancestors.iter().copied()).collect();
        let above = self.batch_get(above.into_iter().map(keys::comment).collect(), Reading::Consistent).await?;
        let whole = |comment: &Comment| comment.ancestors.iter().all(|id| above.contains_key(&keys::comment(*id)));
        let comments = comments.into_iter().filter(whole).collect();
        Ok((comments, cursors))
    }

    /// Pins an approved top-level comment in place of any other. False when it is gone or approved no more.
    pub async fn pin(&self, comment: &Comment, at: i64) -> Result<bool, Fault> {
        let pin = AttributeValue::M(
            [("c".to_owned(), number(comment.id)), ("at".to_owned(), number(at))].into_iter().collect(),
        );
        let writes = vec![
            Write::update(keys::thread(&comment.thread), "SET pin = :pin")
                .when("attribute_not_exists(pin) OR pin.c <> :id")
                .with(":pin", pin)
                .with(":id", number(comment.id)),
            Write::check(keys::comment(comment.id), same_state(State::Approved)),
        ];
        Ok(match self.transact(writes).await? {
            Outcome::Done => true,
            // Pinned already.
            Outcome::Failed(places) => places == [0],
        })
    }

    /// Unpins the comment, if it is pinned.
    pub async fn unpin(&self, comment: &Comment) -> Result<(), Fault> {
        let unpin = Write::update(keys::thread(&comment.thread), "REMOVE pin")
            .when("pin.c = :id")
            .with(":id", number(comment.id));
        self.transact(vec![unpin]).await.map(drop)
    }

    /// Everyone sees it from now on. `None` when it is gone. `embedded` is how many replies of a parent lead.
    pub async fn approve(&self, comment: Comment, clock: &Clock, embedded: usize) -> Result<Option<Comment>, Fault> {
        self.moderate(comment, State::Approved, clock, embedded).await
    }

    /// Its writer alone sees it from now on. `None` when it is gone.
    pub async fn reject(&self, comment: Comment, clock: &Clock, embedded: usize) -> Result<Option<Comment>, Fault> {
        self.moderate(comment, State::Rejected, clock, embedded).await
    }

    async fn moderate(
        &self,
        comment: Comment,
        target: State,
        clock: &Clock,
        embedded: usize,
    ) -> Result<Option<Comment>, Fault> {
        let seen = comment.edited_at;
        let mut comment = comment;
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if attempt > 0 {
                match self.get(&keys::comment(comment.id), Reading::Consistent).await? {
                    None => return Ok(None),
                    Some(now) => comment = now,
                }
            }
            let mut decided = Comment { state: target, in_review: false, ..comment.clone() };
            if target == State::Approved && comment.edited_at != seen {
                // The moderator did not see this text: if it was not to be shown as it is, somebody should look at it.
                decided.in_review = comment.in_review || !comment.is_approved();
            }
            // No earlier than the reports that were read.
            let change = Change::resolving(&comment, decided, clock.now().0, ReportStatus::Reviewed);
            let writes = match (comment.state, target) {
                (State::Approved, State::Rejected) => self.hiding(change).await?,
                (State::Pending | State::Rejected, State::Approved) => self.showing(change, embedded).await?,
                _ => Some(change.into_writes()),
            };
            // Below a parent that is gone, a comment is gone too.
            let Some(writes) = writes else { return Ok(None) };
            if writes.is_empty() {
                return Ok(Some(comment));
            }
            if self.transact(writes).await? == Outcome::Done {
                return self.get(&keys::comment(comment.id), Reading::Consistent).await;
            }
        }
        Err(Fault::transient("moderating a comment"))
    }

    /// From approved to rejected.
    async fn hiding(&self, mut change: Change<'_>) -> Result<Option<Vec<Write>>, Fault> {
        let comment = change.before;
        let visitor = comment.visitor();
        let own = Scope::Own(&visitor);
        let mut writes = Vec::new();
        let mut is_inline = false;
        if let Some(parent) = comment.parent() {
            let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
                return Ok(None);
            };
            let (_, visitor_state) = self.thread_and_visitor_state(&comment.thread, &visitor).await?;
            is_inline = hidden_is_inline(&parent, &visitor_state);
            writes.push(lose(comment, parent.id));
            writes.push(Write::put(keys::hidden_reply(parent.id, comment.id).item()));
        } else {
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            writes.push(leave_thread(comment, &thread));
            // What led beside it would be read with every page, and shown with none.
            writes.extend(comment.inline.iter().map(|reply| demote(comment.id, CommentId(*reply))));
            change.inline_matters = true;
            if !comment.inline.is_empty() {
                change.remove("ld");
                change.set("tr = :true", ":true", AttributeValue::Bool(true));
            }
        }
        change.place(index_keys(comment, own, is_inline));
        writes.extend(change.into_writes());
        writes.push(hide(comment, is_inline));
        Ok(Some(writes))
    }

    /// From pending or rejected to approved.
    async fn showing(&self, mut change: Change<'_>, embedded: usize) -> Result<Option<Vec<Write>>, Fault> {
        let comment = change.before;
        let mut writes = Vec::new();
        let mut is_inline = false;
        if let Some(parent) = comment.parent() {
            let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
                return Ok(None);
            };
            let place = Place::below(&parent, comment.id, embedded);
            is_inline = place.is_inline;
            writes.push(place.gain(&parent, comment.id));
            writes.extend(place.demoted.map(|reply| demote(parent.id, reply)));
            writes.push(Write::delete(keys::hidden_reply(parent.id, comment.id)));
        } else {
            writes.push(Write::update(keys::thread(&comment.thread), "ADD n :one").with(":one", number(1)));
        }
        change.place(index_keys(comment, Scope::Everyone, is_inline));
        writes.extend(change.into_writes());
        writes.push(unhide(comment));
        Ok(Some(writes))
    }

    /// Dismisses what was reported so far. `None` when the comment is gone.
    pub async fn dismiss_reports(&self, comment: Comment, clock: &Clock) -> Result<Option<Comment>, Fault> {
        let mut comment = comment;
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if attempt > 0 {
                match self.get(&keys::comment(comment.id), Reading::Consistent).await? {
                    None => return Ok(None),
                    Some(now) => comment = now,
                }
            }
            if !comment.reported {
                return Ok(Some(comment));
            }
            let change = Change::resolving(&comment, comment.clone(), clock.now().0, ReportStatus::Dismissed);
            if self.transact(change.into_writes()).await? == Outcome::Done {
                return self.get(&keys::comment(comment.id), Reading::Consistent).await;
            }
        }
        Err(Fault::transient("dismissing reports"))
    }

    /// What the host said before is replaced.
    pub async fn set_record(&self, thread: &ThreadId, record: &Record) -> Result<(), Fault> {
        let mut set = Vec::new();
        let mut remove = Vec::new();
        let mut request = self.client.update_item().table_name(&self.table).set_key(Some(keys::thread(thread).item()));
        let fields = [
            ("au", ":au", record.author.map(number)),
            ("ti", ":ti", record.title.clone().map(text)),
            ("url", ":url", record.url.clone().map(text)),
        ];
        for (name, variable, value) in fields {
            match value {
                Some(value) => {
                    // `url` is a word DynamoDB keeps for itself.
                    request = request.expression_attribute_values(variable, value);
                    set.push(format!("#{name} = {variable}"));
                }
                None => remove.push(format!("#{name}")),
            }
            request = request.expression_attribute_names(format!("#{name}"), name);
        }
        let request = request.update_expression(changes(&set, &remove));
        request.send().await.map_err(|error| fault("describing a record", error))?;
        Ok(())
    }

    /// Threads and the visitor's own in them, for comments of several threads.
    pub async fn threads_and_visitor_states(
        &self,
        comments: &[Comment],
        visitor: &crate::domain::ids::Visitor,
    ) -> Result<std::collections::HashMap<ThreadId, (Thread, VisitorThreadState)>, Fault> {
        let mut groups: std::collections::HashMap<ThreadId, Vec<CommentId>> = std::collections::HashMap::new();
        for comment in comments {
            let group = comment.parent().unwrap_or(comment.id);
            groups.entry(comment.thread.clone()).or_default().push(group);
        }
        let known = groups.into_iter().map(|(thread, groups)| self.thread_with_groups(thread, visitor, groups));
        Ok(try_join_all(known).await?.into_iter().collect())
    }

    async fn thread_with_groups(
        &self,
        id: ThreadId,
        visitor: &crate::domain::ids::Visitor,
        groups: Vec<CommentId>,
    ) -> Result<(ThreadId, (Thread, VisitorThreadState)), Fault> {
        let (thread, mut visitor_state) = self.thread_and_visitor_state(&id, visitor).await?;
        self.complete_visitor_state(&mut visitor_state, visitor, &id, groups).await?;
        Ok((id, (thread, visitor_state)))
    }
}

/// A reply that led below `parent` trails from now on.
fn demote(parent: CommentId, reply: CommentId) -> Write {
    Write::update(keys::comment(reply), "SET tk = :tk, ts = :ts")
        .when("attribute_exists(pk) AND attribute_not_exists(s)")
        .with(":tk", text(keys::replies(parent, Scope::Everyone)))
        .with(":ts", text(keys::sort_key(reply)))
}

/// Where a reply goes that everyone is to see, and what gives way.
struct Place {
    is_inline: bool,
    demoted: Option<CommentId>,
}

impl Place {
    fn below(parent: &Comment, reply: CommentId, embedded: usize) -> Self {
        if !parent.is_top_level() || !parent.is_approved() {
            return Self { is_inline: false, demoted: None };
        }
        let room = parent.inline.len() < embedded;
        if !parent.has_separate && room {
            return Self { is_inline: true, demoted: None };
        }
        let last = parent.inline.last().copied().map(CommentId);
        let is_inline = last.is_some_and(|last| reply < last);
        Self { is_inline, demoted: last.filter(|_| is_inline && !room) }
    }

    /// The parent gains the reply, if what led so far still leads.
    fn gain(&self, parent: &Comment, reply: CommentId) -> Write {
        let mut inline = parent.inline.clone();
        if self.is_inline {
            inline.insert(reply.0);
        }
        if let Some(demoted) = self.demoted {
            inline.remove(&demoted.0);
        }
        let separate = parent.has_separate || !self.is_inline || self.demoted.is_some();
        let mut condition = format!("attribute_exists(pk) AND {}", same_inline(parent));
        condition.push_str(if parent.has_separate { " AND tr = :trails" } else { " AND attribute_not_exists(tr)" });
        if self.is_inline {
            condition.push_str(" AND attribute_not_exists(s)");
        }
        let mut sets = Vec::new();
        if inline != parent.inline {
            sets.push("ld = :leading");
        }
        if separate != parent.has_separate {
            sets.push("tr = :trails");
        }
        let count = Count::one_more(parent, reply);
        let mut expression = count.clause().to_owned();
        if !sets.is_empty() {
            expression = format!("SET {} {expression}", sets.join(", "));
        }
        let write = Write::update(keys::comment(parent.id), expression).when(condition);
        let mut write = count.fill(with_inline(write, parent));
        if inline != parent.inline {
            write = write.with(":leading", ids(&inline));
        }
        if parent.has_separate || separate {
            write = write.with(":trails", AttributeValue::Bool(true));
        }
        write
    }
}

/// What moderation changes on the comment itself, and in the queues.
struct Change<'a> {
    before: &'a Comment,
    after: Comment,
    sets: Vec<String>,
    removes: Vec<&'static str>,
    values: Vec<(&'static str, AttributeValue)>,
    /// It holds only for the replies that were seen to lead.
    inline_matters: bool,
}

impl<'a> Change<'a> {
    /// From `before` to `after`, and the reports so far are settled.
    fn resolving(before: &'a Comment, after: Comment, at: i64, status: ReportStatus) -> Self {
        let after = Comment { reported: false, ..after };
        let (sets, removes, values) = (Vec::new(), Vec::new(), Vec::new());
        let mut change = Self { before, after, sets, removes, values, inline_matters: false };
        if before.reported {
            let mut resolutions = before.resolutions.clone();
            resolutions.push(Resolution { until: at, status });
            if resolutions.len() > MAX_RESOLUTIONS {
                resolutions.remove(0);
            }
            if let Ok(resolutions) = serde_dynamo::to_attribute_value(resolutions) {
                change.set("rs = :resolved", ":resolved", resolutions);
            }
            change.remove("ro");
        }
        if before.state != change.after.state {
            match state_text(change.after.state) {
                Some(state) => change.set("s = :target", ":target", text(state)),
                None => change.remove("s"),
            }
        }
        match (before.in_review, change.after.in_review) {
            (false, true) => change.set("rv = :review", ":review", AttributeValue::Bool(true)),
            (true, false) => change.remove("rv"),
            _ => {}
        }
        change
    }

    fn set(&mut self, expression: &str, name: &'static str, value: AttributeValue) {
        self.sets.push(expression.to_owned());
        self.values.push((name, value));
    }

    fn remove(&mut self, name: &'static str) {
        self.removes.push(name);
    }

    fn place(&mut self, index_keys: [(&'static str, AttributeValue); 3]) {
        for (name, value) in index_keys {
            let variable = match name {
                "tk" => ":tk",
                "ts" => ":ts",
                _ => ":ok",
            };
            self.sets.push(format!("{name} = {variable}"));
            self.values.push((variable, value));
        }
    }

    /// None when nothing changes. Else under the condition that the comment is as it was seen: its state, its text, its reports and what became of them.
    fn into_writes(self) -> Vec<Write> {
        let Self { before, after, .. } = self;
        let expression = changes(&self.sets, &self.removes);
        if expression.is_empty() {
            return Vec::new();
        }
        let mut write = as_read(Write::update(keys::comment(before.id), expression), before);
        write = match before.reports {
            0 => write.when("attribute_not_exists(rp) OR rp = :none").with(":none", number(0)),
            reports => write.when("rp = :reports").with(":reports", number(reports)),
        };
        write = if before.reported {
            write.when("ro = :reported").with(":reported", AttributeValue::Bool(true))
        } else {
            write.when("attribute_not_exists(ro)")
        };
        if self.inline_matters {
            write = with_inline(write.when(same_inline(before)), before);
        }
        let write = self.values.into_iter().fold(write, |write, (name, value)| write.with(name, value));
        std::iter::once(write).chain(change_queues(before, &after)).collect()
    }
}
