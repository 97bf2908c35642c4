//! Writes what is new, thread after thread.
//!
//! An import that ended early is finished by the next one with the same plan for the thread. What another plan has left is
//! put in order first.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem;
use std::slice;
use std::time::Duration;

use rusqlite::{Row, params};
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, ThreadId, UserId, fingerprint, sha256_hex};
use shared::domain::thread::{Pin, Thread, imported_address, imported_title};
use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::Store;
use shared::store::import::{Imported, ImportedOne, ThreadTotals, Unfinished, Way};
use shared::store::meter::measure;
use shared::store::recount::Finding;
use tokio::time::Instant;

use super::author::Users;
use super::locate::LocateError;
use super::record;
use super::scratch::{Planned, Scratch, json, thread_id};

/// Comments between two writes.
const BATCH: usize = 100;
/// Repairing one thing may reveal another.
const ROUNDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the scratch file: {0}")]
    Scratch(#[from] rusqlite::Error),
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error(transparent)]
    Locate(#[from] LocateError),
    #[error(
        "{0}: an import of other comments was not finished, and the table changes while it is recounted; try again"
    )]
    Unsettled(String),
}

pub struct Writer<'a> {
    pub scratch: &'a Scratch,
    /// With a client that meters its calls, for the rate.
    pub store: &'a Store,
    pub users: &'a Users,
    /// What sources begin with ([`Scratch::prefix`]).
    pub prefix: &'a str,
    /// Replies of a parent that are embedded in lists.
    pub embedded: usize,
    pub clock: Clock,
    pub table: Pace,
    /// The fingerprint of another salt under which the hashes of the source were made.
    pub other_salt: Option<String>,
}

/// How to treat a table that others may be using.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Write units a second; as fast as possible without.
    pub rate: Option<u32>,
    /// What a recount finds must still be there after this time. Zero when nobody else writes.
    pub recheck: Duration,
}

/// How far an import has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// What another import has left in a thread is put in order.
    Settling(&'a str),
    /// Comments.
    Written { done: u64, total: u64 },
}

