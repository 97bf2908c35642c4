//! Writes imported comments in bulk.
//!
//! A thread without comments is written in batches of final items, replies before their parents, so that each item is
//! written only once. Until the thread is complete, a journal item stores a hash of the plan: everything that
//! determines the places and counts. The transaction that adds the thread's counts also deletes the journal item. If
//! an import is interrupted, the next import with the same plan writes the missing items and adds the counts. With
//! another plan (from another file, or after a comment was deleted), the counts would be wrong. In that case, a recount
//! repairs the thread and removes replies without their parents.
//!
//! In a thread with comments, each comment is added in its own transaction, parents first, and counted afterwards. The
//! journal item names the last comment, which may not have been counted if the import was interrupted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, Provenance, SourceId, ThreadId, UserId, Visitor};
use shared::domain::report::{Report, ReportExcerpt, ReportStatus, newest};
use shared::domain::thread::{Pin, Thread};
use shared::domain::time::Timestamp;
use shared::domain::user::User;
use shared::error::Fault;
use shared::store::comments::{creation, item, queues};
use shared::store::counts::RecountTrigger;
use shared::store::keys::{self, Item};
use shared::store::queue::imported_entry;
use shared::store::schema::{PK, comment, count, guest_bound, import_journal, import_lease, thread, visitor_state};
use shared::store::transaction::{Label, Outcome, Write, absent};
use shared::store::{Reading, Store, number, placement, read, stored_number, text, write, yes};

use crate::store::export::GuestCount;
use crate::store::sources::source_row;

/// Lifetime of a lease without a renewal.
const LEASE: Duration = Duration::from_mins(1);
/// Maximum attached items written in a comment's transaction. Leaves room for the transaction's other writes.
const ATTACHED: usize = 80;
/// Maximum visitors in one transaction. Leaves room for the journal.
const VISITORS: usize = 90;

/// A comment in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    pub source: Option<SourceId>,
    pub thread: ThreadId,
    /// Ancestors from the top-level comment down to the direct parent.
    pub ancestors: Vec<CommentId>,
    /// The state, and the time of the last edit.
    pub version: (State, Option<Timestamp>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// [`import_batch`] writes the thread, and then [`finish_import`] adds its counts.
    InBatches,
    /// [`import_one`] writes each comment, and then [`end_import`] ends the import.
    OneByOne,
    /// An import in batches with another plan was interrupted. It must be finished or abandoned first
    /// ([`check_unfinished`](crate::store::recount::check_unfinished)).
    Unsettled,
}

/// The state of a thread in an interrupted import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The hash of the plan.
    InBatches(String),
    /// The last comment, which may not have been counted.
    OneByOne(CommentId),
}

impl Unfinished {
    fn of(journal: &Item) -> Self {
        match u64::try_from(stored_number(journal, import_journal::LAST)) {
            Ok(last) if last > 0 => Self::OneByOne(CommentId(last)),
            _ => Self::InBatches(
                journal.get(import_journal::PLAN).and_then(|plan| plan.as_s().ok()).cloned().unwrap_or_default(),
            ),
        }
    }
}

/// A comment's reports and guest counts, which can't be derived from other items.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    pub reports: Vec<Report>,
    pub bounds: Vec<GuestCount>,
}

impl Attached {
    fn items(&self, comment: CommentId) -> Result<Vec<Item>, Fault> {
        let reports = self.reports.iter().map(|report| write(&keys::report(comment, report.id), report));
        let bounds = self.bounds.iter().map(|bound| {
            let mut item = keys::guest_bound(comment, &bound.network).item();
            item.insert(guest_bound::COUNT.to_owned(), number(bound.count));
            Ok(item)
        });
        reports.chain(bounds).collect()
    }

    /// The comment with the attributes derived from its reports.
    #[must_use]
    pub fn counted_in(&self, comment: Comment) -> Comment {
        let reported = self.reports.iter().any(|report| report.status(&comment.resolutions) == ReportStatus::Pending);
        Comment {
            reports: self.reports.len() as u64,
            reported,
            newest_reports: newest(self.reports.iter().map(ReportExcerpt::from)),
            ..comment
        }
    }
}

