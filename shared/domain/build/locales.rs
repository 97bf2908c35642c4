//! Reads the locale files, one per language, validates them and generates Rust code from them.
//!
//! A locale file consists of sections, which map keys to texts. A text with the placeholder `{n}` is a plural: an
//! object with one form per CLDR plural category of the language, such as `{"one": "{n} day", "other": "{n} days"}`.
//! Names in braces are placeholders. A form that applies to only one number may spell that number out. English has all
//! texts. Other languages may omit any section that isn't in [`REQUIRED`], and fall back to English for it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

const ENGLISH: &str = "en";
/// Sections that every language must have.
const REQUIRED: [&str; 3] = ["errors", "labels", "times"];
/// Sections generated as tables from key to text, which scripts receive as a whole. In other sections, each text becomes a
/// function.
const TABLES: [&str; 2] = ["labels", "moderation"];
/// The table whose keys have no prefix. In other tables, keys begin with the section's name.
const UNPREFIXED: &str = "labels";
/// The separator between the forms of a plural.
const SEPARATOR: &str = " | ";
/// The placeholder for the number in a plural.
const NUMBER: &str = "n";

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Single(String),
    /// The form for each CLDR category.
    Plural(BTreeMap<String, String>),
}

pub(crate) type Section = BTreeMap<String, Text>;
/// Sections by name.
pub(crate) type Locale = BTreeMap<String, Section>;
/// Locales by language tag.
pub(crate) type Locales = BTreeMap<String, Locale>;

