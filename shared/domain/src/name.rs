//! Names that people choose, and the similarity between them.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{GeneralCategory, Script};
use serde::{Deserialize, Serialize};
use unicode_security::confusable_detection::skeleton;

use crate::fold::fold;
use crate::ids::UserId;
use crate::letters::{category, is_mark, is_punctuation, is_symbol, script};
use crate::visible;

const NFC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfc();
const NFD: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizerBorrowed::new_nfd();
const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
const NFKD: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizerBorrowed::new_nfkd();

/// Maximum combining marks on a letter of a name. More would overlap the lines above and below.
const MAX_MARKS: usize = 2;

/// Maximum different marks on a letter that belong to its script, and to no other.
const MAX_OWN_MARKS: usize = 4;

#[must_use]
pub fn has_piled_marks(name: &str) -> bool {
    piled_marks(&NFD.normalize(name)).next().is_some()
}

#[must_use]
pub fn without_piled_marks(name: &str) -> String {
    let apart = NFD.normalize(name);
    let mut piled = piled_marks(&apart).peekable();
    if piled.peek().is_none() {
        return name.to_owned();
    }
    let kept = apart.char_indices().filter(|(at, _)| piled.next_if_eq(at).is_none()).map(|(_, c)| c);
    NFC.normalize(&kept.collect::<String>()).into_owned()
}

/// The byte offsets of surplus marks in a decomposed name. Spacing marks don't count, nor do the lower letters of a
/// Tibetan stack. A letter may have up to four different marks of its own script, as in Arabic, Burmese, Hindi and
/// pointed Hebrew. Thai and Lao need only two.
fn piled_marks(apart: &str) -> impl Iterator<Item = usize> {
    let (mut marks, mut base) = (Vec::new(), Script::Common);
    apart.char_indices().filter_map(move |(at, c)| {
        let is_piled = || matches!(category(c), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark);
        let is_letter_below = ('\u{f8d}'..='\u{fbc}').contains(&c);
        if visible::is_unseen(c) {
            return None;
        }
        if c.is_ascii() || !is_piled() || is_letter_below {
            marks.clear();
            base = script(c);
            return None;
        }
        let is_own = script(c) == base && !matches!(base, Script::Thai | Script::Lao) && !marks.contains(&c);
        if marks.len() >= if is_own { MAX_OWN_MARKS } else { MAX_MARKS } {
            return Some(at);
        }
        marks.push(c);
        None
    })
}

/// The look of a name: its skeletons (UTS 39) without marks, punctuation, symbols, white space and invisible
/// characters. One skeleton isn't enough: folding case first hides that `I` looks like `l`, and without folding, `ADA`
/// differs from `Ada`. A name in capitals of two scripts may have both problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    written: Signs,
    folded: Signs,
    /// The skeleton of the name as written, then folded. Capital gamma is treated as `r`, which is the skeleton of small gamma.
    both: Signs,
    /// Like `both`, but ASCII is folded before the skeleton is taken. This form detects a foreign capital among ASCII capitals.
    /// The skeleton of an ASCII capital such as `I` differs from the skeleton of its small letter.
    mixed: Signs,
    /// The skeleton of the upper-case name. Some small letters have no look-alike in another script, but their capitals do.
    upper: Signs,
    /// Whether invisible characters may change the display order of the name.
    is_turned: bool,
}

impl Look {
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut look = Self { is_turned: name.contains(visible::turns_text), ..Self::default() };
        for (at, c) in name.char_indices().filter(|(_, c)| !visible::is_unseen(*c) && !is_mark(letter_of(*c))) {
            let is_ornament = is_ornament(c) || is_in_keycap(&name[at + c.len_utf8()..]);
            let letters =
                NFKD.normalize(letter_of(c).encode_utf8(&mut [0; 4])).chars().map(letter_of).collect::<String>();
            let written = seen(&letters);
            let upper = NFKD.normalize(c.encode_utf8(&mut [0; 4])).to_uppercase();
            for (signs, text) in [
                (&mut look.folded, fold(&seen(&fold(&letters)))),
                (&mut look.mixed, fold(&seen(&if c.is_ascii() { fold(&letters) } else { letters.clone() }))),
                (&mut look.both, fold(&seen(&letters.replace('Γ', "r")))),
                (&mut look.upper, seen(&upper)),
                (&mut look.written, written),
            ] {
                signs.extend(&text, is_ornament);
            }
        }
        if look.written.0.is_empty() {
            let whole = NFKC.normalize(name).chars().filter(|c| !c.is_whitespace()).map(|c| (c, false)).collect();
            look.written = Signs(whole);
        }
        look
    }

    /// Whether readers may mistake one name for the other.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let is_turned = self.is_turned || other.is_turned;
        self.written.is_like(&other.written)
            || self.folded.is_like(&other.folded)
            || self.both.is_like(&other.both)
            || self.mixed.is_like(&other.mixed)
            || self.upper.is_like(&other.upper)
            || is_turned && self.folded.has_letters_of(&other.folded)
    }
}

