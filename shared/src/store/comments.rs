//! Finds, creates and changes single comments. Related writes form one transaction, whose conditions detect changes
//! since the comment was read.

use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::sync::LazyLock;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join;

use super::idempotency::IdempotencyRequest;
use super::keys::{self, Item};
use super::placement::{self, ReplyPlace};
use super::schema::{comment, maps, thread};
use super::transaction::{Label, Outcome, Write, absent};
use super::{Reading, Store, number, read, text, write, yes};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, IdSource};
use crate::domain::thread::{PageInfo, Thread, VisitorThreadState};
use crate::domain::time::Timestamp;
use crate::domain::verdict::Judgment;
use crate::domain::viewer::Owners;
use crate::error::Fault;

/// The attributes of a [`Comment`], as a projection. None of them is a reserved word.
pub(super) static ATTRIBUTES: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = comment::ATTRIBUTES.iter().map(|attribute| attribute.name).collect();
    names.join(",")
});

/// The maximum cost of reading this many comments, in read units. The largest comments are 44 KB.
pub fn read_units(comments: usize, reading: Reading) -> u32 {
    let halves = if reading == Reading::Consistent { 22 } else { 11 };
    u32::try_from(comments * halves / 2).unwrap_or(u32::MAX)
}

/// A comment whose ancestors all exist.
#[derive(Clone, Debug)]
pub struct CommentWithAncestors {
    pub comment: Comment,
    /// Ancestors from the top-level comment down to the direct parent.
    pub ancestors: Vec<Comment>,
}

#[derive(Debug)]
pub struct CommentInThread {
    pub found: CommentWithAncestors,
    pub thread: Thread,
    pub visitor_state: VisitorThreadState,
}

/// The input of [`Store::create`].
#[derive(Debug)]
pub struct NewComment<'a> {
    /// The comment without an id.
    pub draft: Comment,
    pub parent: Option<Comment>,
    /// The writer's thread state.
    pub visitor_state: &'a VisitorThreadState,
    pub idempotency: Option<&'a IdempotencyRequest>,
}

/// The result of [`Store::create`].
#[derive(Debug)]
pub enum Created {
    Done(Box<Comment>),
    /// Another request with the same idempotency key was first.
    Before,
    ParentGone,
}

#[derive(Debug)]
pub struct Edit {
    pub body: String,
    pub mentions: Vec<String>,
    pub at: Timestamp,
    pub judgment: Judgment,
}

impl Edit {
    fn applied_to(&self, comment: &Comment) -> Comment {
        // Each edit is in a later second than the previous text, because responses show edit times in seconds, and the
        // edit time must distinguish the comment's texts.
        let at = self.at.max(Timestamp((comment.updated_at().seconds() + 1) * 1000));
        Comment {
            body: self.body.clone(),
            mentions: self.mentions.clone(),
            edited_at: Some(at),
            in_review: comment.in_review || (self.judgment.waits && comment.is_approved()),
            suspicious: comment.suspicious || (self.judgment.is_suspicious() && comment.state == State::Pending),
            verdicts: self.judgment.verdicts.clone(),
            ..comment.clone()
        }
    }

    fn write(before: &Comment, after: &Comment) -> Result<Write, Fault> {
        let mentions = AttributeValue::L(after.mentions.iter().map(text).collect());
        let update = as_read(Write::update(keys::comment(before.id)), before)
            .set(comment::BODY, text(after.body.clone()))
            .set(comment::EDITED_AT, number(after.updated_at().0))
            .assign(comment::MENTIONS, (!after.mentions.is_empty()).then_some(mentions));
        let update =
            if before.verdicts == after.verdicts { update } else { update.assign(comment::VERDICTS, verdicts(after)?) };
        let update =
            if after.suspicious && !before.suspicious { update.set(comment::SUSPICIOUS, yes()) } else { update };
        Ok(if after.in_review && !before.in_review { update.set(comment::IN_REVIEW, yes()) } else { update })
    }
}

/// The writes that change a comment, planned from its current state.
pub enum Plan {
    /// One update, at half the price of a transaction. It must be safe to repeat.
    Alone(Write),
    Together(Vec<Write>),
    /// The comment is already in the desired state.
    Nothing,
    /// The change refers to an earlier text of the comment.
    Edited,
    /// The comment or its parent no longer exists, or the comment is a placeholder.
    Gone,
}

