//! `cargo local export`: writes a table as a file that `cargo local import native` reads.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use shared::domain::ids::salt_fingerprint;
use tempfile::NamedTempFile;
use transfer::export::export;

use super::table::Table;
use super::{Failure, data_dir};

/// Export comments, likes, reports and users to a file for import native; see
/// docs/native-format.md. The exit code is 3 if the table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// File to write, compressed if it ends in
    /// .gz; standard output by default
    #[arg(long, value_name = "FILE.jsonl[.gz]", verbatim_doc_comment)]
    pub(super) out: Option<PathBuf>,
    /// Directory of the table
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    pub(super) data_dir: PathBuf,
    /// Deployed table to export instead, with
    /// the credentials from the environment
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir", verbatim_doc_comment)]
    pub(super) table: Option<String>,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let comments = write_to(self.out.as_deref(), async |mut out| {
            let table = Table::open_to_read(&self.data_dir, self.table.as_deref()).await?;
            Ok(export(&table.store, salt_fingerprint(table.salt()?), &mut out).await?)
        });
        let comments = comments.await?;
        if self.out.is_some() {
            writeln!(io::stdout(), "{comments} comments exported")?;
        }
        Ok(())
    }
}

/// Writes to a file, compressed if its name ends in `.gz`, or to standard output. Fails before anything is done if the
/// path isn't writable.
pub(super) async fn write_to<T>(
    path: Option<&Path>,
    write: impl AsyncFnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = path else {
        let mut out = BufWriter::new(io::stdout());
        let written = write(&mut out).await?;
        out.flush()?;
        return Ok(written);
    };
    let output = Output::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
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
    output.finish(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(written)
}

/// Adds the path that the user gave to errors.
struct Named<'a> {
    path: &'a Path,
    file: &'a File,
}

impl Named<'_> {
    fn name<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display())))
    }
}

impl Write for Named<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.name((&mut &*self.file).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.name((&mut &*self.file).flush())
    }
}

/// A file that is being written, which gets its name once it's complete.
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
                let file = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")));
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
