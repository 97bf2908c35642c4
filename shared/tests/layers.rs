//! The layers of `shared`: a module uses its own layer and those below it, never one above or beside it.

use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom to the top. Layers of one row do not use each other.
const LAYERS: [&[&str]; 9] =
    [&["domain"], &["error", "routes"], &["aws"], &["auth"], &["config"], &["policy"], &["store"], &["http"], &["app"]];

/// A layer, and one below it that it must still not use: the store does not decide what is allowed.
const APART: [(&str, &str); 1] = [("store", "policy")];

fn row(layer: &str) -> usize {
    LAYERS.iter().position(|row| row.contains(&layer)).unwrap_or_else(|| panic!("{layer} is in no layer"))
}

fn may_use(user: &str, used: &str) -> bool {
    user == used || row(used) < row(user) && !APART.contains(&(user, used))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The layers that a source text names, in code or in comments.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("crate::").skip(1);
    after.map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

#[test]
fn no_layer_uses_one_above_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    for file in rust_files(&source).into_iter().filter(|file| !file.ends_with("src/lib.rs")) {
        let below = file.strip_prefix(&source).unwrap().with_extension("");
        let layer = below.iter().next().unwrap().to_str().unwrap();
        for used in named(&fs::read_to_string(&file).unwrap()) {
            assert!(may_use(layer, used), "{} uses {used}, which is not below {layer}", below.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} uses were found");
}

#[test]
fn a_use_upwards_or_sideways_is_found() {
    let uses = |text| named(text).collect::<Vec<_>>().join(" ");
    assert_eq!(uses("use crate::store::Store;\n    crate::app::App::new()"), "store app");
    assert!(may_use("http", "policy") && may_use("domain", "domain"));
    assert!(!may_use("domain", "error") && !may_use("error", "routes") && !may_use("store", "policy"));
}
