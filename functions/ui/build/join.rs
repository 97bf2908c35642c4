//! Joins ES modules into one script. They import and declare by whole statements at the top level: `import { a, b } from './c.js'`,
//! `export const d`, and, in an entry, `export { e } from './f.js'`. Two modules of one script never declare the same name.

use std::collections::{BTreeMap, BTreeSet};

use super::squeeze::{self, Line};

/// The texts of modules by their paths.
pub(crate) type Sources = BTreeMap<String, String>;

/// Names that come from another module.
#[derive(Debug)]
struct Import {
    names: Vec<String>,
    from: String,
    /// Whether the module exports them itself.
    is_export: bool,
}

#[derive(Debug)]
struct Module {
    path: String,
    imports: Vec<Import>,
    /// The names that it declares at its top level.
    names: Vec<String>,
    text: String,
}

/// The modules that an entry reaches, each after those that it imports.
#[derive(Debug)]
pub(crate) struct Bundle {
    modules: Vec<Module>,
    /// The paths of modules that another script holds.
    given: BTreeSet<String>,
}

/// Fails on a module that is in no script.
pub(crate) fn all_are_reached(sources: &Sources, bundles: &[&Bundle]) -> Result<(), String> {
    let reached = |path: &String| bundles.iter().flat_map(|bundle| &bundle.modules).any(|module| module.path == *path);
    match sources.keys().find(|path| !reached(path)) {
        Some(path) => Err(format!("no script contains {path}")),
        None => Ok(()),
    }
}

impl Bundle {
    /// The modules that `entry` reaches, but for those that `base` holds.
    pub(crate) fn new(sources: &Sources, entry: &str, base: Option<&Self>) -> Result<Self, String> {
        let given = base.into_iter().flat_map(|base| &base.modules).map(|module| module.path.clone()).collect();
        let mut bundle = Self { modules: Vec::new(), given };
        bundle.add(sources, entry, &mut Vec::new())?;
        bundle.names_are_unique(base)?;
        Ok(bundle)
    }

    /// Adds a module after those that it imports. `above` are the modules that led here.
    fn add(&mut self, sources: &Sources, path: &str, above: &mut Vec<String>) -> Result<(), String> {
        if self.given.contains(path) || self.modules.iter().any(|module| module.path == path) {
            return Ok(());
        }
        if let Some(start) = above.iter().position(|other| other == path) {
            return Err(format!("modules import each other: {} → {path}", above[start..].join(" → ")));
        }
        let source =
            sources.get(path).ok_or_else(|| format!("{} imports {path}, which is no module", above.join(" → ")))?;
        let module = Module::parse(path, source).map_err(|mistake| format!("{path}: {mistake}"))?;
        above.push(path.to_owned());
        for import in &module.imports {
            self.add(sources, &import.from, above)?;
        }
        above.pop();
        self.modules.push(module);
        Ok(())
    }

    fn names_are_unique(&self, base: Option<&Self>) -> Result<(), String> {
        let mut declared = BTreeMap::new();
        for module in base.into_iter().chain([self]).flat_map(|bundle| &bundle.modules) {
            for name in &module.names {
                if let Some(other) = declared.insert(name, &module.path) {
                    return Err(format!("{other} and {} both declare {name}", module.path));
                }
            }
        }
        Ok(())
    }

    /// The script.
    pub(crate) fn text(&self) -> String {
        self.modules.iter().map(|module| module.text.as_str()).collect()
    }

    /// The names that this script takes from another one.
    fn needs(&self) -> String {
        let imports = self.modules.iter().flat_map(|module| &module.imports);
        let given = imports.filter(|import| self.given.contains(&import.from));
        let names: BTreeSet<&str> = given.flat_map(|import| &import.names).map(String::as_str).collect();
        Vec::from_iter(names).join(", ")
    }

