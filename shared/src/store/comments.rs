//! Comments one by one: found by id, created, edited, deleted. Each write that must hold together with another is one
//! transaction, whose conditions also say what has changed since the comment was read.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;

use super::idempotency::IdempotencyRequest;
use super::keys::{self, Item, RANK_STEP, Scope};
use super::lists::HIDDEN_INLINE;
use super::transaction::{Outcome, Write};
use super::{ATTEMPTS, Reading, Store, changes, number, read, text, write};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, IdSource};
use crate::domain::thread::{Thread, VisitorThreadState};
use crate::error::Fault;

/// A comment and all above it, which exists too; from the top-level comment down.
#[derive(Clone, Debug)]
pub struct CommentWithAncestors {
    pub comment: Comment,
    pub ancestors: Vec<Comment>,
}

/// Says what became of a new comment.
#[derive(Debug)]
pub enum Created {
    Done(Box<Comment>),
    /// A request with the same key was first.
    Before,
    ParentGone,
}

/// What an edit changes.
#[derive(Debug)]
pub struct Edit {
    pub body: String,
    pub mentions: Vec<String>,
    /// Unix milliseconds.
    pub at: i64,
    /// A moderator should look at it.
    pub review: bool,
}

impl Edit {
    fn applied_to(&self, comment: &Comment) -> Comment {
        // No two texts of a comment have the same time, so that it tells them apart.
        let at = comment.edited_at.map_or(self.at, |last| self.at.max(last + 1));
        Comment {
            body: self.body.clone(),
            mentions: self.mentions.clone(),
            edited_at: Some(at),
            in_review: comment.in_review || (self.review && comment.is_approved()),
            ..comment.clone()
        }
    }

    fn write(before: &Comment, after: &Comment) -> Write {
        let mut sets = vec!["b = :body".to_owned(), "e = :at".to_owned()];
        let mut removes = Vec::new();
        let mut values = vec![(":body", text(after.body.clone())), (":at", number(after.updated_at().0))];
        if after.mentions.is_empty() {
            removes.push("m");
        } else {
            sets.push("m = :mentions".to_owned());
            values.push((":mentions", AttributeValue::L(after.mentions.iter().map(text).collect())));
        }
        if after.in_review && !before.in_review {
            sets.push("rv = :true".to_owned());
            values.push((":true", AttributeValue::Bool(true)));
        }
        let update = Write::update(keys::comment(before.id), changes(&sets, &removes));
        values.into_iter().fold(as_read(update, before), |update, (name, value)| update.with(name, value))
    }
}

impl Store {
    /// `None` when the comment, or one above it, is gone.
    pub async fn find(&self, id: CommentId, reading: Reading) -> Result<Option<CommentWithAncestors>, Fault> {
        let key = keys::comment(id);
        let Some(comment) = self.get::<Comment>(&key, reading).await? else { return Ok(None) };
        let ancestors = self.ancestors(&comment, reading).await?;
        Ok(ancestors.map(|ancestors| CommentWithAncestors { comment, ancestors }))
    }

    /// What was found, if it passes; else what is found now, consistently, if that passes.
    pub async fn confirm(
        &self,
        found: Option<CommentWithAncestors>,
        passes: impl Fn(&CommentWithAncestors) -> bool,
    ) -> Result<Option<CommentWithAncestors>, Fault> {
        match found {
            Some(found) if !passes(&found) => {
                Ok(self.find(found.comment.id, Reading::Consistent).await?.filter(passes))
            }
            found => Ok(found),
        }
    }

    /// `None` when one of them is gone.
    async fn ancestors(&self, comment: &Comment, reading: Reading) -> Result<Option<Vec<Comment>>, Fault> {
        if comment.ancestors.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let keys: Vec<_> = comment.ancestors.iter().map(|id| keys::comment(*id)).collect();
        let mut items = self.batch_get(keys.clone(), reading).await?;
        if reading == Reading::Eventual {
            self.complete(&keys, &mut items).await?;
        }
        keys.iter()
            .map(|key| items.remove(key).map(read).transpose())
            .collect::<Result<_, _>>()
            .map(|all: Vec<_>| all.into_iter().collect())
    }