/// A comment to write, in its final form.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The comment, with counts that include the replies that the import adds.
    pub comment: Comment,
    pub attached: Attached,
    pub provenance: Provenance,
    pub is_inline: bool,
    /// Whether the thread's count includes the comment: everyone may see it, and it isn't a placeholder.
    pub counts: bool,
}

impl Imported {
    /// All items to write for the comment, except the comment itself.
    fn dependents(&self, now: Timestamp) -> Result<Vec<Item>, Fault> {
        let comment = &self.comment;
        let mut items = self.attached.items(comment.id)?;
        items.extend(source_row(comment, &self.provenance));
        items.extend(self.counts.then(|| keys::counted(&comment.thread, comment.id).item()));
        items.extend(queues(comment).map(|state| keys::queue(state, comment.id).item()));
        items.extend(imported_entry(comment, now));
        let hidden_below = comment.parent().filter(|_| !comment.is_approved());
        items.extend(hidden_below.map(|parent| keys::hidden_reply(parent, comment.id).item()));
        Ok(items)
    }
}

/// Counts of one visitor's unapproved comments in a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    pub parents: u64,
    pub replies: u64,
    pub has_separate: bool,
}

impl Hidden {
    /// Adds an unapproved comment. Returns whether it is inline.
    pub fn add(&mut self, comment: &Comment) -> bool {
        if comment.is_top_level() {
            self.parents += 1;
            return false;
        }
        let is_inline = comment.ancestors.len() == 1 && self.replies < placement::OWN_INLINE;
        self.replies += 1;
        self.has_separate |= !is_inline;
        is_inline
    }
}

/// The counts to add to a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadTotals {
    /// The number of approved top-level comments.
    pub parents: u64,
    /// The time of the first approved top-level comment.
    pub opened_at: Option<Timestamp>,
    /// The number of comments that count in the thread.
    pub counted: u64,
    pub pin: Option<Pin>,
    pub hidden: BTreeMap<Visitor, Hidden>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedOne {
    Done,
    /// Another comment has the id.
    Taken,
    ParentGone,
}

/// Takes or renews the lease. False if another process holds it.
pub async fn lease_import(store: &Store, holder: &str, now: Timestamp) -> Result<bool, Fault> {
    let lease = Write::update(keys::import_lease())
        .set(import_lease::HOLDER, text(holder))
        .set(import_lease::EXPIRES, number((now + LEASE).seconds()))
        .when(format!(
            "attribute_not_exists({0}) OR {0} = :{0} OR {1} < :now",
            import_lease::HOLDER,
            import_lease::EXPIRES
        ))
        .with(":now", number(now.seconds()));
    Ok(store.update("leasing imports", lease).await?.is_some())
}

pub async fn end_import_lease(store: &Store, holder: &str) -> Result<(), Fault> {
    let end = Write::delete(keys::import_lease()).still(import_lease::HOLDER, Some(text(holder)));
    store.transact(vec![end]).await.map(drop)
}

pub async fn occupants(store: &Store, ids: &[CommentId]) -> Result<HashMap<CommentId, Occupant>, Fault> {
    let items = store.batch_get(ids.iter().map(|id| keys::comment(*id)).collect(), Reading::Consistent).await?;
    let occupants = items.into_values().map(|item| {
        let comment: Comment = read(item)?;
        let version = (comment.state, comment.edited_at);
        let Comment { id, source, thread, ancestors, .. } = comment;
        Ok((id, Occupant { source, thread, ancestors, version }))
    });
    occupants.collect()
}

/// The users with these ids. Ids without a user are left out.
pub async fn profiles(store: &Store, ids: BTreeSet<UserId>) -> Result<HashMap<UserId, User>, Fault> {
    let items = store.batch_get(ids.into_iter().map(keys::user).collect(), Reading::Consistent).await?;
    let profiles = items.into_values().map(|item| read::<User>(item).map(|user| (user.id, user)));
    profiles.collect()
}

