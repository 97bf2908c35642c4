//! Files that are generated from code. Tests check that they are up to date. `UPDATE_FILES=1 cargo test --workspace`
//! writes them.

use std::fs;
use std::path::{Path, PathBuf};

fn place(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// Returns the content of a file in the repository, or an empty string if it can't be read.
#[must_use]
pub fn committed(file: &str) -> String {
    fs::read_to_string(place(file)).unwrap_or_default()
}

pub fn assert_written(file: &str, now: &str) {
    if std::env::var_os("UPDATE_FILES").is_some() && committed(file) != now {
        fs::write(place(file), now).unwrap();
    }
    assert!(committed(file) == now, "{file} is out of date: UPDATE_FILES=1 cargo test --workspace; now:\n{now}");
}
