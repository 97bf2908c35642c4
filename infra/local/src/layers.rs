//! The layers of this crate: a module uses itself and modules of the layers below it, none above or beside it.

use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom to the top.
const LAYERS: [&[&str]; 9] = [
    &["access", "account", "event_filter", "files", "publisher", "server", "temporary"],
    &["bucket", "data_dir", "engine", "gateway", "queue"],
    &["outbox", "template", "trigger"],
    &["settings", "stack", "token"],
    &["service"],
    &["bench", "check", "import"],
    &["export"],
    &["person"],
    &["commands"],
];

fn layer(module: &str) -> usize {
    LAYERS.iter().position(|layer| layer.contains(&module)).unwrap_or_else(|| panic!("{module} is in no layer"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The modules of this crate that a text mentions.
fn used(text: &str) -> impl Iterator<Item = &str> {
    let paths = text.split("crate::").skip(1);
    paths.map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

#[test]
fn no_module_uses_one_above_or_beside_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    for file in rust_files(&source) {
        let path = file.strip_prefix(&source).unwrap().with_extension("");
        let module = path.iter().next().unwrap().to_str().unwrap();
        if ["lib", "main", "layers"].contains(&module) {
            continue;
        }
        for used in used(&fs::read_to_string(&file).unwrap()) {
            assert!(used == module || layer(used) < layer(module), "{} uses {used}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} uses were found");
}

#[test]
fn every_use_in_a_text_is_found() {
    let text = "use crate::stack::Stack;\n    crate::engine::Engine::memory()";
    assert_eq!(used(text).collect::<Vec<_>>(), ["stack", "engine"]);
}
