//! Erases one person's data, item by item. Each step is a transaction or safe to repeat, and leaves the table
//! consistent.

use std::collections::BTreeMap;
use std::slice;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, UserId, Visitor};
use shared::domain::job::{CountBelow, CountReplies, Job};
use shared::domain::list::Order;
use shared::domain::notifications::NotificationState;
use shared::domain::person::{Person, PersonHashes};
use shared::domain::report::Report;
use shared::domain::thread::{Thread, VisitorThreadState};
use shared::domain::time::{Clock, Timestamp};
use shared::domain::user::{Ban, User};
use shared::error::Fault;
use shared::store::comments::{Plan, present};
use shared::store::counts::RecountTrigger;
use shared::store::deletion::{LiveReply, leave, tombstone_of};
use shared::store::keys::{self, ItemKind, Key, Scope};
use shared::store::lists::walk::Window;
use shared::store::moderation::rejection;
use shared::store::reactions::add_likes;
use shared::store::schema::{comment, log, report, thread, user, visitor_state};
use shared::store::transaction::{Outcome, Write, absent};
use shared::store::users::versions;
use shared::store::{Index, Query, Reading, Store, id_set, number, read, text, write};
use tokio::time::Instant;

use super::find::{Match, MatchKind, rejected_by};
use crate::store::sources::{SourceRow, rows_of};

/// Maximum reports of a comment that are searched for the person's.
const REPORTS: usize = 10_000;

/// Time limit for one step of a job.
const STEP: Duration = Duration::from_secs(10);

/// Counts of erased items by kind.
pub type Gone = BTreeMap<&'static str, u64>;

/// The result of finishing a placeholder.
enum Finish {
    /// The placeholder has a live reply, or so many unapproved ones that one is assumed to be live.
    Kept,
    Gone {
        /// The parent, if it's a placeholder without any other live reply.
        emptied: Option<CommentId>,
    },
}

pub struct Erasure<'a> {
    pub store: &'a Store,
    pub person: &'a Person,
    pub hashes: &'a PersonHashes,
    pub clock: &'a Clock,
}