    /// Stores `draft` under a new id. `embedded` is how many replies of a parent lead.
    pub async fn create(
        &self,
        ids: &IdSource,
        draft: Comment,
        parent: Option<Comment>,
        visitor_state: &VisitorThreadState,
        embedded: usize,
        idempotency: Option<&IdempotencyRequest>,
    ) -> Result<Created, Fault> {
        let mut parent = parent;
        let mut comment = draft;
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if let Some(above) = parent.as_ref().filter(|_| attempt > 0) {
                parent = self.get(&keys::comment(above.id), Reading::Consistent).await?;
                if parent.is_none() {
                    return Ok(Created::ParentGone);
                }
            }
            comment.id = parent.as_ref().map_or_else(|| ids.next(), |parent| ids.after(newest_above(parent)));
            let mut writes = creation(&comment, parent.as_ref(), visitor_state, embedded)?;
            let last = writes.len();
            writes.extend(idempotency.map(|idempotency| idempotency.write(comment.id)).transpose()?);
            match self.transact(writes).await? {
                Outcome::Done => return Ok(Created::Done(Box::new(comment))),
                Outcome::Failed(places) if places.contains(&last) => return Ok(Created::Before),
                Outcome::Failed(_) => {}
            }
        }
        Err(Fault::transient("creating a comment"))
    }

    /// The comment as it is now; `None` when it is gone. What follows from the edit goes by the state that the comment
    /// is in when the edit lands: that may be another than the one in which `comment` was read.
    pub async fn edit(&self, comment: &Comment, edit: Edit) -> Result<Option<Comment>, Fault> {
        let mut comment = comment.clone();
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            if attempt > 0 {
                match self.get(&keys::comment(comment.id), Reading::Consistent).await? {
                    None => return Ok(None),
                    Some(now) => comment = now,
                }
            }
            let after = edit.applied_to(&comment);
            let queues = change_queues(&comment, &after);
            let update = Edit::write(&comment, &after);
            if queues.is_empty() {
                // Alone it costs half of what it does in a transaction.
                if let Some(item) = self.update(update).await? {
                    return read(item).map(Some);
                }
            } else if self.transact(std::iter::once(update).chain(queues).collect()).await? == Outcome::Done {
                return self.get(&keys::comment(comment.id), Reading::Consistent).await;
            }
        }
        Err(Fault::transient("editing a comment"))
    }

    /// Deletes the comment alone: what hangs below it is unreachable at once, and swept up behind the table's stream.
    /// False when it was gone already.
    pub async fn delete(&self, comment: Comment) -> Result<bool, Fault> {
        let mut comment = comment;
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            let thread = if comment.is_top_level() && comment.is_approved() {
                self.thread(&comment.thread, Reading::Consistent).await?
            } else {
                Thread::default()
            };
            if self.transact(deletion(&comment, &thread)).await? == Outcome::Done {
                return Ok(true);
            }
            // Below a parent that is gone there is nothing left to keep count of.
            match self.find(comment.id, Reading::Consistent).await? {
                None => return Ok(false),
                Some(found) => comment = found.comment,
            }
        }
        Err(Fault::transient("deleting a comment"))
    }
}

/// The item of a comment, its index keys included.
pub(super) fn item(comment: &Comment, is_inline: bool) -> Result<Item, Fault> {
    let mut item = write(&keys::comment(comment.id), comment)?;
    let visitor = comment.visitor();
    item.extend(index_keys(comment, scope(comment, &visitor), is_inline).map(|(name, value)| (name.to_owned(), value)));
    if comment.is_top_level() {
        // No likes, no replies: a rank is the id.
        item.insert("l".to_owned(), number(comment.id));
        item.insert("d".to_owned(), number(comment.id));
    }
    if let Some(user) = comment.user {
        item.insert("a".to_owned(), text(keys::author(user)));
    }
    Ok(item)
}

/// Whose lists it stands in.
pub(super) fn scope<'a>(comment: &Comment, visitor: &'a crate::domain::ids::Visitor) -> Scope<'a> {
    if comment.is_approved() { Scope::Everyone } else { Scope::Own(visitor) }
}

/// Where it stands in the indexes.
pub(super) fn index_keys(comment: &Comment, scope: Scope<'_>, is_inline: bool) -> [(&'static str, AttributeValue); 3] {
    let (tk, ts, ok) = match comment.parent() {
        None => {
            let partition = keys::parents(&comment.thread, scope);
            (partition.clone(), keys::sort_key(comment.id), partition)
        }
        Some(parent) => {
            let separate = keys::replies(parent, scope);
            if is_inline {
                let sort = keys::inline_sort_key(parent, comment.id);
                (keys::parents(&comment.thread, scope), sort, separate)
            } else {
                (separate.clone(), keys::sort_key(comment.id), separate)
            }
        }
    };
    [("tk", text(tk)), ("ts", text(ts)), ("ok", text(ok))]
}

/// What a new reply must be younger than, whatever the clocks of the instances say: the parent, and the replies that lead.
fn newest_above(parent: &Comment) -> CommentId {
    parent.inline.last().map_or(parent.id, |last| parent.id.max(CommentId(*last)))
}

/// Whether the next reply to `parent` leads.
pub(super) fn next_is_inline(parent: &Comment, embedded: usize) -> bool {
    parent.is_top_level() && parent.is_approved() && !parent.has_separate && parent.inline.len() < embedded
}

