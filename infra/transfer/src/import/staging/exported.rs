//! What only an export of a table holds: comments that keep their ids, likes by voter, reports, users with their bans,
//! tombstones.

use rusqlite::params;
use shared::domain::comment::{Comment, HeldFor, State};
use shared::domain::ids::{CommentId, Provenance, SourceId, UserId, Visitor};
use shared::domain::markdown as rendering;
use shared::domain::report::{Report, Resolution};
use shared::domain::time::Timestamp;
use shared::domain::trust::Trust;
use shared::domain::user::{Ban, User};
use shared::error::Fault;
use shared::store::Store;

use super::{MAX_BODY, Staged, Staging, json, refusal};
use crate::import::author::{kept_avatar, kept_name};
use crate::import::record::{self, Record, RecordState, own_source};
use crate::import::time::timestamp;
use crate::store::export::{GuestCount, StoredItem, scan_page};
use crate::store::import::Attached;
use crate::store::restore::{Entry, VisitorEntries, began_native};
use crate::store::sources::SourceRow;

pub(super) const EXPORT_SCHEMA: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, record TEXT NOT NULL);
    CREATE TABLE tombstone (source TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
    -- the sources of comments that keep their ids
    CREATE TABLE kept_source (source TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE vote (comment INTEGER, visitor TEXT, PRIMARY KEY (comment, visitor)) WITHOUT ROWID;
    CREATE TABLE report (comment INTEGER, id INTEGER, visitor TEXT NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (comment, id)) WITHOUT ROWID;
    CREATE TABLE bound (comment INTEGER, network TEXT, count INTEGER NOT NULL, PRIMARY KEY (comment, network)) WITHOUT ROWID;
    CREATE INDEX thread_by_target ON thread (target);
    -- likes and reports of new comments by thread and visitor; `top` is the parent, or the comment itself
    CREATE TABLE entry (target TEXT, visitor TEXT, comment INTEGER, is_report INTEGER, top INTEGER NOT NULL,
        PRIMARY KEY (target, visitor, comment, is_report)) WITHOUT ROWID;
";

/// A table that takes no native file.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error("the temporary file: {0}")]
    Staging(#[from] rusqlite::Error),
    #[error(
        "the table has other comments; a native file goes into an empty table, or finishes an import of the same file that \
         was interrupted"
    )]
    Occupied,
}

/// Rows at once.
const BATCH: usize = 100;

impl Staging {
    /// Fails when a native file was read and the table has comments that are not in it, unless an import of that file began
    /// there. To be called after [`locate`](Self::locate).
    pub async fn check_table(&self, store: &Store) -> Result<(), TableError> {
        let Some(file) = &self.native else { return Ok(()) };
        if began_native(store, file).await? {
            return Ok(());
        }
        let mut start = None;
        loop {
            let (items, next) = scan_page(store, start).await?;
            for item in items {
                if let StoredItem::Comment(comment) = item
                    && !comment.is_placeholder
                    && !self.has_located(comment.id)?
                {
                    return Err(TableError::Occupied);
                }
            }
            start = Some(match next {
                Some(next) => next,
                None => return Ok(()),
            });
        }
    }

    fn has_located(&self, id: CommentId) -> rusqlite::Result<bool> {
        let query = "SELECT EXISTS (SELECT 1 FROM comment WHERE slot = ?)";
        self.database.prepare_cached(query)?.query_row([id.0], |row| row.get(0))
    }

    /// Adds a record of an export. The first of duplicates counts.
    pub(super) fn add_exported(&mut self, record: Record) -> rusqlite::Result<()> {
        let insert = |insert: &str, values: &[&dyn rusqlite::ToSql]| {
            self.database.prepare_cached(insert)?.execute(values).map(drop)
        };
        match record {
            Record::Comment(comment) => self.add_kept(*comment),
            Record::User(user) => {
                insert("INSERT OR IGNORE INTO account VALUES (?, ?)", params![user.user_id, json(&user)])
            }
            Record::Like(like) => {
                insert("INSERT OR IGNORE INTO vote VALUES (?, ?)", params![like.comment, like.visitor])
            }
            Record::Report(report) => insert(
                "INSERT OR IGNORE INTO report VALUES (?, ?, ?, ?)",
                params![report.comment, report.id, report.visitor, json(&report)],
            ),
            Record::GuestBound(bound) => insert(
                "INSERT OR IGNORE INTO bound VALUES (?, ?, ?)",
                params![bound.comment, bound.network, bound.count],
            ),
            Record::Tombstone(tombstone) => {
                insert("INSERT OR IGNORE INTO tombstone VALUES (?, ?)", params![tombstone.source, json(&tombstone)])
            }
            Record::Head(_) | Record::Thread(_) | Record::Part(_) | Record::Missing(_) => Ok(()),
        }
    }