/// The visible characters of a name. Each has a flag for whether readers may see it as an ornament and not as the letter that
/// it looks like, such as the `ⓥ` in `Ada ⓥ` and in `ⓥera`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Signs(Vec<(char, bool)>);

impl Signs {
    /// Appends the characters of `text`, with `rn` as `m`. UTS 39 maps `m` to `rn`, but maps some capitals to `M`, which folds
    /// to `m`.
    fn extend(&mut self, text: &str, is_ornament: bool) {
        for c in text.chars() {
            match self.0.last_mut() {
                Some(last) if (c, *last) == ('n', ('r', is_ornament)) => last.0 = 'm',
                _ => self.0.push((c, is_ornament)),
            }
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self == other && !self.0.is_empty() || self.may_read(other) || other.may_read(self)
    }

    /// Whether both have the same letters, in any order.
    fn has_letters_of(&self, other: &Self) -> bool {
        let [mut own, mut others] = [self.bare(), other.bare()];
        own.sort_unstable();
        others.sort_unstable();
        own == others && !own.is_empty()
    }

    fn bare(&self) -> Vec<char> {
        self.0.iter().filter(|(_, is_ornament)| !is_ornament).map(|(c, _)| *c).collect()
    }

    /// Whether these characters may be read as `other`, with or without the ornaments of `other`.
    fn may_read(&self, other: &Self) -> bool {
        let bare = other.bare();
        let whole: Vec<char> = other.0.iter().map(|(c, _)| *c).collect();
        [bare, whole].iter().any(|text| !text.is_empty() && self.may_be(text))
    }

    fn may_be(&self, text: &[char]) -> bool {
        // The possible lengths of the part of `text` that has been read so far.
        let mut read = vec![0];
        for (c, is_ornament) in &self.0 {
            let passed = read.iter().filter(|at| text.get(**at) == Some(c)).map(|at| at + 1);
            let passed_over = read.iter().copied().filter(|_| *is_ornament);
            let mut next: Vec<usize> = passed.chain(passed_over).collect();
            next.sort_unstable();
            next.dedup();
            read = next;
        }
        read.contains(&text.len())
    }
}

/// The skeleton of the letters, without marks, punctuation, symbols, white space and invisible characters.
fn seen(letters: &str) -> String {
    let is_seen = |c: &char| {
        !is_mark(*c) && !is_punctuation(*c) && !is_symbol(*c) && !c.is_whitespace() && !visible::is_unseen(*c)
    };
    let bare: String = NFD.normalize(letters).chars().filter(|c| !is_mark(*c)).collect();
    skeleton(&bare).map(letter_of).filter(is_seen).collect()
}

/// Whether the character before this text is on a keycap, as in `1️⃣`.
fn is_in_keycap(after: &str) -> bool {
    after.trim_start_matches('\u{fe0f}').starts_with('\u{20e3}')
}

/// Whether the character may be decoration: a symbol, punctuation, or a raised or circled letter or digit.
fn is_ornament(c: char) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    let is_raised = || {
        let is_modifier = matches!(c, '\u{2b0}'..='\u{2ff}' | '\u{559}' | '\u{640}' | '\u{971}' | '\u{2e2f}' | '\u{a717}'..='\u{a71f}' | '\u{a788}');
        is_modifier || !NFKD.is_normalized(c.encode_utf8(&mut [0; 4]))
    };
    match category(c) {
        // The visible format characters are signs such as U+06DD.
        GeneralCategory::OtherNumber | GeneralCategory::Format => true,
        // `ª`, `º`, the Korean middle dot (U+119E, U+318D), the masu mark and the sideways I.
        GeneralCategory::OtherLetter => {
            matches!(c, '\u{aa}' | '\u{ba}' | '\u{119e}' | '\u{303c}' | '\u{318d}' | '\u{a7f7}')
        }
        GeneralCategory::LowercaseLetter => c == 'ℹ',
        GeneralCategory::ModifierLetter => is_raised(),
        _ => is_symbol(c) || is_punctuation(c),
    }
}

