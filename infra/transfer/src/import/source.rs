//! The files of a source: plain, gzip or zip, detected by content, or standard input.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use rusqlite::{Connection, OpenFlags};
use shared::domain::mend::Mend;
use shared::domain::visible::plain_line;
use tempfile::{NamedTempFile, TempPath};
use zip::ZipArchive;

const GZIP: &[u8] = b"\x1f\x8b";
/// The first bytes of a zip with files, and of an empty zip.
const ZIPS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The byte order marks of UTF-16, in which PowerShell writes redirected output.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const BUFFER: usize = 64 * 1024;
/// The limit of a packed file's content: `UNPACKED` bytes, plus `RATIO` for each byte of the file. Text shrinks to
/// about a tenth of its size, and a decompression bomb to a thousandth.
const UNPACKED: u64 = 64 << 20;
const RATIO: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    /// The native format, which is read without repairs.
    Native,
    Xml,
}

/// Why a source can't be read. Lines and offsets are those of the decompressed content.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl ReadError {
    /// Replaces control characters in `why`, which may quote the file.
    pub fn whole(why: impl fmt::Display) -> Self {
        Self(plain_line(&why.to_string()))
    }

    /// `line` is the number of a line, from 1.
    pub fn at_line(line: u64, why: impl fmt::Display) -> Self {
        Self::whole(format_args!("line {line}: {why}"))
    }

    /// `offset` is in bytes.
    pub fn at_byte(offset: u64, why: impl fmt::Display) -> Self {
        Self::whole(format_args!("byte {offset}: {why}"))
    }
}

/// One file of a source, decompressed. A zip may contain several.
pub struct Source {
    pub name: String,
    content: Content,
    progress: Rc<Cell<u64>>,
}

/// The numbers of bytes read so far from a file that may be packed, before and after decompression. For a zip file,
/// `packed` is its size from the start.
#[derive(Clone, Default)]
struct Budget {
    packed: Rc<Cell<u64>>,
    unpacked: Rc<Cell<u64>>,
}

struct Counted<R> {
    input: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(target)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Fails if a packed file expands to far more than comments would.
struct Unpacked<R> {
    input: R,
    budget: Budget,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(target)?;
        let unpacked = self.budget.unpacked.get() + read as u64;
        self.budget.unpacked.set(unpacked);
        if unpacked > UNPACKED.saturating_add(self.budget.packed.get().saturating_mul(RATIO)) {
            let mb = UNPACKED >> 20;
            return Err(io::Error::other(format!(
                "expands to more than {RATIO} times its size and {mb} MB; if you trust it, unpack it and import its contents"
            )));
        }
        Ok(read)
    }
}

enum Content {
    /// A file that is neither compressed nor temporary.
    Plain(PathBuf),
    Stream(Box<dyn Read>),
}

impl Source {
    /// Opens the files of a source. `-` is standard input. `temp_dir` is a directory for the files of a zip.
    pub fn open(path: &Path, temp_dir: &Path) -> io::Result<Vec<Self>> {
        let budget = Budget::default();
        let counted = |input: Box<dyn Read>| Box::new(Counted { input, read: budget.packed.clone() });
        if path == Path::new("-") {
            return of_stream("standard input", counted(Box::new(io::stdin())), temp_dir, &budget);
        }
        let name = path.display().to_string();
        let file = open_file(path)?;
        if !file.metadata()?.is_file() {
            return of_stream(&name, counted(Box::new(file)), temp_dir, &budget);
        }
        match head_of(&file, 4)? {
            head if is_zip(&head) => {
                budget.packed.set(file.metadata()?.len());
                unzip(&name, file, temp_dir, &budget)
            }
            head if head.starts_with(GZIP) => of_stream(&name, counted(Box::new(file)), temp_dir, &budget),
            _ => Ok(vec![Self::of(name, Content::Plain(path.to_owned()), &budget)]),
        }
    }

    fn of(name: String, content: Content, budget: &Budget) -> Self {
        Self { name, content, progress: budget.packed.clone() }
    }

    /// A counter of the bytes read so far from the file. It stays 0 for the files of a zip and for a plain database.
    pub fn progress(&self) -> Rc<Cell<u64>> {
        self.progress.clone()
    }

