//! The comments of a thread in their places, as they are written.

use rusqlite::{Row, params};
use shared::domain::ids::{CommentId, ThreadId, UserId};
use shared::domain::thread::{Thread, imported_address, imported_title};

use super::{Fate, Reason, Staged, Staging, json, thread_id};
use crate::import::author::Users;
use crate::import::record;

/// Comments of a page.
const BATCH: usize = 100;

/// A thread of the import.
pub struct Target {
    /// The thread, as `type/id`.
    pub name: String,
    pub thread: ThreadId,
    /// Whether any of its comments is new.
    pub gains: bool,
}

/// A comment with its id.
pub struct Placed {
    pub staged: Staged,
    pub id: CommentId,
    /// Ancestors from the top-level comment down.
    pub ancestors: Vec<CommentId>,
    /// Everyone may see it and all above it.
    pub is_shown: bool,
    pub parent_is_approved: bool,
    /// Place among the approved replies of its parent, from 1.
    pub rank: Option<usize>,
    /// Whether it is in the table already.
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

impl Staging {
    /// The threads whose comments are, were or will be in the table.
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
    pub(in crate::import) fn count_new(&self) -> rusqlite::Result<u64> {
        let query = "SELECT count(*) FROM comment WHERE fate IN ('new', 'placeholder')";
        self.database.query_row(query, [], |row| row.get(0))
    }

    /// Gives for each comment of a thread all that its place, and the counts of the thread, follow from.
    pub(in crate::import) fn each_place(
        &self,
        target: &str,
        users: &Users,
        mut each: impl FnMut(String),
    ) -> rusqlite::Result<()> {
        let query = format!(
            "{} LEFT JOIN comment p ON p.seq = c.parent
             WHERE c.target = ? AND c.slot IS NOT NULL AND c.fate IN ('new', 'placeholder', 'there') ORDER BY c.level, c.slot",
            Self::SELECT_STAGED
        );
        let mut statement = self.database.prepare_cached(&query)?;
        let mut rows = statement.query([target])?;
        while let Some(row) = rows.next()? {
            let Placed { staged, id, ancestors, is_shown, rank, .. } = placed(row, users)?;
            let visitor = (staged.state != record::RecordState::Approved).then_some(staged.writer.user);
            let Staged { tag, state, is_placeholder, pinned, kept, .. } = staged;
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
    pub fn page(&self, target: &str, page: &mut Page, users: &Users) -> rusqlite::Result<Vec<Placed>> {
        loop {
            let placed = self.rest_of_level(target, page, users)?;
            if let Some(last) = placed.last() {
                page.slot = i64::try_from(last.id.0).unwrap_or(i64::MAX);
                return Ok(placed);
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

    fn rest_of_level(&self, target: &str, page: &Page, users: &Users) -> rusqlite::Result<Vec<Placed>> {
        let query = format!(
            "{} LEFT JOIN comment p ON p.seq = c.parent
             WHERE c.target = ? AND c.level = ? AND c.slot > ? AND c.fate IN ('new', 'placeholder', 'there')
             ORDER BY c.slot LIMIT ?",
            Self::SELECT_STAGED
        );
        let mut statement = self.database.prepare_cached(&query)?;
        let placed = |row: &Row<'_>| placed(row, users);
        statement.query_map(params![target, page.level, page.slot, BATCH], placed)?.collect()
    }

    /// The approved replies, oldest first.
    pub(in crate::import) fn replies(&self, seq: i64) -> rusqlite::Result<Vec<CommentId>> {
        let mut statement = self.database.prepare_cached(
            "SELECT slot FROM comment WHERE parent = ? AND rank IS NOT NULL AND fate IN ('new', 'placeholder', 'there')
             ORDER BY slot",
        )?;
        statement.query_map([seq], |row| row.get(0).map(CommentId))?.collect()
    }

    /// Whether any reply is not approved.
    pub(in crate::import) fn has_hidden_replies(&self, seq: i64) -> rusqlite::Result<bool> {
        let hidden = "SELECT EXISTS (SELECT 1 FROM comment
            WHERE parent = ? AND rank IS NULL AND fate IN ('new', 'placeholder', 'there'))";
        self.database.prepare_cached(hidden)?.query_row([seq], |row| row.get(0))
    }

    /// The source's data about the pages of a thread.
    pub(in crate::import) fn about(&self, target: &str) -> rusqlite::Result<Thread> {
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
            about.closed = about.closed.or(page.closed);
        }
        Ok(about)
    }

    /// Skips a comment whose parent was deleted meanwhile.
    pub(in crate::import) fn skip_deleted(&self, seq: i64) -> rusqlite::Result<()> {
        let update = "UPDATE comment SET fate = ?, reason = ? WHERE seq = ?";
        self.database.prepare_cached(update)?.execute(params![Fate::Skipped, Reason::Deleted, seq]).map(drop)
    }
}

fn placed(row: &Row<'_>, users: &Users) -> rusqlite::Result<Placed> {
    let path: Option<String> = row.get("path")?;
    let ancestors = path.iter().flat_map(|path| path.split(',')).filter_map(|id| id.parse().ok());
    Ok(Placed {
        staged: Staging::staged(row, users)?,
        id: CommentId(row.get("slot")?),
        ancestors: ancestors.collect(),
        is_shown: row.get("shown")?,
        parent_is_approved: row.get::<_, Option<bool>>("parent_is_approved")?.unwrap_or_default(),
        rank: row.get("rank")?,
        is_there: row.get::<_, Fate>("fate")? == Fate::AlreadyThere,
    })
}