    /// A module whose default export takes the names that it needs, and answers what its entry exports. It fails where one is
    /// missing: the page has an older version of the other script then.
    pub(crate) fn part(&self) -> String {
        let needs = self.needs();
        let entry = self.modules.iter().last().into_iter().flat_map(|module| &module.imports);
        let exports: Vec<&str> =
            entry.filter(|import| import.is_export).flat_map(|import| &import.names).map(String::as_str).collect();
        let (text, exports) = (self.text(), exports.join(", "));
        let check = format!("if ([{needs}].includes(undefined)) throw Error('The page has another version.')");
        format!("export default ({{ {needs} }}) => {{\n{check}\n{text}return {{ {exports} }}\n}}\n")
    }

    /// The script, which loads a part from this address where it imports the entry of the part.
    pub(crate) fn loading(&self, part: &Self, address: &str) -> Result<String, String> {
        let entry = part.modules.last().map(|module| module.path.as_str()).unwrap_or_default();
        let import = format!("import('../{entry}')");
        let text = self.text();
        if text.matches(&import).count() != 1 {
            return Err(format!("not exactly one module has {import}"));
        }
        Ok(text.replace(&import, &format!("import('{address}').then((part) => part.default({{ {} }}))", part.needs())))
    }
}

impl Module {
    fn parse(path: &str, source: &str) -> Result<Self, String> {
        let mut module = Self { path: path.to_owned(), imports: Vec::new(), names: Vec::new(), text: String::new() };
        let mut lines = squeeze::lines(source).into_iter();
        while let Some(line) = lines.next() {
            if line.is_top && (line.text.starts_with("import ") || line.text.starts_with("export {")) {
                let statement = statement(line, &mut lines);
                module.imports.push(Import::parse(path, &statement).ok_or(format!("cannot join: {statement}"))?);
                continue;
            }
            let declaration = line.text.strip_prefix("export ").filter(|_| line.is_top);
            let text = declaration.unwrap_or(&line.text);
            if line.is_top {
                module.names.extend(declared(text)?);
            }
            module.text.push_str(text);
            module.text.push('\n');
        }
        Ok(module)
    }
}

/// A statement that ends with the path of a module, which may take several lines.
fn statement(first: Line, lines: &mut impl Iterator<Item = Line>) -> String {
    let mut text = first.text;
    while !text.ends_with('\'') {
        let Some(line) = lines.next() else { break };
        text.push(' ');
        text.push_str(&line.text);
    }
    text
}

impl Import {
    fn parse(path: &str, statement: &str) -> Option<Self> {
        let is_export = statement.starts_with("export");
        let (names, from) = match statement.strip_prefix("import '") {
            Some(from) => ("", from.strip_suffix('\'')?),
            None => {
                let (_, rest) = statement.split_once('{')?;
                let (names, from) = rest.split_once("} from '")?;
                (names, from.strip_suffix('\'')?)
            }
        };
        let names: Vec<String> =
            names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        let is_plain = names.iter().all(|name| !name.contains(' '));
        is_plain.then_some(Self { names, from: resolve(path, from)?, is_export })
    }
}

/// The path of a module that `path` names so.
fn resolve(path: &str, relative: &str) -> Option<String> {
    let (folder, _) = path.rsplit_once('/')?;
    match relative.strip_prefix("./") {
        Some(name) => Some(format!("{folder}/{name}")),
        None => relative.strip_prefix("../").map(str::to_owned),
    }
}

