//! The plural rules of languages, from `plurals.json`, which `plurals.js` generates from CLDR.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::locales::Rules;

const PLURALS: &str = include_str!("plurals.json");

#[derive(Deserialize)]
struct Plurals {
    categories: Vec<&'static str>,
    /// One digit for each entry of [`Rules::forms`].
    forms: &'static str,
}

/// The plural rules of a language; `None` if they aren't in `plurals.json`.
pub(crate) fn rules(tag: &str) -> Option<Rules> {
    let mut languages: BTreeMap<&str, Plurals> = serde_json::from_str(PLURALS).ok()?;
    let Plurals { categories, forms } = languages.remove(tag)?;
    Some(Rules { categories, forms: forms.bytes().map(|digit| usize::from(digit - b'0')).collect() })
}
