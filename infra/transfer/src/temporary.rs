//! Temporary files. On Unix a file loses its name once it is open, so nothing remains if the process is killed.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::Connection;
use tempfile::{NamedTempFile, TempPath};

/// The file of a database.
pub struct TemporaryFile {
    pub file: File,
    /// Where a file keeps its name, it is removed with this.
    _path: Option<TempPath>,
}

/// An empty `SQLite` database. Its file may get a whole database as its content before the connection is used.
pub(crate) fn database(directory: &Path) -> io::Result<(Connection, TemporaryFile)> {
    let (file, path) = NamedTempFile::new_in(directory)?.into_parts();
    let connection = Connection::open(&path).map_err(io::Error::other)?;
    let path = if cfg!(unix) {
        path.close()?;
        None
    } else {
        Some(path)
    };
    Ok((connection, TemporaryFile { file, _path: path }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn count(connection: &Connection) -> u64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_database_can_be_used_and_leaves_nothing_whenever_the_process_ends() {
        let directory = tempfile::tempdir().unwrap();
        let (database, file) = database(directory.path()).unwrap();
        database.execute_batch("PRAGMA journal_mode = OFF; CREATE TABLE t (x); BEGIN").unwrap();
        database.execute("INSERT INTO t VALUES (zeroblob(10000000)), (2)", []).unwrap();
        assert_eq!(count(&database), 2);
        if cfg!(unix) {
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        }
        drop((database, file));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_database_may_get_its_content_after_it_was_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("original");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        let (database, mut temporary) = database(directory.path()).unwrap();
        io::copy(&mut File::open(path).unwrap(), &mut temporary.file).unwrap();
        assert_eq!(count(&database), 1);
    }
}
