//! The directory that keeps the data of `cargo local` between starts: the table, the objects and the secrets. A lock
//! file allows one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("another process uses {0}; stop it, or choose another --data-dir")]
    InUse(PathBuf),
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("generating a secret failed: {0}")]
    Random(#[from] getrandom::Error),
}

#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
}

/// Exclusive use of the directory until this is dropped or the process ends. The file also records whether the last
/// process finished its work.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Records that work on the data begins. Returns when earlier work began, if it was not finished.
    pub fn begin(&self) -> Result<Option<SystemTime>, DataDirError> {
        let begin = || {
            let metadata = self.file.metadata()?;
            if metadata.len() > 0 {
                return metadata.modified().map(Some);
            }
            (&self.file).write_all(b"in use\n")?;
            Ok(None)
        };
        begin().map_err(|cause| DataDirError::File { path: self.path.clone(), cause })
    }

    /// Records that all work is finished.
    pub fn end(&self) -> Result<(), DataDirError> {
        self.file.set_len(0).map_err(|cause| DataDirError::File { path: self.path.clone(), cause })
    }
}

impl DataDir {
    /// Creates the directory when it is missing.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        fs::create_dir_all(path).map_err(|cause| DataDirError::File { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned() })
    }

    pub fn lock(&self) -> Result<Lock, DataDirError> {
        let path = self.file("lock");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        match file.map(|file| file.try_lock().map(|()| file)) {
            Ok(Ok(file)) => Ok(Lock { path, file }),
            Ok(Err(TryLockError::WouldBlock)) => Err(DataDirError::InUse(self.path.clone())),
            Ok(Err(TryLockError::Error(cause))) | Err(cause) => Err(DataDirError::File { path, cause }),
        }
    }

    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Generates a secret at the first call, in a file that only its owner can read, and returns the same one from then
    /// on.
    pub fn secret(&self, name: &str) -> Result<String, DataDirError> {
        let path = self.file(name);
        match create_private(&path) {
            Ok(mut file) => {
                let secret = random_secret()?;
                file.write_all(secret.as_bytes()).map_err(|cause| DataDirError::File { path, cause })?;
                Ok(secret)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::read_to_string(&path) {
                Ok(secret) if secret.is_empty() => {
                    Err(DataDirError::File { path, cause: io::Error::other("is empty; remove it") })
                }
                Ok(secret) => Ok(secret),
                Err(cause) => Err(DataDirError::File { path, cause }),
            },
            Err(cause) => Err(DataDirError::File { path, cause }),
        }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// 256 bits.
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
    fn an_empty_secret_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("jwt-secret"), "").unwrap();
        let error = DataDir::open(directory.path()).unwrap().secret("jwt-secret").unwrap_err();
        assert!(error.to_string().contains("jwt-secret"), "{error}");
    }

    #[test]
    fn one_process_at_a_time_can_lock_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let lock = data.lock().unwrap();
        assert!(matches!(data.lock(), Err(DataDirError::InUse(_))));
        drop(lock);
        data.lock().unwrap();
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
