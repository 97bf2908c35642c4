//! Writes new comments, thread by thread.
//!
//! If an import of a thread is interrupted, the next import with the same plan finishes it. An import with another plan
//! first repairs the data that the interrupted import left.

mod throttle;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::slice;
use std::time::Duration;

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId, UserId, fingerprint};
use shared::domain::thread::Pin;
use shared::domain::time::{Clock, Timestamp};
use shared::error::Fault;
use shared::store::Store;
use shared::store::meter::measure;

use self::throttle::Throttle;
use super::author::Users;
use super::staging::{Placed, Staging, TableError, Target};
use super::time::timestamp;
use crate::store::import::{
    Attached, Imported, ImportedOne, ThreadTotals, Unfinished, WriteMode, begin_import, describe_thread, end_import,
    finish_import, forget_imports, import_batch, import_one, pin_imported, profiles, unfinished_imports,
};
use crate::store::recount::trust::note_shown;
use crate::store::recount::{self, Finding, check_unfinished};
use crate::store::restore::{
    begin_native, end_native, keep_imported_salt, restore_entries, restore_tombstones, restore_users,
};

/// The number of threads that are looked up at once, and of an export's records between two waits for the throttle.
const BATCH: usize = 100;
/// Maximum rounds of checks and repairs. Repairing one item may reveal another finding.
const ROUNDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error(transparent)]
    Occupied(#[from] TableError),
    #[error("{0}: another import is unfinished, and the table changed during the recount; try again")]
    Unsettled(String),
    #[error("id {0} was taken by another comment during the import; try again")]
    Taken(CommentId),
}

pub struct Importer<'a> {
    pub staging: &'a mut Staging,
    /// The store, whose client must meter calls for the rate limit.
    pub store: &'a Store,
    pub users: &'a Users,
    /// The prefix of sources ([`Staging::prefix`]).
    pub prefix: &'a str,
    pub clock: Clock,
    pub table: WriteLimits,
    /// The fingerprint of the source's salt, if it isn't this table's.
    pub other_salt: Option<String>,
}

/// Limits for a table that other processes may be using.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteLimits {
    /// Write units per second; `None` for no limit.
    pub rate: Option<u32>,
    /// A finding counts only if a second check after this time repeats it. Zero if the service isn't running.
    pub recheck: Duration,
}

#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Repairing the data that interrupted imports left in this thread, and perhaps in others.
    Settling(&'a str),
    Written {
        done: u64,
        total: u64,
    },
}

