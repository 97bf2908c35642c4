//! The texts of the service in every language. The build script turns the files in `locales/`, one per language, into the
//! tables and functions that are included here.

use serde::{Serialize, Serializer};

use crate::language::{Language, TAGS};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// A key and its text in each language.
type Row = [&'static str; TAGS.len() + 1];

/// Texts that scripts show. They serialize as an object from key to text.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    language: Language,
    /// The texts of the moderators' page, in addition to the widget's. Functions that don't serve the page don't contain these
    /// texts.
    more: &'static [Row],
}

impl Labels {
    pub fn of_widget(language: Language) -> Self {
        Self { language, more: &[] }
    }

    /// The texts of the widget and of the moderators' page.
    pub fn of_moderation(language: Language) -> Self {
        Self { language, more: &MODERATION }
    }
}

impl Labels {
    fn all(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let column = 1 + self.language.index();
        LABELS.iter().chain(self.more).map(move |row| (row[0], row[column]))
    }

    /// The label of this key; empty if it is missing.
    #[must_use]
    pub fn text(self, key: &str) -> &'static str {
        self.all().find(|(known, _)| *known == key).map_or("", |(_, text)| text)
    }

    /// The form of a label for a number, with the number in place of `{n}`.
    #[must_use]
    pub fn plural(self, key: &str, number: u64) -> String {
        fill(form(self.text(key), self.language, number), &[("n", &number.to_string())])
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all())
    }
}

/// The plural form for a number, by the CLDR rules. For large numbers, the form depends on the last two digits and on whether
/// the number is a multiple of a million.
fn form(forms: &'static str, language: Language, number: u64) -> &'static str {
    let places = &FORMS[language.index()];
    let last = places.len() - 1;
    let place = match usize::try_from(number) {
        Ok(number) if number < last => places[number],
        _ if number.is_multiple_of(1_000_000) => places[last],
        _ => places[100 + (number % 100) as usize],
    };
    forms.split(" | ").nth(place.into()).unwrap_or(forms)
}

/// Replaces the placeholders in `text` with their values. Braces in the values aren't placeholders.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        let value = values.iter().find(|(known, _)| *known == name);
        filled.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_in_the_requested_language() {
        for (tag, cancel) in [("en", "Cancel"), ("es", "Cancelar"), ("de", "Abbrechen"), ("fr", "Annuler")] {
            let labels = serde_json::to_value(Labels::of_widget(Language::of_tag(tag))).expect("labels serialise");
            assert_eq!(labels["cancel"], cancel);
            assert_eq!(labels.as_object().map(serde_json::Map::len), Some(LABELS.len()));
        }
    }

    #[test]
    fn a_label_with_a_number_has_the_form_of_the_number() {
        let labels = |tag| Labels::of_widget(Language::of_tag(tag));
        assert_eq!(labels("en").plural("more_replies", 1), "1 more reply");
        assert_eq!(labels("en").plural("more_replies", 12), "12 more replies");
        assert_eq!((labels("de").text("reply"), labels("de").text("nothing")), ("Antworten", ""));
    }

    #[test]
    fn the_moderators_page_has_more_labels() {
        let labels = serde_json::to_value(Labels::of_moderation(Language::ENGLISH)).expect("labels serialise");
        assert_eq!((&labels["cancel"], &labels["moderation.title"]), (&"Cancel".into(), &"Moderation".into()));
        assert_eq!(labels["moderation.reports"], "{n} report | {n} reports");
    }

    #[test]
    fn french_punctuation_does_not_wrap() {
        let texts: serde_json::Value = serde_json::from_str(include_str!("../../locales/fr.json")).expect("it is JSON");
        let texts = texts.to_string();
        for wraps in [" :", " ;", " ?", " !", " »", "« "] {
            assert!(!texts.contains(wraps), "{wraps:?}");
        }
    }

    #[test]
    fn filled_in_values_may_contain_braces() {
        assert_eq!(Mails::of(Language::ENGLISH).answered("{name}"), "{name} replied to your comment");
        assert_eq!(fill("{a} and {b}{a", &[("b", "{a}"), ("a", "x")]), "x and {a}{a");
    }

    #[test]
    fn plurals_have_the_form_of_their_number() {
        let several = |tag, number| Mails::of(Language::of_tag(tag)).several(number);
        for (tag, number, expected) in [
            ("en", 0, "0 new comments"),
            ("en", 1, "1 new comment"),
            ("en", 1_000_001, "1000001 new comments"),
            ("fr", 0, "0 nouveau commentaire"),
            ("fr", 199, "199 nouveaux commentaires"),
            ("fr", 2_000_000, "2000000 de nouveaux commentaires"),
            ("es", 1_000_000, "1000000 de comentarios nuevos"),
            ("de", 301, "301 neue Kommentare"),
        ] {
            assert_eq!(several(tag, number), expected);
        }
    }
}
