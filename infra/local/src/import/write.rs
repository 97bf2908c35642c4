//! Writes what is new, thread after thread.

use std::time::{Duration, Instant};

use rusqlite::{Row, params};
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, ThreadId, UserId, fingerprint};
use shared::domain::thread::{Pin, Thread};
use shared::error::Fault;
use shared::store::Store;
use shared::store::counts::Cause;
use shared::store::import::{Imported, ImportedOne, ThreadTotals, Way};
use shared::store::meter::measure;

use super::author::Users;
use super::lease::{Lease, LeaseError, RENEWAL};
use super::record;
use super::scratch::{Planned, Scratch, thread_id};

/// Comments between two writes.
const BATCH: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the scratch file: {0}")]
    Scratch(#[from] rusqlite::Error),
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

pub struct Writer<'a> {
    pub scratch: &'a Scratch,
    /// With a client that meters its calls, for the rate.
    pub store: &'a Store,
    pub users: &'a Users,
    /// The name of the source's system.
    pub prefix: &'a str,
    /// Replies of a parent that are embedded in lists.
    pub embedded: usize,
    /// Write units a second; as fast as possible without.
    pub rate: Option<u32>,
    pub lease: Lease<'a>,
    /// The fingerprint of another salt under which the hashes of the source were made.
    pub other_salt: Option<String>,
}

impl Writer<'_> {
    /// `progress` gets the number of comments written so far. Returns the write units that the comments took.
    pub async fn write(&self, mut progress: impl FnMut(u64)) -> Result<f64, WriteError> {
        self.lease.renew().await?;
        let now = Instant::now();
        let mut course = Course { start: now, leased: now, units: 0.0, written: 0, progress: &mut progress };
        self.write_around(&mut course).await?;
        for Target { name, gains } in self.scratch.targets()? {
            let thread = thread_id(&name)?;
            if !gains && !self.store.is_importing(&thread).await? {
                continue;
            }
            // First, so that an import which ends early has described what it wrote.
            self.store.describe_thread(&thread, &self.scratch.about(&name)?).await?;
            self.write_entries(&name, &thread, &mut course).await?;
            match self.store.begin_import(&thread).await? {
                Way::InBatches => self.write_in_batches(&name, &thread, &mut course).await?,
                Way::OneByOne { again } => {
                    self.write_one_by_one(&name, again, &mut course).await?;
                    self.store.end_import(&thread).await?;
                }
            }
        }
        self.lease.end().await?;
        Ok(course.units)
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
            let located = self.scratch.page(target, &mut page, self.users)?;
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
            self.pace(course, cost.write_units).await?;
        }
        Ok(self.store.finish_import(thread, &totals).await?)
    }

    /// Parents first, because each reply changes its parent. With `again`, those that are there are counted.
    async fn write_one_by_one(&self, target: &str, again: bool, course: &mut Course<'_>) -> Result<(), WriteError> {
        let mut page = self.scratch.first_page(Direction::ParentsFirst);
        loop {
            let located = self.scratch.page(target, &mut page, self.users)?;
            if located.is_empty() {
                return Ok(());
            }
            for located in located {
                if !located.is_there {
                    self.write_one(&located, course).await?;
                } else if again {
                    self.store.recount_comment(&located.planned.thread, located.id, Cause::Walk).await?;
                }
            }
        }
    }

    async fn write_one(&self, located: &Located, course: &mut Course<'_>) -> Result<(), WriteError> {
        let attached = self.attached(located)?;
        let comment = attached.counted_in(self.comment(located));
        let (written, cost) = measure(self.store.import_one(&comment, &attached)).await;
        match written? {
            ImportedOne::Done => course.written(1),
            ImportedOne::Taken => self.scratch.drop_planned(located.planned.seq, "refused", "taken")?,
            ImportedOne::ParentGone => self.scratch.drop_planned(located.planned.seq, "skipped", "deleted")?,
        }
        self.pace(course, cost.write_units).await
    }

    /// Waits until so many units may have been spent, and keeps the lease meanwhile.
    pub(super) async fn pace(&self, course: &mut Course<'_>, units: f64) -> Result<(), WriteError> {
        course.units += units;
        let due = self.rate.map(|rate| Duration::from_secs_f64(course.units / f64::from(rate)));
        loop {
            if course.leased.elapsed() >= RENEWAL {
                self.lease.renew().await?;
                course.leased = Instant::now();
            }
            let wait = due.unwrap_or_default().saturating_sub(course.start.elapsed());
            if wait.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(wait.min(RENEWAL)).await;
        }
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
        Ok(Imported { counts: located.is_shown && comment.may_count(), is_inline, attached, comment })
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
        if located.planned.pinned && !comment.is_placeholder && totals.pin.is_none() {
            let at = located.planned.pinned_at().unwrap_or_else(|| comment.id.created_at());
            totals.pin = Some(Pin { comment: comment.id, at: at.0 });
        }
    }
    imported
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
    /// The threads whose comments stand or will stand in the table.
    pub fn targets(&self) -> rusqlite::Result<Vec<Target>> {
        let query = "SELECT target, max(fate <> 'there') FROM comment
            WHERE slot IS NOT NULL AND fate IN ('new', 'placeholder', 'there') GROUP BY target ORDER BY target";
        let target = |row: &Row<'_>| Ok(Target { name: row.get(0)?, gains: row.get(1)? });
        self.database.prepare(query)?.query_map([], target)?.collect()
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
            about.title = about.title.or(page.title.filter(|title| !title.trim().is_empty()));
            let absolute = |url: &String| {
                let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
                matches!(scheme.as_deref(), Some("http" | "https"))
            };
            about.url = about.url.or(page.url.filter(absolute));
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

/// How far an import has come.
pub(super) struct Course<'a> {
    start: Instant,
    /// When the lease was renewed last.
    leased: Instant,
    units: f64,
    written: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Course<'_> {
    fn written(&mut self, comments: u64) {
        self.written += comments;
        (self.progress)(self.written);
    }
}

/// A thread of the import.
pub struct Target {
    /// As `type/id`.
    pub name: String,
    /// Whether any of its comments is new.
    pub gains: bool,
}
