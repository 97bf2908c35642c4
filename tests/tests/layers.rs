//! The layers of our crates. A module uses its own layer and those below it, never one above or beside it. Modules of one
//! folder do not use each other in circles; a module and the files of its own folder are one, and may. Crates of others are
//! used in the layers that are named here alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as File, PathBuf};

/// Layers from the bottom to the top. Layers of one row do not use each other.
type Rows = &'static [&'static [&'static str]];

struct Crate {
    /// Its folder in the repository.
    folder: &'static str,
    rows: Rows,
    /// A layer, and one below it that it must still not use.
    apart: &'static [(&'static str, &'static str)],
    /// A crate or a family of crates, and the layers that may use it.
    external: &'static [(&'static str, &'static [&'static str])],
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
        external: &[
            ("aws_", &["aws", "config", "store", "app"]),
            ("lambda_", &["http", "app"]),
            ("hyper", &["aws", "app"]),
            ("http", &["domain", "error", "routes", "aws", "auth", "config", "http", "app"]),
            ("jsonwebtoken", &["auth"]),
            ("pulldown_cmark", &["domain"]),
            ("ring", &["domain", "aws", "auth", "http", "app"]),
            ("serde_dynamo", &["domain", "store"]),
            ("tokio", &["aws", "auth", "config", "store", "app"]),
            ("tracing", &["aws", "auth", "store", "app"]),
        ],
    },
    Crate {
        folder: "infra/server",
        rows: &[
            &["access", "account", "event_filter", "files", "http_server", "publisher"],
            &["bucket", "data_dir", "engine", "gateway", "queue"],
            &["outbox", "template", "trigger"],
            &["settings", "stack", "token"],
            &["service"],
        ],
        apart: &[],
        external: &[
            ("dynoxide", &["engine"]),
            ("mail_parser", &["outbox"]),
            ("rusqlite", &["engine"]),
            ("s3s", &["bucket"]),
            ("saphyr", &["template"]),
        ],
    },
    Crate {
        folder: "infra/transfer",
        rows: &[&["temporary"], &["store"], &["check", "lease"], &["import"], &["export"], &["person"]],
        apart: &[],
        external: &[("aws_", &["store"]), ("html5ever", &["import"]), ("media", &["person"])],
    },
    Crate { folder: "infra/cli", rows: &[&["commands"]], apart: &[], external: &[("clap", &["commands"])] },
];

impl Crate {
    fn row(&self, layer: &str) -> usize {
        let row = self.rows.iter().position(|row| row.contains(&layer));
        row.unwrap_or_else(|| panic!("{layer} is in no layer of {}", self.folder))
    }

    fn may_use(&self, user: &str, used: &str) -> bool {
        user == used || self.row(used) < self.row(user) && !self.apart.contains(&(user, used))
    }