/// The result of a [`Plan`].
pub(super) enum Changed {
    Done,
    /// The comment in its current state.
    Now(Box<Comment>),
    Edited,
    Gone,
}

impl Store {
    /// The comment without its ancestors; `None` if it doesn't exist.
    pub async fn comment(&self, id: CommentId, reading: Reading) -> Result<Option<Comment>, Fault> {
        self.get(&keys::comment(id), reading).await
    }

    /// A comment with its ancestors; `None` if any of them doesn't exist.
    pub async fn comment_with_ancestors(
        &self,
        id: CommentId,
        reading: Reading,
    ) -> Result<Option<CommentWithAncestors>, Fault> {
        let key = keys::comment(id);
        let Some(comment) = self.get::<Comment>(&key, reading).await? else { return Ok(None) };
        let ancestors = self.ancestors(&comment, reading).await?;
        Ok(ancestors.map(|ancestors| CommentWithAncestors { comment, ancestors }))
    }

    /// Reads the data that `comments.show` returns, usually in two round trips to the table, or three for a caller with
    /// many likes and reports in the thread. `None` if the comment or one of its ancestors doesn't exist.
    pub async fn comment_in_thread(&self, id: CommentId, owners: &Owners) -> Result<Option<CommentInThread>, Fault> {
        let Some(comment) = self.get::<Comment>(&keys::comment(id), Reading::Eventual).await? else { return Ok(None) };
        let known = self.thread_and_visitor_state(&comment.thread, owners);
        let ancestors = self.ancestors(&comment, Reading::Eventual);
        let (ancestors, (thread, mut visitor_state)) = try_join(ancestors, known).await?;
        let Some(ancestors) = ancestors else { return Ok(None) };
        let groups = ancestors.iter().chain([&comment]).map(|comment| comment.parent().unwrap_or(comment.id));
        self.complete_visitor_state(&mut visitor_state, &owners.reactions, &comment.thread, groups).await?;
        Ok(Some(CommentInThread { found: CommentWithAncestors { comment, ancestors }, thread, visitor_state }))
    }

    /// The comments that exist together with all their ancestors, in the order of `ids`. Read consistently.
    pub async fn comments_with_ancestors(&self, ids: Vec<CommentId>) -> Result<Vec<CommentWithAncestors>, Fault> {
        self.load_ancestors(self.comments_by_id(ids, Reading::Consistent).await?).await
    }

    /// The comments that exist, in the order of `ids`.
    pub async fn comments_by_id(&self, ids: Vec<CommentId>, reading: Reading) -> Result<Vec<Comment>, Fault> {
        let wanted: Vec<_> = ids.into_iter().map(keys::comment).collect();
        let mut found = self.batch_get(wanted.clone(), reading).await?;
        wanted.iter().filter_map(|key| found.remove(key)).map(read).collect()
    }

    /// Reads the ancestors of these comments consistently, and returns the comments whose ancestors all exist.
    pub(super) async fn load_ancestors(&self, comments: Vec<Comment>) -> Result<Vec<CommentWithAncestors>, Fault> {
        let above: BTreeSet<CommentId> =
            comments.iter().flat_map(|comment| comment.ancestors.iter().copied()).collect();
        let above = self.batch_get(above.into_iter().map(keys::comment).collect(), Reading::Consistent).await?;
        let above: Vec<Comment> = above.into_values().map(read).collect::<Result<_, _>>()?;
        let above: HashMap<CommentId, Comment> = above.into_iter().map(|comment| (comment.id, comment)).collect();
        let whole = comments.into_iter().filter_map(|comment| {
            let ancestors: Option<Vec<Comment>> = comment.ancestors.iter().map(|id| above.get(id).cloned()).collect();
            ancestors.map(|ancestors| CommentWithAncestors { comment, ancestors })
        });
        Ok(whole.collect())
    }

    /// Returns `found` if it passes. Otherwise, it may be out of date, so the comment is read again consistently, and returned
    /// only if it now passes.
    pub async fn reread_unless(
        &self,
        found: Option<CommentWithAncestors>,
        passes: impl Fn(&CommentWithAncestors) -> bool,
    ) -> Result<Option<CommentWithAncestors>, Fault> {
        match found {
            Some(found) if !passes(&found) => {
                Ok(self.comment_with_ancestors(found.comment.id, Reading::Consistent).await?.filter(passes))
            }
            found => Ok(found),
        }
    }

