//! Classes of characters in any script: letters, marks, digits, punctuation.

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup as Group, Script};
use icu_properties::script::ScriptWithExtensions;

/// Scripts written without spaces between words, and Hangul, whose particles follow names without a space. Hangul must be last:
/// [`Scripts::HANGUL`] is its bit.
const SCRIPTS: [Script; 8] = [
    Script::Han,
    Script::Hiragana,
    Script::Katakana,
    Script::Thai,
    Script::Lao,
    Script::Khmer,
    Script::Myanmar,
    Script::Hangul,
];

/// The scripts of `SCRIPTS` that a letter belongs to, one bit each: `ー` belongs to both Hiragana and Katakana.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scripts(u8);

impl Scripts {
    const HANGUL: u8 = 1 << 7;

    #[must_use]
    pub fn of(letter: char) -> Self {
        if letter.is_ascii() {
            return Self::default();
        }
        let own = ScriptWithExtensions::new().get_script_extensions_val(letter);
        Self((0..).zip(SCRIPTS).filter(|(_, script)| own.contains(script)).fold(0, |bits, (bit, _)| bits | 1 << bit))
    }

    /// Whether words in the script follow each other without a space.
    #[must_use]
    pub fn are_unspaced(self) -> bool {
        self.0 & !Self::HANGUL != 0
    }

    /// Whether a word in the script may touch another word or a particle.
    #[must_use]
    pub fn touch(self) -> bool {
        self.0 != 0
    }

    /// The scripts that `next` shares with all letters since the last change of script. `None` if the script changes at `next`.
    #[must_use]
    pub fn and(self, next: Self) -> Option<Self> {
        let common = self.0 & next.0;
        (common != 0 || self == next).then_some(Self(common))
    }
}

/// The script of a character. Characters that scripts share are `Common` or `Inherited`, except Arabic vowel signs.
#[must_use]
pub fn script(c: char) -> Script {
    let scripts = ScriptWithExtensions::new();
    match scripts.get_script_val(c) {
        Script::Inherited if scripts.get_script_extensions_val(c).contains(&Script::Arabic) => Script::Arabic,
        script => script,
    }
}

#[must_use]
pub fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

#[must_use]
pub fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { Group::Letter.contains(category(c)) }
}

#[must_use]
pub fn is_mark(c: char) -> bool {
    !c.is_ascii() && Group::Mark.contains(category(c))
}

#[must_use]
pub fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { category(c) == GeneralCategory::DecimalNumber }
}

#[must_use]
pub fn is_punctuation(c: char) -> bool {
    Group::Punctuation.contains(category(c))
}

#[must_use]
pub fn is_symbol(c: char) -> bool {
    Group::Symbol.contains(category(c))
}

#[must_use]
pub fn is_of_word(c: char) -> bool {
    let of_word = |category| [Group::Letter, Group::Mark, Group::Number].iter().any(|group| group.contains(category));
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { of_word(category(c)) }
}

/// Whether `c` is a format character, such as a joiner. U+200B doesn't count, because it separates words.
#[must_use]
pub fn is_format(c: char) -> bool {
    !c.is_ascii() && c != '\u{200b}' && category(c) == GeneralCategory::Format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_belongs_to_the_scripts_in_which_it_is_written() {
        let of = Scripts::of;
        for letter in "李々さカーｱไກកက".chars() {
            assert!(of(letter).are_unspaced() && of(letter).touch(), "{letter}");
        }
        assert!(of('김').touch() && !of('김').are_unspaced());
        for letter in "aéяअא".chars() {
            assert!(!of(letter).touch(), "{letter}");
        }
        assert_eq!(of('カ').and(of('ー')), Some(of('カ')));
        assert_eq!(of('カ').and(of('さ')), None);
        assert_eq!(of('a').and(of('я')), Some(Scripts::default()));
        assert_eq!((of('a').and(of('李')), of('李').and(of('a'))), (None, None));
    }

    #[test]
    fn words_are_of_letters_marks_and_numbers_of_any_script() {
        for part in "aé字ก็ि\u{301}7७½".chars() {
            assert!(is_of_word(part), "{part:?}");
        }
        for other in "_-. 。\u{200d}✓".chars() {
            assert!(!is_of_word(other), "{other:?}");
        }
    }
}
