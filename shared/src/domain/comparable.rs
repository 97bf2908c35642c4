//! Text in a form in which phrases are compared: NFKC, one case, one space for each run of white space, and no invisible
//! characters. Each character knows where it came from, so that a phrase is shown as it stands in the text.

use std::iter;
use std::ops::Range;

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use crate::domain::fold;
use crate::domain::visible;

const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
const NFKD: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizerBorrowed::new_nfkd();
const CLASSES: CanonicalCombiningClassMapBorrowed<'_> = CanonicalCombiningClassMapBorrowed::new();

/// The first character that may change one before it.
const FIRST_MARK: char = '\u{300}';

/// A character, and the bytes of the source that it came from.
type Placed = (char, Range<usize>);

/// A text that phrases are searched in, or a phrase.
#[derive(Debug)]
pub struct Comparable<'a> {
    source: &'a str,
    text: String,
    /// The bytes of `source` that each character of `text` came from.
    places: Vec<Range<usize>>,
}

impl<'a> Comparable<'a> {
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self::made(text, text.char_indices().map(|(at, c)| (c, at..at + c.len_utf8())).collect())
    }

    /// An address, with what is percent-encoded in it decoded.
    #[must_use]
    pub fn of_address(address: &'a str) -> Self {
        Self::made(address, percent_decoded(address))
    }

    fn made(source: &'a str, mut chars: Vec<Placed>) -> Self {
        chars.retain(|(c, _)| !visible::is_unseen(*c));
        let words = with_single_spaces(normal(chars));
        let folded = words.into_iter().flat_map(|(c, place)| fold::fold_char(c).zip(iter::repeat(place)));
        // Once more, because folding takes some letters apart.
        let (text, places) = normal(folded.collect()).into_iter().unzip();
        Self { source, text, places }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first place where `phrase` stands, as it stands in the source. An empty phrase stands nowhere.
    #[must_use]
    pub fn find(&self, phrase: &Comparable<'_>) -> Option<&'a str> {
        let before = &self.text[..self.text.find(&phrase.text)?];
        let first = before.chars().count();
        let found = self.places.get(first..first + phrase.places.len())?;
        Some(&self.source[found.first()?.start..found.last()?.end])
    }
}

/// One space for each run of white space between words.
fn with_single_spaces(chars: Vec<Placed>) -> Vec<Placed> {
    let mut words: Vec<Placed> = Vec::with_capacity(chars.len());
    let mut space = None;
    for (c, place) in chars {
        if c.is_whitespace() {
            space = Some(place);
            continue;
        }
        if let Some(space) = space.take().filter(|_| !words.is_empty()) {
            words.push((' ', space));
        }
        words.push((c, place));
    }
    words
}

/// The characters in NFKC. Those that are normalized together have one place.
fn normal(chars: Vec<Placed>) -> Vec<Placed> {
    let text: String = chars.iter().map(|(c, _)| c).collect();
    if NFKC.is_normalized(&text) {
        return chars;
    }
    let mut normal = Vec::with_capacity(chars.len());
    let mut segment = Segment::default();
    for (c, place) in chars {
        if segment.ends_before(c) {
            normal.extend(std::mem::take(&mut segment).normal());
        }
        segment.push(c, place);
    }
    normal.extend(segment.normal());
    normal
}

/// Characters that are normalized together.
#[derive(Default)]
struct Segment {
    text: String,
    place: Range<usize>,
}

impl Segment {
    /// Whether `c` has no part in how the segment is normalized.
    fn ends_before(&self, c: char) -> bool {
        if self.text.is_empty() || c < FIRST_MARK {
            return true;
        }
        let mut own = [0; 4];
        let own: &str = c.encode_utf8(&mut own);
        let is_mark = NFKD.normalize(own).chars().next().is_some_and(|first| CLASSES.get_u8(first) != 0);
        let apart = || NFKC.normalize(&self.text) + NFKC.normalize(own);
        !is_mark && NFKC.normalize(&format!("{}{own}", self.text)) == apart()
    }

    fn push(&mut self, c: char, place: Range<usize>) {
        if self.text.is_empty() {
            self.place = place;
        } else {
            self.place.end = place.end;
        }
        self.text.push(c);
    }

    fn normal(self) -> Vec<Placed> {
        NFKC.normalize(&self.text).chars().map(|c| (c, self.place.clone())).collect()
    }
}

/// The characters of an address once `%` escapes are decoded. What is not UTF-8 then is a replacement character.
fn percent_decoded(address: &str) -> Vec<Placed> {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(own) = address.as_bytes().get(at) {
        let digits = address.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let escaped = digits.filter(|_| *own == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, length) = escaped.map_or((*own, 1), |byte| (byte, 3));
        bytes.push(byte);
        places.push(at..at + length);
        at += length;
    }
    let place = |start: usize, length: usize| places[start].start..places[start + length - 1].end;
    let mut chars = Vec::with_capacity(bytes.len());
    let mut start = 0;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        chars.extend(valid.char_indices().map(|(at, c)| (c, place(start + at, c.len_utf8()))));
        start += valid.len();
        if !chunk.invalid().is_empty() {
            chars.push((char::REPLACEMENT_CHARACTER, place(start, chunk.invalid().len())));
            start += chunk.invalid().len();
        }
    }
    chars
}