    /// The ancestors of a comment. `None` if one of them doesn't exist.
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

    /// Stores a comment under a new id.
    pub async fn create(&self, ids: &IdSource, new: NewComment<'_>) -> Result<Created, Fault> {
        let NewComment { draft, mut parent, visitor_state, idempotency } = new;
        let mut comment = self.kept_comment(draft);
        // Doesn't use `change`, because each attempt uses a new id and only the parent is read again.
        let mut attempts = self.attempts("creating a comment");
        loop {
            if attempts.next().await?
                && let Some(read) = &parent
            {
                parent = self.get(&keys::comment(read.id), Reading::Consistent).await?;
                if parent.as_ref().is_none_or(|parent| parent.is_placeholder) {
                    return Ok(Created::ParentGone);
                }
            }
            comment.id = match &parent {
                None => ids.next(),
                // Keeps replies in order even if the parent is dated in the future.
                Some(parent) => ids.after(placement::newest_above(parent), parent.replies),
            };
            let mut writes = creation(&comment, parent.as_ref(), visitor_state, self.embedded)?;
            writes.extend(idempotency.map(|idempotency| idempotency.write(comment.id)).transpose()?);
            match self.transact(writes).await? {
                Outcome::Done => return Ok(Created::Done(Box::new(comment))),
                Outcome::Failed(failed) if failed.includes(Label::Idempotency) => return Ok(Created::Before),
                Outcome::Failed(_) => {}
            }
        }
    }

    /// Edits a comment and returns the edited comment; `None` if it no longer exists. Whether the edit is reviewed depends on
    /// the state of the stored comment, which may differ from `comment`.
    pub async fn edit(&self, comment: &Comment, edit: Edit) -> Result<Option<Comment>, Fault> {
        let plan = |comment: Comment| {
            let after = edit.applied_to(&comment);
            let queues = change_queues(&comment, &after);
            ready(Edit::write(&comment, &after).map(|update| {
                if queues.is_empty() {
                    Plan::Alone(update)
                } else {
                    Plan::Together(std::iter::once(update).chain(queues).collect())
                }
            }))
        };
        self.change("editing a comment", comment.clone(), plan).await
    }

    /// Changes a comment according to `plan`. Returns the comment in its current state, or in its previous state if it was
    /// deleted right after the change. `None` if the comment no longer exists, is a placeholder, or no longer has the text that
    /// the plan refers to.
    pub async fn change<P>(
        &self,
        doing: &'static str,
        comment: Comment,
        plan: impl Fn(Comment) -> P,
    ) -> Result<Option<Comment>, Fault>
    where
        P: Future<Output = Result<Plan, Fault>>,
    {
        let id = comment.id;
        let plan = |comment: Comment| {
            let planned = (!comment.is_placeholder).then(|| plan(comment));
            async { if let Some(planned) = planned { planned.await } else { Ok(Plan::Gone) } }
        };
        match self.try_plans(doing, comment.clone(), plan).await? {
            Changed::Done => Ok(Some(self.get(&keys::comment(id), Reading::Consistent).await?.unwrap_or(comment))),
            Changed::Now(comment) => Ok(Some(*comment)),
            Changed::Edited | Changed::Gone => Ok(None),
        }
    }

    /// Carries out the plan for the comment. If a condition fails, reads the comment again and makes another plan.
    pub(super) async fn try_plans<P>(
        &self,
        doing: &'static str,
        mut comment: Comment,
        plan: impl Fn(Comment) -> P,
    ) -> Result<Changed, Fault>
    where
        P: Future<Output = Result<Plan, Fault>>,
    {
        let mut attempts = self.attempts(doing);
        loop {
            if attempts.next().await? {
                match self.get(&keys::comment(comment.id), Reading::Consistent).await? {
                    None => return Ok(Changed::Gone),
                    Some(now) => comment = now,
                }
            }
            match plan(comment.clone()).await? {
                Plan::Gone => return Ok(Changed::Gone),
                Plan::Edited => return Ok(Changed::Edited),
                Plan::Nothing => return Ok(Changed::Now(Box::new(comment))),
                Plan::Alone(update) => {
                    if let Some(item) = self.update(doing, update).await? {
                        return Ok(Changed::Now(Box::new(read(item)?)));
                    }
                }
                Plan::Together(writes) => {
                    if self.transact(writes).await? == Outcome::Done {
                        return Ok(Changed::Done);
                    }
                }
            }
        }
    }
}

