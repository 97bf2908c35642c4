//! The plural rules of languages, which `plurals.js` takes from CLDR and writes to `plurals.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::locales::Rules;

const PLURALS: &str = include_str!("plurals.json");

#[derive(Deserialize)]
struct Plurals {
    categories: Vec<&'static str>,
    /// A digit for each form.
    forms: &'static str,
}

/// `None` for a language that isn't in the file.
pub(crate) fn rules(tag: &str) -> Option<Rules> {
    let mut languages: BTreeMap<&str, Plurals> = serde_json::from_str(PLURALS).ok()?;
    let Plurals { categories, forms } = languages.remove(tag)?;
    Some(Rules { categories, forms: forms.bytes().map(|digit| usize::from(digit - b'0')).collect() })
}
