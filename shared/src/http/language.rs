//! The language of the response, negotiated with `Accept-Language`.

use std::cmp::Reverse;

use crate::domain::language::Language;
use crate::http::quality;

/// The language with the highest weight in an `Accept-Language` header (RFC 9110, section 12.5.4), or the first of several with
/// the same weight. English if none is supported.
#[must_use]
pub fn preferred(accept_language: Option<&str>) -> Language {
    let ranges = quality::members(accept_language.unwrap_or_default());
    // `de-AT` counts as `de`.
    let ranges = ranges.map(|(range, weight)| (range.split('-').next().unwrap_or_default(), weight));
    let ranges: Vec<(&str, u16)> = ranges.collect();
    let find = |wanted: &str| {
        ranges
            .iter()
            .enumerate()
            .filter(|(_, (primary, _))| primary.eq_ignore_ascii_case(wanted))
            .map(|(place, (_, weight))| (*weight, Reverse(place)))
            .max()
    };
    let any = find("*");
    Language::all()
        .enumerate()
        .filter_map(|(column, language)| {
            let (weight, place) = find(language.tag()).or(any)?;
            (weight > 0).then_some((weight, place, Reverse(column), language))
        })
        .max_by_key(|(weight, place, column, _)| (*weight, *place, *column))
        .map_or(Language::ENGLISH, |(.., language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(accept_language: Option<&str>) -> &'static str {
        preferred(accept_language).tag()
    }

    #[test]
    fn the_language_of_most_weight_is_chosen() {
        for (header, expected) in [
            ("de", "de"),
            ("DE", "de"),
            ("de-AT", "de"),
            ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"),
            ("en;q=0.2,es;q=0.9", "es"),
            ("en ; q=0.2 , es ; Q=0.201", "es"),
            ("es, de", "es"),
            ("de, es", "de"),
            ("xx, tlh;q=0.9, de;q=0.1", "de"),
            ("de;q=0.1, de-AT", "de"),
        ] {
            assert_eq!(language(Some(header)), expected, "{header}");
        }
    }

    #[test]
    fn a_star_represents_the_languages_not_named() {
        for (header, expected) in [("*", "en"), ("xx, *;q=0.1", "en"), ("de;q=0.5, *", "en"), ("fr, *;q=0", "fr")] {
            assert_eq!(language(Some(header)), expected, "{header}");
        }
        let others: Vec<&str> = Language::all().map(Language::tag).skip(1).collect();
        assert_eq!(language(Some("en;q=0.5, *")), others[0]);
        assert_eq!(language(Some(&format!("en;q=0, {};q=0, *;q=0.1", others[0]))), others[1]);
    }

    #[test]
    fn a_weight_of_zero_excludes() {
        assert_eq!(language(Some("de;q=0, fr;q=0.1")), "fr");
        assert_eq!(language(Some("de;q=0.000")), "en");
    }

    #[test]
    fn english_is_the_default() {
        for header in [None, Some(""), Some("tlh"), Some("deutsch"), Some("xx-de")] {
            assert_eq!(language(header), "en", "{header:?}");
        }
    }

    #[test]
    fn malformed_ranges_are_ignored() {
        let headers = "de;q=2 de;q=1.1 de;q=0.1234 de;q=-1 de;q=NaN de;q= de;q de;x=1 de;q=1;q=1 ;q=1 -de ,,;;== \
                       é\u{0}* de;q=+0 de;q=0.+1";
        for header in headers.split(' ') {
            assert_eq!(language(Some(header)), "en", "{header}");
            assert_eq!(language(Some(&format!("{header}, fr;q=0.1"))), "fr", "{header}");
        }
    }
}