    /// A comment that keeps its id. A deleted one is a placeholder.
    fn add_kept(&mut self, mut comment: record::Comment) -> rusqlite::Result<()> {
        let id = comment.id.unwrap_or_default();
        let text = id.to_string();
        let created = text.parse::<CommentId>().ok().map(|id| id.created_at().seconds());
        let is_placeholder = comment.state == RecordState::Deleted;
        let state = if is_placeholder { RecordState::Approved } else { comment.state };
        let body = std::mem::take(&mut comment.body);
        let refusal = refusal(&comment);
        let kept = if is_placeholder || refusal.is_some() { "" } else { &body[..body.floor_char_boundary(MAX_BODY)] };
        let is_cut = !is_placeholder && (kept.len() < body.len() || !rendering::is_shown_whole(kept));
        let insert =
            "INSERT INTO comment (file, source_id, has_id, thread, parent_id, created, state, likes, pinned, author,
                body, refusal, cut, placeholder, id, kept)
            VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, '{}', ?, ?, ?, ?, ?, ?)";
        self.database.prepare_cached(insert)?.execute(params![
            self.file,
            if comment.source_id.is_empty() { &text } else { &comment.source_id },
            comment.thread,
            comment.parent,
            created,
            state,
            i64::try_from(comment.likes).unwrap_or(i64::MAX),
            comment.pinned,
            kept,
            refusal,
            is_cut,
            is_placeholder,
            i64::try_from(id).unwrap_or(i64::MAX),
            json(&comment),
        ])?;
        self.comments += 1;
        Ok(())
    }

    /// The reports of a comment, and its counts of guests.
    pub(in crate::import) fn attached(&self, comment: CommentId) -> rusqlite::Result<Attached> {
        let mut reports = self.database.prepare_cached("SELECT record FROM report WHERE comment = ? ORDER BY id")?;
        let reports = reports.query_map([comment.0], |row| {
            let record: String = row.get(0)?;
            serde_json::from_str(&record).map(report).map_err(|_| rusqlite::Error::InvalidQuery)
        })?;
        let mut bounds = self.database.prepare_cached("SELECT network, count FROM bound WHERE comment = ?")?;
        let bounds = bounds
            .query_map([comment.0], |row| Ok(GuestCount { comment, network: row.get(0)?, count: row.get(1)? }))?;
        Ok(Attached { reports: reports.collect::<Result<_, _>>()?, bounds: bounds.collect::<Result<_, _>>()? })
    }

    /// Those who like or reported a comment of an export.
    pub(super) fn said_of(&self, comment: CommentId) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.database.prepare_cached(
            "SELECT 'likes ' || visitor FROM vote WHERE comment = ?1
             UNION ALL SELECT id || ' by ' || visitor FROM report WHERE comment = ?1 ORDER BY 1",
        )?;
        statement.query_map([comment.0], |row| row.get(0))?.collect()
    }

    /// The next users, in order of their ids.
    pub(in crate::import) fn accounts_after(&self, last: Option<UserId>) -> rusqlite::Result<Vec<User>> {
        let query = "SELECT record FROM account WHERE id > ? ORDER BY id LIMIT ?";
        let mut statement = self.database.prepare_cached(query)?;
        let users = statement.query_map(params![last.map_or(0, |last| last.0), BATCH], |row| {
            let record: String = row.get(0)?;
            serde_json::from_str(&record).map(user).map_err(|_| rusqlite::Error::InvalidQuery)
        })?;
        users.collect()
    }

    /// The next tombstones, in order of their sources.
    pub(in crate::import) fn tombstones_after(&self, last: &str) -> rusqlite::Result<Vec<(SourceId, SourceRow)>> {
        let query = "SELECT source, record FROM tombstone WHERE source > ? ORDER BY source LIMIT ?";
        let mut statement = self.database.prepare_cached(query)?;
        let tombstone = |row: &rusqlite::Row<'_>| {
            let record: record::Tombstone =
                serde_json::from_str(&row.get::<_, String>(1)?).map_err(|_| rusqlite::Error::InvalidQuery)?;
            Ok((SourceId(row.get(0)?), SourceRow::new(CommentId(record.id), true, record.provenance)))
        };
        statement.query_map(params![last, BATCH], tombstone)?.collect()
    }

    /// Threads without comments about which the source says something: their names, and the records.
    pub(in crate::import) fn threads_after(&self, last: &str) -> rusqlite::Result<Vec<(String, record::Thread)>> {
        let mut statement = self.database.prepare_cached(
            "SELECT target, record FROM thread WHERE target > ? AND record IS NOT NULL AND NOT deleted
                AND NOT EXISTS (SELECT 1 FROM comment WHERE comment.target = thread.target)
             ORDER BY target LIMIT ?",
        )?;
        let thread = |row: &rusqlite::Row<'_>| {
            let record: String = row.get(1)?;
            Ok((row.get(0)?, serde_json::from_str(&record).unwrap_or_default()))
        };
        statement.query_map(params![last, BATCH], thread)?.collect()
    }

    /// What the next visitors like and reported in a thread, in order of the visitors.
    pub(in crate::import) fn entries_after(
        &self,
        target: &str,
        last: &Visitor,
    ) -> rusqlite::Result<Vec<VisitorEntries>> {
        let mut statement = self.database.prepare_cached(
            "SELECT visitor, comment, top, is_report FROM entry WHERE target = ?1 AND visitor > ?2 AND visitor <= (
                SELECT max(visitor) FROM (
                    SELECT DISTINCT visitor FROM entry WHERE target = ?1 AND visitor > ?2 ORDER BY visitor LIMIT ?3))
             ORDER BY visitor, comment, is_report",
        )?;
        let mut rows = statement.query(params![target, last.0, BATCH])?;
        let mut all: Vec<VisitorEntries> = Vec::new();
        while let Some(row) = rows.next()? {
            let visitor = Visitor(row.get(0)?);
            let entry =
                Entry { comment: CommentId(row.get(1)?), group: CommentId(row.get(2)?), is_report: row.get(3)? };
            match all.last_mut().filter(|last| last.visitor == visitor) {
                Some(last) => last.entries.push(entry),
                None => all.push(VisitorEntries { visitor, entries: vec![entry] }),
            }
        }
        Ok(all)
    }
}

