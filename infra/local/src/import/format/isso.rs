//! Isso: a `SQLite` database with the tables `threads` and `comments`.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

use super::super::markdown::{self, RawHtml};
use super::super::record::{Author, BodyFormat, Comment, Record, State, Thread};
use super::super::source::ReadError;
use super::super::time;
use super::Sink;

pub(super) fn read(database: &Connection, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    each(database, "SELECT id, uri, title FROM threads", &mut |row| Ok(sink_thread(row)), sink)?;
    let comments = "SELECT coalesce(nullif(page.uri, ''), tid), comments.id, parent, created, modified, mode, text, author, email, likes
        FROM comments LEFT JOIN (SELECT id, min(uri) AS uri FROM threads GROUP BY id) page ON page.id = tid ORDER BY comments.id";
    each(database, comments, &mut |row| Ok(comment(row)), sink)
}

fn each(
    database: &Connection,
    query: &str,
    record: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<Record>,
    sink: &mut Sink<'_>,
) -> Result<(), ReadError> {
    let mut statement = database.prepare(query).map_err(ReadError::whole)?;
    let mut rows = statement.query([]).map_err(ReadError::whole)?;
    while let Some(row) = rows.next().map_err(ReadError::whole)? {
        sink(record(row).map_err(ReadError::whole)?)?;
    }
    Ok(())
}

fn sink_thread(row: &Row<'_>) -> Record {
    // Every file counts its threads from 1, so that a number is no name.
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
    let (format, body) = body(&text(row, 6));
    Record::Comment(Box::new(Comment {
        thread: text(row, 0),
        source_id: text(row, 1),
        parent: Some(text(row, 2)).filter(|parent| !parent.is_empty()),
        created_at: number(row, 3).and_then(time::from_unix),
        edited_at: number(row, 4).and_then(time::from_unix),
        state: match text(row, 5).as_str() {
            "1" => State::Approved,
            "4" => State::Deleted,
            _ => State::Pending,
        },
        format,
        body,
        author: Author { name: text(row, 7), email: text(row, 8), ..Author::default() },
        likes: text(row, 9).parse().unwrap_or_default(),
        ..Comment::default()
    }))
}

/// Markdown, unless it begins with a tag: comments that Isso imported are in HTML. Other HTML is text.
fn body(typed: &str) -> (BodyFormat, String) {
    let tag =
        typed.trim_start().strip_prefix('<').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    // `<https://example.org>` is a link in Markdown.
    let name = typed.trim_start().trim_start_matches('<').split(|c: char| !c.is_ascii_alphanumeric()).next();
    let autolink = matches!(name, Some("http" | "https" | "mailto" | "ftp"));
    if tag && !autolink {
        (BodyFormat::Html, typed.to_owned())
    } else {
        (BodyFormat::Markdown, markdown::from_dialect(typed, RawHtml::Text))
    }
}

/// Columns of `SQLite` hold values of any type.
fn text(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column).map(Value::try_from) {
        Ok(Ok(Value::Text(text))) => text,
        Ok(Ok(Value::Integer(number))) => number.to_string(),
        Ok(Ok(Value::Real(number))) => number.to_string(),
        _ => String::new(),
    }
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