impl Importer<'_> {
    /// Locates all comments and writes the new ones. Call this while holding the lease. Returns the write units spent,
    /// except for repairs and the bookkeeping of threads.
    pub async fn run(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<f64, WriteError> {
        self.staging.locate(Some(self.store), self.prefix).await?;
        self.staging.check_table(self.store).await?;
        if let Some(file) = &self.staging.native {
            begin_native(self.store, file).await?;
        }
        if let Some(thread) = self.unsettled().await? {
            progress(Progress::Settling(&thread));
            self.repair_unfinished().await?;
            self.staging.locate(Some(self.store), self.prefix).await?;
        }
        let units = self.write(progress).await?;
        if self.staging.native.is_some() {
            end_native(self.store).await?;
        }
        Ok(units)
    }

    pub(super) async fn write(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<f64, WriteError> {
        let total = self.staging.count_new();
        let throttle = Throttle::new(self.table.rate);
        let mut run = Run { throttle, written: 0, total, progress };
        self.write_others(&mut run.throttle).await?;
        for number in self.staging.targets() {
            let target = &self.staging.threads.all[number];
            let thread = target.thread.clone();
            if !self.staging.gains(target) && unfinished_imports(self.store, slice::from_ref(&thread)).await?.is_empty()
            {
                continue;
            }
            // Describes the thread first, so that an interrupted import has described every thread that it wrote.
            describe_thread(self.store, &thread, &target.about).await?;
            let mode = begin_import(self.store, &thread, &self.plan(target)).await?;
            for entries in self.staging.entries(target).chunks(BATCH) {
                run.throttle.paced(restore_entries(self.store, &thread, entries)).await?;
            }
            match mode {
                WriteMode::InBatches => self.write_in_batches(number, &thread, &mut run).await?,
                WriteMode::OneByOne => {
                    let opened_at = self.write_one_by_one(number, &mut run).await?;
                    end_import(self.store, &thread, opened_at).await?;
                }
                WriteMode::Unsettled => return Err(WriteError::Unsettled(target.name.clone())),
            }
        }
        Ok(run.throttle.units)
    }

    /// Writes an export's users, tombstones, and threads without comments. Records the salt of its hashes, if that isn't
    /// the table's.
    async fn write_others(&self, throttle: &mut Throttle) -> Result<(), WriteError> {
        if !self.staging.is_export() {
            return Ok(());
        }
        if let Some(other) = &self.other_salt {
            keep_imported_salt(self.store, other).await?;
        }
        for users in self.staging.accounts().chunks(BATCH) {
            throttle.paced(restore_users(self.store, users)).await?;
        }
        for tombstones in self.staging.tombstones().chunks(BATCH) {
            throttle.paced(restore_tombstones(self.store, tombstones)).await?;
        }
        for target in self.staging.silent_threads() {
            throttle.paced(describe_thread(self.store, &target.thread, &target.about)).await?;
        }
        Ok(())
    }

    /// The first thread with an unfinished import under another plan: from another file, with other options, or before
    /// a comment was deleted.
    async fn unsettled(&self) -> Result<Option<String>, WriteError> {
        for some in self.staging.targets().chunks(BATCH) {
            let targets = some.iter().map(|number| &self.staging.threads.all[*number]);
            let threads: Vec<ThreadId> = targets.clone().map(|target| target.thread.clone()).collect();
            let unfinished = unfinished_imports(self.store, &threads).await?;
            for target in targets {
                if let Some(Unfinished::InBatches(plan)) = unfinished.get(&target.thread)
                    && *plan != self.plan(target)
                {
                    return Ok(Some(target.name.clone()));
                }
            }
        }
        Ok(None)
    }

    /// A hash of everything that determines the places of a thread's comments and the thread's counts.
    pub(super) fn plan(&self, target: &Target) -> String {
        self.staging.hash_of_places(target, self.users, format!("{} {}", self.prefix, self.store.embedded()))
    }

    async fn repair_unfinished(&self) -> Result<(), WriteError> {
        for _ in 0..ROUNDS {
            let (threads, mut findings) = check_unfinished(self.store, self.clock.now()).await?;
            findings.retain(Finding::has_repair);
            if !self.table.recheck.is_zero() && !findings.is_empty() {
                tokio::time::sleep(self.table.recheck).await;
                let (_, again) = check_unfinished(self.store, self.clock.now()).await?;
                let again: HashSet<String> = again.iter().map(ToString::to_string).collect();
                findings.retain(|finding| again.contains(&finding.to_string()));
            }
            if findings.is_empty() {
                return Ok(forget_imports(self.store, &threads).await?);
            }
            for finding in &findings {
                recount::repair(self.store, finding).await?;
            }
        }
        Ok(())
    }

    /// Writes the deepest comments first. Comments that an interrupted import wrote are counted, but not written again.
    async fn write_in_batches(&self, target: usize, thread: &ThreadId, run: &mut Run<'_>) -> Result<(), WriteError> {
        let mut totals = ThreadTotals::default();
        for batch in self.staging.batches(&self.staging.threads.all[target]).into_iter().rev() {
            let mut new = Vec::with_capacity(batch.len());
            for placed in self.placed(&batch, run).await? {
                let imported = add(&mut totals, self.imported(&placed), &placed);
                if !placed.is_there {
                    new.push(imported);
                }
            }
            let (written, cost) = measure(import_batch(self.store, &new, self.clock.now())).await;
            written?;
            run.written(new.len() as u64);
            run.throttle.spend(cost.write_units).await;
        }
        Ok(finish_import(self.store, thread, &totals).await?)
    }

    /// The comments of a batch, ready to be written. New comments get the current names and avatars of their users, but
    /// exported comments keep theirs. Also counts users' new approved comments toward the trust in these users.
    async fn placed(&self, batch: &[usize], run: &mut Run<'_>) -> Result<Vec<Placed>, WriteError> {
        let mut all: Vec<Placed> = batch.iter().filter_map(|index| self.staging.placed(*index, self.users)).collect();
        let is_named_here = |placed: &Placed| !placed.is_there && !placed.is_kept();
        let users: BTreeSet<UserId> = all.iter().filter_map(|placed| placed.writer.user).collect();
        let profiles = profiles(self.store, users).await?;
        let mut earning: BTreeMap<UserId, BTreeSet<u64>> = BTreeMap::new();
        for placed in all.iter().filter(|placed| !placed.is_there) {
            let comment = self.comment(placed);
            if let Some(user) = comment.user.filter(|_| comment.earns_trust()) {
                earning.entry(user).or_default().insert(comment.id.0);
            }
        }
        for (user, comments) in earning {
            let known = profiles.get(&user).map(|user| user.trust.clone()).unwrap_or_default();
            run.throttle.paced(note_shown(self.store, user, &known, &comments)).await?;
        }
        for placed in all.iter_mut().filter(|placed| is_named_here(placed)) {
            if let Some(profile) = placed.writer.user.and_then(|user| profiles.get(&user)) {
                placed.writer.take_profile(profile);
            }
        }
        Ok(all)
    }

    /// Writes parents first, because each reply changes its parent. Returns the time of the thread's first top-level
    /// comment in the import that everyone can see.
    async fn write_one_by_one(&mut self, target: usize, run: &mut Run<'_>) -> Result<Option<Timestamp>, WriteError> {
        let mut opened_at = None;
        for batch in self.staging.batches(&self.staging.threads.all[target]) {
            let placed = self.placed(&batch, run).await?;
            let comments = placed.iter().map(|placed| self.comment(placed));
            opened_at = comments.filter_map(|comment| opens(&comment)).chain(opened_at).min();
            for placed in placed.into_iter().filter(|placed| !placed.is_there) {
                self.write_one(placed, run).await?;
            }
        }
        Ok(opened_at)
    }

    async fn write_one(&mut self, mut placed: Placed, run: &mut Run<'_>) -> Result<(), WriteError> {
        loop {
            let attached = self.attached(&placed);
            let comment = attached.counted_in(self.comment(&placed));
            let write = import_one(self.store, &comment, &attached, &placed.provenance, self.clock.now());
            match run.throttle.paced(write).await? {
                ImportedOne::Done => {
                    if let Some(pin) = pin(&placed, &comment) {
                        pin_imported(self.store, &comment.thread, pin).await?;
                    }
                    run.written(1);
                    return Ok(());
                }
                ImportedOne::ParentGone => {
                    self.staging.skip_deleted(placed.index);
                    return Ok(());
                }
                // Another comment has taken the id since it was found free.
                ImportedOne::Taken if placed.is_kept() => return Err(WriteError::Taken(placed.id)),
                ImportedOne::Taken => match self.staging.relocate(self.store, self.prefix, placed.index).await? {
                    Some(id) => placed.id = id,
                    None => return Ok(()),
                },
            }
        }
    }

    /// The reports and counts attached to an exported comment; none for a placeholder.
    fn attached(&self, placed: &Placed) -> Attached {
        if placed.is_kept() && !placed.is_placeholder {
            let mut attached = self.staging.attached(placed.id);
            attached.reports = attached.reports.into_iter().map(|report| self.store.kept_report(report)).collect();
            attached
        } else {
            Attached::default()
        }
    }

    /// The comment without the attributes that depend on its replies.
    fn comment(&self, placed: &Placed) -> Comment {
        let Placed { writer, record, .. } = placed;
        let comment = Comment {
            id: placed.id,
            ancestors: placed.ancestors.clone(),
            source: Some(placed.source(self.prefix)),
            is_placeholder: placed.is_placeholder,
            ..Comment::blank(placed.thread.clone())
        };
        if placed.is_placeholder {
            return comment;
        }
        self.store.kept_comment(placed.restored(Comment {
            user: writer.user,
            name: writer.name.clone(),
            avatar: writer.avatar.clone(),
            address: writer.address.clone(),
            by_moderator: writer.moderator,
            body: record.body.clone(),
            likes: record.likes + placed.voters,
            imported_likes: record.likes,
            edited_at: record.edited_at.map(timestamp),
            state: placed.state.stored(),
            ..comment
        }))
    }

    /// The comment with the attributes that depend on its replies. The oldest replies are inline.
    pub(super) fn imported(&self, placed: &Placed) -> Imported {
        let attached = self.attached(placed);
        let mut comment = attached.counted_in(self.comment(placed));
        let replies = self.staging.replies(placed.index);
        comment.replies = replies.len() as u64;
        if comment.is_top_level() {
            comment.fingerprint = fingerprint(replies.iter().copied());
        }
        if comment.is_top_level() && comment.is_approved() {
            comment.inline = replies.iter().take(self.store.embedded()).map(|reply| reply.0).collect();
        }
        comment.has_separate = replies.len() > comment.inline.len();
        comment.deletion_guard = u64::from(self.staging.has_hidden_replies(placed.index));
        let is_inline = comment.ancestors.len() == 1
            && placed.parent_is_approved
            && placed.rank.is_some_and(|rank| rank <= self.store.embedded());
        let (counts, provenance) = (placed.is_shown && comment.may_count(), placed.provenance.clone());
        Imported { comment, attached, provenance, is_inline, counts }
    }
}

/// Adds a comment to the totals of its thread, and decides whether an unapproved comment is inline.
pub(super) fn add(totals: &mut ThreadTotals, mut imported: Imported, placed: &Placed) -> Imported {
    let comment = &imported.comment;
    totals.counted += u64::from(imported.counts);
    if !comment.is_approved() {
        imported.is_inline = totals.hidden.entry(comment.visitor()).or_default().add(comment);
    } else if comment.is_top_level() {
        totals.parents += 1;
        totals.opened_at = opens(comment).into_iter().chain(totals.opened_at).min();
        totals.pin = totals.pin.into_iter().chain(pin(placed, comment)).min_by_key(|pin| pin.comment);
    }
    imported
}

/// The comment's time, if the comment can open its thread.
fn opens(comment: &Comment) -> Option<Timestamp> {
    (comment.is_approved() && comment.is_top_level()).then(|| comment.id.created_at())
}

/// The pin of a comment that is pinned in the source.
fn pin(placed: &Placed, comment: &Comment) -> Option<Pin> {
    let at = placed.pinned_at().unwrap_or_else(|| comment.id.created_at());
    let is_pinned = placed.record.pinned && comment.is_top_level() && comment.may_count();
    is_pinned.then_some(Pin { comment: comment.id, at })
}

struct Run<'a> {
    throttle: Throttle,
    written: u64,
    total: u64,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Run<'_> {
    fn written(&mut self, comments: u64) {
        self.written += comments;
        (self.progress)(Progress::Written { done: self.written, total: self.total });
    }
}