    fn may_use_external(&self, layer: &str, name: &str) -> bool {
        let rule = self.external.iter().filter(|(family, _)| name.starts_with(family)).max_by_key(|rule| rule.0.len());
        rule.is_none_or(|(_, layers)| layers.contains(&layer))
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

/// A comment may point to whatever explains it.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
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

/// The path from the root of the crate. `None` for a path of another crate.
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

/// The modules that each module uses, and the first parts of other crates' paths.
fn uses(modules: &BTreeMap<Path, String>) -> BTreeMap<&Path, (BTreeSet<Path>, BTreeSet<String>)> {
    let passed_on = passed_on(modules);
    let mut uses = BTreeMap::new();
    for (module, text) in modules {
        let (mut inner, mut outer) = (BTreeSet::new(), BTreeSet::new());
        for path in named(text) {
            match absolute(module, &path) {
                Some(mut used) => {
                    while let Some(from) = passed_on.get(&used) {
                        used.clone_from(from);
                    }
                    // The deepest module of the path has it.
                    while !used.is_empty() && !modules.contains_key(&used) {
                        used.pop();
                    }
                    inner.insert(used);
                }
                None => drop(outer.insert(path[0].clone())),
            }
        }
        uses.insert(module, (inner, outer));
    }
    uses
}

/// A circle among modules of one folder.
fn circle(edges: &BTreeMap<Path, BTreeSet<Path>>) -> Option<Vec<String>> {
    fn visit(
        at: &Path,
        edges: &BTreeMap<Path, BTreeSet<Path>>,
        way: &mut Vec<Path>,
        done: &mut BTreeSet<Path>,
    ) -> bool {
        if let Some(begin) = way.iter().position(|step| step == at) {
            way.drain(..begin);
            return true;
        }
        if !done.insert(at.clone()) {
            return false;
        }
        way.push(at.clone());
        if edges.get(at).into_iter().flatten().any(|next| visit(next, edges, way, done)) {
            return true;
        }
        way.pop();
        false
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    edges
        .keys()
        .any(|start| visit(start, edges, &mut way, &mut done))
        .then(|| way.iter().map(|path| path.join("::")).collect())
}

fn source(krate: &Crate) -> PathBuf {
    File::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate.folder).join("src")
}

#[test]
fn no_layer_uses_one_above_or_beside_it() {
    for krate in &CRATES {
        let modules = modules(&source(krate));
        let mut checked = 0;
        for (module, (inner, _)) in uses(&modules) {
            for used in inner.iter().filter_map(|used| used.first()) {
                let file = format!("{} of {}", module.join("::"), krate.folder);
                assert!(krate.may_use(&module[0], used), "{file} uses {used}, which is not below it");
                checked += 1;
            }
        }
        assert!(checked > 10, "only {checked} uses were found in {}", krate.folder);
    }
}

#[test]
fn modules_of_one_folder_do_not_use_each_other_in_circles() {
    let mut circles = Vec::new();
    for krate in &CRATES {
        let mut modules = modules(&source(krate));
        for text in modules.values_mut() {
            *text = without_comments(text);
        }
        let mut folders: BTreeMap<Path, BTreeMap<Path, BTreeSet<Path>>> = BTreeMap::new();
        for (module, (inner, _)) in uses(&modules) {
            for used in inner {
                // Where the two part.
                let common = module.iter().zip(&used).take_while(|(one, other)| one == other).count();
                if common < module.len() && common < used.len() {
                    let edges = folders.entry(module[..common].to_vec()).or_default();
                    edges.entry(module[..=common].to_vec()).or_default().insert(used[..=common].to_vec());
                }
            }
        }
        circles.extend(folders.values().filter_map(circle).map(|way| format!("{}: {}", krate.folder, way.join(" → "))));
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn crates_of_others_stay_in_their_layers() {
    for krate in &CRATES {
        for (module, (_, outer)) in uses(&modules(&source(krate))) {
            for name in outer {
                let file = format!("{} of {}", module.join("::"), krate.folder);
                assert!(krate.may_use_external(&module[0], &name), "{file} uses {name}");
            }
        }
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
fn a_use_upwards_or_sideways_and_a_circle_are_found() {
    let shared = &CRATES[0];
    assert!(shared.may_use("http", "policy") && shared.may_use("domain", "domain"));
    assert!(
        !shared.may_use("domain", "error") && !shared.may_use("error", "routes") && !shared.may_use("store", "policy")
    );
    assert!(shared.may_use_external("aws", "aws_config") && !shared.may_use_external("policy", "aws_smithy_types"));
    let file = |name: &str, text: &str| (vec![name.to_owned()], text.to_owned());
    let modules = BTreeMap::from([
        file("a", "use crate::b::B;"),
        file("b", "pub use super::c::C;"),
        file("c", "use super::a::A;"),
    ]);
    let edges = uses(&modules).into_iter().map(|(module, (inner, _))| (module.clone(), inner)).collect();
    assert_eq!(circle(&edges).unwrap(), ["a", "b", "c"]);
}

/// Cargo does not build the tests of a target that says `test = false`, and says nothing of them.
#[test]
fn a_library_whose_tests_are_not_built_has_none() {
    let mut checked = 0;
    for function in fs::read_dir(File::new(env!("CARGO_MANIFEST_DIR")).join("../functions")).unwrap() {
        let folder = function.unwrap().path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let library = manifest.split("\n[").find(|section| section.starts_with("lib]")).expect("a section [lib]");
        if library.lines().any(|line| line == "test = false") {
            let tests = rust_files(&folder.join("src"))
                .into_iter()
                .filter(|file| fs::read_to_string(file).unwrap().contains("test]\n"))
                .collect::<Vec<_>>();
            assert!(tests.is_empty(), "remove `test = false` from {}: {tests:#?}", folder.display());
            checked += 1;
        }
    }
    assert!(checked > 4, "only {checked} libraries were found");
}
