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
use super::report::Missing;
use super::source::{ReadError, Reader, Source, Syntax};

pub(super) type Sink<'a> = dyn FnMut(Record) -> Result<(), ReadError> + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The JSON Lines of `cargo local export`
    Native,
    /// XML
    Disqus,
    /// WXR, the XML of Tools > Export
    Wordpress,
    /// The `SQLite` database
    Isso,
    /// A backup
    Remark42,
    /// JSON
    Commento,
    /// JSON
    Comentario,
    /// Artrans
    Artalk,
    /// JSON, or JSON lines of `LeanCloud`
    Waline,
    /// Discussions as GitHub's GraphQL API returns them, in JSON
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
                let replaced_so_far = reader.replaced();
                // Parsers repeat the records of sites and pages with each comment.
                let mut repeatable = HashSet::new();
                let (mut has_comments, mut is_in_format) = (false, *syntax != Syntax::Json);
                read(reader, zone, &mut |record| {
                    if let Record::Comment(comment) = &record {
                        has_comments = true;
                        is_in_format |= is_recognized(comment);
                    }
                    let missing = Some(&record).filter(|_| replaced_so_far.get() > 0).and_then(replaced);
                    let is_new =
                        |missing: &Missing| matches!(record, Record::Comment(_)) || repeatable.insert(missing.clone());
                    missing.filter(is_new).map_or(Ok(()), |missing| sink(Record::Missing(missing)))?;
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

/// Whether a comment from JSON has at least two of an id, a page and a time. Formats share some names of attributes, but no
/// two formats share two of these.
fn is_recognized(comment: &Comment) -> bool {
    let found = [!comment.source_id.is_empty(), !comment.thread.is_empty(), comment.created_at.is_some()];
    found.into_iter().filter(|found| *found).count() > 1
}

/// Describes a record as incomplete, if some of its characters replace invalid bytes. The record of a comment's page
/// describes the page.
fn replaced(record: &Record) -> Option<Missing> {
    let (id, mut texts) = match record {
        Record::Head(head) => (head.site.as_ref()?, Vec::new()),
        Record::Thread(thread) => {
            (&thread.key, thread.title.iter().chain(&thread.url).chain(&thread.aliases).collect())
        }
        Record::User(user) => (&user.id, vec![&user.name, &user.email, &user.picture]),
        Record::Comment(comment) => {
            let Author { key, name, email, avatar, .. } = &comment.author;
            let texts = [&comment.body, key, name, email, avatar].into_iter().chain(&comment.parent);
            (&comment.source_id, texts.collect())
        }
        _ => return None,
    };
    texts.push(id);
    texts.sort_unstable();
    texts.dedup();
    let count = |is_counted: fn(&char) -> bool| {
        texts.iter().map(|text| text.chars().filter(is_counted).count() as u64).sum::<u64>()
    };
    let (total, replaced) = (count(|_| true), count(|c| *c == char::REPLACEMENT_CHARACTER));
    (replaced > 0).then(|| Missing { id: id.clone(), read: total - replaced, total: Some(total), is_text: true })
}

/// The record of a comment. `is_oversized` means that a value is longer than `MAX_VALUE`.
fn comment_record(comment: Comment, is_oversized: bool) -> Record {
    Record::Comment(Box::new(Comment { is_oversized, ..comment }))
}

/// A comment of which only the time is known. `read` parses it, and takes the zone of times without an offset.
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