/// The name that a line at the top level declares.
fn declared(line: &str) -> Result<Option<String>, String> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    if line.starts_with("default ") {
        return Err(format!("cannot join: export {line}"));
    }
    let after = ["const ", "let ", "class ", "function* ", "function "].iter().find_map(|word| line.strip_prefix(word));
    let Some(after) = after else { return Ok(None) };
    let end =
        after.find(|character: char| !character.is_alphanumeric() && !"_$".contains(character)).unwrap_or(after.len());
    if end == 0 { Err(format!("declares several names: {line}")) } else { Ok(Some(after[..end].to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(modules: &[(&str, &str)]) -> Sources {
        modules.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    fn bundle(modules: &[(&str, &str)]) -> Result<String, String> {
        Bundle::new(&sources(modules), modules[0].0, None).map(|bundle| bundle.text())
    }

    #[test]
    fn a_module_stands_after_those_that_it_imports_and_each_stands_once() {
        let text = bundle(&[
            ("reader/a.js", "import { b } from './b.js'\nimport { c } from '../kit/c.js'\nb(c)"),
            ("reader/b.js", "import { c } from '../kit/c.js'\nexport const b = c"),
            ("kit/c.js", "export async function c() {}"),
        ]);
        assert_eq!(text.unwrap(), "async function c() {}\nconst b = c\nb(c)\n");
    }

    #[test]
    fn an_import_may_take_several_lines() {
        let modules = [
            ("a/a.js", "import {\n  b,\n  c,\n} from './b.js'\nb(c)"),
            ("a/b.js", "export const b = 1\nexport const c = 2"),
        ];
        assert_eq!(bundle(&modules).unwrap(), "const b = 1\nconst c = 2\nb(c)\n");
    }

    #[test]
    fn two_modules_that_declare_the_same_name_are_named() {
        let modules = [("a/a.js", "import './b.js'\nconst same = 1"), ("a/b.js", "function same() {}")];
        assert_eq!(bundle(&modules).unwrap_err(), "a/b.js and a/a.js both declare same");
    }

    #[test]
    fn two_modules_that_import_each_other_are_named() {
        let modules = [("a/a.js", "import { b } from './b.js'"), ("a/b.js", "import { a } from './a.js'")];
        assert_eq!(bundle(&modules).unwrap_err(), "modules import each other: a/a.js → a/b.js → a/a.js");
    }

    #[test]
    fn what_cannot_be_joined_is_named() {
        for line in ["import { b as c } from './b.js'", "import * as b from './b.js'", "export default 1"] {
            let mistake = bundle(&[("a/a.js", line), ("a/b.js", "export const b = 1")]).unwrap_err();
            assert!(mistake.starts_with("a/a.js: cannot join: "), "{mistake}");
        }
        let several = bundle(&[("a/a.js", "const { b, c } = globalThis")]).unwrap_err();
        assert!(several.starts_with("a/a.js: declares several names"), "{several}");
        let missing = bundle(&[("a/a.js", "import { b } from './b.js'")]).unwrap_err();
        assert_eq!(missing, "a/a.js imports a/b.js, which is no module");
    }

    #[test]
    fn a_module_that_nobody_imports_is_named() {
        let sources = sources(&[("a/a.js", ""), ("a/b.js", "")]);
        let bundle = Bundle::new(&sources, "a/a.js", None).unwrap();
        assert_eq!(all_are_reached(&sources, &[&bundle]).unwrap_err(), "no script contains a/b.js");
    }

    #[test]
    fn a_part_takes_what_it_needs_from_the_script_that_loads_it() {
        let sources = sources(&[
            ("kit/h.js", "export const h = 1\nexport const other = 2"),
            ("reader/a.js", "import { h } from '../kit/h.js'\nconst load = () => import('../writer/index.js')"),
            ("writer/index.js", "export { edit } from './edit.js'"),
            ("writer/edit.js", "import { h } from '../kit/h.js'\nexport const edit = h"),
        ]);
        let reader = Bundle::new(&sources, "reader/a.js", None).unwrap();
        let writer = Bundle::new(&sources, "writer/index.js", Some(&reader)).unwrap();
        assert_eq!(
            writer.part(),
            "export default ({ h }) => {\nif ([h].includes(undefined)) throw Error('The page has another version.')\n\
             const edit = h\nreturn { edit }\n}\n"
        );
        let text = reader.loading(&writer, "./embed/writer.1.js").unwrap();
        assert!(
            text.ends_with("const load = () => import('./embed/writer.1.js').then((part) => part.default({ h }))\n"),
            "{text}"
        );
    }

    #[test]
    fn a_part_shares_no_name_with_the_script_that_loads_it() {
        let sources = sources(&[("reader/a.js", "const same = 1"), ("writer/index.js", "const same = 2")]);
        let reader = Bundle::new(&sources, "reader/a.js", None).unwrap();
        let mistake = Bundle::new(&sources, "writer/index.js", Some(&reader)).unwrap_err();
        assert_eq!(mistake, "reader/a.js and writer/index.js both declare same");
        assert!(
            reader
                .loading(&reader, "./x.js")
                .unwrap_err()
                .contains("not exactly one module has import('../reader/a.js')")
        );
    }
}
