//! Output files that options name, and the rules for their paths.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{self, Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use super::{Failure, Misuse, table};

/// A file to write, or standard output. Every option that names an output file uses this type.
pub(super) struct Destination<'a> {
    option: &'static str,
    path: Option<&'a Path>,
}

impl<'a> Destination<'a> {
    /// The path `-` is standard output. Refuses paths in `data_dir`, the data directory in use, which may not exist
    /// yet, and in any other data directory. Still allows files with some extensions directly in such a directory,
    /// because it may be a container's only writable one.
    pub(super) fn new(option: &'static str, path: Option<&'a Path>, data_dir: Option<&Path>) -> Result<Self, Misuse> {
        let path = path.filter(|path| *path != Path::new("-"));
        let data_dir = data_dir.map(resolve);
        let is_data_dir = |dir: &&Path| Some(*dir) == data_dir.as_deref() || table::exists(dir);
        let is_kept = |place: &PathBuf| place.ancestors().find(is_data_dir).is_some_and(|dir| !is_foreign(place, dir));
        if let Some(path) = path.filter(|path| places(path).iter().any(is_kept)) {
            return Err(Misuse(format!(
                "{option} {} could overwrite one of the service's files; choose a path outside the data directory, or put a \
                 .tar, .json, .jsonl or .gz file directly in it",
                path.display()
            )));
        }
        if let Some(path) = path.filter(|path| is_redirected(path)) {
            return Err(Misuse(format!("{option} {} points to a file; pass the file itself", path.display())));
        }
        Ok(Self { option, path })
    }

    /// Whether this is a file, which leaves standard output free for messages.
    pub(super) fn is_file(&self) -> bool {
        self.path.is_some()
    }

    /// Fails if this is one of the files that the command reads.
    pub(super) fn unlike<'b>(self, read: impl IntoIterator<Item = &'b Path>) -> Result<Self, Misuse> {
        let (Self { option, .. }, Some(path)) = (&self, self.path) else { return Ok(self) };
        let written = places(path);
        match read.into_iter().find(|read| places(read).iter().any(|place| written.contains(place))) {
            Some(read) => Err(Misuse(format!(
                "{option} {} is {}, which this command reads; choose another file",
                path.display(),
                read.display()
            ))),
            None => Ok(self),
        }
    }

    /// Writes the file, compressed if its name ends in `.gz`. Replaces an existing file only once the new one is
    /// complete. Fails before calling `write` if the path isn't writable.
    pub(super) async fn write<T>(
        &self,
        write: impl AsyncFnOnce(&mut dyn Write) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(path) = self.path else {
            let mut out = BufWriter::new(Named { path: Path::new("standard output"), file: io::stdout() });
            let written = write(&mut out).await?;
            out.flush()?;
            return Ok(written);
        };
        let output = named(path, Output::create(path))?;
        let mut file = BufWriter::new(Named { path, file: output.file() });
        let written = if path.extension() == Some(OsStr::new("gz")) {
            let mut compressed = GzEncoder::new(&mut file, Compression::default());
            let written = write(&mut compressed).await?;
            compressed.finish()?;
            written
        } else {
            write(&mut file).await?
        };
        file.flush()?;
        drop(file);
        named(path, output.finish(path))?;
        Ok(written)
    }

    /// Runs `work` and writes its report as text. If the report can't be written afterwards, the error contains it,
    /// because a second run would report something else.
    pub(super) async fn report<T>(
        &self,
        work: impl AsyncFnOnce() -> Result<T, Failure>,
        format: impl FnOnce(&T) -> Result<String, Failure>,
    ) -> Result<T, Failure> {
        let mut text = String::new();
        let written = self.write(async |out| {
            let report = work().await?;
            text = format(&report)?;
            out.write_all(text.as_bytes())?;
            Ok(report)
        });
        match written.await {
            Err(error) if !text.is_empty() => {
                Err(format!("{error}; the work is done, so save this report:\n{}", text.trim_end()).into())
            }
            written => written,
        }
    }
}

pub(super) fn json(report: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// The resolved path before and after following a link at its end.
fn places(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().map(resolve).unwrap_or_default();
    [folder.join(name), resolve(path)]
}

/// Whether the path is directly in the data directory, with one of a few extensions that none of the service's own
/// files there have.
fn is_foreign(path: &Path, data_dir: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    path.parent() == Some(data_dir) && ending.is_some_and(|ending| ["tar", "json", "jsonl", "gz"].contains(&ending))
}

/// Whether the path is a link in `/dev`, such as `/dev/stdout`, that currently points to a file. Replacing the file
/// would replace the link for all programs.
fn is_redirected(path: &Path) -> bool {
    let is_device = path::absolute(path).is_ok_and(|path| path.starts_with("/dev"));
    is_device && path.is_symlink() && path.is_file()
}

/// The absolute path with links resolved. The last components may not exist.
fn resolve(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let absolute = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = |start: &Path| Some(start.canonicalize().ok()?.join(absolute.strip_prefix(start).ok()?));
    absolute.ancestors().find_map(existing).unwrap_or(absolute)
}

/// A file whose errors contain its path.
pub(super) struct Named<'a, F> {
    pub(super) path: &'a Path,
    pub(super) file: F,
}

pub(super) fn named<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

impl<F: Read> Read for Named<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        named(self.path, self.file.read(buffer))
    }
}

impl<F: Write> Write for Named<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        named(self.path, self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        named(self.path, self.file.flush())
    }
}

/// An output file that is being written. It gets its final name once it's complete.
enum Output {
    Temporary(NamedTempFile),
    /// A device or a pipe.
    Special(File),
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        match path.metadata() {
            Ok(existing) if existing.is_dir() => Err(io::Error::other("is a directory")),
            Ok(existing) if !existing.is_file() => File::options().write(true).open(path).map(Self::Special),
            _ => {
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                // Not `.tmp`, which an erasure removes from its data directory.
                let file = Builder::new().prefix(".writing-").tempfile_in(directory.unwrap_or(Path::new(".")));
                // The message leaves out the name of the temporary file.
                file.map(Self::Temporary).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => io::Error::other("its directory does not exist"),
                    kind => kind.into(),
                })
            }
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Temporary(file) => file.as_file(),
            Self::Special(file) => file,
        }
    }

    fn finish(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Special(_) => Ok(()),
            Self::Temporary(file) => {
                file.as_file().sync_all()?;
                file.persist(path).map(drop).map_err(|error| error.error)
            }
        }
    }
}