/// Pairs of a letter and its look-alike, usually a capital, that NFKD and UTS 39 don't map to each other. The first four count
/// as marks.
const TWINS: &str = "\u{c02}o\u{c82}o\u{d02}o\u{d82}oϲcϹCᴀAʙBᴃBᴄCᴅDᴆDᴇEⱻEꜰFɢGʛGʜHɪIꞮIᵻIᴊJᴋKʟLᴌLᴍMꮇMɴNᴎNᴏOᴘPꞯQʀRᴙRᴚRꜱSᴛTᴜUᵾUᴠVᴡWʏYᴢZᴦΓᴧΛᴨΠᴩΡᴪΨꭥΩᴫЛ⓿0🄋0🄌0";

/// The letter that a character looks like, or itself.
fn letter_of(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let capital = |first: char| char::from_u32(u32::from('A') + (u32::from(c) - u32::from(first)));
    let found = match c {
        // White letters on circles, white letters on squares, and letters in dotted squares.
        '\u{1f150}'..='\u{1f169}' => capital('\u{1f150}'),
        '\u{1f170}'..='\u{1f189}' => capital('\u{1f170}'),
        '\u{1f1e6}'..='\u{1f1ff}' => capital('\u{1f1e6}'),
        _ => {
            let twins = TWINS.chars().skip(1).step_by(2);
            TWINS.chars().step_by(2).zip(twins).find(|(letter, _)| *letter == c).map(|(_, twin)| twin)
        }
    };
    found.unwrap_or(c)
}

/// Maximum moderators whose names are stored. The oldest name is dropped first.
const MAX_MODERATORS: usize = 100;

/// The moderators' names. While sign-in is on, guests and other accounts of our own sign-in can't choose a similar
/// name. Names are stored as written, so that functions that store a name don't need the tables for comparing names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeratorNames {
    #[serde(rename = "vn", default)]
    pub version: u64,
    #[serde(rename = "ls", default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<ModeratorName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ModeratorName {
    #[serde(rename = "u")]
    id: UserId,
    #[serde(rename = "n")]
    name: String,
}

impl ModeratorNames {
    #[must_use]
    pub fn has(&self, id: UserId, name: &str) -> bool {
        self.names.iter().any(|known| known.id == id && known.name == name)
    }

    /// Stores a moderator's name, replacing an earlier one.
    pub fn keep(&mut self, id: UserId, name: &str) {
        self.names.retain(|known| known.id != id);
        self.names.push(ModeratorName { id, name: name.to_owned() });
        if self.names.len() > MAX_MODERATORS {
            self.names.remove(0);
        }
    }

    #[must_use]
    pub fn has_one_of(&self, id: UserId) -> bool {
        self.names.iter().any(|known| known.id == id)
    }

    /// Removes a moderator's name. Returns false if none was stored.
    pub fn forget(&mut self, id: UserId) -> bool {
        let is_there = self.has_one_of(id);
        self.names.retain(|known| known.id != id);
        is_there
    }

    /// Whether a name resembles the name of a moderator other than `own`.
    #[must_use]
    pub fn has_like(&self, look: &Look, own: Option<UserId>) -> bool {
        self.like(look).any(|(id, _)| Some(id) != own)
    }

