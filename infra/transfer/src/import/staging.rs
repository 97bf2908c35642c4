//! Everything that was read, in a temporary `SQLite` file, so that memory does not grow with the source.
//!
//! [`Staging::add`] takes records in any order, [`Staging::resolve`] decides the fate of each comment, and
//! [`Staging::report`] reports it.

mod exported;
mod fate;
mod forget;
mod placed;
mod resolve;
mod salts;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::mem;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use shared::domain::ids::{CommentId, ID_BOUND, Provenance, SourceId, ThreadId, sha256_hex};
use shared::domain::{markdown as rendering, visible};

use self::exported::EXPORT_SCHEMA;
pub use self::exported::TableError;
pub use self::fate::Fate;
pub(super) use self::fate::Reason;
pub use self::placed::{Direction, Page, Placed, Target};
pub use self::salts::OtherSalt;
use self::salts::Salts;
use super::author::{ImportedAuthor, Users};
use super::format::Format;
use super::markdown;
use super::record::{self, BodyFormat, Record, RecordState, User};
use super::report::{Entry, Missing, Report};
use super::time::timestamp;
use crate::store::person::forgotten::Forgotten;
use crate::temporary::{self, TemporaryFile};

/// Bytes of an id in the source. A hash replaces longer ones.
const MAX_ID: usize = 512;
/// Bytes of a body. What is longer is cut.
pub(super) const MAX_BODY: usize = 64 * 1024;

