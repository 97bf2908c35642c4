//! Isso: a `SQLite` database with the tables `threads` and `comments`.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::super::markdown::{self, Dialect};
use super::super::record::{Author, BodyFormat, Comment, MAX_VALUE, Record, RecordState, Thread};
use super::super::report::Missing;
use super::super::source::ReadError;
use super::super::time;
use super::Sink;
use super::json::likes;

pub(super) fn read(database: &Connection, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    check(database)?;
    let [id, uri, title] = ["id", "uri", "title"].map(bounded);
    let threads = format!("SELECT {id}, {uri}, {title} FROM threads");
    each(database, &threads, &mut |row| (thread(row), missing(row, 0, 0..3)), sink)?;
    let values = COLUMNS.map(bounded).join(", ");
    let oversized = COLUMNS.map(|column| format!("ifnull(octet_length({column}), 0) > {MAX_VALUE}")).join(" OR ");
    let comments = format!(
        "SELECT coalesce(nullif(page.uri, ''), tid), {values}, {oversized} FROM comments
         LEFT JOIN (SELECT id AS number, min({uri}) AS uri FROM threads GROUP BY id) page ON number = tid ORDER BY id"
    );
    each(database, &comments, &mut |row| (comment(row), missing(row, 1, 0..COLUMNS.len() + 1)), sink)
}

/// Columns of a comment, except its thread.
const COLUMNS: [&str; 9] = ["id", "parent", "created", "modified", "mode", "text", "author", "email", "likes"];

/// An SQL expression that is null if the value is too long. `SQLite` finds the length without reading the value.
fn bounded(column: &str) -> String {
    format!("iif(octet_length({column}) > {MAX_VALUE}, NULL, {column})")
}

/// Fails if the file is damaged, or if one of the two tables is missing, is a view or a virtual table, or has computed
/// columns. The file isn't trusted: nothing in it may be executed.
fn check(database: &Connection) -> Result<(), ReadError> {
    let safe = "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA ignore_check_constraints = ON; PRAGMA cell_size_check = ON";
    database.execute_batch(safe).map_err(ReadError::whole)?;
    for table in ["threads", "comments"] {
        let kind = "SELECT type, rootpage > 0 FROM sqlite_schema WHERE lower(name) = ? AND type IN ('table', 'view')";
        let kind = database.query_row(kind, [table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)));
        match kind {
            Ok((kind, true)) if kind == "table" => {}
            Ok(_) => return Err(ReadError::whole(format_args!("{table} isn't a table"))),
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                return Err(ReadError::whole(format_args!("has no table {table}; is it in this format?")));
            }
            Err(error) => return Err(ReadError::whole(error)),
        }
        let computed = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0";
        let computed: u64 = database.query_row(computed, [table], |row| row.get(0)).map_err(ReadError::whole)?;
        if computed > 0 {
            return Err(ReadError::whole(format_args!("{table} has computed columns")));
        }
    }
    let state: String = database.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(ReadError::whole)?;
    if state == "ok" { Ok(()) } else { Err(ReadError::whole(format_args!("is damaged: {state}"))) }
}

fn each(
    database: &Connection,
    query: &str,
    record: &mut dyn FnMut(&Row<'_>) -> (Record, Option<Record>),
    sink: &mut Sink<'_>,
) -> Result<(), ReadError> {
    let mut statement = database.prepare(query).map_err(ReadError::whole)?;
    let mut rows = statement.query([]).map_err(ReadError::whole)?;
    while let Some(row) = rows.next().map_err(ReadError::whole)? {
        let (record, missing) = record(row);
        sink(record)?;
        missing.map_or(Ok(()), &mut *sink)?;
    }
    Ok(())
}

fn thread(row: &Row<'_>) -> Record {
    // Every file numbers its threads from 1, so a number alone doesn't identify a thread.
    let (number, url) = (text(row, 0), Some(text(row, 1)).filter(|url| !url.is_empty()));
    Record::Thread(Thread {
        key: url.clone().unwrap_or_else(|| number.clone()),
        aliases: vec![number],
        url,
        title: Some(text(row, 2)).filter(|title| !title.is_empty()),
        ..Thread::default()
    })
}

fn comment(row: &Row<'_>) -> Record {
    Record::Comment(Box::new(Comment {
        thread: text(row, 0),
        source_id: text(row, 1),
        parent: Some(text(row, 2)).filter(|parent| !parent.is_empty()),
        created_at: number(row, 3).and_then(time::from_unix),
        edited_at: number(row, 4).and_then(time::from_unix),
        state: match text(row, 5).as_str() {
            "1" => RecordState::Approved,
            "4" => RecordState::Deleted,
            _ => RecordState::Pending,
        },
        format: BodyFormat::Markdown,
        body: markdown::from_dialect(&text(row, 6), Dialect::ISSO),
        // Isso escapes names when it stores them.
        author: Author { name: markdown::decode(&text(row, 7)), email: text(row, 8), ..Author::default() },
        likes: likes(number(row, 9).unwrap_or_default()),
        is_oversized: row.get(10).unwrap_or_default(),
        ..Comment::default()
    }))
}

/// The value of a column as text. `SQLite` allows values of any type, and text with any bytes.
fn text(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Real(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The record for a row with bytes that aren't valid UTF-8; `None` if all bytes are valid.
fn missing(row: &Row<'_>, id: usize, columns: Range<usize>) -> Option<Record> {
    let (mut total, mut replaced) = (0, 0);
    for column in columns {
        if let Ok(ValueRef::Text(text)) = row.get_ref(column) {
            let shown = String::from_utf8_lossy(text);
            total += shown.chars().count() as u64;
            if let Cow::Owned(shown) = shown {
                replaced += shown.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count() as u64;
            }
        }
    }
    let missing =
        || Missing { id: text(row, id), read: total.saturating_sub(replaced), total: Some(total), is_text: true };
    (replaced > 0).then(|| Record::Missing(missing()))
}

fn number(row: &Row<'_>, column: usize) -> Option<f64> {
    match row.get_ref(column).ok()? {
        ValueRef::Real(number) => Some(number),
        #[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^52")]
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Text(text) => str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