impl Writer<'_> {
    /// Locates all comments, and writes those that are new. To be called while the lease is held. Returns the write units
    /// that the comments took.
    pub async fn run(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<f64, WriteError> {
        self.locate().await?;
        if let Some(thread) = self.unsettled().await? {
            progress(Progress::Settling(&thread));
            self.repair_unfinished().await?;
            self.locate().await?;
        }
        self.write(progress).await
    }

    async fn locate(&self) -> Result<(), WriteError> {
        Ok(self.scratch.locate(Some(self.store), self.prefix).await?)
    }

    pub(super) async fn write(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<f64, WriteError> {
        let total = self.scratch.count_new()?;
        let mut course = Course { start: Instant::now(), units: 0.0, written: 0, total, progress };
        self.write_around(&mut course).await?;
        for Target { name, thread, gains } in self.scratch.targets()? {
            if !gains && self.unfinished(slice::from_ref(&thread)).await?.is_empty() {
                continue;
            }
            // First, so that an import which ends early has described what it wrote.
            self.store.describe_thread(&thread, &self.scratch.about(&name)?).await?;
            let way = self.store.begin_import(&thread, &self.plan(&name)?).await?;
            if way == Way::Unsettled {
                return Err(WriteError::Unsettled(name));
            }
            self.write_entries(&name, &thread, &mut course).await?;
            match way {
                Way::InBatches => self.write_in_batches(&name, &thread, &mut course).await?,
                Way::OneByOne => {
                    self.write_one_by_one(&name, &mut course).await?;
                    self.store.end_import(&thread).await?;
                }
                Way::Unsettled => return Err(WriteError::Unsettled(name)),
            }
        }
        Ok(course.units)
    }

    /// The first thread that an import with another plan has not finished: of another file, with other options, or before a
    /// comment was deleted.
    async fn unsettled(&self) -> Result<Option<String>, WriteError> {
        for targets in self.scratch.targets()?.chunks(BATCH) {
            let threads: Vec<ThreadId> = targets.iter().map(|target| target.thread.clone()).collect();
            let unfinished = self.unfinished(&threads).await?;
            for Target { name, thread, .. } in targets {
                if let Some(Unfinished::InBatches(plan)) = unfinished.get(thread)
                    && *plan != self.plan(name)?
                {
                    return Ok(Some(name.clone()));
                }
            }
        }
        Ok(None)
    }

    async fn unfinished(&self, threads: &[ThreadId]) -> Result<HashMap<ThreadId, Unfinished>, WriteError> {
        Ok(self.store.unfinished_imports(threads).await?)
    }

    /// A hash of what the comments of a thread, and its counts, follow from.
    pub(super) fn plan(&self, target: &str) -> Result<String, WriteError> {
        let mut hash = format!("{} {}", self.prefix, self.embedded);
        self.scratch.each_place(target, self.users, |place| hash = sha256_hex(&(mem::take(&mut hash) + &place)))?;
        Ok(hash)
    }

    /// Puts in order what imports that ended early have left in the table.
    async fn repair_unfinished(&self) -> Result<(), WriteError> {
        for _ in 0..ROUNDS {
            let (threads, mut findings) = self.store.check_unfinished(self.clock.now()).await?;
            findings.retain(Finding::has_repair);
            if !self.table.recheck.is_zero() && !findings.is_empty() {
                tokio::time::sleep(self.table.recheck).await;
                let (_, again) = self.store.check_unfinished(self.clock.now()).await?;
                let again: HashSet<String> = again.iter().map(ToString::to_string).collect();
                findings.retain(|finding| again.contains(&finding.to_string()));
            }
            if findings.is_empty() {
                return Ok(self.store.forget_imports(&threads).await?);
            }
            for finding in &findings {
                self.store.repair(finding).await?;
            }
        }
        Ok(())
    }

    /// Deepest comments first. Those that an import which ended early has written count, and are not written again.
    async fn write_in_batches(
        &self,
        target: &str,
        thread: &ThreadId,
        course: &mut Course<'_>,
    ) -> Result<(), WriteError> {
        let mut totals = ThreadTotals::default();
        let mut page = self.scratch.first_page(Direction::RepliesFirst);
        loop {
            let located = self.page(target, &mut page).await?;
            if located.is_empty() {
                break;
            }
            let mut batch = Vec::with_capacity(located.len());
            for located in located {
                let imported = add(&mut totals, self.imported(&located)?, &located);
                if !located.is_there {
                    batch.push(imported);
                }
            }
            let (written, cost) = measure(self.store.import_batch(&batch)).await;
            written?;
            course.written(batch.len() as u64);
            self.pace(course, cost.write_units).await;
        }
        Ok(self.store.finish_import(thread, &totals).await?)
    }

    /// The next comments of a thread. Those that are new have the present names of their users, but for those of an export,
    /// which stay as they were.
    async fn page(&self, target: &str, page: &mut Page) -> Result<Vec<Located>, WriteError> {
        let mut all = self.scratch.page(target, page, self.users)?;
        let is_named_here = |located: &Located| !located.is_there && located.planned.kept.is_none();
        let new = all.iter().filter(|located| is_named_here(located));
        let users: BTreeSet<UserId> = new.filter_map(|located| located.planned.writer.user).collect();
        let profiles = self.store.profiles(users).await?;
        for Located { planned, .. } in all.iter_mut().filter(|located| is_named_here(located)) {
            if let Some(profile) = planned.writer.user.and_then(|user| profiles.get(&user)) {
                planned.writer.take_profile(profile);
            }
        }
        Ok(all)
    }

    /// Parents first, because each reply changes its parent.
    async fn write_one_by_one(&self, target: &str, course: &mut Course<'_>) -> Result<(), WriteError> {
        let mut page = self.scratch.first_page(Direction::ParentsFirst);
        loop {
            let located = self.page(target, &mut page).await?;
            if located.is_empty() {
                return Ok(());
            }
            for located in located.into_iter().filter(|located| !located.is_there) {
                self.write_one(located, course).await?;
            }
        }
    }

    async fn write_one(&self, mut located: Located, course: &mut Course<'_>) -> Result<(), WriteError> {
        loop {
            let (attached, provenance) = (self.attached(&located)?, located.planned.provenance());
            let comment = attached.counted_in(self.comment(&located));
            let (written, cost) = measure(self.store.import_one(&comment, &attached, &provenance)).await;
            self.pace(course, cost.write_units).await;
            match written? {
                ImportedOne::Done => {
                    if let Some(pin) = pin(&located, &comment) {
                        self.store.pin_imported(&comment.thread, pin).await?;
                    }
                    course.written(1);
                    return Ok(());
                }
                ImportedOne::ParentGone => {
                    return Ok(self.scratch.drop_planned(located.planned.seq, "skipped", "deleted")?);
                }
                // Another comment was given the id since it was found free.
                ImportedOne::Taken if located.planned.kept.is_some() => {
                    return Ok(self.scratch.refuse_taken(located.planned.seq)?);
                }
                ImportedOne::Taken => {
                    match self.scratch.relocate(self.store, self.prefix, located.planned.seq).await? {
                        Some(id) => located.id = id,
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    /// Waits until so many units may have been spent.
    pub(super) async fn pace(&self, course: &mut Course<'_>, units: f64) {
        course.units += units;
        let Some(rate) = self.table.rate else { return };
        let due = Duration::from_secs_f64(course.units / f64::from(rate));
        tokio::time::sleep(due.saturating_sub(course.start.elapsed())).await;
    }

    /// Without replies.
    fn comment(&self, located: &Located) -> Comment {
        let Planned { writer, .. } = &located.planned;
        let planned = &located.planned;
        let comment = Comment {
            id: located.id,
            ancestors: located.ancestors.clone(),
            source: Some(planned.source(located, self.prefix)),
            likes: planned.likes + planned.voters,
            imported_likes: planned.likes,
            ..Comment::blank(planned.thread.clone())
        };
        if planned.is_placeholder {
            return planned.restored(Comment { is_placeholder: true, ..comment });
        }
        planned.restored(Comment {
            user: writer.user,
            name: writer.name.clone(),
            avatar: writer.avatar.clone(),
            by_moderator: writer.moderator,
            body: planned.body.clone(),
            edited_at: planned.edited_at.map(jiff::Timestamp::as_millisecond),
            state: match planned.state {
                record::State::Pending => State::Pending,
                record::State::Rejected => State::Rejected,
                _ => State::Approved,
            },
            ..comment
        })
    }

    /// With its replies, of which the oldest are inline.
    pub(super) fn imported(&self, located: &Located) -> Result<Imported, WriteError> {
        let attached = self.attached(located)?;
        let mut comment = attached.counted_in(self.comment(located));
        let replies = self.scratch.replies(located.planned.seq)?;
        comment.replies = replies.len() as u64;
        if comment.is_top_level() {
            comment.fingerprint = fingerprint(replies.iter().copied());
        }
        if comment.is_top_level() && comment.is_approved() {
            comment.inline = replies.iter().take(self.embedded).map(|reply| reply.0).collect();
        }
        comment.has_separate = replies.len() > comment.inline.len();
        let is_inline = comment.ancestors.len() == 1
            && located.parent_is_approved
            && located.rank.is_some_and(|rank| rank <= self.embedded);
        let (counts, provenance) = (located.is_shown && comment.may_count(), located.planned.provenance());
        Ok(Imported { counts, is_inline, attached, provenance, comment })
    }
}

/// Adds a comment to what its thread gains.
pub(super) fn add(totals: &mut ThreadTotals, mut imported: Imported, located: &Located) -> Imported {
    let comment = &imported.comment;
    totals.counted += u64::from(imported.counts);
    if !comment.is_approved() {
        imported.is_inline = totals.hidden.entry(comment.visitor()).or_default().add(comment);
    } else if comment.is_top_level() {
        totals.parents += 1;
        totals.pin = totals.pin.or_else(|| pin(located, comment));
    }
    imported
}

/// The pin of a comment that is pinned in the source.
fn pin(located: &Located, comment: &Comment) -> Option<Pin> {
    let at = located.planned.pinned_at().unwrap_or_else(|| comment.id.created_at());
    let is_pinned = located.planned.pinned && comment.is_top_level() && comment.may_count();
    is_pinned.then_some(Pin { comment: comment.id, at: at.0 })
}

/// A comment with its id.
pub struct Located {
    pub planned: Planned,
    pub id: CommentId,
    /// From the top-level comment down.
    pub ancestors: Vec<CommentId>,
    /// Everyone may see it and all above it.
    pub is_shown: bool,
    pub parent_is_approved: bool,
    /// Among the approved replies of its parent, from 1.
    pub rank: Option<usize>,
    /// In the table already.
    pub is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    RepliesFirst,
    ParentsFirst,
}

/// The place in a thread up to which it was read.
pub struct Page {
    direction: Direction,
    level: i64,
    slot: i64,
}

impl Scratch {
    /// The threads whose comments stand, stood or will stand in the table.
    pub fn targets(&self) -> rusqlite::Result<Vec<Target>> {
        let query = "SELECT target, max(fate IN ('new', 'placeholder')) FROM comment WHERE slot IS NOT NULL
            GROUP BY target ORDER BY target";
        let target = |row: &Row<'_>| {
            let name: String = row.get(0)?;
            Ok(Target { thread: thread_id(&name)?, name, gains: row.get(1)? })
        };
        self.database.prepare(query)?.query_map([], target)?.collect()
    }

    /// The comments that are to be written.
    fn count_new(&self) -> rusqlite::Result<u64> {
        let query = "SELECT count(*) FROM comment WHERE fate IN ('new', 'placeholder')";
        self.database.query_row(query, [], |row| row.get(0))
    }

    /// Gives for each comment of a thread all that its place, and the counts of the thread, follow from.
    fn each_place(&self, target: &str, users: &Users, mut each: impl FnMut(String)) -> rusqlite::Result<()> {
        let query = format!(
            "{} LEFT JOIN comment p ON p.seq = c.parent
             WHERE c.target = ? AND c.slot IS NOT NULL AND c.fate IN ('new', 'placeholder', 'there') ORDER BY c.level, c.slot",
            Self::SELECT_PLANNED
        );
        let mut statement = self.database.prepare_cached(&query)?;
        let mut rows = statement.query([target])?;
        while let Some(row) = rows.next()? {
            let Located { planned, id, ancestors, is_shown, rank, .. } = located(row, users)?;
            let visitor = (planned.state != record::State::Approved).then_some(planned.writer.user);
            let Planned { tag, state, is_placeholder, pinned, kept, .. } = planned;
            let place =
                format!("{id} {tag} {ancestors:?} {is_shown} {rank:?} {state:?} {is_placeholder} {pinned} {visitor:?}");
            each(match kept {
                Some(kept) => format!("{place} {} {:?}", json(&kept), self.said_of(id)?),
                None => place,
            });
        }
        Ok(())
    }

    pub fn first_page(&self, direction: Direction) -> Page {
        Page { direction, level: if direction == Direction::RepliesFirst { i64::MAX } else { 0 }, slot: -1 }
    }

    /// The next comments of a thread, all of one depth. Empty at the end.
    pub fn page(&self, target: &str, page: &mut Page, users: &Users) -> rusqlite::Result<Vec<Located>> {
        loop {
            let located = self.rest_of_level(target, page, users)?;
            if let Some(last) = located.last() {
                page.slot = i64::try_from(last.id.0).unwrap_or(i64::MAX);
                return Ok(located);
            }
            let (compare, order) = if page.direction == Direction::RepliesFirst { ("<", "DESC") } else { (">", "ASC") };
            let query = format!(
                "SELECT level FROM comment WHERE target = ? AND level {compare} ? ORDER BY level {order} LIMIT 1"
            );
            let mut levels = self.database.prepare_cached(&query)?;
            let mut rows = levels.query(params![target, page.level])?;
            let Some(row) = rows.next()? else { return Ok(Vec::new()) };
            (page.level, page.slot) = (row.get(0)?, -1);
        }
    }

    fn rest_of_level(&self, target: &str, page: &Page, users: &Users) -> rusqlite::Result<Vec<Located>> {
        let query = format!(
            "{} LEFT JOIN comment p ON p.seq = c.parent
             WHERE c.target = ? AND c.level = ? AND c.slot > ? AND c.fate IN ('new', 'placeholder', 'there')
             ORDER BY c.slot LIMIT ?",
            Self::SELECT_PLANNED
        );
        let mut statement = self.database.prepare_cached(&query)?;
        let located = |row: &Row<'_>| located(row, users);
        statement.query_map(params![target, page.level, page.slot, BATCH], located)?.collect()
    }

    /// The approved replies, oldest first.
    fn replies(&self, seq: i64) -> rusqlite::Result<Vec<CommentId>> {
        let mut statement = self.database.prepare_cached(
            "SELECT slot FROM comment WHERE parent = ? AND rank IS NOT NULL AND fate IN ('new', 'placeholder', 'there')
             ORDER BY slot",
        )?;
        statement.query_map([seq], |row| row.get(0).map(CommentId))?.collect()
    }

    /// What the source says of the pages of a thread.
    fn about(&self, target: &str) -> rusqlite::Result<Thread> {
        let mut statement = self
            .database
            .prepare_cached("SELECT record FROM thread WHERE target = ? AND record IS NOT NULL ORDER BY key")?;
        let mut rows = statement.query([target])?;
        let mut about = Thread::default();
        while let Some(row) = rows.next()? {
            let json: String = row.get(0)?;
            let page: record::Thread = serde_json::from_str(&json).unwrap_or_default();
            about.title = about.title.or(page.title.as_deref().and_then(imported_title));
            about.url = about.url.or(page.url.as_deref().and_then(imported_address));
            about.author = about.author.or(page.author_id.map(UserId));
        }
        Ok(about)
    }

    fn drop_planned(&self, seq: i64, fate: &str, reason: &str) -> rusqlite::Result<()> {
        let update = "UPDATE comment SET fate = ?, reason = ? WHERE seq = ?";
        self.database.prepare_cached(update)?.execute(params![fate, reason, seq]).map(drop)
    }
}

fn located(row: &Row<'_>, users: &Users) -> rusqlite::Result<Located> {
    let path: Option<String> = row.get("path")?;
    let ancestors = path.iter().flat_map(|path| path.split(',')).filter_map(|id| id.parse().ok());
    Ok(Located {
        planned: Scratch::planned(row, users)?,
        id: CommentId(row.get("slot")?),
        ancestors: ancestors.collect(),
        is_shown: row.get("shown")?,
        parent_is_approved: row.get::<_, Option<bool>>("parent_is_approved")?.unwrap_or_default(),
        rank: row.get("rank")?,
        is_there: row.get::<_, String>("fate")? == "there",
    })
}

/// The course of an import.
pub(super) struct Course<'a> {
    start: Instant,
    units: f64,
    written: u64,
    total: u64,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Course<'_> {
    fn written(&mut self, comments: u64) {
        self.written += comments;
        (self.progress)(Progress::Written { done: self.written, total: self.total });
    }
}

/// A thread of the import.
pub struct Target {
    /// As `type/id`.
    pub name: String,
    pub thread: ThreadId,
    /// Whether any of its comments is new.
    pub gains: bool,
}
