//! The layers of our crates. A module uses its own layer and those below it, never one above or beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as File, PathBuf};

/// From the bottom to the top. Layers of one row do not use each other.
type Rows = &'static [&'static [&'static str]];

struct Crate {
    /// Its folder in the repository.
    folder: &'static str,
    rows: Rows,
    /// A layer, and one below it that it must still not use.
    apart: &'static [(&'static str, &'static str)],
}

const CRATES: [Crate; 4] = [
    Crate {
        folder: "shared",
        rows: &[
            &["domain"],
            &["error", "routes"],
            &["aws"],
            &["auth"],
            &["config"],
            &["policy"],
            &["store"],
            &["http"],
            &["app"],
        ],
        // The store does not decide what is allowed.
        apart: &[("store", "policy")],
    },
    Crate {
        folder: "infra/local",
        rows: &[
            &["access", "account", "event_filter", "files", "publisher", "server"],
            &["bucket", "data_dir", "engine", "gateway", "queue"],
            &["outbox", "template", "trigger"],
            &["settings", "stack", "token"],
            &["service"],
        ],
        apart: &[],
    },
    Crate {
        folder: "infra/transfer",
        rows: &[&["check", "lease", "temporary"], &["import"], &["export"], &["person"]],
        apart: &[],
    },
    Crate { folder: "infra/cli", rows: &[&["bench"], &["commands"]], apart: &[] },
];

impl Crate {
    fn row(&self, layer: &str) -> usize {
        let row = self.rows.iter().position(|row| row.contains(&layer));
        row.unwrap_or_else(|| panic!("{layer} is in no layer of {}", self.folder))
    }

    fn may_use(&self, user: &str, used: &str) -> bool {
        user == used || self.row(used) < self.row(user) && !self.apart.contains(&(user, used))
    }
}

/// The path of a module, or of what is in it, without the crate.
type Path = Vec<String>;

/// The source files of a crate by the path of their module. Tests and the roots of the crate are left out.
fn modules(source: &File) -> BTreeMap<Path, String> {
    let mut modules = BTreeMap::new();
    for file in rust_files(source) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let mut path: Path = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if path.last().is_some_and(|last| last == "mod") {
            path.pop();
        }
        let is_root = ["lib", "main"].contains(&path[0].as_str());
        if !is_root && !path.iter().any(|part| part == "tests") {
            let text = fs::read_to_string(&file).unwrap();
            // What a file has for its own tests is at its end.
            let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            modules.insert(path, text[..end].to_owned());
        }
    }
    modules
}

fn rust_files(folder: &File) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The paths that a source text names, in code or in comments, each with all its parts. `{a, b::c}` are two.
fn named(text: &str) -> Vec<Path> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("::") {
        let start = rest[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        let (first, after) = (&rest[start..at], &rest[at + 2..]);
        let is_path = first.starts_with(|c: char| c.is_lowercase());
        rest = if is_path { tree(&mut vec![first.to_owned()], after, &mut found) } else { after };
    }
    found
}

/// Adds the paths that begin with `base` and go on with `text`. Returns the text after them.
fn tree<'a>(base: &mut Path, text: &'a str, found: &mut Vec<Path>) -> &'a str {
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let before = rest.len();
            rest = tree(&mut base.clone(), rest, found).trim_start_matches(|c| c != ',' && c != '}');
            rest = rest.strip_prefix(',').unwrap_or(rest);
            if rest.len() == before {
                return rest;
            }
        }
    }
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    base.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(after) => tree(base, after, found),
        None => {
            found.push(base.clone());
            &text[end..]
        }
    }
}

/// From the root of the crate. `None` for a path of another crate.
fn absolute(module: &[String], path: &[String]) -> Option<Path> {
    let mut place = match path.first()?.as_str() {
        "crate" => Path::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    let mut rest = path;
    while let [first, after @ ..] = rest {
        match first.as_str() {
            "crate" | "self" => {}
            "super" => drop(place.pop()),
            _ => break,
        }
        rest = after;
    }
    place.extend(rest.iter().cloned());
    Some(place)
}

/// What a module passes on: `pub use self::a::B` is `B` of `a`.
fn passed_on(modules: &BTreeMap<Path, String>) -> BTreeMap<Path, Path> {
    let mut passed_on = BTreeMap::new();
    for (module, text) in modules {
        for statement in format!("\n{text}").split("\npub").skip(1) {
            let statement = statement.trim_start_matches(|c| c != ' ').trim_start();
            let Some(statement) = statement.strip_prefix("use ") else { continue };
            for path in named(statement.split(';').next().unwrap()) {
                let (Some(from), Some(name)) = (absolute(module, &path), path.last()) else { continue };
                passed_on.insert([module.as_slice(), std::slice::from_ref(name)].concat(), from);
            }
        }
    }
    passed_on
}

/// The modules that each module uses.
fn uses(modules: &BTreeMap<Path, String>) -> BTreeMap<&Path, BTreeSet<Path>> {
    let passed_on = passed_on(modules);
    let mut uses = BTreeMap::new();
    for (module, text) in modules {
        let mut used_here = BTreeSet::new();
        for mut used in named(text).iter().filter_map(|path| absolute(module, path)) {
            while let Some(from) = passed_on.get(&used) {
                used.clone_from(from);
            }
            // The deepest module of the path has it.
            while !used.is_empty() && !modules.contains_key(&used) {
                used.pop();
            }
            used_here.insert(used);
        }
        uses.insert(module, used_here);
    }
    uses
}

fn source(krate: &Crate) -> PathBuf {
    File::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate.folder).join("src")
}

#[test]
fn no_layer_uses_one_above_or_beside_it() {
    for krate in &CRATES {
        let modules = modules(&source(krate));
        let mut checked = 0;
        for (module, used) in uses(&modules) {
            for used in used.iter().filter_map(|used| used.first()) {
                let file = format!("{} of {}", module.join("::"), krate.folder);
                assert!(krate.may_use(&module[0], used), "{file} uses {used}, which is not below it");
                checked += 1;
            }
        }
        assert!(checked > 10, "only {checked} uses were found in {}", krate.folder);
    }
}

#[test]
fn every_use_in_a_text_is_found() {
    let joined = |text| named(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        joined("use crate::a::{B, c::D, e::{F, G}};\n    super::super::h::i(Type::new())"),
        ["crate::a::B", "crate::a::c::D", "crate::a::e::F", "crate::a::e::G", "super::super::h::i"]
    );
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Path>();
    let absolute = |module, used| absolute(&path(module), &path(used)).map(|path| path.join("::"));
    assert_eq!(absolute("a::b", "super::super::c::D").as_deref(), Some("c::D"));
    assert_eq!(absolute("a::b", "self::c").as_deref(), Some("a::b::c"));
    assert_eq!(absolute("a::b", "serde::Serialize"), None);
}

#[test]
fn a_use_upwards_or_sideways_is_found() {
    let shared = &CRATES[0];
    assert!(shared.may_use("http", "policy") && shared.may_use("domain", "domain"));
    assert!(
        !shared.may_use("domain", "error") && !shared.may_use("error", "routes") && !shared.may_use("store", "policy")
    );
    let file = |name: &str, text: &str| (vec![name.to_owned()], text.to_owned());
    let modules = BTreeMap::from([file("a", "pub use super::b::B;"), file("b", ""), file("c", "use super::a::B;")]);
    assert!(uses(&modules)[&vec!["c".to_owned()]].contains(&vec!["b".to_owned()]));
}