    /// Fails if the file doesn't exist or can't be read. Doesn't open a pipe, because that could wait for its writer.
    pub fn check(path: &Path) -> io::Result<()> {
        if path == Path::new("-") || path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Ok(());
        }
        open_file(path).map(drop)
    }

    pub fn reader(self, syntax: Syntax) -> io::Result<Reader> {
        let input: Box<dyn Read> = match self.content {
            Content::Plain(path) => Box::new(Counted { input: File::open(path)?, read: self.progress }),
            Content::Stream(stream) => stream,
        };
        Reader::new(input, syntax)
    }

    /// Opens the source as a `SQLite` database. The temporary file, if any, must outlive the connection.
    pub fn database(self, temp_dir: &Path) -> io::Result<(Option<TempPath>, Connection)> {
        let mut content: Box<dyn Read> = match self.content {
            Content::Plain(path) => {
                check_length(&File::open(&path)?)?;
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                return Ok((None, Connection::open_with_flags(path, flags).map_err(io::Error::other)?));
            }
            Content::Stream(stream) => stream,
        };
        let (mut file, path) = NamedTempFile::new_in(temp_dir)?.into_parts();
        io::copy(&mut content, &mut file)?;
        check_length(&file)?;
        leave_wal_mode(&mut file)?;
        let database = Connection::open(&path).map_err(io::Error::other)?;
        if cfg!(unix) {
            // Removes the name, so that no file is left behind if the process is killed.
            path.close()?;
            return Ok((None, database));
        }
        Ok((Some(path), database))
    }
}

fn of_stream(name: &str, stream: Box<dyn Read>, temp_dir: &Path, budget: &Budget) -> io::Result<Vec<Source>> {
    let mut input = BufReader::with_capacity(BUFFER, stream);
    let head = input.fill_buf()?;
    if is_zip(head) {
        return unzip(name, spool(&mut input, temp_dir)?, temp_dir, budget);
    }
    let content: Box<dyn Read> = if head.starts_with(GZIP) {
        Box::new(Unpacked { input: MultiGzDecoder::new(input), budget: budget.clone() })
    } else {
        Box::new(input)
    };
    Ok(vec![Source::of(name.to_owned(), Content::Stream(content), budget)])
}

/// Unpacks the files of a zip, without those that macOS adds.
fn unzip(name: &str, file: File, temp_dir: &Path, budget: &Budget) -> io::Result<Vec<Source>> {
    let mut archive = ZipArchive::new(BufReader::new(file))?;
    let mut sources = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let inner = plain_line(&entry.name()?);
        if entry.is_dir() || inner.starts_with("__MACOSX/") || inner.ends_with(".DS_Store") {
            continue;
        }
        let name = format!("{name}/{inner}");
        let mut entry = Unpacked { input: &mut entry, budget: budget.clone() };
        let unpacked =
            spool(&mut entry, temp_dir).map_err(|error| io::Error::new(error.kind(), format!("{inner}: {error}")))?;
        if head_of(&unpacked, 4)?.starts_with(GZIP) {
            sources.extend(of_stream(&name, Box::new(unpacked), temp_dir, budget)?);
        } else {
            sources.push(Source::of(name, Content::Stream(Box::new(unpacked)), budget));
        }
    }
    // Unpacking has already read the whole archive, so its counter can't measure the progress of these files.
    for source in &mut sources {
        source.progress = Rc::default();
    }
    if sources.is_empty() { Err(io::Error::other("the zip contains no files")) } else { Ok(sources) }
}

fn is_zip(head: &[u8]) -> bool {
    ZIPS.iter().any(|zip| head.starts_with(zip))
}