pub async fn unfinished_imports(store: &Store, threads: &[ThreadId]) -> Result<HashMap<ThreadId, Unfinished>, Fault> {
    let keys = threads.iter().map(keys::import_journal).collect();
    let found = store.batch_get(keys, Reading::Consistent).await?;
    let unfinished =
        |thread: &ThreadId| Some((thread.clone(), Unfinished::of(found.get(&keys::import_journal(thread))?)));
    Ok(threads.iter().filter_map(unfinished).collect())
}

/// Whether the thread has ever stored a count of approved top-level comments, even if it's 0 now.
pub async fn has_begun(store: &Store, thread: &ThreadId) -> Result<bool, Fault> {
    let stored = store.one_item(&keys::thread(thread), Reading::Consistent).await?;
    Ok(stored.is_some_and(|thread| thread.contains_key(thread::PARENTS)))
}

/// Begins to write a thread, or resumes an interrupted import. `plan` is a hash of everything that determines the
/// places of the comments and the thread's counts.
pub async fn begin_import(store: &Store, thread: &ThreadId, plan: &str) -> Result<WriteMode, Fault> {
    let (journal, stored, count) = (keys::import_journal(thread), keys::thread(thread), keys::count(thread));
    let mut attempts = store.attempts("beginning to import a thread");
    loop {
        attempts.next().await?;
        let keys = vec![journal.clone(), stored.clone(), count.clone()];
        let found = store.batch_get(keys, Reading::Consistent).await?;
        match found.get(&journal).map(Unfinished::of) {
            Some(Unfinished::InBatches(of)) if of == plan => return Ok(WriteMode::InBatches),
            Some(Unfinished::InBatches(_)) => return Ok(WriteMode::Unsettled),
            Some(Unfinished::OneByOne(last)) => {
                store.recount_comment(thread, last, RecountTrigger::Walk).await?;
                return Ok(WriteMode::OneByOne);
            }
            None => {}
        }
        let parents = found.get(&stored).map_or(0, |thread| stored_number(thread, thread::PARENTS));
        if found.contains_key(&count) || parents != 0 {
            return Ok(WriteMode::OneByOne);
        }
        let begin = Write::update(journal.clone()).set(import_journal::PLAN, text(plan)).when(absent());
        let writes = vec![
            begin,
            Write::check(count.clone(), absent()),
            Write::check(stored.clone(), format!("attribute_not_exists({0}) OR {0} = :none", thread::PARENTS))
                .with(":none", number(0)),
        ];
        if store.transact(writes).await? == Outcome::Done {
            return Ok(WriteMode::InBatches);
        }
    }
}

/// Abandons interrupted [`WriteMode::InBatches`] imports of these threads. Call this after a recount has repaired their
/// data.
pub async fn forget_imports(store: &Store, threads: &[ThreadId]) -> Result<(), Fault> {
    for thread in threads {
        store.transact(vec![Write::delete(keys::import_journal(thread))]).await?;
    }
    Ok(())
}

/// Ends an import that wrote comments one by one. `opened_at` is the time of the first imported top-level comment that
/// everyone can see.
pub async fn end_import(store: &Store, thread: &ThreadId, opened_at: Option<Timestamp>) -> Result<(), Fault> {
    open_earlier(store, thread, opened_at).await?;
    store.transact(vec![Write::delete(keys::import_journal(thread))]).await.map(drop)
}

/// Writes comments of a thread after [`begin_import`]. Parents must be in later batches than their replies. A comment
/// is written after its dependent items, so that every stored comment has all of them.
pub async fn import_batch(store: &Store, comments: &[Imported], now: Timestamp) -> Result<(), Fault> {
    let dependents = comments.iter().map(|imported| imported.dependents(now)).collect::<Result<Vec<_>, _>>()?;
    put_all(store, dependents.into_iter().flatten()).await?;
    let items = comments.iter().map(|imported| item(&imported.comment, imported.is_inline));
    put_all(store, items.collect::<Result<Vec<_>, _>>()?).await
}