    /// Moderators with names that look like this one, each with the stored name.
    pub fn like<'a>(&'a self, look: &'a Look) -> impl Iterator<Item = (UserId, &'a str)> + 'a {
        let alike = self.names.iter().filter(|known| Look::of(&known.name).is_like(look));
        alike.map(|known| (known.id, known.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        let (one, other) = (Look::of(one), Look::of(other));
        assert_eq!(one.is_like(&other), other.is_like(&one));
        one.is_like(&other)
    }

    #[test]
    fn names_that_readers_could_confuse_are_alike() {
        for (one, other) in [
            ("Ada", "Ada"),
            ("Ada", "ada"),
            ("Ada", "АԀА"),
            ("Ada", "Аdа"),
            ("Ada", "Ａｄａ"),
            ("Ada Lovelace", "AdaLovelace"),
            ("Ada Lovelace", "Ada-Lovelace."),
            ("Ada", "A\u{200b}da"),
            ("Ada", "Adá"),
            ("Ilse", "llse"),
            ("Ilse Boss", "llse BOSS"),
            ("Tom", "Torn"),
            ("O'Neill", "0Neill"),
            ("paypal", "раураl"),
            ("Grace Hopper", "Grace Hopper ✓"),
            ("Grace Hopper", "Grace Hopper ª"),
            ("Grace Hopper", "Grace Hopperº"),
            ("Grace Hopper", "Grace Hopper 1\u{fe0f}\u{20e3}"),
            ("Grace Hopper", "2\u{20e3} Grace Hopper"),
            ("Grace Hopper", "Grace+Hopper"),
            ("Grace Hopper", "ɢrace hopper"),
            ("Grace Hopper", "ɢʀᴀᴄᴇ ʜᴏᴘᴘᴇʀ"),
            ("Grace Hopper", "ⓖrace Hopper ⓥ"),
            ("Grace Hopper", "🅶race Hopper"),
            ("Grace Hopper", "🅖race 🇭opper"),
            ("Grace Hopper", "🄶🅁🄰🄲🄴 Hopper™"),
            ("Grace Hopper", "ᴳrace Hopper ᵛᵉʳⁱᶠⁱᵉᵈ"),
            ("Grace Hopper", "𝕲race 𝐇opper"),
            ("Grace Hopper", "Grace Hopper 👑"),
            ("Grace Hopper", "Grace\u{1f3fb} Hopper❤\u{fe0f}"),
            ("Grace Hopper", "Grace Hopper①"),
            ("Grace Hopper", "Grace Hopper № ②"),
            ("Grace Hopper", "|Grace| $Hopper$"),
            ("Grace Hopper", "G\u{e0061}race Hopperˈ"),
            ("Ada Lovelace", "Ada |ovelace ✓"),
            ("Ada ⓥ", "Ada"),
            ("Ada ⓥ", "Ada v"),
            ("Tom", "тom"),
            ("Grace Hopper", "Gra\u{3f2}e Hopper"),
            ("CARL", "\u{3f9}ARL"),
            ("علي", "عـلـي"),
            ("★★★", "★★★"),
            ("李雷", "李雷✔"),
            // Letters that look like symbols or punctuation.
            ("Grace Hopper", "Grace ᐩ Hopper"),
            ("Grace Hopper", "Grace Hopperꓸ"),
            ("Γιώργος", "ΓΙΏΡΓΟΣ"),
            ("Ωψλπρ", "ΩΨΛΠΡ"),
            ("Γιώργος", "ᴦιώᴩᴦος"),
            ("Grace Moss", "gᴦace moſs"),
            ("Лев", "ᴫев"),
            ("Grace Hopper", "\u{200f}Hopper \u{200f}Grace"),
            ("Grace Hopper", "\u{2067}Hopper\u{200f} Grace\u{2069}"),
            ("Grace Hopper", "\u{61c}reppoh\u{61c} ecarg ✓"),
            ("علي حسن", "حسن\u{200e} علي"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn names_with_letters_that_look_like_signs_are_alike() {
        for (one, other) in [
            ("Grace Hopper", "Grace Hopper ℹ\u{fe0f}"),
            ("Grace Hopper", "Grace Hopper\u{a71d}"),
            ("Grace Hopper", "\u{559}Grace Hopper \u{a71b}"),
            ("한지민 기자", "한지민\u{318d}기자"),
            ("Grace Hopper", "Grace\u{a7f7}Hopper \u{2e2f}"),
            ("Grace Hopper", "Grace Hopper \u{6dd}"),
            ("Grace Hopper", "Grace H⓿pper 〼"),
            ("Grace Hopper", "Grace H🄋pper"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn names_in_letters_of_other_scripts_are_alike() {
        for (one, other) in [
            ("Emma Thomas", "E\u{41c}\u{41c}A THO\u{41c}AS"),
            ("Margaret Hamilton", "\u{39c}ARGARET HAMILTON"),
            ("Margaret Hamilton", "\u{ab87}argaret Hamilton"),
            ("Tom", "\u{13a2}O\u{13b7}"),
            ("Amy Miller", "AMY \u{a4df}ILLER"),
            ("\u{41c}ax", "max"),
            ("Kim", "\u{41a}\u{406}\u{41c}"),
            ("Kim", "K\u{406}\u{41c}"),
            ("Kim", "\u{39a}\u{399}\u{39c}"),
            ("Kim", "\u{a4d7}\u{a4f2}\u{a4df}"),
            ("Ian Smith", "\u{406}\u{410}N \u{405}\u{41c}\u{406}\u{422}\u{41d}"),
            ("Corner Mill", "CORNER \u{41c}\u{406}LL"),
            ("Вика", "B\u{418}KA"),
            ("Кира", "K\u{418}\u{420}\u{410}"),
            ("Ελένη", "E\u{39b}ENH"),
            ("Σταύρος", "\u{3a3}TAYPO\u{3a3}"),
            ("Νίκος", "Νίκο\u{3f2}"),
            ("Bob Moore", "Bob M\u{d02}ore"),
            ("Bob Moore", "B\u{c02}b Moore"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn the_name_of_another_moderator_is_taken_and_an_earlier_one_is_free() {
        let (ada, bob) = (UserId(1), UserId(2));
        let mut names = ModeratorNames::default();
        names.keep(ada, "Ada");
        let is_taken = |names: &ModeratorNames, name: &str, own| names.has_like(&Look::of(name), own);
        assert!(names.has(ada, "Ada") && !names.has(ada, "Eda") && !names.has(bob, "Ada"));
        assert!(
            is_taken(&names, "аda", None) && is_taken(&names, "ADA", Some(bob)) && !is_taken(&names, "Ada", Some(ada))
        );
        names.keep(ada, "Eda");
        assert!(!is_taken(&names, "Ada", None) && is_taken(&names, "Eda", None));
    }

    #[test]
    fn names_that_differ_are_not_alike() {
        for (one, other) in [
            ("Ada", "Eda"),
            ("Ada", "Ada L."),
            ("Ada", "Ada 2"),
            ("Bob", "Rob"),
            ("李雷", "李蕾"),
            ("佐々木", "佐木"),
            ("…", "!"),
            ("★", "✓"),
            ("№", "①"),
            ("Grace Hopper", "Hopper Grace"),
            ("Grace Hopper", "\u{200f}Hoper Grace"),
            ("דוד לוי", "\u{2067}דוד כהן\u{2069}"),
            ("\u{200f}!", "\u{200f}?"),
            ("", ""),
        ] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_letter_of_a_name_has_at_most_two_marks_or_four_of_its_script() {
        for name in [
            "Zo\u{e9}",
            "e\u{302}\u{301}",
            "Nguyễn Thị Ánh",
            "प्रिया",
            "ख़ाँ",
            "ज़िंदगी",
            "น้ำทิพย์",
            "สมชาย",
            "སྒྲོལ་མ",
            "مُحَمَّد",
            // Three different marks of the letter's own script.
            "မင်းအောင်လှိုင်",
            "ဇော်မြို့",
            "ज़ेंडाया",
            "יִשָּׂשכָר",
            "عَبْدُ ٱللَّٰهِ",
            "1\u{fe0f}\u{20e3}",
            "❤\u{fe0f}",
        ] {
            assert!(!has_piled_marks(name), "{name}");
            assert_eq!(without_piled_marks(name), name);
        }
        for (name, bare) in [
            ("e\u{301}\u{302}\u{303}", "é\u{302}"),
            ("Z\u{351}\u{36b}\u{343}oe", "Z\u{351}\u{36b}oe"),
            ("é\u{302}\u{303}x", "é\u{302}x"),
            ("a\u{301}\u{200d}\u{301}\u{200d}\u{301}", "á\u{200d}\u{301}\u{200d}"),
            ("ก\u{e47}\u{e47}\u{e47}\u{e47}", "ก\u{e47}\u{e47}"),
            ("x\u{20dd}\u{20dd}\u{20dd}", "x\u{20dd}\u{20dd}"),
            ("လ\u{103e}\u{102d}\u{102f}\u{102d}", "လ\u{103e}\u{102d}\u{102f}"),
            ("ב\u{5b4}\u{5bc}\u{5c1}\u{5c2}\u{5b8}", "ב\u{5b4}\u{5b8}\u{5bc}\u{5c1}"),
            // Marks of other scripts, and of a script whose letters need at most two marks.
            ("x\u{488}\u{489}\u{a670}", "x\u{488}\u{489}"),
            ("a\u{5b4}\u{5bc}\u{5c1}", "a\u{5b4}\u{5bc}"),
            ("ก\u{e34}\u{e35}\u{e36}", "ก\u{e34}\u{e35}"),
        ] {
            assert!(has_piled_marks(name), "{name}");
            assert_eq!(without_piled_marks(name), bare, "{name}");
        }
    }
}
