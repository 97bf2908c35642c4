//! Reads the files of texts, one per language, checks them, and generates Rust from them.
//!
//! A file consists of sections, which map keys to texts. A text with a number is a plural: an object with a form for each CLDR
//! plural category of the language, such as `{"one": "{n} day", "other": "{n} days"}`. Names in braces are placeholders. A form
//! for a single number may spell the number out. English is complete. Another language may leave out all sections except those
//! in [`REQUIRED`], and falls back to English there.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Deserialize;

const ENGLISH: &str = "en";
/// Sections that every language has.
const REQUIRED: [&str; 3] = ["errors", "labels", "times"];
/// Sections that scripts get as a whole, as a table from key to text. The texts of other sections become functions.
const TABLES: [&str; 2] = ["labels", "moderation"];
/// The table whose keys have no prefix. Keys of other tables begin with the name of their section.
const UNPREFIXED: &str = "labels";
/// The separator between the forms of a plural.
const SEPARATOR: &str = " | ";
/// The placeholder for the number of a plural.
const NUMBER: &str = "n";

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Single(String),
    /// Forms by category.
    Plural(BTreeMap<String, String>),
}

pub(crate) type Section = BTreeMap<String, Text>;
/// Sections by name.
pub(crate) type Locale = BTreeMap<String, Section>;
/// Locales by the tag of their language.
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

/// Tags in the order of the tables: English, which is the default, then the others alphabetically.
fn tags(locales: &Locales) -> Vec<&str> {
    let others = locales.keys().map(String::as_str).filter(|tag| *tag != ENGLISH);
    [ENGLISH].into_iter().chain(others).collect()
}

/// The plural rules of a language.
pub(crate) struct Rules {
    /// The language's categories in CLDR order.
    pub(crate) categories: Vec<&'static str>,
    /// The index in `categories` for each number from 0 to 199, and for a million.
    pub(crate) forms: Vec<usize>,
}

impl Rules {
    /// Whether the category applies to a single number, which a text may spell out: `يومين` is two days.
    fn is_of_one_number(&self, category: &str) -> bool {
        self.forms.iter().filter(|form| self.categories[**form] == category).count() == 1
    }
}

/// The names of a text's placeholders.
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

    /// A form whose placeholders differ from the expected ones.
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

    /// The text, or its forms joined in CLDR order, which scripts rely on too.
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

/// The problems, one per line.
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

/// The problem of a text compared with the English one, if any.
fn wrong(text: &Text, english: &Text, rules: &Rules) -> Option<String> {
    let expected = english.names();
    if text.forms().iter().any(|form| form.trim().is_empty()) {
        return Some("is empty".to_owned());
    }
    if text.forms().iter().any(|form| form.contains(SEPARATOR)) {
        return Some(format!("holds {SEPARATOR:?}"));
    }
    if let Some(form) = text.form_with_other_names(&expected, rules) {
        return Some(format!("uses other placeholders than {ENGLISH}: {form}"));
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

/// The source of `domain/language.rs`: the tags of the languages.
pub(crate) fn languages(locales: &Locales) -> String {
    let tags = tags(locales);
    format!(
        "/// Tags of the languages in the order of every table.\npub(super) const TAGS: [&str; {}] = {tags:?};\n",
        tags.len()
    )
}

/// The source of `domain/texts.rs`: forms of plurals, and each section.
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
                // Scripts need the language of these plurals.
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

/// Writes a type for the section, with a function for each text. The parameters are the text's placeholders.
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
