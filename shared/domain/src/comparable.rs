//! Text normalized for comparing phrases: NFKC, case-folded, with each run of white space as one space and without invisible
//! characters. Each character records its place in the source, so that a match can be shown as it was written.

use std::iter;
use std::ops::Range;

use icu_normalizer::properties::{CanonicalCombiningClassMapBorrowed, CanonicalCompositionBorrowed};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use crate::fold;
use crate::steps;
use crate::visible;

const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
const NFKD: DecomposingNormalizerBorrowed<'_> = DecomposingNormalizerBorrowed::new_nfkd();
const CLASSES: CanonicalCombiningClassMapBorrowed<'_> = CanonicalCombiningClassMapBorrowed::new();
const COMPOSITION: CanonicalCompositionBorrowed<'_> = CanonicalCompositionBorrowed::new();

/// A character and the byte range of the source that it came from.
type Placed = (char, Range<usize>);

/// A phrase, or a text to search for phrases.
#[derive(Debug)]
pub struct Comparable<'a> {
    source: &'a str,
    text: String,
    /// The byte range of `source` that each character of `text` came from.
    places: Vec<Range<usize>>,
}

impl<'a> Comparable<'a> {
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self::made(text, text.char_indices().map(|(at, c)| (c, at..at + c.len_utf8())).collect())
    }

    /// Normalizes an address after percent-decoding it.
    #[must_use]
    pub fn of_address(address: &'a str) -> Self {
        Self::made(address, percent_decoded(address))
    }

    fn made(source: &'a str, mut chars: Vec<Placed>) -> Self {
        chars.retain(|(c, _)| !visible::is_unseen(*c));
        let words = with_single_spaces(normal(chars));
        let folded = words.into_iter().flat_map(|(c, place)| fold::fold_char(c).zip(iter::repeat(place)));
        // Normalized again, because folding decomposes some letters.
        let (text, places) = normal(folded.collect()).into_iter().unzip();
        Self { source, text, places }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first occurrence of `phrase`, as it is written in the source. `None` if there is none or `phrase` is empty.
    #[must_use]
    pub fn find(&self, phrase: &Comparable<'_>) -> Option<&'a str> {
        let before = &self.text[..self.text.find(&phrase.text)?];
        let first = before.chars().count();
        let found = self.places.get(first..first + phrase.places.len())?;
        // Combining marks may be in a different order in the source.
        let start = found.iter().map(|place| place.start).min()?;
        let end = found.iter().map(|place| place.end).max()?;
        Some(&self.source[start..end])
    }

    /// The byte offsets in the source where `phrase` begins.
    pub fn places_of(&self, phrase: &str) -> impl Iterator<Item = usize> {
        let mut counted = (0, 0);
        self.text.match_indices(phrase).map(move |(at, _)| {
            counted = (at, counted.1 + self.text[counted.0..at].chars().count());
            self.places[counted.1].start
        })
    }
}

/// Replaces each run of white space between words with one space, and trims the ends.
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

/// Normalizes the characters to NFKC. A composed character gets the combined range of its parts.
fn normal(chars: Vec<Placed>) -> Vec<Placed> {
    let text: String = chars.iter().map(|(c, _)| c).collect();
    if NFKC.is_normalized(&text) {
        return chars;
    }
    composed(decomposed(chars))
}

/// A character, its combining class, which is 0 unless it is a combining mark, and its byte range in the source.
type Classed = (char, u8, Range<usize>);

/// Decomposes the characters to NFKD, which turns one character into up to 18.
fn decomposed(chars: Vec<Placed>) -> Vec<Classed> {
    let mut out: Vec<Classed> = Vec::with_capacity(chars.len());
    // The index of the first combining mark that isn't sorted yet.
    let mut marks = 0;
    for (c, place) in chars {
        for c in NFKD.normalize_iter(iter::once(c)) {
            let class = CLASSES.get_u8(c);
            if class == 0 {
                out[marks..].sort_by_key(|(_, class, _)| *class);
                marks = out.len() + 1;
            }
            out.push((c, class, place.clone()));
        }
    }
    out[marks..].sort_by_key(|(_, class, _)| *class);
    steps::take(out.len());
    out
}

/// Composes characters that have a precomposed form (UAX 15, section 1.3).
fn composed(chars: Vec<Classed>) -> Vec<Placed> {
    let mut out: Vec<Placed> = Vec::with_capacity(chars.len());
    // The index of the last character that isn't a combining mark, and the class of the last mark after it.
    let (mut starter, mut last) = (None, None);
    for (c, class, place) in chars {
        let joined = starter.filter(|_| last.is_none_or(|last| last < class)).and_then(|starter: usize| {
            let (base, whole) = out.get_mut(starter)?;
            *base = COMPOSITION.compose(*base, c)?;
            *whole = whole.start.min(place.start)..whole.end.max(place.end);
            Some(())
        });
        if joined.is_some() {
            continue;
        }
        if class == 0 {
            (starter, last) = (Some(out.len()), None);
        } else {
            last = Some(class);
        }
        out.push((c, place));
    }
    out
}

/// The characters of an address after percent-decoding. Invalid UTF-8 becomes the replacement character.
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