impl Erasure<'_> {
    /// Erases one item and counts it in `gone`. Does nothing if it's already gone.
    pub async fn erase(&self, found: Match, gone: &mut Gone) -> Result<(), Fault> {
        let store = self.store;
        let now = self.clock.now();
        let what = match found.0 {
            MatchKind::Comment { id, .. } => self.erase_comment(id).await?,
            MatchKind::Placeholder(id) => self.finish_comment(id, true).await?,
            MatchKind::VisitorState(key, visitor) => return self.erase_visitor_state(&key, &visitor, gone).await,
            MatchKind::Report(comment, id) => self.erase_report(comment, id).await?.then_some("reports"),
            MatchKind::Record(key) => {
                let author = Some(number(self.person.user().0));
                let update = Write::update(key).remove(thread::AUTHOR).still(thread::AUTHOR, author);
                store.update("erasing the author of a record", update).await?.map(|_| "records")
            }
            MatchKind::Log(key) => self.erase_from_log(key).await?.then_some("log"),
            MatchKind::Request { key, .. } => delete_item(store, key).await?.then_some("requests"),
            MatchKind::Trust(key) => delete_item(store, key).await?.then_some("trust"),
            MatchKind::Profile => erase_profile(store, self.person.user(), now).await?.then_some("profile"),
            MatchKind::Notifications(key) => erase_notification_state(store, key).await?.then_some("mailboxes"),
            MatchKind::SignIn(key) => delete_item(store, key).await?.then_some("sign-ins"),
            MatchKind::ModeratorName => {
                store.forget_moderator_name(self.person.user()).await?.then_some("moderators' names")
            }
            MatchKind::Directory(key) => erase_name(store, key, self.person.user()).await?.then_some("names"),
            MatchKind::Ban(id) => delete_item(store, keys::banned(id)).await?.then_some("bans"),
            MatchKind::Named(id) => {
                if self.erase_moderator(id).await? {
                    *gone.entry("rejections").or_default() += 1;
                }
                self.erase_mention(id).await?.then_some("mentions")
            }
        };
        if let Some(what) = what {
            *gone.entry(what).or_default() += 1;
        }
        Ok(())
    }

    fn who(&self) -> String {
        self.hashes.who(&self.person.who)
    }

    /// Turns the comment into a placeholder first, so that its removal can't lose a new reply. Also writes a note about
    /// the comment for the next erasure, in case this one is interrupted.
    async fn erase_comment(&self, id: CommentId) -> Result<Option<&'static str>, Fault> {
        let store = self.store;
        let Some(found) = store.comment_with_ancestors(id, Reading::Consistent).await? else {
            return self.erase_orphan(id).await;
        };
        let note = Write::put(keys::erased_comment(&self.who(), id).item());
        let was_hidden = !found.comment.is_approved();
        let plan = |comment: Comment| {
            let note = note.clone();
            async move {
                Ok(match store.placeholder_plan(&comment, |write| write).await? {
                    Plan::Together(writes) => Plan::Together(writes.into_iter().chain([note]).collect()),
                    plan => plan,
                })
            }
        };
        if store.change("erasing a comment", found.comment, plan).await?.is_none() {
            return Ok(None);
        }
        self.finish_comment(id, was_hidden).await
    }

    /// Erases an invisible comment below a deleted one. First replaces the comment's source with a hash, because if
    /// this erasure is interrupted, the next one can't find the source without the comment.
    async fn erase_orphan(&self, id: CommentId) -> Result<Option<&'static str>, Fault> {
        let store = self.store;
        let Some(mut comment) = store.comment(id, Reading::Consistent).await? else { return Ok(None) };
        store.leave_queues(&comment).await?;
        let mut attempts = store.attempts("hiding a source");
        loop {
            attempts.next().await?;
            let now = store.comment(id, Reading::Consistent).await?;
            let is_there = now.is_some();
            comment = now.unwrap_or(comment);
            let writes = self.hide_source(&comment, is_there).await?;
            if writes.is_empty() || store.transact(writes).await? == Outcome::Done {
                break;
            }
        }
        Ok(store.remove_comment(id).await?.then_some("comments"))
    }

    /// Counts all replies below the comment.
    async fn count_below(&self, comment: &Comment) -> Result<(), Fault> {
        let walks = vec![CountReplies::of(comment.id)];
        let (thread, changed_at) = (comment.thread.clone(), self.clock.now());
        let mut job =
            Job::CountBelow(CountBelow { thread, walks, incomplete: Vec::new(), is_first: false, changed_at });
        loop {
            let deadline = Instant::now() + STEP;
            let Some(rest) = self.store.run_job(job, self.clock.now(), deadline).await? else { return Ok(()) };
            tokio::time::sleep(rest.delay).await;
            job = rest.job;
        }
    }

    /// Updates the counts for a new placeholder, and removes the placeholder if it has no live reply. `shown` means
    /// that replies below it are now visible to everyone. Also does the follow-up work of the removal, because the
    /// service may not be running to process the events.
    async fn finish_comment(&self, id: CommentId, shown: bool) -> Result<Option<&'static str>, Fault> {
        let store = self.store;
        let comment = store.comment(id, Reading::Consistent).await?;
        while store.remove_reactions(id).await? {}
        if let Some(comment) = &comment {
            store.recount_comment(&comment.thread, id, RecountTrigger::Walk).await?;
            if shown && comment.replies > 0 {
                self.count_below(comment).await?;
            }
        }
        let (kept, emptied) = match self.remove_unless_answered(id).await? {
            Finish::Kept => (true, None),
            Finish::Gone { emptied } => (false, emptied),
        };
        if !kept {
            self.remove_below(id).await?;
        }
        store.transact(vec![Write::delete(keys::erased_comment(&self.who(), id))]).await?;
        let Some(comment) = comment else { return Ok(None) };
        let parent = comment.parent().filter(|_| !kept);
        if let Some(parent) = parent
            && let Some(parent) = store.comment(parent, Reading::Consistent).await?
        {
            store.promote_below(&parent).await?;
        }
        if let Some(emptied) = emptied {
            Box::pin(self.finish_comment(emptied, false)).await?;
        }
        Ok(Some(if kept { "placeholders" } else { "comments" }))
    }

    /// Removes all comments below a removed comment: rejected replies and everything below them. Removes the deepest
    /// first, so that after an interruption, the next erasure finds the rest through the note about the removed
    /// comment.
    async fn remove_below(&self, id: CommentId) -> Result<(), Fault> {
        let store = self.store;
        let items = keys_of(store, id).await?;
        let mut below: Vec<CommentId> = items.iter().filter_map(|key| keys::hidden_reply_of(&key.sk)).collect();
        let mut next = 0;
        while let Some(reply) = below.get(next).copied() {
            let approved = keys::replies(reply, Scope::Everyone);
            below.extend(store.positions(approved, Window::first(Order::OldestFirst, usize::MAX)).await?);
            let items = keys_of(store, reply).await?;
            below.extend(items.iter().filter_map(|key| keys::hidden_reply_of(&key.sk)));
            next += 1;
        }
        for reply in below.into_iter().rev() {
            if let Some(reply) = store.comment(reply, Reading::Consistent).await? {
                store.leave_queues(&reply).await?;
                store.remove_comment(reply.id).await?;
                store.recount_comment(&reply.thread, reply.id, RecountTrigger::Walk).await?;
                while store.remove_items(reply.id).await? {}
            }
        }
        while !items.is_empty() && store.remove_items(id).await? {}
        Ok(())
    }

    /// Removes a placeholder unless it has a live reply. A hash replaces its source in either case. If the removal
    /// leaves the parent placeholder without live replies, the transaction also writes a note about the parent.
    async fn remove_unless_answered(&self, id: CommentId) -> Result<Finish, Fault> {
        let store = self.store;
        let mut attempts = store.attempts("erasing a comment");
        loop {
            attempts.next().await?;
            let Some(comment) = store.comment(id, Reading::Consistent).await? else {
                return Ok(Finish::Gone { emptied: None });
            };
            let kept = store.live_reply(&comment, None).await? != LiveReply::None;
            let (mut writes, finish) = if kept {
                (Vec::new(), Finish::Kept)
            } else {
                let parent = match comment.parent() {
                    Some(parent) => store.comment(parent, Reading::Consistent).await?,
                    None => None,
                };
                let emptied = self.emptied_by(&comment, parent.as_ref()).await?;
                let note = emptied.map(|above| Write::put(keys::erased_comment(&self.who(), above).item()));
                let removal = leave(&comment, parent.as_ref(), &Thread::default());
                (removal.into_iter().chain(note).collect(), Finish::Gone { emptied })
            };
            writes.extend(self.hide_source(&comment, kept).await?);
            if writes.is_empty() || store.transact(writes).await? == Outcome::Done {
                return Ok(finish);
            }
        }
    }

    /// The parent, if it's a placeholder without any other live reply.
    async fn emptied_by(&self, comment: &Comment, parent: Option<&Comment>) -> Result<Option<CommentId>, Fault> {
        let Some(parent) = parent.filter(|parent| parent.is_placeholder) else { return Ok(None) };
        let is_emptied = self.store.live_reply(parent, Some(comment)).await? == LiveReply::None;
        Ok(is_emptied.then_some(parent.id))
    }

    /// Writes that replace the source of a comment with a hash. The hashed source's item has no writer.
    async fn hide_source(&self, comment: &Comment, kept: bool) -> Result<Vec<Write>, Fault> {
        let Some(source) = &comment.source else { return Ok(Vec::new()) };
        if source.is_hashed() {
            return Ok(if kept { Vec::new() } else { vec![tombstone_of(source, comment.id)] });
        }
        let hash = self.hashes.source(source);
        let provenance = rows_of(self.store, slice::from_ref(source)).await?.remove(source).map(|row| row.provenance());
        let row = SourceRow::new(comment.id, !kept, provenance.unwrap_or_default()).without_writer();
        let mut writes = vec![row.put(&hash), Write::delete(keys::source(source))];
        writes
            .extend(kept.then(|| Write::update(keys::comment(comment.id)).set(comment::SOURCE, text(hash.0)).exists()));
        Ok(writes)
    }

    async fn erase_visitor_state(&self, key: &Key, visitor: &Visitor, gone: &mut Gone) -> Result<(), Fault> {
        let store = self.store;
        let state: Option<VisitorThreadState> = store.get(key, Reading::Consistent).await?;
        let Some(state) = state else { return Ok(()) };
        for id in &state.liked {
            *gone.entry("likes").or_default() += u64::from(erase_like(store, key, CommentId(*id)).await?);
        }
        for id in &state.reported {
            let reported = erase_report_of(store, key, visitor, CommentId(*id)).await?;
            *gone.entry("reports").or_default() += u64::from(reported);
        }
        // Keeps the item if the visitor has added likes or reports since, or has unapproved comments that couldn't be
        // erased.
        let delete = Write::delete(key.clone()).exists().when(format!(
            "attribute_not_exists({0}) AND attribute_not_exists({1})",
            visitor_state::LIKED,
            visitor_state::REPORTED
        ));
        let delete = delete
            .when(format!("attribute_not_exists({0}) OR {0} = :none", visitor_state::HIDDEN_PARENTS))
            .when(format!("attribute_not_exists({0}) OR {0} = :none", visitor_state::HIDDEN_REPLIES));
        store.transact(vec![delete.with(":none", number(0))]).await?;
        gone.retain(|_, count| *count > 0);
        Ok(())
    }

    async fn erase_report(&self, comment: CommentId, id: u64) -> Result<bool, Fault> {
        let store = self.store;
        let mut attempts = store.attempts("erasing a report");
        loop {
            attempts.next().await?;
            let Some(report) = store.get::<Report>(&keys::report(comment, id), Reading::Consistent).await? else {
                return Ok(false);
            };
            let comment = store.comment(comment, Reading::Consistent).await?;
            if !report.has_reporter() {
                return Ok(false);
            }
            let Some(comment) = comment else { return Ok(false) };
            if store.transact(without_reporter(&comment, report)?).await? == Outcome::Done {
                return Ok(true);
            }
        }
    }

    async fn erase_from_log(&self, key: Key) -> Result<bool, Fault> {
        let user = number(self.person.user().0);
        let Some(item) = self.store.one_item(&key, Reading::Consistent).await? else { return Ok(false) };
        let mut update = Write::update(key).exists();
        if item.get(log::MODERATOR) == Some(&user) {
            update = update.remove(log::MODERATOR).remove(log::NAME);
        }
        if item.get(log::USER) == Some(&user) {
            update = update.remove(log::USER).remove(log::REJECTS);
        }
        Ok(self.store.update("erasing a person from the log", update).await?.is_some())
    }

    /// Removes the moderator from a rejection, and keeps the rejection.
    async fn erase_moderator(&self, id: CommentId) -> Result<bool, Fault> {
        let store = self.store;
        let mut attempts = store.attempts("erasing who rejected a comment");
        loop {
            attempts.next().await?;
            let comment = store.comment(id, Reading::Consistent).await?;
            let comment = comment.filter(|comment| rejected_by(self.person.user(), comment));
            let Some(stored) = comment.and_then(|comment| comment.rejection) else { return Ok(false) };
            let update = Write::update(keys::comment(id)).still(comment::REJECTION, rejection(Some(&stored))?);
            let update = update.assign(comment::REJECTION, rejection(Some(&stored.without_moderator()))?);
            if store.update("erasing who rejected a comment", update).await?.is_some() {
                return Ok(true);
            }
        }
    }

    /// Removes a mention from a comment, unless another user has the handle. The text stays, but is no longer a link.
    async fn erase_mention(&self, id: CommentId) -> Result<bool, Fault> {
        let store = self.store;
        let mut gone: Vec<String> = self.person.handles().into_iter().collect();
        let others = store.known_handles(gone.clone()).await?;
        gone.retain(|handle| !others.contains(handle));
        let mut attempts = store.attempts("erasing a mention");
        loop {
            attempts.next().await?;
            let Some(comment) = store.comment(id, Reading::Consistent).await? else { return Ok(false) };
            let list = |handles: Vec<&String>| AttributeValue::L(handles.into_iter().map(text).collect());
            let left: Vec<&String> = comment.mentions.iter().filter(|handle| !gone.contains(handle)).collect();
            if left.len() == comment.mentions.len() {
                return Ok(false);
            }
            let before = list(comment.mentions.iter().collect());
            let update = Write::update(keys::comment(id)).still(comment::MENTIONS, Some(before));
            let update = update.assign(comment::MENTIONS, (!left.is_empty()).then(|| list(left)));
            if store.update("erasing a mention", update).await?.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Erases a notification state, except the fact that a guest unsubscribed. Returns false if there is nothing to erase.
async fn erase_notification_state(store: &Store, key: Key) -> Result<bool, Fault> {
    let keep_refusal = |state: &mut NotificationState| state.refusal().map(|refusal| *state = refusal).is_some();
    if let ItemKind::NotificationState(recipient) = ItemKind::of(&key)
        && recipient.is_guest()
        && store.change_notification_state(&recipient, keep_refusal).await?.1
    {
        return Ok(true);
    }
    delete_item(store, key).await
}

/// All keys in the partition of a comment.
async fn keys_of(store: &Store, comment: CommentId) -> Result<Vec<Key>, Fault> {
    let all = Query {
        index: Index::Table(Reading::Consistent),
        partition: keys::comment_partition(comment),
        bounds: None,
        order: Order::OldestFirst,
        limit: usize::MAX,
    };
    Ok(store.query_all(all).await?.iter().filter_map(Key::of).collect())
}

/// Deletes an item. False if it's already gone.
async fn delete_item(store: &Store, key: Key) -> Result<bool, Fault> {
    Ok(store.transact(vec![Write::delete(key).exists()]).await? == Outcome::Done)
}

/// Removes a like from the comment and from `liked_in`, the visitor's item that lists it. Returns false if the like or
/// its comment is gone. A placeholder counts as gone.
async fn erase_like(store: &Store, liked_in: &Key, id: CommentId) -> Result<bool, Fault> {
    let mut attempts = store.attempts("erasing a like");
    loop {
        attempts.next().await?;
        let state: Option<VisitorThreadState> = store.get(liked_in, Reading::Consistent).await?;
        if !state.is_some_and(|state| state.liked.contains(&id.0)) {
            return Ok(false);
        }
        let comment = store.comment(id, Reading::Consistent).await?.filter(|comment| !comment.is_placeholder);
        let mut writes = vec![without_entry(liked_in, visitor_state::LIKED, id)];
        let without_likes = || format!("{} OR attribute_exists({})", absent(), comment::PLACEHOLDER);
        writes.push(match &comment {
            Some(comment) => present(add_likes(comment, -1)),
            None => Write::check(keys::comment(id), without_likes()),
        });
        if store.transact(writes).await? == Outcome::Done {
            return Ok(comment.is_some());
        }
    }
}

/// Removes the reporter from a visitor's report of a comment, and the comment from `reported_in`, the visitor's item
/// that lists it.
async fn erase_report_of(store: &Store, reported_in: &Key, visitor: &Visitor, id: CommentId) -> Result<bool, Fault> {
    let mut attempts = store.attempts("erasing a report");
    loop {
        attempts.next().await?;
        let state: Option<VisitorThreadState> = store.get(reported_in, Reading::Consistent).await?;
        if !state.is_some_and(|state| state.reported.contains(&id.0)) {
            return Ok(false);
        }
        let query = Query {
            index: Index::Table(Reading::Consistent),
            partition: keys::comment_partition(id),
            bounds: Some(keys::reports()),
            order: Order::NewestFirst,
            limit: REPORTS,
        };
        let reports = store.query_all(query).await?.into_iter().map(read).collect::<Result<Vec<Report>, Fault>>()?;
        let report = reports.into_iter().find(|report| report.visitor == *visitor);
        let comment = store.comment(id, Reading::Consistent).await?;
        let found = comment.zip(report);
        let is_found = found.is_some();
        let mut writes = vec![without_entry(reported_in, visitor_state::REPORTED, id)];
        if let Some((comment, report)) = found {
            writes.extend(without_reporter(&comment, report)?);
        }
        if store.transact(writes).await? == Outcome::Done {
            return Ok(is_found);
        }
    }
}

/// Deletes the user, except for the id and the end of a ban in force.
async fn erase_profile(store: &Store, id: UserId, now: Timestamp) -> Result<bool, Fault> {
    const PROFILE: [&str; 11] = [
        user::NAME,
        user::AVATAR,
        user::TOKEN_ISSUED_AT,
        user::LEARNED_AT,
        user::RENAMED_AT,
        user::COMMENTS_AT,
        user::SUBJECT,
        user::ISSUER,
        user::APPROVED,
        user::REJECTED,
        user::ACCOUNT,
    ];
    let mut attempts = store.attempts("erasing a user");
    loop {
        attempts.next().await?;
        let Some(user) = store.user(id, Reading::Consistent).await? else { return Ok(false) };
        let key = keys::user(id);
        let mut writes = match user.present_ban(now) {
            Some(ban) => {
                let ban = serde_dynamo::to_attribute_value(Ban { until: ban.until, reason: None, first: None });
                let ban = ban.map_err(|error| Fault::new("serializing a ban", error))?;
                vec![PROFILE.into_iter().fold(Write::update(key).set(user::BAN, ban), Write::remove)]
            }
            None => {
                let rows = user.ban_id.map(|id| Write::delete(keys::banned(id)));
                std::iter::once(Write::delete(key)).chain(rows).collect()
            }
        };
        writes[0] = as_known(writes[0].clone(), &user);
        if store.transact(writes).await? == Outcome::Done {
            return Ok(true);
        }
    }
}

/// Deletes a handle or a name fragment, unless the user has signed in again.
async fn erase_name(store: &Store, key: Key, id: UserId) -> Result<bool, Fault> {
    let nameless = Write::check(keys::user(id), format!("attribute_not_exists({0})", user::NAME));
    Ok(store.transact(vec![Write::delete(key).exists(), nameless]).await? == Outcome::Done)
}

/// A write that removes a like or a report from a visitor's item, if it's there.
pub(in crate::store) fn without_entry(key: &Key, set: &'static str, id: CommentId) -> Write {
    let entry = Write::update(key.clone()).subtract(set, id_set(id)).when(format!("contains({set}, :id)"));
    entry.with(":id", number(id.0))
}

/// Writes that reduce a report, and its excerpt in the comment, to the reason.
fn without_reporter(comment: &Comment, report: Report) -> Result<Vec<Write>, Fault> {
    let excerpts = |excerpts: &Vec<_>| {
        let excerpts = serde_dynamo::to_attribute_value(excerpts);
        excerpts.map_err(|error| Fault::new("serializing reports", error))
    };
    let (id, visitor) = (report.id, report.visitor.clone());
    let report = report.without_reporter();
    let put = Write::put(write(&keys::report(comment.id, id), &report)?);
    let mut writes = vec![put.still(report::VISITOR, Some(text(visitor.0)))];
    let mut newest = comment.newest_reports.clone();
    if let Some(excerpt) = newest.iter_mut().find(|excerpt| excerpt.id == id) {
        *excerpt = (&report).into();
        let update = Write::update(keys::comment(comment.id)).set(comment::NEWEST_REPORTS, excerpts(&newest)?).exists();
        writes.push(update.still(comment::NEWEST_REPORTS, Some(excerpts(&comment.newest_reports)?)));
    }
    Ok(writes)
}

/// Makes a write conditional on the profile and the ban being unchanged.
fn as_known(write: Write, user: &User) -> Write {
    let write = versions(Some(user)).into_iter().fold(write, |write, (name, value)| write.still(name, value));
    write.still(user::BAN_ID, user.ban_id.map(number))
}
