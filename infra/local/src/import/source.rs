//! The files of a source: plain, gzip or zip, told apart by their content, or standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use rusqlite::{Connection, OpenFlags};
use zip::ZipArchive;

use crate::temporary::{self, TemporaryFile};

const GZIP: &[u8] = b"\x1f\x8b";
/// Of a zip with files, and of an empty one.
const ZIPS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 64 * 1024;

/// Where reading failed. Both count what is read after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From 1.
    Line(u64),
    /// In bytes.
    Offset(u64),
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Offset(offset) => write!(f, "byte {offset}: "),
            Self::Whole => Ok(()),
        }
    }
}

/// Why a file could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{place}{why}")]
    Source { place: Place, why: String },
    #[error("the scratch file: {0}")]
    Scratch(#[from] rusqlite::Error),
}

impl ReadError {
    pub fn at(place: Place, why: impl fmt::Display) -> Self {
        Self::Source { place, why: why.to_string() }
    }

    pub fn whole(why: impl fmt::Display) -> Self {
        Self::at(Place::Whole, why)
    }
}

/// One file of a source, decompressed. A zip has several.
pub struct Source {
    pub name: String,
    content: Content,
}

enum Content {
    /// A file that is neither compressed nor temporary.
    Plain(PathBuf),
    /// A temporary file, at its beginning.
    Unpacked(File),
    Stream(Box<dyn Read>),
}

impl Source {
    /// `-` is standard input. `scratch` is a directory for the files of a zip.
    pub fn open(path: &Path, scratch: &Path) -> io::Result<Vec<Self>> {
        if path == Path::new("-") {
            return of_stream("standard input", Box::new(io::stdin()), scratch);
        }
        let name = path.display().to_string();
        let mut file = open_file(path)?;
        if !file.metadata()?.is_file() {
            return of_stream(&name, Box::new(file), scratch);
        }
        let mut head = [0; 4];
        let length = read_head(&mut file, &mut head)?;
        file.seek(SeekFrom::Start(0))?;
        match &head[..length] {
            head if is_zip(head) => unzip(&name, file, scratch),
            head if head.starts_with(GZIP) => of_stream(&name, Box::new(file), scratch),
            _ => Ok(vec![Self { name, content: Content::Plain(path.to_owned()) }]),
        }
    }

    /// Fails when there is no such file, or none that may be read. A pipe is not opened, as that could wait for its writer.
    pub fn check(path: &Path) -> io::Result<()> {
        if path == Path::new("-") || path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Ok(());
        }
        open_file(path).map(drop)
    }

    pub fn reader(self) -> io::Result<Reader> {
        let input: Box<dyn Read> = match self.content {
            Content::Plain(path) => Box::new(File::open(path)?),
            Content::Unpacked(file) => Box::new(file),
            Content::Stream(stream) => stream,
        };
        Reader::new(input)
    }

    /// As a `SQLite` database. A temporary file must live as long.
    pub fn database(self, scratch: &Path) -> io::Result<(Option<TemporaryFile>, Connection)> {
        let mut content: Box<dyn Read> = match self.content {
            Content::Plain(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                return Ok((None, Connection::open_with_flags(path, flags).map_err(io::Error::other)?));
            }
            Content::Unpacked(file) => Box::new(file),
            Content::Stream(stream) => stream,
        };
        let (database, mut temporary) = temporary::database(scratch)?;
        io::copy(&mut content, &mut temporary.file)?;
        leave_wal_mode(&mut temporary.file)?;
        Ok((Some(temporary), database))
    }
}

fn of_stream(name: &str, stream: Box<dyn Read>, scratch: &Path) -> io::Result<Vec<Source>> {
    let mut input = BufReader::with_capacity(BUFFER, stream);
    let head = input.fill_buf()?;
    if head.starts_with(GZIP) {
        let inside = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input));
        return Ok(vec![Source { name: name.to_owned(), content: Content::Stream(Box::new(inside)) }]);
    }
    if is_zip(head) {
        return unzip(name, spool(&mut input, scratch)?, scratch);
    }
    Ok(vec![Source { name: name.to_owned(), content: Content::Stream(Box::new(input)) }])
}

/// The files of a zip, without those that macOS adds.
fn unzip(name: &str, file: File, scratch: &Path) -> io::Result<Vec<Source>> {
    let mut archive = ZipArchive::new(BufReader::new(file))?;
    let mut sources = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let inner = entry.name()?.into_owned();
        if entry.is_dir() || inner.starts_with("__MACOSX/") || inner.ends_with(".DS_Store") {
            continue;
        }
        let name = format!("{name}/{inner}");
        let mut unpacked =
            spool(&mut entry, scratch).map_err(|error| io::Error::new(error.kind(), format!("{inner}: {error}")))?;
        let mut head = [0; 4];
        let length = read_head(&mut unpacked, &mut head)?;
        unpacked.seek(SeekFrom::Start(0))?;
        if head[..length].starts_with(GZIP) {
            sources.extend(of_stream(&name, Box::new(unpacked), scratch)?);
        } else {
            sources.push(Source { name, content: Content::Unpacked(unpacked) });
        }
    }
    if sources.is_empty() { Err(io::Error::other("the zip has no file")) } else { Ok(sources) }
}