impl Staged {
    /// Where the comment comes from. `prefix` is the name of the source's system.
    pub(in crate::import) fn source(&self, id: CommentId, prefix: &str) -> SourceId {
        match &self.kept {
            Some(kept) => kept.source.clone().map_or_else(|| own_source(id), SourceId),
            None => SourceId(format!("{prefix}:{}", self.tag)),
        }
    }

    /// What distinguishes the comment from one of another site.
    pub(in crate::import) fn provenance(&self) -> Provenance {
        self.kept.as_ref().map_or_else(|| self.provenance.clone(), |kept| kept.provenance.clone())
    }

    /// When the comment was pinned.
    pub(in crate::import) fn pinned_at(&self) -> Option<Timestamp> {
        self.kept.as_ref()?.pinned_at.map(timestamp)
    }

    /// The comment with the extra attributes of an export.
    pub(in crate::import) fn restored(&self, comment: Comment) -> Comment {
        let Some(kept) = &self.kept else { return comment };
        let resolution =
            |known: &record::Resolution| Resolution { until: timestamp(known.until), status: known.status };
        Comment {
            reported: kept.reported,
            resolutions: kept.resolutions.iter().map(resolution).collect(),
            guest: kept.author.visitor.clone().map(Visitor).filter(|_| comment.user.is_none()),
            mentions: kept.mentions.clone(),
            edited_at: kept.edited_at.map(timestamp),
            in_review: comment.is_approved() && kept.held_for == Some(HeldFor::Edit),
            suspicious: comment.state == State::Pending && kept.held_for == Some(HeldFor::Spam),
            subscribed: kept.subscribed,
            ..comment
        }
    }
}

fn report(record: record::Report) -> Report {
    Report {
        id: record.id,
        reason: record.reason,
        created_at: timestamp(record.created_at),
        visitor: Visitor(record.visitor),
        user: record.user_id.map(UserId),
        name: kept_name(&record.name),
        avatar: kept_avatar(&record.avatar),
    }
}

fn user(record: record::User) -> User {
    let second = |at: Option<jiff::Timestamp>| at.map(|at| Timestamp::from_seconds(at.as_second()));
    User {
        id: UserId(record.user_id.unwrap_or_default()),
        name: kept_name(&record.name),
        avatar: kept_avatar(&record.picture),
        token_issued_at: record.token_issued_at.map(jiff::Timestamp::as_second),
        learned_at: second(record.learned_at),
        renamed_at: second(record.renamed_at),
        comments_at: None,
        subject: record.subject,
        issuer: None,
        ban_id: record.ban.as_ref().map(|ban| ban.id),
        ban: record.ban.map(|ban| Ban { until: ban.until.map(timestamp), reason: ban.reason }),
        account: None,
        trust: Trust::default(),
    }
}