/// Copies the input to a temporary file, and rewinds the file.
fn spool(input: &mut impl Read, temp_dir: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(temp_dir)?;
    io::copy(input, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Fails if the file isn't an `SQLite` database, or is truncated. `SQLite` would read a truncated one.
fn check_length(file: &File) -> io::Result<()> {
    let header = head_of(file, 100)?;
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(io::Error::other("isn't an SQLite database, or is truncated"));
    }
    let word = |at: usize| u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    // A page of 65,536 bytes is written as 1.
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        bytes => bytes,
    };
    // Old versions of SQLite don't update the page count. The count is valid only if it was written with the last
    // change.
    let pages = if word(24) == word(92) { word(28) } else { 0 };
    let length = file.metadata()?.len();
    if length < pages * page || length % page.max(1) != 0 {
        return Err(io::Error::other(format!("is cut off: it has {length} of {} bytes", (pages * page).max(length))));
    }
    Ok(())
}

/// Turns off WAL mode. `SQLite` finds the log by the database's file name, but a temporary file has another name. A
/// copy has no log anyway.
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

/// The first `most` bytes of a file, which is rewound.
fn head_of(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.rewind()?;
    file.take(most).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head)
}

/// Replaces invalid bytes and escapes in JSON until they are reported. A noncharacter, because valid texts may contain
/// U+FFFD.
pub(super) const MARK: char = '\u{fdd0}';

/// Repairs JSON chunk by chunk, and replaces everything invalid with [`MARK`].
pub(super) struct Marking {
    mend: Mend,
    is_damaged: Rc<Cell<bool>>,
}

impl Marking {
    pub(super) fn new(is_damaged: Rc<Cell<bool>>) -> Self {
        Self { mend: Mend::default(), is_damaged }
    }

    pub(super) fn pass(&mut self, json: &[u8], out: &mut Vec<u8>) {
        let [replacement, mark] = ["\u{fffd}", "\u{fdd0}"].map(str::as_bytes);
        // Parts are so short that none completes both a real U+FFFD and an invalid sequence.
        for part in json.split_inclusive(|byte| !byte.is_ascii() || *byte == b'\\') {
            let (start, replaced) = (out.len(), self.mend.replaced());
            self.mend.pass(part, out);
            if self.mend.replaced() > replaced {
                self.is_damaged.set(true);
                for at in start..=out.len() - replacement.len() {
                    if out[at..].starts_with(replacement) {
                        out[at..at + mark.len()].copy_from_slice(mark);
                    }
                }
            }
        }
    }
}

/// Reads a text, repairs it if its syntax is [`Syntax::Json`], and tracks the line.
pub struct Reader {
    input: BufReader<Box<dyn Read>>,
    marking: Option<Marking>,
    /// The repaired content, and the number of bytes read from it.
    passed: Vec<u8>,
    read: usize,
    line: u64,
    is_damaged: Rc<Cell<bool>>,
}