/// The item of a new comment, including its index keys.
pub fn item(comment: &Comment, is_inline: bool) -> Result<Item, Fault> {
    let mut item = write(&keys::comment(comment.id), comment)?;
    item.extend(placement::index_keys(comment, is_inline).map(|(name, value)| (name.to_owned(), value)));
    if comment.is_top_level() {
        item.insert(comment::LIKES_RANK.to_owned(), placement::rank(comment.likes, comment.id));
        item.insert(comment::REPLIES_RANK.to_owned(), placement::rank(comment.replies, comment.id));
    }
    if let Some(author) = comment.author() {
        item.insert(comment::AUTHOR_KEY.to_owned(), text(keys::author(&author)));
    }
    Ok(item)
}

pub fn creation(
    comment: &Comment,
    parent: Option<&Comment>,
    visitor_state: &VisitorThreadState,
    embedded: usize,
) -> Result<Vec<Write>, Fault> {
    let (is_inline, others) = match (comment.is_approved(), parent) {
        (true, None) => (false, vec![join_thread_with_page(comment)]),
        (true, Some(parent)) => {
            let place = ReplyPlace::below(parent, comment.id, embedded);
            (place.is_inline, place.gain(parent, comment.id, embedded))
        }
        (false, parent) => {
            let is_inline = parent.is_some_and(|parent| placement::own_is_inline(parent, visitor_state));
            let queues = queues(comment).map(|state| Write::put(keys::queue(state, comment.id).item()));
            let mut others: Vec<Write> =
                std::iter::once(placement::gain_own(comment, is_inline)).chain(queues).collect();
            if let Some(page) = comment.page.as_deref().filter(|_| comment.by_moderator) {
                others.push(replace_page(Write::update(keys::thread(&comment.thread)), page));
            }
            if let Some(parent) = parent {
                others.push(placement::gain_hidden(parent));
                others.push(Write::put(keys::hidden_reply(parent.id, comment.id).item()));
            }
            (is_inline, others)
        }
    };
    let put = Write::put(item(comment, is_inline)?).when(absent());
    Ok(std::iter::once(put).chain(others).collect())
}

/// Adds an approved top-level comment to its thread.
pub(super) fn join_thread(comment: &Comment) -> Write {
    let gain = Write::update(keys::thread(&comment.thread)).add(thread::PARENTS, number(1));
    gain.set_once(thread::OPENED_AT, number(comment.id.created_at().0))
}

/// Like [`join_thread`], for a new comment, and also stores the title and address of its page. A moderator's page replaces the
/// stored one. A member's page is stored if the thread has none yet. A guest's page is stored only once a moderator approves
/// the comment.
fn join_thread_with_page(comment: &Comment) -> Write {
    let join = join_thread(comment);
    match comment.page.as_deref().filter(|_| comment.user.is_some()) {
        Some(page) if comment.by_moderator => replace_page(join, page),
        Some(page) => take_page(join, page),
        None => join,
    }
}

/// Stores the title and address of the page where a moderator commented, in place of those that a page reported before.
fn replace_page(write: Write, page: &PageInfo) -> Write {
    said(page).into_iter().fold(write, |write, (name, value)| match value {
        Some(value) => write.set(name, text(value)),
        None => write,
    })
}

/// Stores the title and address of a page in its thread, unless a page has reported them before.
pub(super) fn take_page(write: Write, page: &PageInfo) -> Write {
    said(page).into_iter().fold(write, |write, (name, value)| match value {
        Some(value) => write.set_once(name, text(value)),
        None => write,
    })
}

