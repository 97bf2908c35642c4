//! Writes imported comments in bulk.
//!
//! A thread without comments is written in batches of final items, replies before their parents, at the price of the items
//! alone. A journal item says that this is under way, with a hash of the plan: of everything that the items and the counts
//! follow from. The transaction that adds the thread's counts deletes it. When an import ends early, the next one with the
//! same plan writes the items that are missing and adds the counts. Another plan, of another file or after a comment was
//! deleted, would add wrong counts: then a recount puts the thread in order, and replies without their parents go.
//!
//! A thread with comments gains each comment in a transaction, parents first, and is counted comment by comment. The journal
//! item names the last one, which may not have been counted if an import ended early.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use shared::domain::comment::Comment;
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

/// How long a lease holds.
const LEASE: Duration = Duration::from_mins(1);
/// Reports and the like that are written in the transaction of their comment, with room for its other writes.
const ATTACHED: usize = 80;
/// Visitors in one transaction, with room for the journal.
const VISITORS: usize = 90;

/// A comment that exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    pub source: Option<SourceId>,
    pub thread: ThreadId,
    /// Ancestors from the top-level comment down to the direct parent.
    pub ancestors: Vec<CommentId>,
    /// The writer; `None` for placeholders.
    pub visitor: Visitor,
    pub is_placeholder: bool,
}

/// How the comments of a thread are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// [`import_batch`] writes it, and then [`finish_import`].
    InBatches,
    /// [`import_one`] writes it, and then [`end_import`].
    OneByOne,
    /// Not yet: an import in batches with another plan ended early. It must be finished or given up first
    /// ([`check_unfinished`](crate::store::recount::check_unfinished)).
    Unsettled,
}

/// The state of a thread in an import that ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It has this plan.
    InBatches(String),
    /// This is the last comment, which may not be counted.
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

/// The items in the partition of a comment that do not follow from others.
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

    /// The comment with the attributes that follow from its reports.
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

/// A comment in its final form.
#[derive(Clone, Debug)]
pub struct Imported {
    /// It counts all that the import adds below it.
    pub comment: Comment,
    pub attached: Attached,
    pub provenance: Provenance,
    /// Whether a reply is inline.
    pub is_inline: bool,
    /// It is approved, with nothing hidden above it.
    pub counts: bool,
}

impl Imported {
    /// The items other than the comment's own.
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

/// Unapproved comments of one visitor.
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

/// The counts that a thread gains.
#[derive(Clone, Debug, Default)]
pub struct ThreadTotals {
    /// Approved top-level comments.
    pub parents: u64,
    /// When the first of them was written.
    pub opened_at: Option<Timestamp>,
    /// Comments that count.
    pub counted: u64,
    pub pin: Option<Pin>,
    pub hidden: BTreeMap<Visitor, Hidden>,
}

/// The result of writing a single comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedOne {
    Done,
    /// Another comment has the id.
    Taken,
    ParentGone,
}

/// Takes or renews the lease. False when another importer holds it.
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

/// The comments with these ids.
pub async fn occupants(store: &Store, ids: &[CommentId]) -> Result<HashMap<CommentId, Occupant>, Fault> {
    let items = store.batch_get(ids.iter().map(|id| keys::comment(*id)).collect(), Reading::Consistent).await?;
    let occupants = items.into_values().map(|item| {
        let comment: Comment = read(item)?;
        let visitor = comment.visitor();
        let Comment { id, source, thread, ancestors, is_placeholder, .. } = comment;
        Ok((id, Occupant { source, thread, ancestors, visitor, is_placeholder }))
    });
    occupants.collect()
}

/// The users among these that are known.
pub async fn profiles(store: &Store, ids: BTreeSet<UserId>) -> Result<HashMap<UserId, User>, Fault> {
    let items = store.batch_get(ids.into_iter().map(keys::user).collect(), Reading::Consistent).await?;
    let profiles = items.into_values().map(|item| read::<User>(item).map(|user| (user.id, user)));
    profiles.collect()
}

/// The threads among these that an import has not finished, and how it wrote them.
pub async fn unfinished_imports(store: &Store, threads: &[ThreadId]) -> Result<HashMap<ThreadId, Unfinished>, Fault> {
    let keys = threads.iter().map(keys::import_journal).collect();
    let found = store.batch_get(keys, Reading::Consistent).await?;
    let unfinished =
        |thread: &ThreadId| Some((thread.clone(), Unfinished::of(found.get(&keys::import_journal(thread))?)));
    Ok(threads.iter().filter_map(unfinished).collect())
}

/// Whether everyone has ever seen a top-level comment of the thread, even if none is left.
pub async fn has_begun(store: &Store, thread: &ThreadId) -> Result<bool, Fault> {
    let stored = store.one_item(&keys::thread(thread), Reading::Consistent).await?;
    Ok(stored.is_some_and(|thread| thread.contains_key(thread::PARENTS)))
}