pub(super) async fn put_all(store: &Store, items: impl IntoIterator<Item = Item>) -> Result<(), Fault> {
    let put = |item| {
        let put = PutRequest::builder().set_item(Some(item)).build();
        let put = put.map_err(|error| Fault::new("writing imported comments", error))?;
        Ok(WriteRequest::builder().put_request(put).build())
    };
    store.write_all(items.into_iter().map(put).collect::<Result<Vec<_>, Fault>>()?).await
}

/// Adds the counts of a thread, once all its comments are written.
pub async fn finish_import(store: &Store, thread: &ThreadId, totals: &ThreadTotals) -> Result<(), Fault> {
    open_earlier(store, thread, totals.opened_at).await?;
    let visitors: Vec<_> = totals.hidden.iter().collect();
    for (done, visitors) in visitors.chunks(VISITORS).enumerate() {
        let journal = Write::update(keys::import_journal(thread)).set(import_journal::VISITORS, number(done + 1));
        let journal = journal.still(import_journal::VISITORS, (done > 0).then(|| number(done)));
        let counts = visitors.iter().map(|(visitor, hidden)| gain_hidden(visitor, thread, hidden));
        // If the condition fails, an interrupted import has already added these counts.
        store.transact(std::iter::once(journal).chain(counts).collect()).await?;
    }
    let mut attempts = store.attempts("adding the counts of an import");
    loop {
        attempts.next().await?;
        let stored = store.one_item(&keys::thread(thread), Reading::Consistent).await?;
        let has_pin = stored.is_some_and(|thread| thread.contains_key(thread::PIN));
        let pin = match totals.pin.filter(|_| !has_pin) {
            Some(pin) => store.comment(pin.comment, Reading::Consistent).await?.filter(Comment::may_count).map(|_| pin),
            None => None,
        };
        match store.transact(finish(thread, totals, pin)?).await? {
            Outcome::Failed(failed) if failed.includes(Label::Pin) => {}
            // If only the journal is missing, an earlier attempt has already added the counts.
            Outcome::Done | Outcome::Failed(_) => return Ok(()),
        }
    }
}

/// Sets the time when the thread was opened, unless it was opened earlier.
async fn open_earlier(store: &Store, thread: &ThreadId, at: Option<Timestamp>) -> Result<(), Fault> {
    let Some(at) = at else { return Ok(()) };
    let update = Write::update(keys::thread(thread)).set(thread::OPENED_AT, number(at.0));
    let update = update.when(format!("attribute_not_exists({0}) OR {0} > :{0}", thread::OPENED_AT));
    store.update("opening a thread earlier", update).await.map(drop)
}

/// Adds a comment to a thread that may already have comments.
pub async fn import_one(
    store: &Store,
    comment: &Comment,
    attached: &Attached,
    provenance: &Provenance,
    now: Timestamp,
) -> Result<ImportedOne, Fault> {
    let mut attached = attached.items(comment.id)?;
    put_all(store, attached.split_off(ATTACHED.min(attached.len()))).await?;
    let mut attempts = store.attempts("importing a comment");
    loop {
        let is_again = attempts.next().await?;
        if is_again && let Some(occupant) = occupants(store, &[comment.id]).await?.remove(&comment.id) {
            if occupant.source != comment.source {
                return Ok(ImportedOne::Taken);
            }
            break;
        }
        let parent = match comment.parent() {
            None => None,
            Some(parent) => match store.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? {
                None => return Ok(ImportedOne::ParentGone),
                parent => parent,
            },
        };
        let (_, visitor_state) = store.thread_and_visitor_state(&comment.thread, &comment.visitor().into()).await?;
        let mut writes = creation(comment, parent.as_ref(), &visitor_state, store.embedded())?;
        let entries = source_row(comment, provenance).into_iter().chain(imported_entry(comment, now));
        writes.extend(attached.iter().cloned().chain(entries).map(Write::put));
        // `creation` doesn't add an approved comment to any queue.
        let queues = queues(comment).filter(|_| comment.is_approved());
        writes.extend(queues.map(|state| Write::put(keys::queue(state, comment.id).item())));
        writes
            .push(Write::update(keys::import_journal(&comment.thread)).set(import_journal::LAST, number(comment.id.0)));
        if store.transact(writes).await? == Outcome::Done {
            break;
        }
    }
    store.recount_comment(&comment.thread, comment.id, RecountTrigger::Walk).await?;
    Ok(ImportedOne::Done)
}

