//! Text without regard to case, for phrases and for names.

/// One spelling for every case of `text`, in any script. By way of upper case, so that `ß` is `ss` and `ς` is `σ`; to
/// lower case before, for `ẞ`.
#[must_use]
pub fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn every_case_of_a_word_folds_to_one_spelling() {
        for (one, other) in
            [("Ada", "aDA"), ("STRASSE", "straße"), ("ΟΔΟΣ", "οδος"), ("ÉCOLE", "école"), ("ДОМ", "дом"), ("ﬁn", "FIN")]
        {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
    }

    /// No letter beyond has a case.
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
