//! The directory for the service's persistent data: the table, objects, queues and secrets. A lock file allows one
//! process at a time.

use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use shared::config::{MIN_SALT, MIN_SECRET, MIN_SEED};
use shared::domain::ids::salt_fingerprint;
use shared::domain::secret::Secret;
use tempfile::{TempDir, TempPath};

use crate::files;

/// The file with the secret that signs tokens.
pub const JWT_SECRET: &str = "jwt-secret";
/// The file with the seed of the key that signs sign-in tokens.
pub const SEED: &str = "sign-in-seed";
/// The file with the key of visitors' hashes.
pub const SALT: &str = "visitor-salt";
/// The version of the directory's format. A directory without a version file has version 1.
pub const VERSION: u64 = 1;
const VERSION_FILE: &str = "version";
/// The file with the fingerprint of the salt that the table's hashes use.
const FINGERPRINT: &str = "salt-fingerprint";
const LOCK: &str = "lock";
const TABLE: &str = "table.db";
/// The folders that a backup contains.
const FOLDERS: [&str; 2] = ["objects", "queue"];
/// The data files, in addition to the table.
const FILES: [&str; 5] = [JWT_SECRET, SEED, SALT, FINGERPRINT, VERSION_FILE];
/// The folder in which a backup is unpacked.
const STAGING: &str = ".tmp-restore";

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("another process uses {0}; stop it, or choose another --data-dir")]
    InUse(PathBuf),
    #[error("{0} is a file; choose a directory with --data-dir")]
    IsFile(PathBuf),
    #[error("{0} is a link to a directory that doesn't exist; create that directory, or choose another --data-dir")]
    DanglingLink(PathBuf),
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{path}: {cause}; allow this user to create files in this directory")]
    ReadOnly { path: PathBuf, cause: io::Error },
    #[error("there is no table in {0}; pass the service's --data-dir")]
    NoTable(PathBuf),
    #[error(
        "no service has used {0}; pass the service's --data-dir, or start it there first: \
         cargo local --data-dir {0}"
    )]
    Unused(PathBuf),
    #[error(
        "{path} was written by a newer version (format {version}; this version reads {VERSION}); use the newer version"
    )]
    Newer { path: PathBuf, version: u64 },
    #[error("{path} is damaged; restore it from a backup, or {remedy}")]
    Damaged { path: PathBuf, remedy: &'static str },
    #[error(
        "{0} contains part of a backup, because its restore was interrupted; empty it, and restore the backup again"
    )]
    Unfinished(PathBuf),
    #[error(
        "{0} is missing, although a service has used the directory; put it back, or restore a backup into an empty \
         directory; to start afresh, delete this directory"
    )]
    LostTable(PathBuf),
    #[error("generating a secret failed: {0}")]
    Random(#[from] getrandom::Error),
}

#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
}

/// Exclusive use of the directory until this is dropped or the process ends. The lock file also records whether the
/// last process finished its work.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Records that work on the data begins. If earlier work is unfinished, returns the time when it began.
    pub fn begin(&self) -> Result<Option<SystemTime>, DataDirError> {
        let begin = || {
            let metadata = self.file.metadata()?;
            if metadata.len() > 0 {
                return metadata.modified().map(Some);
            }
            (&self.file).write_all(b"in use\n")?;
            self.file.sync_all()?;
            files::sync_folder(&self.path)?;
            Ok(None)
        };
        begin().map_err(|cause| DataDirError::File { path: self.path.clone(), cause })
    }

    /// Records unfinished work that began at this time.
    pub fn begin_at(&self, time: SystemTime) -> Result<(), DataDirError> {
        self.begin()?;
        self.file.set_modified(time).map_err(|cause| DataDirError::File { path: self.path.clone(), cause })
    }

    /// Records that all work is finished.
    pub fn end(&self) -> Result<(), DataDirError> {
        self.file.set_len(0).map_err(|cause| DataDirError::File { path: self.path.clone(), cause })
    }
}

