//! Case folding, for comparing phrases and names.

use icu_normalizer::ComposingNormalizerBorrowed;

const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();

/// Maps texts that differ only in case to the same text, in any script. Each character is converted to lower case, which turns
/// `ẞ` into `ß`; to upper case, which turns `ß` into `SS` and `ς` into `Σ`; and back to lower case.
#[must_use]
pub fn fold(text: &str) -> String {
    text.chars().flat_map(fold_char).collect()
}

/// Maps texts that differ only in case or Unicode normal form to the same text.
#[must_use]
pub fn fold_forms(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    NFKC.normalize(&fold(&NFKC.normalize(text))).into_owned()
}

/// Folds one character, like [`fold()`]. Drops U+0307, the dot that converting `İ` to lower case leaves after the `i`.
pub fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase).filter(|c| *c != '\u{307}')
}

#[cfg(test)]
mod tests {
    use super::{fold, fold_forms};

    #[test]
    fn every_case_of_a_word_folds_to_one_spelling() {
        for (one, other) in
            [("Ada", "aDA"), ("STRASSE", "straße"), ("ΟΔΟΣ", "οδος"), ("ÉCOLE", "école"), ("ДОМ", "дом"), ("ﬁn", "FIN")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
    }

    #[test]
    fn every_normal_form_of_a_word_folds_to_one_spelling() {
        for (one, other) in [
            ("ZOÉ", "zoe\u{301}"),
            ("Ｚｏé", "zoé"),
            ("ｶﾞ", "ガ"),
            ("가", "\u{1100}\u{1161}"),
            ("ΐ", "Ϊ\u{301}"),
            ("İ", "i"),
        ] {
            assert_eq!(fold_forms(one), fold_forms(other), "{one} {other}");
        }
    }

    /// No character after this one has upper and lower case.
    const LAST: char = '\u{1ffff}';

    #[test]
    fn folding_twice_changes_nothing() {
        for c in '\0'..=LAST {
            let folded = fold(c.encode_utf8(&mut [0; 4]));
            assert_eq!(fold(&folded), folded, "{c:?}");
        }
    }

    #[test]
    fn both_cases_of_every_letter_fold_to_one_spelling() {
        for c in '\0'..=LAST {
            let folded = fold(c.encode_utf8(&mut [0; 4]));
            assert_eq!(fold(&c.to_uppercase().to_string()), folded, "{c:?}");
            assert_eq!(fold(&c.to_lowercase().to_string()), folded, "{c:?}");
        }
    }
}
