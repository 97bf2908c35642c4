//! What an export writes, in order, in a temporary `SQLite` file, so that memory does not grow with the table.

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Row, ToSql, params};
use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, Provenance, SourceId, ThreadId, UserId, Visitor};
use shared::domain::report::Report;
use shared::domain::thread::{Thread, VisitorThreadState};
use shared::domain::user::User;

use super::ExportError;
use super::records::{self, thread_key};
use crate::import::record::Record;
use crate::store::export::{GuestCount, StoredItem};
use crate::store::sources::SourceRow;
use crate::temporary::{self, TemporaryFile};

const SCHEMA: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA temp_store = FILE;
    PRAGMA cache_size = -32768;
    -- without a line: a thread that is known by its comments alone
    CREATE TABLE thread (key TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID;
    CREATE TABLE user (id INTEGER PRIMARY KEY, line TEXT NOT NULL);
    CREATE TABLE source (source TEXT PRIMARY KEY, comment INTEGER NOT NULL, deleted INTEGER NOT NULL, page TEXT, writer TEXT)
        WITHOUT ROWID;
    CREATE TABLE comment (id INTEGER PRIMARY KEY, parent INTEGER, thread TEXT NOT NULL, source TEXT, placeholder INTEGER NOT NULL,
        line TEXT NOT NULL);
    CREATE TABLE pin (comment INTEGER PRIMARY KEY, at INTEGER NOT NULL);
    CREATE TABLE vote (comment INTEGER, visitor TEXT, PRIMARY KEY (comment, visitor)) WITHOUT ROWID;
    CREATE TABLE report (comment INTEGER, id INTEGER, line TEXT NOT NULL, PRIMARY KEY (comment, id)) WITHOUT ROWID;
    CREATE TABLE bound (comment INTEGER, network TEXT, line TEXT NOT NULL, PRIMARY KEY (comment, network)) WITHOUT ROWID;
    CREATE TABLE orphan (id INTEGER PRIMARY KEY, source TEXT);
    CREATE VIEW tombstone AS SELECT source, comment, page, writer FROM source WHERE deleted;
    BEGIN;
";

/// Tables with one record a row.
const TABLES: [&str; 7] = ["thread", "user", "tombstone", "comment", "vote", "report", "bound"];

pub(super) struct Sorted {
    database: Connection,
    _file: TemporaryFile,
    has_hashed_users: bool,
}

impl Sorted {
    pub(super) fn create(directory: &Path) -> Result<Self, ExportError> {
        let (database, file) = temporary::database(directory).map_err(ExportError::ScratchFile)?;
        database.execute_batch(SCHEMA)?;
        Ok(Self { database, _file: file, has_hashed_users: false })
    }

    /// Whether any user has a hash for an id.
    pub(super) fn has_hashed_users(&self) -> bool {
        self.has_hashed_users
    }

    pub(super) fn add(&mut self, item: StoredItem) -> Result<(), ExportError> {
        match item {
            StoredItem::Comment(comment) => self.add_comment(&comment),
            StoredItem::Report(comment, report) => self.add_report(comment, &report),
            StoredItem::GuestBound(bound) => self.add_guest_bound(&bound),
            StoredItem::Thread(id, thread) => self.add_thread(&id, &thread),
            StoredItem::VisitorThreadState(visitor, _, state) => self.add_votes(&visitor, &state),
            StoredItem::User(user) if user.is_unknown() => Ok(()),
            StoredItem::User(user) => self.add_user(&user),
            StoredItem::Source(source, row) => self.add_source(&source, &row),
            StoredItem::Importing(thread) => Err(ExportError::Importing(thread)),
        }
    }

    fn add_comment(&mut self, comment: &Comment) -> Result<(), ExportError> {
        self.note(comment.user);
        let source = comment.source.as_ref().map(|source| &source.0);
        let (id, parent) = (comment.id.0, comment.parent().map(|parent| parent.0));
        let line = line(&records::comment(comment))?;
        let insert = "INSERT OR REPLACE INTO comment VALUES (?, ?, ?, ?, ?, ?)";
        let thread = thread_key(&comment.thread);
        self.insert(insert, params![id, parent, thread, source, comment.is_placeholder, line])
    }

    fn add_report(&mut self, comment: CommentId, report: &Report) -> Result<(), ExportError> {
        self.note(report.user);
        let line = line(&records::report(comment, report))?;
        self.insert("INSERT OR REPLACE INTO report VALUES (?, ?, ?)", params![comment.0, report.id, line])
    }

    fn add_guest_bound(&self, bound: &GuestCount) -> Result<(), ExportError> {
        let line = line(&records::guest_bound(bound))?;
        self.insert("INSERT OR REPLACE INTO bound VALUES (?, ?, ?)", params![bound.comment.0, bound.network, line])
    }

    fn add_thread(&mut self, id: &ThreadId, thread: &Thread) -> Result<(), ExportError> {
        self.note(thread.author);
        if let Some(pin) = thread.pin {
            self.insert("INSERT OR REPLACE INTO pin VALUES (?, ?)", params![pin.comment.0, pin.at.0])?;
        }
        let is_described = thread.title.is_some() || thread.url.is_some() || thread.author.is_some();
        if !is_described && thread.closed.is_none() {
            return Ok(());
        }
        let line = line(&records::thread(id, thread))?;
        self.insert("INSERT OR REPLACE INTO thread VALUES (?, ?)", params![thread_key(id), line])
    }

    fn add_votes(&mut self, visitor: &Visitor, state: &VisitorThreadState) -> Result<(), ExportError> {
        self.note(visitor.user());
        let mut votes = state.liked.iter();
        votes.try_for_each(|id| self.insert("INSERT OR IGNORE INTO vote VALUES (?, ?)", params![id, visitor.0]))
    }

    fn add_user(&mut self, user: &User) -> Result<(), ExportError> {
        self.note(Some(user.id));
        let line = line(&records::user(user))?;
        self.insert("INSERT OR REPLACE INTO user VALUES (?, ?)", params![user.id.0, line])
    }

    fn add_source(&self, source: &SourceId, row: &SourceRow) -> Result<(), ExportError> {
        let Provenance { thread, writer } = row.provenance();
        let insert = "INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?)";
        self.insert(insert, params![source.0, row.comment.0, row.is_deleted, thread, writer])
    }

    fn insert(&self, insert: &str, values: &[&dyn ToSql]) -> Result<(), ExportError> {
        self.database.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }

    fn note(&mut self, user: Option<UserId>) {
        self.has_hashed_users |= user.is_some_and(UserId::is_hashed);
    }

    /// Callers do this when everything was added. Comments below a deleted one wait for their removal. They are left out, and
    /// leave the tombstones that the removal would leave. What is about comments that are gone, placeholders included, is
    /// left out too.
    pub(super) fn drop_orphans(&self) -> Result<(), ExportError> {
        let find = "INSERT INTO orphan SELECT id, source FROM comment
            WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM comment)";
        while self.database.execute(find, [])? > 0 {
            self.database.execute_batch(
                "INSERT INTO source SELECT source, id, 1, NULL, NULL FROM orphan WHERE source IS NOT NULL
                    ON CONFLICT DO UPDATE SET deleted = 1;
                 DELETE FROM comment WHERE id IN (SELECT id FROM orphan);
                 DELETE FROM orphan;",
            )?;
        }
        for table in ["pin", "vote", "report", "bound"] {
            let gone =
                format!("DELETE FROM {table} WHERE comment NOT IN (SELECT id FROM comment WHERE NOT placeholder)");
            self.database.execute(&gone, [])?;
        }
        self.database.execute("INSERT OR IGNORE INTO thread SELECT DISTINCT thread, NULL FROM comment", [])?;
        Ok(())
    }

    /// Writes all records, and returns the number of comments.
    pub(super) fn write(&self, salt: String, out: &mut impl Write) -> Result<u64, ExportError> {
        let mut records = 0;
        for table in TABLES {
            records += self.count(table)?;
        }
        writeln!(out, "{}", line(&records::head(salt, records))?)?;
        self.write_lines("SELECT line, key FROM thread ORDER BY key", out, thread_line)?;
        self.write_lines("SELECT line FROM user ORDER BY id", out, stored_line)?;
        let tombstones = "SELECT source, comment, page, writer FROM tombstone ORDER BY source";
        self.write_lines(tombstones, out, |row| {
            let provenance = Provenance { thread: row.get(2)?, writer: row.get(3)? };
            line(&records::tombstone(&SourceId(row.get(0)?), CommentId(row.get(1)?), provenance))
        })?;
        let comments = "SELECT line, at, page, writer FROM comment LEFT JOIN pin ON pin.comment = comment.id
            LEFT JOIN source ON source.source = comment.source AND source.comment = comment.id ORDER BY id";
        self.write_lines(comments, out, comment_line)?;
        self.write_lines("SELECT comment, visitor FROM vote ORDER BY comment, visitor", out, |row| {
            line(&records::like(CommentId(row.get(0)?), &Visitor(row.get(1)?)))
        })?;
        self.write_lines("SELECT line FROM report ORDER BY comment, id", out, stored_line)?;
        self.write_lines("SELECT line FROM bound ORDER BY comment, network", out, stored_line)?;
        self.count("comment")
    }

    fn count(&self, table: &str) -> Result<u64, ExportError> {
        Ok(self.database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?)
    }

    fn write_lines(
        &self,
        query: &str,
        out: &mut impl Write,
        line: impl Fn(&Row<'_>) -> Result<String, ExportError>,
    ) -> Result<(), ExportError> {
        let mut statement = self.database.prepare(query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            writeln!(out, "{}", line(row)?)?;
        }
        Ok(())
    }
}

fn stored_line(row: &Row<'_>) -> Result<String, ExportError> {
    Ok(row.get(0)?)
}

fn thread_line(row: &Row<'_>) -> Result<String, ExportError> {
    if let Some(line) = row.get(0)? {
        return Ok(line);
    }
    let key: String = row.get(1)?;
    let id = key.split_once('/').and_then(|(kind, record)| ThreadId::stored(kind, record));
    line(&records::thread(&id.ok_or(rusqlite::Error::InvalidQuery)?, &Thread::default()))
}

/// The line of a comment, with its pin, which is stored with the thread, and its provenance, which is stored with the source.
fn comment_line(row: &Row<'_>) -> Result<String, ExportError> {
    let stored: String = row.get(0)?;
    let (pinned, thread, writer) = (row.get::<_, Option<i64>>(1)?, row.get(2)?, row.get(3)?);
    let provenance = Provenance { thread, writer };
    if pinned.is_none() && provenance.is_empty() {
        return Ok(stored);
    }
    let mut record: Record = serde_json::from_str(&stored).map_err(io::Error::from)?;
    if let Record::Comment(comment) = &mut record {
        comment.pinned = pinned.is_some();
        comment.pinned_at = pinned.and_then(|at| Timestamp::from_millisecond(at).ok());
        comment.provenance = if comment.source.is_some() { provenance } else { Provenance::default() };
    }
    line(&record)
}

fn line(record: &Record) -> Result<String, ExportError> {
    Ok(serde_json::to_string(record).map_err(io::Error::from)?)
}