impl DataDir {
    /// Opens the directory. If it's missing, creates it so that only its owner can read it.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        if path.is_file() {
            return Err(DataDirError::IsFile(path.to_owned()));
        }
        if let Some(link) = path.ancestors().find(|path| path.is_symlink() && !path.exists()) {
            return Err(DataDirError::DanglingLink(link.to_owned()));
        }
        if !path.exists() {
            files::make_folder(path).map_err(|cause| DataDirError::File { path: path.to_owned(), cause })?;
        }
        Self { path: path.to_owned() }.readable()
    }

    /// Opens a directory that has a table.
    pub fn existing(path: &Path) -> Result<Self, DataDirError> {
        let data_dir = Self { path: path.to_owned() }.readable()?;
        data_dir.check_table()?;
        if data_dir.table().exists() { Ok(data_dir) } else { Err(DataDirError::NoTable(data_dir.path)) }
    }

    /// Refuses a directory whose restore was interrupted, or that this version or this user can't read.
    fn readable(self) -> Result<Self, DataDirError> {
        if self.file(STAGING).exists() {
            return Err(DataDirError::Unfinished(self.path));
        }
        let path = self.file(VERSION_FILE);
        let version = match fs::read_to_string(&path) {
            Ok(version) => version.trim().parse(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(VERSION),
            Err(cause) => return Err(DataDirError::File { path, cause }),
        };
        match version {
            Ok(..=VERSION) => Ok(self),
            Ok(version) => Err(DataDirError::Newer { path: self.path, version }),
            Err(_) => {
                Err(DataDirError::Damaged { path, remedy: "delete it if no newer version has used the directory" })
            }
        }
    }

    pub fn record_version(&self) -> Result<(), DataDirError> {
        let path = self.file(VERSION_FILE);
        let recorded = if path.exists() { Ok(false) } else { files::create(&path, format!("{VERSION}\n").as_bytes()) };
        recorded.map(drop).map_err(|cause| DataDirError::File { path, cause })
    }

    /// The salt in the directory, if there is one.
    pub fn salt(&self) -> Result<Option<Secret>, DataDirError> {
        Ok(self.stored(SALT)?.map(|salt| Secret::from(salt.trim().to_owned())))
    }

    /// Whether the recorded salt of the table's hashes differs from this one. False if none is recorded.
    pub fn has_other_salt(&self, salt: &Secret) -> Result<bool, DataDirError> {
        let path = self.file(FINGERPRINT);
        match fs::read_to_string(&path) {
            Ok(recorded) => Ok(!recorded.trim().is_empty() && recorded.trim() != salt_fingerprint(salt)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(DataDirError::File { path, cause }),
        }
    }

    /// Records the salt that the table's hashes use.
    pub fn record_salt(&self, salt: &Secret) -> Result<(), DataDirError> {
        let (path, fingerprint) = (self.file(FINGERPRINT), format!("{}\n", salt_fingerprint(salt)));
        let is_recorded = fs::read_to_string(&path).is_ok_and(|recorded| recorded == fingerprint);
        let recorded = if is_recorded { Ok(()) } else { files::write(&path, fingerprint.as_bytes()) };
        recorded.map_err(|cause| DataDirError::File { path, cause })
    }

    /// Opens a directory that a service has used. Creates nothing.
    pub fn used(path: &Path) -> Result<Self, DataDirError> {
        let data_dir = Self { path: path.to_owned() }.readable()?;
        if data_dir.has_secret(JWT_SECRET) { Ok(data_dir) } else { Err(DataDirError::Unused(data_dir.path)) }
    }

    /// Whether the directory is empty, or has only the lock of a service that failed to start.
    pub fn is_unused(&self) -> io::Result<bool> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name()));
        Ok(names.collect::<io::Result<Vec<_>>>()?.iter().all(|name| name == LOCK))
    }

    /// Whether the last process left its work unfinished. Needs no lock.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        fs::metadata(self.file(LOCK)).is_ok_and(|lock| lock.len() > 0)
    }

    pub fn lock_if_present(&self) -> Result<Option<Lock>, DataDirError> {
        self.file(LOCK).exists().then(|| self.lock()).transpose()
    }

    /// Locks the directory. Fails if the directory is read-only, even if its files are writable.
    pub fn lock(&self) -> Result<Lock, DataDirError> {
        if let Some(cause) = tempfile::tempfile_in(&self.path).err().filter(is_read_only) {
            return Err(DataDirError::ReadOnly { path: self.path.clone(), cause });
        }
        let path = self.file(LOCK);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        match file.map(|file| file.try_lock().map(|()| file)) {
            Ok(Ok(file)) => Ok(Lock { path, file }),
            Ok(Err(TryLockError::WouldBlock)) => Err(DataDirError::InUse(self.path.clone())),
            Ok(Err(TryLockError::Error(cause))) | Err(cause) => Err(DataDirError::File { path, cause }),
        }
    }

    /// Copies the table and the data files of a read-only directory, such as a snapshot, but not its folders. `None` if
    /// it's writable. Fails while another process is using it.
    pub fn copy_if_read_only(&self) -> Result<Option<TempDir>, DataDirError> {
        let file = |path: PathBuf| move |cause| DataDirError::File { path, cause };
        let lock = self.lock().and_then(|_| {
            let path = self.file(TABLE);
            OpenOptions::new().append(true).open(&path).map_err(file(path))
        });
        match lock {
            Ok(_) => return Ok(None),
            Err(DataDirError::ReadOnly { .. }) => {}
            Err(DataDirError::File { cause, .. }) if is_read_only(&cause) => {}
            Err(error) => return Err(error),
        }
        let path = self.file(LOCK);
        let lock = if path.exists() { Some(File::open(&path).map_err(file(path))?) } else { None };
        if lock.as_ref().is_some_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))) {
            return Err(DataDirError::InUse(self.path.clone()));
        }
        let copy = tempfile::tempdir().map_err(file(env::temp_dir()))?;
        let table = [(self.table(), TABLE), (files::beside(&self.table(), "-wal"), "table.db-wal")];
        for (path, name) in table.into_iter().chain(FILES.map(|name| (self.file(name), name))) {
            if path.exists() {
                let copied = || io::copy(&mut File::open(&path)?, &mut File::create(copy.path().join(name))?);
                copied().map_err(file(path.clone()))?;
            }
        }
        Ok(Some(copy))
    }

    /// The path of the table's file, which may be missing. Follows a symbolic link, because `SQLite` keeps its log
    /// beside the link's target.
    #[must_use]
    pub fn table(&self) -> PathBuf {
        let path = self.file(TABLE);
        let target = path.is_symlink().then(|| fs::canonicalize(&path).ok()).flatten();
        target.unwrap_or(path)
    }

    /// Fails if the table's file is lost: the version is recorded only after the table is created. Secrets don't count,
    /// because they may be copied from another machine before the service first starts here.
    pub fn check_table(&self) -> Result<(), DataDirError> {
        let table = self.table();
        let is_lost = self.has_secret(VERSION_FILE) && !table.exists();
        if is_lost { Err(DataDirError::LostTable(table)) } else { Ok(()) }
    }

    /// Whether a service or an import has used the table. A salt alone doesn't count, because it may be copied from
    /// another machine before the service first starts here.
    #[must_use]
    pub fn is_used(&self) -> bool {
        [JWT_SECRET, SEED, VERSION_FILE].iter().any(|name| self.has_secret(name))
    }

    /// The files that a backup contains, other than the table.
    pub fn files(&self) -> Result<Vec<String>, DataDirError> {
        let mut names = FILES.map(str::to_owned).to_vec();
        let mut folders = FOLDERS.map(str::to_owned).to_vec();
        while let Some(folder) = folders.pop() {
            let path = self.file(&folder);
            let failed = |cause| DataDirError::File { path: path.clone(), cause };
            for entry in if path.exists() { fs::read_dir(&path).map_err(failed)?.collect() } else { Vec::new() } {
                let entry = entry.map_err(failed)?;
                let file = entry.file_name();
                let Some(file) = file.to_str().filter(|file| !file.starts_with(files::TEMPORARY)) else { continue };
                let is_folder = entry.file_type().map_err(failed)?.is_dir();
                if is_folder { &mut folders } else { &mut names }.push(format!("{folder}/{file}"));
            }
        }
        names.retain(|name| self.file(name).exists());
        Ok(names)
    }

    /// Creates an empty file that is removed when dropped.
    pub fn temporary_file(&self) -> io::Result<TempPath> {
        Ok(tempfile::Builder::new().prefix(files::TEMPORARY).tempfile_in(&self.path)?.into_temp_path())
    }

    /// A folder inside the directory, whose content [`Self::adopt`] moves into the directory.
    #[must_use]
    pub fn staging(&self) -> PathBuf {
        self.file(STAGING)
    }

    /// Whether this is the folder for a backup that is being restored.
    #[must_use]
    pub fn is_staging(&self) -> bool {
        self.path.ends_with(STAGING)
    }

    /// Moves the content of the staging folder into the directory, so that it survives a power failure.
    pub fn adopt(&self, staging: &Path) -> io::Result<()> {
        files::sync_tree(staging)?;
        for entry in fs::read_dir(staging)? {
            let entry = entry?;
            fs::rename(entry.path(), self.path.join(entry.file_name()))?;
        }
        files::sync_folder(staging)?;
        // Until this point, the directory counts as unfinished.
        fs::remove_dir(staging)?;
        files::sync_folder(staging)
    }

    /// Creates a file that only its owner can read, and missing folders above it.
    pub fn create_file(path: &Path) -> io::Result<File> {
        files::make_folder(path.parent().unwrap_or(path))?;
        let mut options = OpenOptions::new();
        options.create_new(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }

    /// Removes partial files that a killed process left.
    pub fn remove_partial_files(&self) -> io::Result<()> {
        files::remove_partial(&self.path)
    }

    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    #[must_use]
    pub fn has_secret(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Generates a secret in a file that only its owner can read. Later calls return the same one.
    pub fn secret(&self, name: &str) -> Result<String, DataDirError> {
        self.kept_or(name, random_secret)
    }

    /// Stores this secret unless one exists, and returns the stored one.
    pub fn keep(&self, name: &str, secret: &str) -> Result<String, DataDirError> {
        self.kept_or(name, || Ok(secret.to_owned()))
    }

    /// Fails if a stored secret is damaged.
    pub fn check_secrets(&self) -> Result<(), DataDirError> {
        [JWT_SECRET, SEED, SALT].iter().try_for_each(|name| self.stored(name).map(drop))
    }

    /// The stored secret. `None` if the file is missing.
    fn stored(&self, name: &str) -> Result<Option<String>, DataDirError> {
        // A shorter secret must have been cut off.
        let (least, remedy) = match name {
            SALT => (MIN_SALT, "delete it and set SVC_VISITOR_SALT to its old content"),
            SEED => (MIN_SEED, "delete it, which ends all sessions"),
            _ => (MIN_SECRET, "delete it, which invalidates all tokens signed with it"),
        };
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(secret) if secret.trim().len() >= least && !secret.contains('\0') => Ok(Some(secret)),
            Ok(_) => Err(DataDirError::Damaged { path, remedy }),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(DataDirError::Damaged { path, remedy }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(DataDirError::File { path, cause }),
        }
    }

    fn kept_or(&self, name: &str, make: impl FnOnce() -> Result<String, DataDirError>) -> Result<String, DataDirError> {
        if let Some(secret) = self.stored(name)? {
            return Ok(secret);
        }
        let path = self.file(name);
        let failed = |cause| DataDirError::File { path: path.clone(), cause };
        let secret = make()?;
        // Another process may have created the file first.
        let is_new = files::create(&path, secret.as_bytes()).map_err(failed)?;
        if is_new { Ok(secret) } else { fs::read_to_string(&path).map_err(failed) }
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// A random secret of 256 bits.
pub fn random_secret() -> Result<String, DataDirError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_generated_once_and_only_its_owner_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/data");
        let data = DataDir::open(&path).unwrap();
        let secret = data.secret("jwt-secret").unwrap();
        assert_eq!(secret.len(), 43);
        assert_eq!(DataDir::open(&path).unwrap().secret("jwt-secret").unwrap(), secret);
        assert_ne!(data.secret("visitor-salt").unwrap(), secret);
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(path.join("jwt-secret")).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn unfinished_work_is_known_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let lock = data.lock().unwrap();
        assert_eq!(lock.begin().unwrap(), None);
        drop(lock);
        let lock = data.lock().unwrap();
        let since = lock.begin().unwrap().unwrap();
        drop(lock);
        let lock = data.lock().unwrap();
        assert_eq!(lock.begin().unwrap(), Some(since));
        lock.end().unwrap();
        drop(lock);
        assert_eq!(data.lock().unwrap().begin().unwrap(), None);
    }
}