fn is_zip(head: &[u8]) -> bool {
    ZIPS.iter().any(|zip| head.starts_with(zip))
}

/// Copies to a temporary file, which is at its beginning then.
fn spool(input: &mut impl Read, scratch: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(scratch)?;
    io::copy(input, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// A database that is written through a log opens it by the name of the database, which a temporary one has lost. A copy has
/// no log.
fn leave_wal_mode(database: &mut File) -> io::Result<()> {
    const VERSIONS: SeekFrom = SeekFrom::Start(18);
    let mut versions = [0; 2];
    database.seek(VERSIONS)?;
    if database.read(&mut versions)? == 2 && versions == [2, 2] {
        database.seek(VERSIONS)?;
        database.write_all(&[1, 1])?;
    }
    Ok(())
}

fn open_file(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_dir() {
        return Err(io::Error::other("is a directory"));
    }
    File::open(path)
}

fn read_head(file: &mut File, head: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// Reads a text and knows the current place in it.
pub struct Reader {
    input: BufReader<Box<dyn Read>>,
    line: u64,
}

impl Reader {
    pub fn new(input: Box<dyn Read>) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        Ok(Self { input, line: 1 })
    }

    #[cfg(test)]
    pub fn of(text: impl Into<Vec<u8>>) -> Self {
        Self::new(Box::new(io::Cursor::new(text.into()))).unwrap()
    }

    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }

    /// The first byte that is not white space, without reading it. `None` at the end.
    pub fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.fill_buf()?;
            let Some(first) = buffer.first().copied() else { return Ok(None) };
            if !first.is_ascii_whitespace() {
                return Ok(Some(first));
            }
            self.consume(1);
        }
    }
}

impl Read for Reader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(target)?;
        self.line += lines(&target[..read]);
        Ok(read)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.line += lines(&self.input.buffer()[..amount]);
        self.input.consume(amount);
    }
}

#[expect(clippy::naive_bytecount, reason = "most reads are short, and it is no bottleneck")]
fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn contents(bytes: &[u8]) -> io::Result<Vec<(String, String)>> {
        let directory = tempfile::tempdir().unwrap();
        // The name says nothing: content counts.
        let path = directory.path().join("dump.xml");
        std::fs::write(&path, bytes).unwrap();
        let sources = Source::open(&path, directory.path())?;
        let prefix = path.display().to_string();
        let read = |source: Source| {
            let name = source.name.trim_start_matches(&prefix).to_owned();
            io::read_to_string(source.reader()?).map(|text| (name, text))
        };
        sources.into_iter().map(read).collect()
    }

    fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn plain_gzip_and_zip_are_told_apart_by_content() {
        assert_eq!(contents(b"<x/>").unwrap(), named(&[("", "<x/>")]));
        assert_eq!(contents(&gzip("<x/>")).unwrap(), named(&[("", "<x/>")]));
        assert_eq!(contents(&[gzip("<x>"), gzip("</x>")].concat()).unwrap(), named(&[("", "<x></x>")]));
        let files = zip(&[("a.xml", b"<a/>"), ("__MACOSX/._a.xml", b"?"), ("d/b.gz", &gzip("<b/>"))]);
        assert_eq!(contents(&files).unwrap(), named(&[("/a.xml", "<a/>"), ("/d/b.gz", "<b/>")]));
    }

    #[test]
    fn files_of_a_zip_have_no_name_on_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.zip");
        std::fs::write(&path, zip(&[("a.xml", b"<a/>"), ("b.gz", &gzip("<b/>"))])).unwrap();
        let sources = Source::open(&path, directory.path()).unwrap();
        assert_eq!(sources.len(), 2);
        if cfg!(unix) {
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_before_it_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("dump.xml");
        assert_eq!(Source::check(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(Source::check(directory.path()).unwrap_err().to_string(), "is a directory");
        std::fs::write(&file, "<a/>").unwrap();
        Source::check(&file).unwrap();
        Source::check(Path::new("-")).unwrap();
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(contents(b"\xef\xbb\xbf{}").unwrap(), named(&[("", "{}")]));
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let whole = gzip(&"comment ".repeat(1000));
        assert!(contents(&whole[..whole.len() / 2]).is_err());
        let whole = zip(&[("a.xml", b"<a/>")]);
        assert!(contents(&whole[..whole.len() - 30]).is_err());
        assert!(contents(&zip(&[])).is_err());
    }

    #[test]
    fn a_reader_knows_its_line() {
        let mut reader = Reader::of("one\ntwo\n\n three");
        assert_eq!(reader.place(), Place::Line(1));
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!((reader.peek().unwrap(), reader.place()), (Some(b't'), Place::Line(2)));
        reader.read_exact(&mut [0; 4]).unwrap();
        assert_eq!((reader.peek().unwrap(), reader.place()), (Some(b't'), Place::Line(4)));
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.peek().unwrap(), None);
    }
}
