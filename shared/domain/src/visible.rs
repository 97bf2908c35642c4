//! Invisible characters, and characters that change the display order of text.

/// Whether `text` leaves no mark on the page: it is empty, or only white space, controls and invisible characters.
#[must_use]
pub fn shows_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
}

/// Whether the character is invisible and isn't white space.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    is_invisible(c) || (c.is_control() && !c.is_whitespace())
}

/// The zero-width non-joiner and joiner, which shape words of several scripts and join emoji.
pub const NON_JOINER: char = '\u{200c}';
pub const JOINER: char = '\u{200d}';

/// Whether the character may be next to a joiner: it is part of a word or of an emoji.
#[must_use]
pub fn joins(c: char) -> bool {
    let is_sign =
        || !c.is_ascii() && !c.is_whitespace() && !matches!(c, '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}');
    c.is_alphanumeric() || c == '\u{fe0f}' || (is_sign() && !is_unseen(c))
}

/// Whether the character has no width, and neither shapes nor joins other characters.
#[must_use]
pub fn has_no_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Whether the character is a control character, or a line or paragraph separator. Names may contain none of these.
#[must_use]
pub fn breaks_names(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// `text` trimmed and on one line: characters that [`breaks_names`] matches become spaces. Isolates are balanced, so
/// that they don't affect the text around the line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let (mut line, mut open) = (String::new(), 0_usize);
    for c in text.trim().chars() {
        match c {
            '\u{2066}'..='\u{2068}' => open += 1,
            '\u{2069}' if open == 0 => continue,
            '\u{2069}' => open -= 1,
            _ => {}
        }
        line.push(if breaks_names(c) { ' ' } else { c });
    }
    line.extend(std::iter::repeat_n('\u{2069}', open));
    line
}

/// Whether the character is invisible and may change the display order of other characters.
#[must_use]
pub fn turns_text(c: char) -> bool {
    is_bidi_override(c) || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}')
}

/// Whether `text` has an embedding or an override of the Unicode Bidirectional Algorithm, which also reorders the text that
/// follows. Isolates (U+2066 to U+2069) and marks do not, and ordinary Arabic and Hebrew use them.
#[must_use]
pub fn has_bidi_override(text: &str) -> bool {
    text.contains(is_bidi_override)
}

/// Whether `text` is displayed on one line, in the order in which it is written.
#[must_use]
pub fn is_plain_line(text: &str) -> bool {
    !has_bidi_override(text) && !text.contains(breaks_names)
}

/// `text` as [`is_plain_line`] requires it, with spaces for line breaks and control characters.
#[must_use]
pub fn plain_line(text: &str) -> String {
    without_bidi_overrides(text).replace(breaks_names, " ")
}

/// `text` without the characters that [`has_bidi_override`] finds.
#[must_use]
pub fn without_bidi_overrides(text: &str) -> String {
    text.replace(is_bidi_override, "")
}

fn is_bidi_override(c: char) -> bool {
    ('\u{202a}'..='\u{202e}').contains(&c)
}

/// The property `Default_Ignorable_Code_Point` of Unicode 17 (`DerivedCoreProperties.txt`), and seven characters
/// without it: the blank Braille pattern, the null notehead, two blank hieroglyphs and the interlinear annotation
/// characters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13441}'..='\u{13442}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_controls_and_invisible_characters_show_nothing() {
        for text in [
            "",
            " \t\r\n\u{a0}\u{2003}\u{3000}",
            "\u{0}\u{7f}\u{85}",
            "\u{200b}\u{200c}\u{200d}\u{feff}\u{2060}",
            "\u{3164}\u{ffa0}\u{115f}\u{1160}",
            "\u{fe0f}\u{e0100}",
            "\u{e0041}\u{e007f}",
            "\u{ad}\u{34f}\u{61c}\u{180e}",
            "\u{2066}\u{2069}\u{202e}",
            "\u{2800}",
            "\u{1d159}\u{13441}\u{13442}",
        ] {
            assert!(shows_nothing(text), "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_and_controls_are_unseen_and_white_space_is_not() {
        let seen: String = "a\u{200b}b\u{0}c\u{ad}d\u{202e}e \tf\n".chars().filter(|c| !is_unseen(*c)).collect();
        assert_eq!(seen, "abcde \tf\n");
    }

    #[test]
    fn one_line_removes_breaks_and_balances_isolates() {
        for (text, line) in [
            (" a\r\nb\u{2028}c\u{2029}d ", "a  b c d"),
            ("\u{2067}עדה\u{2069}", "\u{2067}עדה\u{2069}"),
            ("\u{2067}a\u{2066}b\u{2069}", "\u{2067}a\u{2066}b\u{2069}\u{2069}"),
            ("a\u{2069}b", "ab"),
        ] {
            assert_eq!(one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn ordinary_text_in_any_script_shows() {
        for text in [
            "x",
            " . ",
            "李",
            "علی\u{200c}رضا",
            "\u{2067}עדה\u{2069}",
            "👩\u{200d}🚀",
            "❤\u{fe0f}",
            "e\u{301}",
            "\u{fffd}",
        ] {
            assert!(!shows_nothing(text), "{text:?}");
        }
    }

    #[test]
    fn bidi_embeddings_and_overrides_are_removed_but_isolates_and_marks_are_kept() {
        for code in 0x202a..=0x202e {
            let text = format!("a{}b", char::from_u32(code).unwrap());
            assert!(has_bidi_override(&text), "{text:?}");
            assert_eq!(without_bidi_overrides(&text), "ab");
        }
        let isolated = "\u{2066}a\u{2069}\u{2067}b\u{2068}\u{200e}\u{200f}\u{61c}";
        assert!(!has_bidi_override(isolated));
        assert_eq!(without_bidi_overrides(isolated), isolated);
    }
}