/// The condition that these replies lead and no others; when some do, they stand in `:seen`.
pub(super) fn same_inline(parent: &Comment) -> &'static str {
    if parent.inline.is_empty() { "attribute_not_exists(ld)" } else { "ld = :seen" }
}

/// The value of [`same_leading`].
pub(super) fn with_inline(write: Write, parent: &Comment) -> Write {
    if parent.inline.is_empty() { write } else { write.with(":seen", ids(&parent.inline)) }
}

pub(super) fn ids(ids: &BTreeSet<u64>) -> AttributeValue {
    AttributeValue::Ns(ids.iter().map(u64::to_string).collect())
}

pub(super) fn id_set(id: CommentId) -> AttributeValue {
    AttributeValue::Ns(vec![id.to_string()])
}

/// How an approved reply is counted in the item of its parent.
#[derive(Clone, Copy)]
pub(super) struct Count {
    below_top: bool,
    reply: CommentId,
    sign: i64,
}

impl Count {
    pub(super) fn one_more(parent: &Comment, reply: CommentId) -> Self {
        Self { below_top: parent.is_top_level(), reply, sign: 1 }
    }

    fn one_less(reply: &Comment) -> Self {
        Self { below_top: reply.ancestors.len() == 1, reply: reply.id, sign: -1 }
    }

    /// A clause that other additions may follow.
    pub(super) fn clause(self) -> &'static str {
        if self.below_top { "ADD rc :count, d :step, fp :mark" } else { "ADD rc :count" }
    }

    /// The values of the clause.
    pub(super) fn fill(self, write: Write) -> Write {
        let write = write.with(":count", number(self.sign));
        if !self.below_top {
            return write;
        }
        let step = if self.sign < 0 { format!("-{RANK_STEP}") } else { RANK_STEP.to_owned() };
        write.with(":step", number(step)).with(":mark", number(self.sign * self.reply.mark()))
    }
}

/// The parent gains an approved reply.
pub(super) fn gain(parent: &Comment, reply: CommentId, is_inline: bool, embedded: usize) -> Write {
    let count = Count::one_more(parent, reply);
    let mut expression = count.clause().to_owned();
    let mut condition = "attribute_exists(pk)".to_owned();
    if is_inline {
        expression.push_str(", ld :reply");
        condition.push_str(" AND attribute_not_exists(s) AND attribute_not_exists(tr) AND (attribute_not_exists(ld) OR size(ld) < :embedded)");
    } else {
        // A younger reply that leads meanwhile would stand before this one.
        condition.push_str(" AND ");
        condition.push_str(same_inline(parent));
        if !parent.has_separate {
            expression.push_str(" SET tr = :true");
        }
    }
    let mut update = count.fill(Write::update(keys::comment(parent.id), expression).when(condition));
    if is_inline {
        update = update.with(":reply", id_set(reply)).with(":embedded", number(embedded));
        return update;
    }
    update = with_inline(update, parent);
    if !parent.has_separate {
        update = update.with(":true", AttributeValue::Bool(true));
    }
    update
}

/// The parent loses an approved reply.
pub(super) fn lose(reply: &Comment, parent: CommentId) -> Write {
    let count = Count::one_less(reply);
    let expression = format!("{} DELETE ld :reply", count.clause());
    let update = Write::update(keys::comment(parent), expression).when("attribute_exists(pk)");
    count.fill(update).with(":reply", id_set(reply.id))
}

/// The writer gains an unapproved comment; a reply that trails is noted.
pub(super) fn hide(comment: &Comment, is_inline: bool) -> Write {
    let visitor_state = keys::visitor_state(&comment.visitor(), &comment.thread);
    match (comment.is_top_level(), is_inline) {
        (true, _) => Write::update(visitor_state, "ADD up :one"),
        (false, true) => Write::update(visitor_state, "ADD ur :one"),
        (false, false) => {
            Write::update(visitor_state, "ADD ur :one SET ut = :true").with(":true", AttributeValue::Bool(true))
        }
    }
    .with(":one", number(1))
}

/// The writer loses an unapproved comment.
pub(super) fn unhide(comment: &Comment) -> Write {
    let visitor_state = keys::visitor_state(&comment.visitor(), &comment.thread);
    let expression = if comment.is_top_level() { "ADD up :less" } else { "ADD ur :less" };
    Write::update(visitor_state, expression).with(":less", number(-1))
}

/// Whether the next unapproved reply of this visitor leads below `parent`.
pub(super) fn hidden_is_inline(parent: &Comment, visitor_state: &VisitorThreadState) -> bool {
    parent.is_top_level() && visitor_state.hidden_replies < HIDDEN_INLINE
}

