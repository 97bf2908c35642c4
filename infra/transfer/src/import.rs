//! Imports comments from other systems.
//!
//! ```text
//! file → source → format → record → staging → locate → write → report
//! ```
//!
//! `source` opens a file, a parser in `format` turns it into `record`s, and `staging` turns their HTML into Markdown and
//! decides the fate of each. Then `Importer::run` in `write` has `locate` find the ids of the comments in the table, and
//! writes new ones. Nothing is written until all files have been read. Comments by people who were erased count as
//! deleted.

mod author;
mod format;
mod locate;
mod markdown;
mod parts;
pub mod record;
mod report;
mod site;
mod source;
pub mod staging;
#[cfg(test)]
mod tests;
mod thread_key;
mod time;
pub mod write;

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use shared::domain::time::Clock;

use crate::store::person::forgotten::Forgotten;

pub use self::author::Users;
pub use self::format::Format;
use self::parts::Parts;
use self::record::Record;
pub use self::report::{Entry, Missing, Report};
use self::site::Site;
pub use self::source::ReadError;
use self::source::Source;
pub use self::staging::OtherSalt;
use self::staging::Staging;
pub use self::thread_key::{Map, NO_TYPE, ThreadKeys};

/// The number of seconds by which a source's clock may be ahead.
const AHEAD: i64 = 5 * 60;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{file}: {cause}")]
    Open { file: String, cause: std::io::Error },
    #[error("{file}: {cause}")]
    Read { file: String, cause: ReadError },
}

pub struct Import {
    pub format: Format,
    pub files: Vec<PathBuf>,
    pub keys: ThreadKeys,
    /// The time zone of times without an offset.
    pub zone: TimeZone,
    /// Whether spam, trash and pingbacks become rejected comments.
    pub keep_spam: bool,
    pub users: Users,
    /// The name of the site. If it's `None`, the files may name the site.
    pub site: Option<String>,
    pub clock: Clock,
    /// People whose comments count as deleted.
    pub forgotten: Option<Forgotten>,
}

/// Progress of reading the files.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub comments: u64,
    /// The bytes of the files read so far. `total` is the size of all files; 0 if unknown.
    pub bytes: u64,
    pub total: u64,
}

/// Fails at the first file that cannot be read at all.
pub fn check_files(files: &[PathBuf]) -> Result<(), ImportError> {
    files.iter().try_for_each(|path| {
        Source::check(path).map_err(|cause| ImportError::Open { file: path.display().to_string(), cause })
    })
}

impl Import {
    #[must_use]
    pub fn new(format: Format, files: Vec<PathBuf>) -> Self {
        let (keys, users) = (ThreadKeys::default(), Users::default());
        let (site, clock) = (None, Clock::system());
        Self { format, files, keys, zone: TimeZone::UTC, keep_spam: false, users, site, clock, forgotten: None }
    }

    /// Reads all files and decides the fate of each comment. `directory` is for temporary files. `progress` is called
    /// after each record.
    pub fn read(&self, directory: &Path, mut progress: impl FnMut(Reading)) -> Result<Staging, ImportError> {
        let mut staging = Staging::default();
        staging.latest = Some(self.clock.now().seconds() + AHEAD);
        staging.native = (self.format == Format::Native).then(String::new);
        let (mut site, mut parts) = (Site::given(self.site.as_deref()), Parts::default());
        let length = |path: &PathBuf| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
        let lengths: Option<Vec<u64>> = self.files.iter().map(length).collect();
        let (lengths, mut before_file) = (lengths.unwrap_or_default(), 0);
        let total = lengths.iter().sum();
        for (index, path) in self.files.iter().enumerate() {
            let name = path.display().to_string();
            let sources = Source::open(path, directory).map_err(|cause| ImportError::Open { file: name, cause })?;
            for source in sources {
                let (file, before, read_of_file) = (source.name.clone(), staging.comments(), source.progress());
                staging.file += 1;
                let mut sink = |record| {
                    site.note(&file, &record)?;
                    match record {
                        Record::Part(part) => parts.add(part),
                        Record::Missing(missing) => staging.missing.push(missing),
                        record => staging.add(record),
                    }
                    let bytes = before_file + read_of_file.get();
                    progress(Reading { comments: staging.comments(), bytes, total });
                    Ok(())
                };
                let read = self.format.read(source, &self.zone, directory, &mut sink);
                if let Err(cause) = read {
                    return Err(ImportError::Read { file, cause });
                }
                if staging.comments() == before {
                    staging.silent.push(file);
                }
            }
            before_file += lengths.get(index).copied().unwrap_or_default();
        }
        staging.site = site.name;
        staging.missing.extend(parts.missing());
        if let Some(forgotten) = &self.forgotten {
            staging.forget(&self.users, forgotten);
        }
        staging.resolve(&self.keys, self.keep_spam);
        Ok(staging)
    }
}
