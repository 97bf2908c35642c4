//! The formats, with a file for each parser. A parser turns a source into [`Record`]s.

mod artalk;
mod comentario;
mod commento;
mod disqus;
mod giscus;
mod isso;
mod json;
mod native;
mod remark42;
#[cfg(test)]
pub(super) mod tests;
mod waline;
mod wordpress;
mod xml;

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::Connection;

use super::record::{Author, Comment, Record, Thread};
use super::source::{MARK, ReadError, Reader, Source, Syntax};

pub(super) type Sink<'a> = dyn FnMut(Record) -> Result<(), ReadError> + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The JSON Lines of `cargo local export`.
    Native,
    Disqus,
    /// WXR, the XML of Tools > Export.
    Wordpress,
    Isso,
    /// A backup, in JSON.
    Remark42,
    Commento,
    Comentario,
    /// The export format Artrans, in JSON.
    Artalk,
    /// JSON, or the JSON Lines of `LeanCloud`.
    Waline,
    /// Discussions as GitHub's GraphQL API returns them, in JSON.
    Giscus,
}

/// A format's parser. The time zone applies to times without an offset.
enum Parser {
    Text(Syntax, fn(Reader, &TimeZone, &mut Sink<'_>) -> Result<(), ReadError>),
    Database(fn(&Connection, &mut Sink<'_>) -> Result<(), ReadError>),
}

/// Each format, its name on the command line and in sources, and its parser.
static FORMATS: [(Format, &str, Parser); 10] = [
    (Format::Native, "native", Parser::Text(Syntax::Native, native::read)),
    (Format::Disqus, "disqus", Parser::Text(Syntax::Xml, disqus::read)),
    (Format::Wordpress, "wordpress", Parser::Text(Syntax::Xml, wordpress::read)),
    (Format::Isso, "isso", Parser::Database(isso::read)),
    (Format::Remark42, "remark42", Parser::Text(Syntax::Json, remark42::read)),
    (Format::Commento, "commento", Parser::Text(Syntax::Json, commento::read)),
    (Format::Comentario, "comentario", Parser::Text(Syntax::Json, comentario::read)),
    (Format::Artalk, "artalk", Parser::Text(Syntax::Json, artalk::read)),
    (Format::Waline, "waline", Parser::Text(Syntax::Json, waline::read)),
    (Format::Giscus, "giscus", Parser::Text(Syntax::Json, giscus::read)),
];

impl Format {
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Passes the source's records to `sink`. `zone` is the time zone of times without an offset, unless the format
    /// defines it.
    pub fn read(self, source: Source, zone: &TimeZone, temp_dir: &Path, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        match self.row().1 {
            Parser::Database(read) => {
                let (_temporary, database) = source.database(temp_dir).map_err(ReadError::whole)?;
                read(&database, sink)
            }
            Parser::Text(syntax, read) => {
                let reader = source.reader(*syntax).map_err(ReadError::whole)?;
                let is_damaged = reader.is_damaged();
                // Parsers repeat the records of sites and pages with each comment, so an incomplete text is reported
                // only once.
                let mut reported = HashSet::new();
                let (mut has_comments, mut is_in_format) = (false, *syntax != Syntax::Json);
                read(reader, zone, &mut |mut record| {
                    if is_damaged.get() {
                        texts(&mut record).into_iter().for_each(unmark);
                    }
                    match &record {
                        Record::Comment(comment) => {
                            has_comments = true;
                            is_in_format |= is_recognized(comment);
                        }
                        // If nothing was damaged, each `MARK` is a real character of the source.
                        Record::Missing(_) if *syntax == Syntax::Json && !is_damaged.get() => return Ok(()),
                        Record::Missing(missing) if !reported.insert(missing.clone()) => return Ok(()),
                        _ => {}
                    }
                    sink(record)
                })?;
                if has_comments && !is_in_format {
                    return Err(ReadError::whole("has no comments of this format; is it in another one?"));
                }
                Ok(())
            }
        }
    }

    fn row(self) -> (&'static str, &'static Parser) {
        let row = FORMATS.iter().find(|(format, ..)| *format == self);
        row.map(|(_, name, parser)| (*name, parser)).expect("each format has a row")
    }
}

/// Whether a comment from JSON has at least two of an id, a page and a time. Some formats share attribute names, but no
/// two formats share two of these.
fn is_recognized(comment: &Comment) -> bool {
    let found = [!comment.source_id.is_empty(), !comment.thread.is_empty(), comment.created_at.is_some()];
    found.into_iter().filter(|found| *found).count() > 1
}

/// The texts of a record, its id first.
fn texts(record: &mut Record) -> Vec<&mut String> {
    match record {
        Record::Head(head) => head.site.iter_mut().collect(),
        Record::Thread(Thread { key, title, url, aliases, .. }) => {
            [key].into_iter().chain(title).chain(url).chain(aliases).collect()
        }
        Record::User(user) => vec![&mut user.id, &mut user.name, &mut user.email, &mut user.picture],
        Record::Comment(comment) => {
            let Comment { source_id, thread, parent, body, author, .. } = comment.as_mut();
            let Author { key, name, email, avatar, .. } = author;
            [source_id, thread, body, key, name, email, avatar].into_iter().chain(parent).collect()
        }
        Record::Part(part) => [&mut part.of].into_iter().chain(&mut part.element).collect(),
        Record::Missing(missing) => vec![&mut missing.id],
        _ => Vec::new(),
    }
}

fn unmark(text: &mut String) {
    if text.contains(MARK) {
        *text = text.replace(MARK, "\u{fffd}");
    }
}

/// The record of a comment. `is_oversized` means that a value is longer than `MAX_VALUE`.
fn comment_record(comment: Comment, is_oversized: bool) -> Record {
    Record::Comment(Box::new(Comment { is_oversized, ..comment }))
}

/// A comment with only `created_at` and `written_at`. `read` parses the time in the zone that it's called with.
fn created(zone: &TimeZone, read: impl Fn(&TimeZone) -> Option<Timestamp>) -> Comment {
    Comment { created_at: read(zone), written_at: read(&TimeZone::UTC), ..Comment::default() }
}

/// The record of a page, for formats that name pages only by the URL in each comment.
fn page(url: &str, title: Option<String>) -> Record {
    Record::Thread(Thread {
        key: url.to_owned(),
        url: Some(url.to_owned()).filter(|url| !url.is_empty()),
        title,
        ..Thread::default()
    })
}