impl Reader {
    pub fn new(input: Box<dyn Read>, syntax: Syntax) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let start = input.fill_buf()?;
        if start.starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        } else if UTF_16.iter().any(|mark| start.starts_with(mark)) {
            return Err(io::Error::other("is in UTF-16; save it as UTF-8, and import that"));
        }
        let is_damaged = Rc::new(Cell::new(false));
        let marking = (syntax == Syntax::Json).then(|| Marking::new(is_damaged.clone()));
        Ok(Self { input, marking, passed: Vec::new(), read: 0, line: 1, is_damaged })
    }

    /// Whether [`MARK`] has replaced anything in JSON so far.
    pub fn is_damaged(&self) -> Rc<Cell<bool>> {
        self.is_damaged.clone()
    }

    #[cfg(test)]
    pub fn of(text: impl Into<Vec<u8>>) -> Self {
        Self::new(Box::new(io::Cursor::new(text.into())), Syntax::Native).unwrap()
    }

    /// The number of the current line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the rest of the text into memory, and returns whether it's UTF-8, which may be damaged: it has no invalid
    /// bytes, or more valid characters beyond ASCII than invalid bytes. Text in another encoding has few valid ones.
    pub fn is_utf_8(&mut self) -> io::Result<bool> {
        self.passed.drain(..self.read);
        self.read = 0;
        self.input.read_to_end(&mut self.passed)?;
        let chunks = self.passed.utf8_chunks();
        let counts = chunks.fold((0, 0), |(valid, invalid), chunk| {
            let beyond_ascii = chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            (valid + beyond_ascii, invalid + chunk.invalid().len())
        });
        Ok(counts.1 == 0 || counts.0 > counts.1)
    }

    /// The first byte that isn't white space, without consuming it. `None` at the end.
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
        let passed = self.fill_buf()?;
        let read = passed.len().min(target.len());
        target[..read].copy_from_slice(&passed[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.passed.len() {
            self.passed.clear();
            self.read = 0;
            while self.passed.is_empty() {
                let chunk = self.input.fill_buf()?;
                if chunk.is_empty() {
                    break;
                }
                let length = chunk.len();
                match &mut self.marking {
                    Some(marking) => marking.pass(chunk, &mut self.passed),
                    None => self.passed.extend_from_slice(chunk),
                }
                self.input.consume(length);
            }
        }
        Ok(&self.passed[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        let end = (self.read + amount).min(self.passed.len());
        self.line += lines(&self.passed[self.read..end]);
        self.read = end;
    }
}

#[expect(clippy::naive_bytecount, reason = "most reads are short, and it isn't a bottleneck")]
fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
pub(super) mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    pub(in crate::import) fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_ref()).unwrap();
        encoder.finish().unwrap()
    }

    pub(in crate::import) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn contents(bytes: &[u8]) -> io::Result<Vec<(String, String)>> {
        let directory = tempfile::tempdir().unwrap();
        // The name is misleading: only content counts.
        let path = directory.path().join("dump.xml");
        std::fs::write(&path, bytes).unwrap();
        let sources = Source::open(&path, directory.path())?;
        let prefix = path.display().to_string();
        let read = |source: Source| {
            let name = source.name.trim_start_matches(&prefix).to_owned();
            io::read_to_string(source.reader(Syntax::Xml)?).map(|text| (name, text))
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
        assert!(contents(&zip(&[])).is_err());
    }

    #[test]
    fn unpacked_files_of_a_zip_have_no_name_on_disk() {
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
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(contents(b"\xef\xbb\xbf{}").unwrap(), named(&[("", "{}")]));
    }

    #[test]
    fn a_file_in_utf_16_is_refused_with_advice() {
        for text in [b"\xff\xfe{\0}\0", b"\xfe\xff\0{\0}"] {
            assert_eq!(contents(text).unwrap_err().to_string(), "is in UTF-16; save it as UTF-8, and import that");
        }
    }

    #[test]
    fn the_unpacked_size_of_a_file_is_limited_across_nested_archives() {
        let mut endless = GzEncoder::new(Vec::new(), Compression::default());
        io::copy(&mut io::repeat(b'a').take(UNPACKED / 2 * 3), &mut endless).unwrap();
        let endless = endless.finish().unwrap();
        for packed in [endless.clone(), zip(&[("a.gz", &endless)])] {
            let error = contents(&packed).unwrap_err().to_string();
            assert!(error.contains("100 times its size") && error.contains("unpack it"), "{error}");
        }
        let words = "<p>a quiet morning</p>".repeat(100_000);
        assert_eq!(contents(&gzip(&words)).unwrap()[0].1.len(), words.len());
    }

    #[test]
    fn invalid_bytes_are_distinguished_from_replacement_characters() {
        let json = b"caf\xe9 \xef\xbf\xbd \\ufffd \\ud83d\xef\xbf\xbd\xf0\x9f\xef\xbf\xbd\xff ";
        let expected = "caf\u{fdd0} \u{fffd} \\ufffd \u{fdd0}\u{fffd}\u{fdd0}\u{fffd}\u{fdd0} ";
        for size in 1..=json.len() {
            let (mut marking, mut out) = (Marking::new(Rc::default()), Vec::new());
            json.chunks(size).for_each(|chunk| marking.pass(chunk, &mut out));
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{size}");
            assert!(marking.is_damaged.get());
        }
    }

    #[test]
    fn a_reader_tracks_its_line() {
        let mut reader = Reader::of("one\ntwo\n\n three");
        assert_eq!(reader.line(), 1);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!((reader.peek().unwrap(), reader.line()), (Some(b't'), 2));
        reader.read_exact(&mut [0; 4]).unwrap();
        assert_eq!((reader.peek().unwrap(), reader.line()), (Some(b't'), 4));
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.peek().unwrap(), None);
    }
}
