//! Files generated from the table of routes: the template's events, and the router of `cargo lambda watch`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use http::Method;
use server::gateway;
use server::template::Template;
use shared::routes::{ROUTES, Route};
use tests::{assert_written, committed};

/// The line above a function's events, which end before a comment or an empty line.
const MARK: &str = "        # Generated from shared/domain/src/routes.rs by UPDATE_FILES=1 cargo test --workspace --test route_files.\n";

/// First segments whose routes share one event. Lambda's resource policy has a statement per event, and at most 20 KB.
const FOLDERS: [&str; 1] = ["moderation"];

/// Returns the routes by path, in table order.
fn by_path(path: impl Fn(&'static Route) -> String) -> Vec<(String, Vec<&'static Route>)> {
    let mut paths: Vec<(String, Vec<&Route>)> = Vec::new();
    for route in ROUTES {
        let path = path(route);
        match paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, routes)) => routes.push(route),
            None => paths.push((path, vec![route])),
        }
    }
    paths
}

fn path(route: &Route) -> String {
    route.path.to_owned()
}

fn event_path(route: &Route) -> String {
    match route.path.split_once('/') {
        Some((folder, _)) if FOLDERS.contains(&folder) => format!("{folder}/{{proxy+}}"),
        _ => path(route),
    }
}

/// Whether one event covers all methods, as it does for folders and for paths that serve HEAD.
fn is_any(path: &str, routes: &[&Route]) -> bool {
    let is_any = path.ends_with("/{proxy+}") || routes.iter().any(|route| route.answers_head);
    assert!(!is_any || routes.iter().all(|route| route.function == routes[0].function), "{routes:?}");
    is_any
}

fn replaced(text: &str, begin: &str, end: &str, by: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}"));
    let after = &rest[rest.find(end).unwrap_or(rest.len())..];
    format!("{before}{begin}{by}{after}")
}

/// Returns the name of a new event: `SignInStart` for `svc-pro.sign_in.start`, and `Moderation` for
/// `moderation/{proxy+}`.
fn event_name(path: &str, route: &Route) -> String {
    let name = path.strip_suffix("/{proxy+}").unwrap_or(route.name.trim_start_matches("svc-pro."));
    name.split(['.', '_']).map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Returns the events of each function, with the names that they already have in the template.
fn events(template: &str) -> BTreeMap<&'static str, String> {
    let mut events = BTreeMap::new();
    for (path, routes) in by_path(event_path) {
        let methods = if is_any(&path, &routes) {
            vec![("ANY", routes[0])]
        } else {
            routes.iter().map(|route| (route.method, *route)).collect()
        };
        for (method, route) in methods {
            let event = format!(
                "          Type: HttpApi\n          Properties:\n            ApiId: !Ref Api\n            Method: {method}\n            \
                 Path: !Sub \"/${{ApiPrefix}}/{path}\"\n"
            );
            // Events keep their names, because a new name means a new permission, and a stack update briefly has both.
            let old = template.split_once(&event).and_then(|(before, _)| before.lines().last());
            let name = old.map_or_else(|| format!("        {}:", event_name(&path, route)), str::to_owned);
            let text: &mut String = events.entry(route.function).or_default();
            write!(text, "{name}\n{event}").unwrap();
        }
    }
    events
}

#[test]
fn the_template_has_the_routes() {
    let mut text = committed("template.yaml");
    for (function, events) in events(&text) {
        let binary = format!("        Binary: {function}\n");
        let (before, own) = text.split_once(&binary).unwrap_or_else(|| panic!("{binary}"));
        let (head, rest) = own.split_once(MARK).unwrap_or_else(|| panic!("{function} has no {MARK}"));
        let is_event = |line: &&str| line.starts_with("        ") && !line.starts_with("        #");
        let after: String = rest.split_inclusive('\n').skip_while(is_event).collect();
        text = format!("{before}{binary}{head}{MARK}{events}{after}");
    }
    assert_written("template.yaml", &text);
}

#[test]
fn the_template_routes_head_of_every_open_get_route() {
    let template = Template::deployed(&[]).unwrap();
    let routes = template.routes().unwrap();
    let open: Vec<&Route> = ROUTES.iter().filter(|route| route.answers_head).collect();
    let routed = open.iter().filter(|open| {
        let path = format!("/svc/api/v1/{}", open.path.replace(['{', '}'], ""));
        let found = gateway::route::find(&routes, &Method::HEAD, &path).unwrap();
        found.route.key != "$default" && found.route.function == open.function
    });
    assert_eq!(routed.count(), open.len());
}

#[test]
fn the_watch_router_has_the_routes() {
    let mut router = String::new();
    for (path, routes) in by_path(path) {
        let target = |route: &&Route| format!("{{ method = \"{}\", function = \"{}\" }}", route.method, route.function);
        let targets = if is_any(&path, &routes) {
            format!("\"{}\"", routes[0].function)
        } else {
            format!("[{}]", routes.iter().map(target).collect::<Vec<_>>().join(", "))
        };
        writeln!(router, "\"/svc/api/v1/{path}\" = {targets}").unwrap();
    }
    let begin = "[workspace.metadata.lambda.watch.router]\n";
    assert_written("Cargo.toml", &replaced(&committed("Cargo.toml"), begin, "\n[profile", &router));
}

/// Cargo silently skips the tests of a target with `test = false`.
#[test]
fn a_library_whose_tests_are_not_built_contains_no_tests() {
    let mut checked = 0;
    for function in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions")).unwrap() {
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

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
