//! Files that follow from code. Tests compare them with it, and write them with `UPDATE_FILES=1 cargo test --workspace`.

use std::fs;
use std::path::{Path, PathBuf};

fn place(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// A file of the repository.
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
