//! Files and folders that only their owner can read. After a crash, each file is either complete or missing.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// The suffix of a file that is being written. A killed process may leave one behind.
const PARTIAL: &str = ".partial";
/// The prefix of partial files and of other temporary files.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Creates a folder and its missing parents, so that they survive a power failure.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let missing: Vec<&Path> = missing.collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    missing.into_iter().try_for_each(sync_folder)?;
    restrict(path, 0o700)
}

/// Creates an empty database file if it's missing. `SQLite` gives the files beside it the same permissions.
pub(crate) fn make_database(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    for path in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        if path.exists() {
            restrict(&path, 0o600)?;
        }
    }
    Ok(())
}

/// Removes a database file and the files beside it, ignoring errors.
pub(crate) fn remove_database(path: &Path) {
    for path in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        drop(fs::remove_file(path));
    }
}

/// The path with a suffix appended to the file name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(ending);
    PathBuf::from(path)
}

/// Writes or replaces a file, so that it survives a power failure.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = partial(path, content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(path)
}

/// Creates a file that survives a power failure. Returns false and changes nothing if the file exists.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
    let file = partial(path, content)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => {
            sync_folder(path)?;
            Ok(true)
        }
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failed) => Err(failed.error),
    }
}

/// Makes the names in the folder of `path` durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(folder(path))?.sync_all()?;
    Ok(())
}

/// Makes a folder and everything in it durable.
pub(crate) fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else if entry.file_type()?.is_file() {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// Removes files that a killed process was writing, in this folder and its subfolders.
pub(crate) fn remove_partial(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_partial(&entry.path())?;
        } else if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

fn partial(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = Builder::new().prefix(TEMPORARY).suffix(PARTIAL).tempfile_in(folder(path))?;
    file.write_all(content)?;
    Ok(file)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Restricts the permissions of a file or folder that an earlier version left open to other users.
#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(mode);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(create(&path, b"1").unwrap() && !create(&path, b"2").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"1");
        write(&path, b"3").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"3");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn files_that_a_killed_process_was_writing_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("queue/Jobs");
        make_folder(&below).unwrap();
        write(&below.join("whole"), b"1").unwrap();
        partial(&below.join("half"), b"2").unwrap().keep().unwrap();
        assert_eq!(fs::read_dir(&below).unwrap().count(), 2);
        remove_partial(folder.path()).unwrap();
        assert_eq!(fs::read_dir(&below).unwrap().next().unwrap().unwrap().file_name(), "whole");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_what_is_made_and_what_an_earlier_version_left() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (folder, file) = (root.path().join("a/b"), root.path().join("a/b/table.db"));
        for _ in 0..2 {
            make_folder(&folder).unwrap();
            make_database(&file).unwrap();
            write(&folder.join("letter"), b"x").unwrap();
            let modes = [&folder, &file, &folder.join("letter")].map(|path| mode(path));
            assert_eq!(modes, [0o700, 0o600, 0o600]);
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}