fn said(page: &PageInfo) -> [(&'static str, Option<&String>); 2] {
    [(thread::PAGE_TITLE, page.title.as_ref()), (thread::PAGE_URL, page.url.as_ref())]
}

/// Removes an approved top-level comment from its thread, and the pin if it is pinned.
pub(super) fn leave_thread(comment: &Comment, thread: &Thread) -> Write {
    let leave = Write::update(keys::thread(&comment.thread)).add(thread::PARENTS, number(-1));
    if is_pinned(comment, thread) { unpin(leave, comment) } else { not_pinned(leave, comment) }
}

/// Removes the thread's pin if this comment is pinned.
pub(super) fn leave_pin(comment: &Comment, thread: &Thread) -> Write {
    let key = keys::thread(&comment.thread);
    if is_pinned(comment, thread) {
        unpin(Write::update(key), comment)
    } else {
        not_pinned(Write::unchanged(key), comment)
    }
}

fn is_pinned(comment: &Comment, thread: &Thread) -> bool {
    thread.pin.is_some_and(|pin| pin.comment == comment.id)
}

/// Removes the thread's pin, on condition that this comment is pinned.
pub(super) fn unpin(write: Write, comment: &Comment) -> Write {
    let is_pinned = format!("{0}.{1} = :id", thread::PIN, maps::pin::COMMENT);
    write.remove(thread::PIN).when(is_pinned).with(":id", number(comment.id.0))
}

/// Requires that the comment isn't pinned.
pub(super) fn not_pinned(write: Write, comment: &Comment) -> Write {
    let not_pinned = format!("attribute_not_exists({0}) OR {0}.{1} <> :id", thread::PIN, maps::pin::COMMENT);
    write.when(not_pinned).with(":id", number(comment.id.0))
}

/// Requires that the comment isn't a placeholder, and still has the state, the review mark and the text that were read.
pub(super) fn as_read(write: Write, comment: &Comment) -> Write {
    let write = in_state(write, comment.state).still(comment::PLACEHOLDER, None);
    write
        .still(comment::IN_REVIEW, comment.in_review.then(yes))
        .still(comment::EDITED_AT, comment.edited_at.map(|at| number(at.0)))
}

/// Requires that the comment exists and isn't a placeholder.
pub fn present(write: Write) -> Write {
    write.exists().still(comment::PLACEHOLDER, None)
}

/// Requires that the comment exists and is still in this state.
pub fn in_state(write: Write, state: State) -> Write {
    write.exists().still(comment::STATE, state_text(state).map(text))
}

/// Requires that the comment's number of reports is unchanged.
pub(super) fn as_reported(write: Write, comment: &Comment) -> Write {
    match comment.reports {
        0 => write.when(format!("attribute_not_exists({0}) OR {0} = :none", comment::REPORTS)).with(":none", number(0)),
        reports => write.still(comment::REPORTS, Some(number(reports))),
    }
}

/// The value of the attribute `s`; `None` leaves the attribute out.
pub(super) fn state_text(state: State) -> Option<&'static str> {
    match state {
        State::Approved => None,
        State::Pending => Some("pending"),
        State::Rejected => Some("rejected"),
    }
}

/// The value of the attribute `vd`; `None` leaves the attribute out.
pub(super) fn verdicts(comment: &Comment) -> Result<Option<AttributeValue>, Fault> {
    let verdicts = &comment.verdicts;
    let stored = (!verdicts.is_empty()).then(|| serde_dynamo::to_attribute_value(verdicts)).transpose();
    stored.map_err(|error| Fault::new("serializing verdicts", error))
}

/// Removes a changed comment from the queues that it leaves, and adds it to those that it joins.
pub(super) fn change_queues(before: &Comment, after: &Comment) -> Vec<Write> {
    let (left, joined): (Vec<_>, Vec<_>) = (queues(before).collect(), queues(after).collect());
    let leave = left.iter().filter(|state| !joined.contains(state));
    let join = joined.iter().filter(|state| !left.contains(state));
    leave
        .map(|state| Write::delete(keys::queue(state, before.id)))
        .chain(join.map(|state| Write::put(keys::queue(state, before.id).item())))
        .collect()
}

/// The names of the queues that a comment is in, except the queue of new comments.
pub fn queues(comment: &Comment) -> impl Iterator<Item = &'static str> {
    let pending = comment.is_queued().then_some("pending");
    let rejected = (comment.state == State::Rejected).then_some("rejected");
    let reported = comment.reported.then_some("reported");
    [pending, rejected, reported].into_iter().flatten()
}