/// Begins to write a thread, or continues after an import that ended early. `plan` is a hash of all that the comments and
/// their counts follow from.
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

/// Gives up imports in batches of these threads, when a recount has put their leftovers in order.
pub async fn forget_imports(store: &Store, threads: &[ThreadId]) -> Result<(), Fault> {
    for thread in threads {
        store.transact(vec![Write::delete(keys::import_journal(thread))]).await?;
    }
    Ok(())
}

/// Ends an import of comments one by one. `opened_at` is when the first comment was written that it showed in the thread.
pub async fn end_import(store: &Store, thread: &ThreadId, opened_at: Option<Timestamp>) -> Result<(), Fault> {
    open_earlier(store, thread, opened_at).await?;
    store.transact(vec![Write::delete(keys::import_journal(thread))]).await.map(drop)
}

/// Writes comments of a thread that [`begin_import`] began. The parents of one batch are in a later one. A comment is written
/// after its other items, so that every stored comment has all of them.
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

/// Adds the counts of a thread whose comments are all written.
pub async fn finish_import(store: &Store, thread: &ThreadId, totals: &ThreadTotals) -> Result<(), Fault> {
    open_earlier(store, thread, totals.opened_at).await?;
    let visitors: Vec<_> = totals.hidden.iter().collect();
    for (done, visitors) in visitors.chunks(VISITORS).enumerate() {
        let journal = Write::update(keys::import_journal(thread)).set(import_journal::VISITORS, number(done + 1));
        let journal = journal.still(import_journal::VISITORS, (done > 0).then(|| number(done)));
        let counts = visitors.iter().map(|(visitor, hidden)| gain_hidden(visitor, thread, hidden));
        // When the condition fails, an earlier import has written these.
        store.transact(std::iter::once(journal).chain(counts).collect()).await?;
    }
    let mut attempts = store.attempts("adding the counts of an import");
    loop {
        attempts.next().await?;
        let stored = store.one_item(&keys::thread(thread), Reading::Consistent).await?;
        let has_pin = stored.is_some_and(|thread| thread.contains_key(thread::PIN));
        let pin = match totals.pin.filter(|_| !has_pin) {
            Some(pin)
                if store
                    .comment(pin.comment, Reading::Consistent)
                    .await?
                    .is_some_and(|comment| comment.may_count()) =>
            {
                Some(pin)
            }
            _ => None,
        };
        match store.transact(finish(thread, totals, pin)?).await? {
            Outcome::Failed(failed) if failed.includes(Label::Pin) => {}
            // When only the journal is gone, an earlier attempt has added the counts.
            Outcome::Done | Outcome::Failed(_) => return Ok(()),
        }
    }
}

/// The thread began at this time, unless it began earlier.
async fn open_earlier(store: &Store, thread: &ThreadId, at: Option<Timestamp>) -> Result<(), Fault> {
    let Some(at) = at else { return Ok(()) };
    let update = Write::update(keys::thread(thread)).set(thread::OPENED_AT, number(at.0));
    let update = update.when(format!("attribute_not_exists({0}) OR {0} > :{0}", thread::OPENED_AT));
    store.update("opening a thread earlier", update).await.map(drop)
}

/// Adds a comment to a thread as it is now.
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
        // A comment that is created is in no queue once it is approved.
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

/// Pins a comment of the thread, if none is pinned.
pub async fn pin_imported(store: &Store, thread: &ThreadId, pin: Pin) -> Result<(), Fault> {
    store.transact(pinning(Write::update(keys::thread(thread)), pin)?).await.map(drop)
}

/// Sets the attributes of a record that the host application has not set itself.
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
    let update = Write::update(keys::thread(thread));
    let update = missing.into_iter().fold(update, |update, (name, value)| match value {
        Some(value) => update.set(name, value),
        None => update,
    });
    if update.has_changes() {
        store.update("describing a thread", update).await?;
    }
    Ok(())
}

/// The thread gains its counts and the pin, and the import is finished.
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

/// A change of a thread that also pins a comment. It fails when another one is pinned, or this one may not be.
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

/// A visitor gains unapproved comments.
fn gain_hidden(visitor: &Visitor, thread: &ThreadId, hidden: &Hidden) -> Write {
    let gain = Write::update(keys::visitor_state(visitor, thread));
    let gain = gain
        .add(visitor_state::HIDDEN_PARENTS, number(hidden.parents))
        .add(visitor_state::HIDDEN_REPLIES, number(hidden.replies));
    if hidden.has_separate { gain.set(visitor_state::HIDDEN_SEPARATE, yes()) } else { gain }
}
