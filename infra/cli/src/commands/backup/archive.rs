//! The backup archive: a tar file that ends with a manifest of checksums.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use server::data_dir::{DataDir, VERSION};
use shared::domain::ids::hex;
use tar::{Archive, Builder, EntryType, Header};
use transfer::import::record::{FORMAT, Record};

use crate::commands::Failure;
use crate::commands::output::{Named, named};

const MANIFEST: &str = "manifest.json";
const TABLE: &str = "table.db";
/// An upper bound for the length of an export's head record, in bytes.
const MAX_HEAD: u64 = 4096;
/// The size of a tar block in bytes. A tar file ends with two blocks of zeros.
const BLOCK: usize = 512;

struct Summed<T> {
    inner: T,
    sum: Context,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: Context::new(&SHA256) }
    }

    fn sum(self) -> String {
        hex(self.sum.finish().as_ref())
    }
}

impl<T: Read> Read for Summed<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.sum.update(&buffer[..length]);
        Ok(length)
    }
}

pub(super) fn pack(data_dir: &DataDir, snapshot: &Path, out: impl Write) -> Result<(), Failure> {
    let made_at = Timestamp::now();
    let mut archive = Builder::new(out);
    let mut sums = BTreeMap::new();
    add(&mut archive, &mut sums, TABLE, snapshot)?;
    for name in data_dir.files()? {
        add(&mut archive, &mut sums, &name, &data_dir.file(&name))?;
    }
    let manifest = json!({ "version": VERSION, "made_at": made_at, "sha256": sums }).to_string();
    archive.append_data(&mut header(manifest.len() as u64, made_at), MANIFEST, manifest.as_bytes())?;
    archive.into_inner()?.flush()?;
    Ok(())
}

fn add(
    archive: &mut Builder<impl Write>,
    sums: &mut BTreeMap<String, String>,
    name: &str,
    path: &Path,
) -> io::Result<()> {
    let file = match File::open(path) {
        // The file has been removed since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => named(path, file)?,
    };
    let metadata = named(path, file.metadata())?;
    let modified = Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)?;
    let mut header = header(metadata.len(), modified);
    let mut file = Summed::new(Named { path, file });
    archive.append_data(&mut header, name, &mut file)?;
    sums.insert(name.to_owned(), file.sum());
    Ok(())
}

fn header(size: u64, modified: Timestamp) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(modified.as_second()).unwrap_or_default());
    header
}

fn damaged(what: impl Display) -> Failure {
    format!("{what}; the backup is damaged or incomplete").into()
}

fn malformed() -> Failure {
    damaged("a header in it can't be read")
}

/// Fails if the file is an export, which begins with a head record.
fn unlike_export(mut file: impl Read) -> Result<impl Read, Failure> {
    let mut start = Vec::new();
    file.by_ref().take(MAX_HEAD).read_to_end(&mut start).map_err(damaged)?;
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice(line) {
        Ok(Record::Head(head)) if head.format == FORMAT => {
            Err("this is an export, not a backup; use import native".into())
        }
        _ => Ok(Cursor::new(start).chain(file)),
    }
}

/// Unpacks an archive into an empty folder, and returns the time of the backup. Error messages quote nothing from a
/// file that isn't an archive, because it may be a secret.
pub(super) fn unpack(archive: impl Read, folder: &Path) -> Result<Timestamp, Failure> {
    let mut archive = Archive::new(unlike_export(archive)?);
    let mut sums = BTreeMap::new();
    let mut manifest = None;
    for entry in archive.entries()? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(_) if sums.is_empty() => return Err("it is not a backup; pass a file that backup wrote".into()),
            Err(_) => return Err(malformed()),
        };
        let name = name_of(&entry.path()?).filter(|_| entry.header().entry_type() == EntryType::Regular);
        let name = name.ok_or_else(|| damaged("it contains something other than files"))?;
        if name == MANIFEST {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(damaged)?;
            manifest = Some(serde_json::from_str::<Value>(&text).map_err(damaged)?);
            continue;
        }
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.header().mtime().map_err(|_| malformed())?);
        let unwritten = |error| format!("writing {name} into the data directory: {error}; check its free space");
        let mut file = DataDir::create_file(&folder.join(&name)).map_err(unwritten)?;
        let mut entry = Summed::new(entry);
        copy(&mut entry, &mut file, unwritten)?;
        file.set_modified(modified)?;
        sums.insert(name, entry.sum());
    }
    check_end(archive.into_inner())?;
    let manifest = manifest.ok_or_else(|| damaged("it has no manifest"))?;
    let version = manifest["version"].as_u64().ok_or_else(|| damaged("its manifest has no version"))?;
    if version > VERSION {
        return Err(format!(
            "this backup was made by a newer version (format {version}; this version reads {VERSION}); use the newer version"
        )
        .into());
    }
    let wanted: BTreeMap<String, String> =
        serde_json::from_value(manifest["sha256"].clone()).map_err(|_| damaged("its manifest has no checksums"))?;
    if let Some((name, _)) = wanted.iter().find(|(name, sum)| sums.get(*name) != Some(sum)) {
        return Err(damaged(format_args!("{name} differs from its checksum")));
    }
    if sums.len() != wanted.len() || !sums.contains_key(TABLE) {
        return Err(damaged("its files differ from its manifest"));
    }
    let made_at = manifest["made_at"].as_str().and_then(|time| time.parse().ok());
    made_at.ok_or_else(|| damaged("its manifest has no time"))
}

/// Copies a file. Reports only read errors as damage to the archive. `unwritten` describes write errors, such as a full
/// disk.
fn copy(from: &mut impl Read, to: &mut impl Write, unwritten: impl Fn(io::Error) -> String) -> Result<(), Failure> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer).map_err(damaged)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length]).map_err(&unwritten)?,
        }
    }
}

/// Checks the end of the archive. `rest` is the part after the first block of zeros. Reading all of it also verifies
/// the checksum of a compressed file.
fn check_end(rest: impl Read) -> Result<(), Failure> {
    let mut zeros = 0;
    for byte in BufReader::new(rest).bytes() {
        match byte.map_err(damaged)? {
            0 => zeros += 1,
            _ => return Err(damaged("there is data after its end")),
        }
    }
    if zeros < BLOCK { Err(damaged("it is truncated")) } else { Ok(()) }
}

/// The path as text, if it stays within the data directory.
fn name_of(path: &Path) -> Option<String> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let path: PathBuf = path.components().collect();
    path.to_str().filter(|name| plain && !name.is_empty()).map(str::to_owned)
}
