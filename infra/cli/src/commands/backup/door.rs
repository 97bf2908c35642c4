//! A socket in the data directory of a running service. Each connection gets a snapshot of the table, which is removed
//! when the connection closes.

use std::io;
use std::path::{Path, PathBuf};

use server::data_dir::DataDir;
use server::engine::Engine;
use tempfile::TempPath;

use crate::commands::Failure;

const DOOR: &str = "backup.sock";

/// A snapshot of the table. Its file is removed when this is dropped, or when the connection to the service closes.
pub(in crate::commands) struct Snapshot {
    path: PathBuf,
    _made: Option<TempPath>,
    #[cfg(unix)]
    by: Option<tokio::net::UnixStream>,
}

impl Snapshot {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the snapshot, and waits until its file is removed.
    pub(super) async fn done(self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(mut by) = self.by {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            by.shutdown().await?;
            by.read_to_end(&mut Vec::new()).await?;
        }
        Ok(())
    }
}

/// Makes a snapshot in this process.
pub(super) async fn snapshot(engine: &Engine, data_dir: &DataDir) -> Result<Snapshot, Failure> {
    let made = make(engine, data_dir).await?;
    #[cfg(unix)]
    let snapshot = Snapshot { path: made.to_path_buf(), _made: Some(made), by: None };
    #[cfg(not(unix))]
    let snapshot = Snapshot { path: made.to_path_buf(), _made: Some(made) };
    Ok(snapshot)
}

async fn make(engine: &Engine, data_dir: &DataDir) -> Result<TempPath, Failure> {
    let path = data_dir.temporary_file()?;
    let folder = path.parent().unwrap_or(&path).display();
    engine
        .snapshot(&path)
        .await
        .map_err(|error| format!("copying the table in {folder}: {error}; check its free space"))?;
    Ok(path)
}

#[cfg(unix)]
pub(in crate::commands) use self::unix::{Door, ask};

#[cfg(unix)]
mod unix {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::task::JoinHandle;

    use super::{DOOR, DataDir, Engine, Failure, Path, PathBuf, Snapshot, io, make};

    /// The longest socket path that every system allows, in bytes.
    const MAX_PATH: usize = 103;

    /// The listening socket, which is closed and removed when dropped.
    pub(in crate::commands) struct Door {
        answers: JoinHandle<()>,
        path: PathBuf,
    }

    impl Drop for Door {
        fn drop(&mut self) {
            self.answers.abort();
            if let Err(error) = fs::remove_file(&self.path) {
                tracing::warn!("{}: {error}", self.path.display());
            }
        }
    }

    impl Door {
        /// Opens the socket. The caller must hold the directory's lock.
        pub(in crate::commands) fn open(data_dir: &DataDir, engine: &Engine) -> io::Result<Self> {
            let path = data_dir.file(DOOR);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = by_short_path(&path, UnixListener::bind)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            let (data_dir, engine) = (data_dir.clone(), engine.clone());
            let answers = tokio::spawn(async move {
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => drop(tokio::spawn(answer(stream, data_dir.clone(), engine.clone()))),
                        Err(error) => {
                            tracing::warn!("can't accept backup requests any more: {error}; restart the service");
                            return;
                        }
                    }
                }
            });
            Ok(Self { answers, path })
        }
    }

    /// Opens the socket at `path`. If the path is too long, uses a temporary link to its folder.
    fn by_short_path<T>(path: &Path, open: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
        if path.as_os_str().len() <= MAX_PATH {
            return open(path.to_owned());
        }
        let short = tempfile::tempdir()?;
        let link = short.path().join("data");
        std::os::unix::fs::symlink(fs::canonicalize(path.parent().unwrap_or(path))?, &link)?;
        open(link.join(DOOR))
    }

    fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    async fn answer(mut stream: UnixStream, data_dir: DataDir, engine: Engine) -> io::Result<()> {
        let made = make(&engine, &data_dir).await;
        let said = match &made {
            Ok(path) => format!("ok {}\n", path.file_name().unwrap_or_default().to_string_lossy()),
            Err(error) => format!("error {error}\n"),
        };
        stream.write_all(said.as_bytes()).await?;
        // Waits until the other side has finished with the snapshot.
        stream.read_to_end(&mut Vec::new()).await?;
        drop(made);
        Ok(())
    }

    /// Requests a snapshot from the service that uses the directory. `None` if there is no such service.
    pub(in crate::commands) async fn ask(data_dir: &DataDir) -> Result<Option<Snapshot>, Failure> {
        let connected = by_short_path(&data_dir.file(DOOR), std::os::unix::net::UnixStream::connect);
        let mut stream = match connected.and_then(from_std) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut said = String::new();
        BufReader::new(&mut stream).read_line(&mut said).await?;
        match said.trim_end().split_once(' ') {
            Some(("ok", name)) => Ok(Some(Snapshot { path: data_dir.file(name), _made: None, by: Some(stream) })),
            Some((_, error)) => Err(error.into()),
            None => Err("the service stopped before the backup was complete".into()),
        }
    }
}

#[cfg(not(unix))]
pub(in crate::commands) use self::elsewhere::{Door, ask};

#[cfg(not(unix))]
mod elsewhere {
    use super::{DataDir, Engine, Failure, Snapshot, io};

    pub(in crate::commands) struct Door;

    impl Door {
        pub(in crate::commands) fn open(_data_dir: &DataDir, _engine: &Engine) -> io::Result<Self> {
            Ok(Self)
        }
    }

    pub(in crate::commands) async fn ask(_data_dir: &DataDir) -> Result<Option<Snapshot>, Failure> {
        Ok(None)
    }
}
