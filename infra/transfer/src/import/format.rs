//! The formats, a parser a file. Each turns a source into [`Record`]s.

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

use std::path::Path;

use jiff::tz::TimeZone;

use super::bounded::Syntax;
use super::record::{Comment, Record, Thread};
use super::source::{ReadError, Source};

/// Takes the records of a source.
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
    /// Discussions as GitHub's GraphQL API answers them, in JSON
    Giscus,
}

impl Format {
    pub const ALL: [Self; 10] = [
        Self::Native,
        Self::Disqus,
        Self::Wordpress,
        Self::Isso,
        Self::Remark42,
        Self::Commento,
        Self::Comentario,
        Self::Artalk,
        Self::Waline,
        Self::Giscus,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Disqus => "disqus",
            Self::Wordpress => "wordpress",
            Self::Isso => "isso",
            Self::Remark42 => "remark42",
            Self::Commento => "commento",
            Self::Comentario => "comentario",
            Self::Artalk => "artalk",
            Self::Waline => "waline",
            Self::Giscus => "giscus",
        }
    }

    /// `zone` is that of times without an offset, unless the format says what they are.
    pub fn read(self, source: Source, zone: &TimeZone, scratch: &Path, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        if self == Self::Isso {
            let (_temporary, database) = source.database(scratch).map_err(ReadError::whole)?;
            return isso::read(&database, sink);
        }
        let syntax = if matches!(self, Self::Disqus | Self::Wordpress) { Syntax::Xml } else { Syntax::Json };
        let mut reader = source.reader(syntax).map_err(ReadError::whole)?;
        match self {
            Self::Disqus => disqus::read(reader, zone, sink),
            Self::Wordpress => wordpress::read(reader, zone, sink),
            Self::Isso | Self::Native => native::read(&mut reader, sink),
            Self::Remark42 => remark42::read(&mut reader, zone, sink),
            Self::Commento => commento::read(&mut reader, zone, sink),
            Self::Comentario => comentario::read(&mut reader, zone, sink),
            Self::Artalk => artalk::read(&mut reader, zone, sink),
            Self::Waline => waline::read(&mut reader, zone, sink),
            Self::Giscus => giscus::read(&mut reader, zone, sink),
        }
    }
}

/// The record of a comment. `is_oversized` says that a value was cut.
fn told(comment: Comment, is_oversized: bool) -> Record {
    Record::Comment(Box::new(Comment { is_oversized, ..comment }))
}

/// The thread of a page, for formats whose comments name its address.
fn page(url: &str, title: Option<String>) -> Record {
    Record::Thread(Thread {
        key: url.to_owned(),
        url: Some(url.to_owned()).filter(|url| !url.is_empty()),
        title,
        ..Thread::default()
    })
}