fn creation(
    comment: &Comment,
    parent: Option<&Comment>,
    visitor_state: &VisitorThreadState,
    embedded: usize,
) -> Result<Vec<Write>, Fault> {
    let approved = comment.is_approved();
    let is_inline = match parent {
        None => false,
        Some(parent) if approved => next_is_inline(parent, embedded),
        Some(parent) => hidden_is_inline(parent, visitor_state),
    };
    let mut writes = vec![Write::put(item(comment, is_inline)?).when("attribute_not_exists(pk)")];
    match (approved, parent) {
        (true, None) => {
            writes.push(Write::update(keys::thread(&comment.thread), "ADD n :one").with(":one", number(1)));
        }
        (true, Some(parent)) => writes.push(gain(parent, comment.id, is_inline, embedded)),
        (false, parent) => {
            writes.push(hide(comment, is_inline));
            writes.push(Write::put(keys::queue("pending", comment.id).item()));
            if let Some(parent) = parent {
                writes.push(Write::check(keys::comment(parent.id), "attribute_exists(pk)"));
                writes.push(Write::put(keys::hidden_reply(parent.id, comment.id).item()));
            }
        }
    }
    Ok(writes)
}

fn deletion(comment: &Comment, thread: &Thread) -> Vec<Write> {
    let mut delete = Write::delete(keys::comment(comment.id)).when(same_state(comment.state));
    if let Some(state) = state_text(comment.state) {
        delete = delete.with(":state", text(state));
    }
    let mut writes = vec![delete];
    match (comment.is_approved(), comment.parent()) {
        (true, None) => {
            writes.push(leave_thread(comment, thread));
            // They would be read with every page, and shown with none.
            writes.extend(comment.inline.iter().map(|reply| {
                Write::update(keys::comment(CommentId(*reply)), "REMOVE tk, ts").when("attribute_exists(pk)")
            }));
        }
        (true, Some(parent)) => writes.push(lose(comment, parent)),
        (false, parent) => {
            writes.push(unhide(comment));
            writes.extend(parent.map(|parent| Write::delete(keys::hidden_reply(parent, comment.id))));
        }
    }
    writes.extend(queues(comment).map(|state| Write::delete(keys::queue(state, comment.id))));
    writes
}

/// The thread loses an approved parent, and its pin if that was it.
pub(super) fn leave_thread(comment: &Comment, thread: &Thread) -> Write {
    let pinned = thread.pin.is_some_and(|pin| pin.comment == comment.id);
    let (expression, condition) = if pinned {
        ("ADD n :less REMOVE pin", "pin.c = :id")
    } else {
        ("ADD n :less", "attribute_not_exists(pin) OR pin.c <> :id")
    };
    Write::update(keys::thread(&comment.thread), expression)
        .when(condition)
        .with(":less", number(-1))
        .with(":id", number(comment.id))
}

/// Holds a write of a comment to the state and the text that were read.
pub(super) fn as_read(write: Write, comment: &Comment) -> Write {
    let write = write.when(same_state(comment.state));
    let write = match state_text(comment.state) {
        Some(state) => write.with(":state", text(state)),
        None => write,
    };
    let write = if comment.in_review {
        write.when("rv = :reviewed").with(":reviewed", AttributeValue::Bool(true))
    } else {
        write.when("attribute_not_exists(rv)")
    };
    match comment.edited_at {
        Some(at) => write.when("e = :edited").with(":edited", number(at)),
        None => write.when("attribute_not_exists(e)"),
    }
}

/// The condition that a comment exists and is in this state still; other states than approved stand in `:state`.
pub(super) fn same_state(state: State) -> &'static str {
    match state {
        State::Approved => "attribute_exists(pk) AND attribute_not_exists(s)",
        State::Pending | State::Rejected => "s = :state",
    }
}

pub(super) fn state_text(state: State) -> Option<&'static str> {
    match state {
        State::Approved => None,
        State::Pending => Some("pending"),
        State::Rejected => Some("rejected"),
    }
}

/// Takes a comment that changes out of the queues it belongs in no more, and puts it into those it belongs in now.
pub(super) fn change_queues(before: &Comment, after: &Comment) -> Vec<Write> {
    let (left, joined): (Vec<_>, Vec<_>) = (queues(before).collect(), queues(after).collect());
    let leave = left.iter().filter(|state| !joined.contains(state));
    let join = joined.iter().filter(|state| !left.contains(state));
    leave
        .map(|state| Write::delete(keys::queue(state, before.id)))
        .chain(join.map(|state| Write::put(keys::queue(state, before.id).item())))
        .collect()
}

/// The queues a comment is in.
pub(super) fn queues(comment: &Comment) -> impl Iterator<Item = &'static str> {
    let pending = comment.is_queued().then_some("pending");
    let rejected = (comment.state == State::Rejected).then_some("rejected");
    let reported = comment.reported.then_some("reported");
    [pending, rejected, reported].into_iter().flatten()
}