/// Pins a comment, unless the thread already has a pin or the comment may not be pinned.
pub async fn pin_imported(store: &Store, thread: &ThreadId, pin: Pin) -> Result<(), Fault> {
    store.transact(pinning(Write::update(keys::thread(thread)), pin)?).await.map(drop)
}

/// Sets attributes that the thread doesn't have yet.
pub async fn describe_thread(store: &Store, thread: &ThreadId, about: &Thread) -> Result<(), Fault> {
    let stored = store.thread(thread, Reading::Consistent).await?;
    let new = |stored: &Option<String>, given: &Option<String>| given.clone().filter(|_| stored.is_none()).map(text);
    let author = about.author.filter(|_| stored.author.is_none()).map(|author| number(author.0));
    let missing = [
        (thread::TITLE, new(&stored.title, &about.title)),
        (thread::URL, new(&stored.url, &about.url)),
        (thread::AUTHOR, author),
        (thread::CLOSED, about.closed.filter(|_| stored.closed.is_none()).map(AttributeValue::Bool)),
    ];
    let missing = missing.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let update = missing.fold(Write::update(keys::thread(thread)), |update, (name, value)| update.set(name, value));
    if update.has_changes() {
        store.update("describing a thread", update).await?;
    }
    Ok(())
}

/// Writes that add the thread's counts and pin, and finish the import.
fn finish(thread: &ThreadId, totals: &ThreadTotals, pin: Option<Pin>) -> Result<Vec<Write>, Fault> {
    let gain = Write::update(keys::thread(thread)).add(thread::PARENTS, number(totals.parents));
    let mut writes = vec![
        Write::delete(keys::import_journal(thread)).exists(),
        Write::update(keys::count(thread)).add(count::COUNT, number(totals.counted)),
    ];
    match pin {
        Some(pin) => writes.extend(pinning(gain, pin)?),
        None => writes.push(gain),
    }
    Ok(writes)
}

/// Adds a pin to an update of a thread. The writes fail if the thread has a pin, or if this comment may not be pinned.
fn pinning(thread: Write, pin: Pin) -> Result<Vec<Write>, Fault> {
    let value = serde_dynamo::to_attribute_value(pin).map_err(|error| Fault::new("serializing a pin", error))?;
    let may_be_pinned = format!(
        "attribute_exists({0}) AND attribute_not_exists({1}) AND attribute_not_exists({2})",
        PK,
        comment::STATE,
        comment::PLACEHOLDER
    );
    let comment = Write::check(keys::comment(pin.comment), may_be_pinned);
    Ok(vec![thread.set(thread::PIN, value).still(thread::PIN, None).label(Label::Pin), comment.label(Label::Pin)])
}

/// A write that adds a visitor's unapproved comments to the visitor's counts.
fn gain_hidden(visitor: &Visitor, thread: &ThreadId, hidden: &Hidden) -> Write {
    let gain = Write::update(keys::visitor_state(visitor, thread));
    let gain = gain
        .add(visitor_state::HIDDEN_PARENTS, number(hidden.parents))
        .add(visitor_state::HIDDEN_REPLIES, number(hidden.replies));
    if hidden.has_separate { gain.set(visitor_state::HIDDEN_SEPARATE, yes()) } else { gain }
}