const SCHEMA: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA temp_store = FILE;
    PRAGMA cache_size = -32768;
    CREATE TABLE thread (
        key TEXT PRIMARY KEY, record TEXT,
        -- type/id, or why there is none
        target TEXT, refused TEXT, deleted INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE user (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE comment (
        seq INTEGER PRIMARY KEY, file INTEGER NOT NULL, source_id TEXT NOT NULL, has_id INTEGER NOT NULL, thread TEXT NOT NULL,
        parent_id TEXT,
        created INTEGER, edited INTEGER, state TEXT NOT NULL, likes INTEGER NOT NULL, pinned INTEGER NOT NULL,
        author TEXT NOT NULL, body TEXT NOT NULL,
        -- a short hash of who wrote it in the source; null where the source may have forgotten
        writer TEXT,
        -- why the record itself cannot be imported
        refusal TEXT,
        -- readers do not see all of it
        cut INTEGER NOT NULL DEFAULT 0,
        -- what resolve decides
        target TEXT, fate TEXT NOT NULL DEFAULT 'new', reason TEXT, moved TEXT, parent INTEGER, level INTEGER,
        placeholder INTEGER NOT NULL DEFAULT 0, tag TEXT,
        -- of an export: the id it keeps, and its record
        id INTEGER, kept TEXT,
        -- what locate decides: its id, those of its ancestors, whether everyone may see it, its rank among its siblings
        slot INTEGER, path TEXT, shown INTEGER, rank INTEGER,
        -- of one that is there: the ids of its ancestors there
        stands TEXT
    );
    BEGIN;
";

/// A comment in its final place.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    /// Its number in the staging file.
    pub seq: i64,
    /// The id in the source; unique.
    pub tag: String,
    pub thread: ThreadId,
    pub is_placeholder: bool,
    pub edited_at: Option<Timestamp>,
    pub writer: ImportedAuthor,
    pub body: String,
    pub state: RecordState,
    /// Likes without a known voter.
    pub likes: u64,
    /// Likes with a voter, which only exports have.
    pub voters: u64,
    pub pinned: bool,
    /// The record of a comment of an export, without its body.
    pub kept: Option<Box<record::Comment>>,
    pub(super) provenance: Provenance,
}

pub struct Staging {
    pub(super) database: Connection,
    _file: TemporaryFile,
    /// The last thread record, because many sources repeat it with every comment.
    last_thread: Option<record::Thread>,
    pub(super) comments: u64,
    /// The number of the file that is read.
    pub(super) file: u64,
    /// The site that the source names.
    pub(super) site: Option<String>,
    /// Unix seconds after which no comment can have been written.
    pub(super) latest: i64,
    /// The names of files without comments.
    pub silent: Vec<String>,
    /// Data that the sources say they lack, and texts that could not be read completely.
    pub(super) missing: Vec<Missing>,
    salts: Salts,
    /// A hash of the records of a native file.
    pub(super) native: Option<String>,
    /// People whose comments may have been erased from the table.
    pub(super) forgotten: Option<Forgotten>,
}

impl Staging {
    pub fn create(directory: &Path) -> Result<Self, StagingError> {
        let (database, file) = temporary::database(directory)?;
        database.execute_batch(SCHEMA)?;
        database.execute_batch(EXPORT_SCHEMA)?;
        let (silent, salts) = (Vec::new(), Salts::default());
        Ok(Self {
            database,
            _file: file,
            last_thread: None,
            comments: 0,
            file: 0,
            site: None,
            latest: i64::MAX,
            silent,
            missing: Vec::new(),
            salts,
            native: None,
            forgotten: None,
        })
    }

    /// The prefix of the comments' sources.
    #[must_use]
    pub fn prefix(&self, format: Format) -> String {
        SourceId::prefix(format.name(), self.site.as_deref())
    }

    /// The number of comments that were added.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    pub fn add(&mut self, record: Record) -> rusqlite::Result<()> {
        self.salts.note(&record);
        if let Some(hash) = &mut self.native {
            *hash = sha256_hex(&(mem::take(hash) + &json(&record)));
        }
        match record {
            Record::Thread(thread) => self.add_thread(thread),
            Record::User(user) if user.user_id.is_none() => self.add_user(&user),
            Record::Comment(comment) if comment.id.is_none() => self.add_comment(*comment),
            exported => self.add_exported(exported),
        }
    }

    /// Adds what earlier records of the thread left out.
    fn add_thread(&mut self, thread: record::Thread) -> rusqlite::Result<()> {
        if self.last_thread.as_ref() == Some(&thread) {
            return Ok(());
        }
        let query = "SELECT record FROM thread WHERE key = ?";
        let known: Option<String> =
            self.database.prepare_cached(query)?.query_row([&thread.key], |row| row.get(0)).optional()?.flatten();
        let known = known.and_then(|json| serde_json::from_str(&json).ok());
        let merged = merge(known, thread.clone());
        self.database
            .prepare_cached("INSERT OR REPLACE INTO thread (key, record, deleted) VALUES (?, ?, ?)")?
            .execute(params![merged.key, json(&merged), merged.deleted])?;
        self.last_thread = Some(thread);
        Ok(())
    }

    fn add_user(&self, user: &User) -> rusqlite::Result<()> {
        let insert = "INSERT OR IGNORE INTO user (id, record) VALUES (?, ?)";
        self.database.prepare_cached(insert)?.execute(params![user.id, json(user)]).map(drop)
    }

    fn add_comment(&mut self, comment: record::Comment) -> rusqlite::Result<()> {
        let refusal = refusal(&comment);
        let (body, is_cut) = if refusal.is_some() { (String::new(), false) } else { body(&comment) };
        let has_id = !comment.source_id.is_empty();
        let source_id = if has_id { bounded_id(comment.source_id) } else { content_id(&comment, &body) };
        let writer = (comment.state != RecordState::Deleted).then(|| writer_hash(&source_id, &comment.author));
        let created = comment.created_at.filter(|at| has_ids(*at)).map(Timestamp::as_second);
        let created = created.filter(|at| *at <= self.latest);
        let is_edit = |at: &Timestamp| created.is_some_and(|created| (created..=self.latest).contains(&at.as_second()));
        let insert =
            "INSERT INTO comment (file, source_id, has_id, thread, parent_id, created, edited, state, likes, pinned,
                author, body, writer, refusal, cut)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        self.database.prepare_cached(insert)?.execute(params![
            self.file,
            source_id,
            has_id,
            comment.thread,
            comment.parent.map(bounded_id),
            created,
            comment.edited_at.filter(is_edit).map(Timestamp::as_millisecond),
            comment.state,
            i64::try_from(comment.likes).unwrap_or(i64::MAX),
            comment.pinned,
            json(&comment.author),
            body,
            writer,
            refusal,
            is_cut,
        ])?;
        self.comments += 1;
        Ok(())
    }

    /// The columns that [`staged`](Self::staged) reads. The parent is joined as `p`.
    const SELECT_STAGED: &str = "SELECT c.*, u.record AS account, p.state = 'approved' AS parent_is_approved,
            (SELECT count(*) FROM vote WHERE vote.comment = c.id) AS voters
        FROM comment c LEFT JOIN user u ON u.id = c.author ->> 'key'";

    fn staged(row: &Row<'_>, users: &Users) -> rusqlite::Result<Staged> {
        let kept = kept(row)?;
        let writer = writer(row, users, kept.as_deref())?;
        Ok(Staged {
            seq: row.get("seq")?,
            tag: row.get("tag")?,
            thread: thread_id(&row.get::<_, String>("target")?)?,
            is_placeholder: row.get("placeholder")?,
            edited_at: row.get::<_, Option<i64>>("edited")?.and_then(|edited| Timestamp::from_millisecond(edited).ok()),
            writer,
            body: row.get("body")?,
            state: row.get("state")?,
            likes: row.get("likes")?,
            voters: row.get("voters")?,
            pinned: row.get("pinned")?,
            kept,
            provenance: provenance(row)?,
        })
    }

    pub fn report(&self) -> rusqlite::Result<Report> {
        let mut counts = self.database.prepare("SELECT fate, count(*) FROM comment GROUP BY fate")?;
        let counts = counts.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let counts: HashMap<Fate, u64> = counts.collect::<rusqlite::Result<_>>()?;
        let count = |fate| counts.get(&fate).copied().unwrap_or_default();
        Ok(Report {
            read: self.comments,
            new: count(Fate::New) + count(Fate::Placeholder),
            already_there: count(Fate::AlreadyThere),
            skipped: self
                .pairs("SELECT reason, count(*) FROM comment WHERE fate = 'skipped' GROUP BY reason")?
                .into_iter()
                .collect(),
            refused: self.entries("fate = 'refused'", "reason")?,
            threads: self
                .pairs(
                    "SELECT target, count(*) FROM comment WHERE fate IN ('new', 'placeholder', 'there') GROUP BY target",
                )?
                .into_iter()
                .collect(),
            unmapped: self.unmapped()?,
            moved: self.entries("moved IS NOT NULL AND fate IN ('new', 'placeholder')", "moved")?,
            cut: self.entries("cut AND fate = 'new'", "''")?.into_iter().map(|entry| entry.id).collect(),
            missing: self.missing.clone(),
        })
    }

    /// The types of threads that have comments of the source.
    pub fn types(&self) -> rusqlite::Result<Vec<String>> {
        let query = "SELECT DISTINCT substr(target, 1, instr(target, '/') - 1) FROM comment
            WHERE fate IN ('new', 'placeholder', 'there') ORDER BY 1";
        self.database.prepare(query)?.query_map([], |row| row.get(0))?.collect()
    }

    fn pairs(&self, query: &str) -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = self.database.prepare(query)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// A comment without an id in its source is named by its number.
    fn entries(&self, condition: &str, reason: &str) -> rusqlite::Result<Vec<Entry>> {
        let mut statement = self.database.prepare(&format!(
            "SELECT CASE WHEN has_id THEN source_id ELSE '#' || seq END, {reason} FROM comment
             WHERE {condition} ORDER BY seq"
        ))?;
        statement.query_map([], |row| Ok(Entry { id: row.get(0)?, reason: row.get(1)? }))?.collect()
    }

    fn unmapped(&self) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.database.prepare(
            "SELECT key FROM thread WHERE refused = 'thread' AND key IN (SELECT thread FROM comment) ORDER BY key",
        )?;
        statement.query_map([], |row| row.get(0))?.collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    #[error("the temporary file: {0}")]
    File(#[from] std::io::Error),
    #[error("the temporary file: {0}")]
    Database(#[from] rusqlite::Error),
}

/// The record of a comment of an export.
fn kept(row: &Row<'_>) -> rusqlite::Result<Option<Box<record::Comment>>> {
    let json: Option<String> = row.get("kept")?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
}

/// The writer, from the columns `author` and `account`, or as the record of an export says.
fn writer(row: &Row<'_>, users: &Users, kept: Option<&record::Comment>) -> rusqlite::Result<ImportedAuthor> {
    if let Some(kept) = kept {
        return Ok(ImportedAuthor::kept(&kept.author));
    }
    let author = from_json(row, "author")?;
    let account: Option<User> =
        row.get::<_, Option<String>>("account")?.and_then(|json| serde_json::from_str(&json).ok());
    Ok(users.writer(&author, account.as_ref()))
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn merge(known: Option<record::Thread>, new: record::Thread) -> record::Thread {
    let Some(mut known) = known else { return new };
    known.kind = known.kind.or(new.kind);
    known.id = known.id.or(new.id);
    known.title = known.title.or(new.title);
    known.url = known.url.or(new.url);
    known.author_id = known.author_id.or(new.author_id);
    known.closed = known.closed.or(new.closed);
    known.deleted |= new.deleted;
    for alias in new.aliases {
        if !known.aliases.contains(&alias) {
            known.aliases.push(alias);
        }
    }
    known
}

/// The body in Markdown without characters that must not be stored, and whether readers do not see all of it. The body is
/// empty when it shows nothing.
fn body(comment: &record::Comment) -> (String, bool) {
    let body = match comment.format {
        BodyFormat::Markdown => comment.body.replace("\r\n", "\n"),
        BodyFormat::Html => markdown::from_html(&comment.body),
    };
    let body: String = body.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let body = visible::without_bidi_overrides(body.trim_matches(['\n', ' ']));
    let kept = &body[..body.floor_char_boundary(MAX_BODY)];
    if rendering::shown(kept).is_nothing() {
        return (String::new(), false);
    }
    (kept.to_owned(), kept.len() < body.len() || !rendering::is_shown_whole(kept))
}

/// Why the record cannot be imported, whatever else it says.
fn refusal(comment: &record::Comment) -> Option<Reason> {
    if comment.is_oversized {
        return Some(Reason::Size);
    }
    (comment.likes >= ID_BOUND).then_some(Reason::Likes)
}

/// Ids are part of keys, which have a bound.
fn bounded_id(id: String) -> String {
    if id.len() <= MAX_ID { id } else { format!("~{}", sha256_hex(&id)) }
}

/// What distinguishes the comment from one of another site that has the same source.
pub(super) fn provenance(row: &Row<'_>) -> rusqlite::Result<Provenance> {
    let page: String = row.get("thread")?;
    // The same page with and without TLS.
    let page = page.split_once("//").map_or(page.as_str(), |(_, rest)| rest).trim_end_matches('/');
    Ok(Provenance { thread: Some(sha256_hex(page)[..16].to_owned()), writer: row.get("writer")? })
}

/// Hash of the account or the name; of the address only when both are missing, because anyone with a list of addresses could
/// find it by the hashes of several comments. It differs for every comment: comments with one name are known only to those
/// who know the name.
fn writer_hash(source_id: &str, author: &record::Author) -> String {
    let names = [author.key.clone(), author.name.clone(), author.email.trim().to_lowercase()];
    let name = names.into_iter().find(|name| !name.is_empty());
    sha256_hex(&json(&(source_id, name)))[..4].to_owned()
}

/// An id for a comment without one, the same in every run.
fn content_id(comment: &record::Comment, body: &str) -> String {
    let created = comment.created_at.map_or(0, Timestamp::as_second);
    let text = json(&(&comment.thread, &comment.parent, created, &comment.author.name, body));
    format!("~{}", &sha256_hex(&text)[..16])
}

/// Whether a comment of this time can have an id.
fn has_ids(at: Timestamp) -> bool {
    CommentId::slots(timestamp(at), 0).is_some()
}

fn from_json<T: serde::de::DeserializeOwned + Default>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or_default())
}

pub(super) fn name_of(thread: &ThreadId) -> String {
    format!("{}/{}", thread.kind, thread.record)
}

/// Parses `type/id`.
pub(super) fn thread_id(target: &str) -> rusqlite::Result<ThreadId> {
    let thread = target.split_once('/').and_then(|(kind, record)| ThreadId::stored(kind, record));
    thread.ok_or(rusqlite::Error::InvalidQuery)
}