pub(crate) fn read(folder: &Path) -> Result<Locales, Box<dyn Error>> {
    let mut locales = Locales::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let tag = path.file_stem().and_then(|name| name.to_str()).ok_or("a file has no name")?.to_owned();
        let locale = serde_json::from_str(&fs::read_to_string(&path)?);
        locales.insert(tag, locale.map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(locales)
}

/// The language tags in table order: English, which is the default, then the others alphabetically.
fn tags(locales: &Locales) -> Vec<&str> {
    let others = locales.keys().map(String::as_str).filter(|tag| *tag != ENGLISH);
    [ENGLISH].into_iter().chain(others).collect()
}

pub(crate) struct Rules {
    /// The language's categories in CLDR order.
    pub(crate) categories: Vec<&'static str>,
    /// The index in `categories` for each number from 0 to 199, then for a million.
    pub(crate) forms: Vec<usize>,
}

impl Rules {
    /// Whether the category applies to exactly one number in [`Self::forms`], so its form may spell the number out:
    /// Arabic `يومين` means two days.
    fn is_of_one_number(&self, category: &str) -> bool {
        self.forms.iter().filter(|form| self.categories[**form] == category).count() == 1
    }
}

/// The names of the placeholders in `text`.
fn names(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

impl Text {
    fn forms(&self) -> Vec<&str> {
        match self {
            Self::Single(text) => vec![text],
            Self::Plural(forms) => forms.values().map(String::as_str).collect(),
        }
    }

    fn names(&self) -> BTreeSet<&str> {
        self.forms().into_iter().flat_map(names).collect()
    }

    /// The first form whose placeholders differ from `expected`. A form that applies to only one number may omit the number.
    fn form_with_other_names(&self, expected: &BTreeSet<&str>, rules: &Rules) -> Option<&str> {
        match self {
            Self::Single(text) => (names(text) != *expected).then_some(text),
            Self::Plural(forms) => {
                let is_other = |(category, form): &(&String, &String)| {
                    let in_words = expected.get(NUMBER).filter(|_| rules.is_of_one_number(category));
                    names(form).into_iter().chain(in_words.copied()).collect::<BTreeSet<_>>() != *expected
                };
                forms.iter().find(is_other).map(|(_, form)| form.as_str())
            }
        }
    }

    /// The text, or its forms in CLDR order, joined with [`SEPARATOR`]. Scripts rely on the order.
    fn joined(&self, rules: &Rules) -> String {
        match self {
            Self::Single(text) => text.clone(),
            Self::Plural(forms) => {
                let forms = rules.categories.iter().filter_map(|category| forms.get(*category));
                forms.map(String::as_str).collect::<Vec<_>>().join(SEPARATOR)
            }
        }
    }
}

/// Checks all locales. Returns one message per problem, but at most one per text.
pub(crate) fn mistakes(locales: &Locales, rules: impl Fn(&str) -> Option<Rules>) -> Vec<String> {
    let Some(english) = locales.get(ENGLISH) else { return vec![format!("{ENGLISH} is missing")] };
    let mut mistakes = Vec::new();
    for (tag, locale) in locales {
        let Some(rules) = rules(tag) else {
            mistakes.push(format!("no plural rules are known for the language {tag}"));
            continue;
        };
        let missing = REQUIRED.iter().filter(|section| !locale.contains_key(**section));
        mistakes.extend(missing.map(|section| format!("{tag}: {section} is missing")));
        for (section, texts) in locale {
            let Some(english) = english.get(section) else {
                mistakes.push(format!("{tag}: {section} is not in {ENGLISH}"));
                continue;
            };
            let missing = english.keys().filter(|key| !texts.contains_key(*key));
            mistakes.extend(missing.map(|key| format!("{tag}: {section}.{key} is missing")));
            for (key, text) in texts {
                let wrong = match english.get(key) {
                    Some(english) => wrong(text, english, &rules),
                    None => Some(format!("is not in {ENGLISH}")),
                };
                mistakes.extend(wrong.map(|wrong| format!("{tag}: {section}.{key} {wrong}")));
            }
        }
    }
    mistakes
}

/// The first problem with a text compared with its English original, if any.
fn wrong(text: &Text, english: &Text, rules: &Rules) -> Option<String> {
    let expected = english.names();
    if text.forms().iter().any(|form| form.trim().is_empty()) {
        return Some("is empty".to_owned());
    }
    if text.forms().iter().any(|form| form.contains(SEPARATOR)) {
        return Some(format!("holds {SEPARATOR:?}"));
    }
    if let Some(form) = text.form_with_other_names(&expected, rules) {
        return Some(format!("uses different placeholders from {ENGLISH}: {form}"));
    }
    let categories: BTreeSet<&str> = rules.categories.iter().copied().collect();
    match text {
        Text::Single(_) if expected.contains(NUMBER) => Some(format!("must have the forms {categories:?}")),
        Text::Plural(_) if !expected.contains(NUMBER) => Some(format!("has forms, but no {NUMBER}")),
        Text::Plural(forms) if !forms.keys().map(String::as_str).eq(categories.iter().copied()) => {
            Some(format!("must have the forms {categories:?}"))
        }
        _ => None,
    }
}

/// Generates the source that `language.rs` includes: the language tags.
pub(crate) fn languages(locales: &Locales) -> String {
    let tags = tags(locales);
    format!(
        "/// Tags of the languages in the order of every table.\npub(super) const TAGS: [&str; {}] = {tags:?};\n",
        tags.len()
    )
}

/// Generates the source that `texts.rs` includes: the plural forms, and a table or a type for each section.
pub(crate) fn texts(locales: &Locales, rules: impl Fn(&str) -> Option<Rules>) -> String {
    let tags = tags(locales);
    let rules: Vec<Rules> = tags.iter().filter_map(|tag| rules(tag)).collect();
    let mut rust = String::new();
    let forms: Vec<&[usize]> = rules.iter().map(|rules| rules.forms.as_slice()).collect();
    let _ = writeln!(rust, "static FORMS: [[u8; {}]; {}] = {forms:?};", forms[0].len(), tags.len());
    for (section, texts) in &locales[ENGLISH] {
        let has: Vec<bool> = tags.iter().map(|tag| locales[*tag].contains_key(section)).collect();
        let translated = |key: &String| {
            let texts = tags.iter().zip(&rules).map(|(tag, own)| match locales[*tag].get(section) {
                Some(texts) => texts[key].joined(own),
                None => locales[ENGLISH][section][key].joined(&rules[0]),
            });
            texts.collect::<Vec<_>>()
        };
        if TABLES.contains(&section.as_str()) {
            let prefix = if section == UNPREFIXED { String::new() } else { format!("{section}.") };
            let row = |key: &String| [vec![format!("{prefix}{key}")], translated(key)].concat();
            let mut rows: Vec<_> = texts.keys().map(row).collect();
            if !prefix.is_empty() {
                // Scripts choose plural forms by this language, which is English if the section isn't translated.
                let tags = tags.iter().zip(&has).map(|(tag, has)| if *has { *tag } else { ENGLISH }.to_owned());
                rows.push([format!("{prefix}language")].into_iter().chain(tags).collect());
            }
            let (name, columns, rows_count) = (section.to_uppercase(), tags.len() + 1, rows.len());
            let _ = writeln!(rust, "static {name}: [[&str; {columns}]; {rows_count}] = {rows:?};");
        } else {
            write_functions(&mut rust, section, texts, &has, translated);
        }
    }
    rust
}

/// Writes a type for the section, with a function for each text. A function's parameters are the text's placeholders.
fn write_functions(
    rust: &mut String,
    section: &str,
    texts: &Section,
    has: &[bool],
    translated: impl Fn(&String) -> Vec<String>,
) {
    let name: String = section.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    let count = has.len();
    let _ = write!(
        rust,
        "/// Texts of the section `{section}`.\n#[derive(Clone, Copy)]\npub struct {name}(Language);\n\
         impl {name} {{\n\
         /// The texts in this language, or in English where it lacks them.\n\
         pub fn of(language: Language) -> Self {{\n\
         const HAS: [bool; {count}] = {has:?};\n\
         Self(if HAS[language.index()] {{ language }} else {{ Language::ENGLISH }})\n}}\n\
         pub fn language(self) -> Language {{ self.0 }}\n"
    );
    for (key, text) in texts {
        let texts = translated(key);
        let names = text.names();
        let text = format!("{{ const TEXTS: [&str; {count}] = {texts:?}; TEXTS[self.0.index()] }}");
        if names.is_empty() {
            let _ = writeln!(rust, "pub fn {key}(self) -> &'static str {text}");
            continue;
        }
        let parameter = |name: &&str| format!("{name}: {}", if *name == NUMBER { "u64" } else { "&str" });
        let parameters = names.iter().map(parameter).collect::<Vec<_>>().join(", ");
        let value = |name: &&str| match *name {
            NUMBER => format!("({name:?}, &{name}.to_string())"),
            _ => format!("({name:?}, {name})"),
        };
        let values = names.iter().map(value).collect::<Vec<_>>().join(", ");
        let text = if names.contains(NUMBER) { format!("form({text}, self.0, {NUMBER})") } else { text };
        let _ = writeln!(rust, "pub fn {key}(self, {parameters}) -> String {{ fill({text}, &[{values}]) }}");
    }
    rust.push_str("}\n");
}
