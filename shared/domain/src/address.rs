//! Finds web addresses in text. The widget must find the same addresses (`kit/addresses.js`); `tests/addresses.json` tests
//! both.

use std::collections::BTreeMap;
use std::ops::Range;

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use url::Url;

use crate::steps;

/// Maximum characters in an address. A longer address stays plain text, because a link to part of it would lead elsewhere.
pub const MAX_ADDRESS: usize = 2_048;

/// The byte ranges of the addresses in `text`.
#[must_use]
pub fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = next_start(text, from) {
        let extent = Extent::of(&text[start..], |c| c);
        from = start + extent.read;
        if extent.is_address {
            found.push(start..start + extent.end);
        }
    }
    found
}

/// The byte ranges of `text` that an email client may turn into links: a URL of any scheme, a host that begins with `www.` or
/// an email address. Each range includes any word that runs directly into the address.
#[must_use]
pub fn find_loosely(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(sign) = (from..text.len()).find(|at| is_sign(text, *at)) {
        let before = &text[from..sign];
        // In scripts without spaces, a whole sentence may run into the address. Only its last letter is included.
        let word = before.rfind(|c: char| !c.is_ascii() || Kind::of(c) == Kind::End).map_or(before, |at| &before[at..]);
        let start = sign - word.trim_start_matches(|c| Kind::of(c) != Kind::Other).len();
        // Text in another script may follow an email address without a space.
        let ends = |c: char| !c.is_ascii() || Kind::of(c) == Kind::End;
        let length = text[sign..].strip_prefix('@').map(|rest| rest.find(ends).unwrap_or(rest.len()));
        steps::take(length.unwrap_or_default());
        let extent = Extent::of(&text[start..length.map_or(text.len(), |length| sign + 1 + length)], |c| c);
        found.push(start..start + extent.end);
        from = start + extent.read;
    }
    found
}

/// Whether the text at `at` is a sign of an address: `://` or `@` directly after a word, or `www.` at the start of a
/// word. The `@` of a mention doesn't follow a word.
fn is_sign(text: &str, at: usize) -> bool {
    let rest = &text.as_bytes()[at..];
    let begins = |sign: &[u8]| rest.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign));
    let follows_word = || text[..at].chars().next_back().is_some_and(joins);
    (begins(b"://") || begins(b"@")) && follows_word() || begins(b"www.") && !follows_word()
}

/// The first position at or after `from` where an address may begin: a scheme at the start of a word.
#[must_use]
pub fn next_start(text: &str, from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let colon = from + text.get(from..)?.find("://")?;
        let start = ["https", "http"].iter().filter_map(|scheme| colon.checked_sub(scheme.len()));
        let is_start =
            |start: &usize| *start >= from && begins(&text.as_bytes()[*start..], text[..*start].chars().next_back());
        if let Some(start) = start.filter(|start| text.is_char_boundary(*start)).find(is_start) {
            return Some(start);
        }
        from = colon + "://".len();
    }
}

/// Whether `rest` begins with a scheme that isn't part of a longer word. `before` is the character before `rest`.
fn begins(rest: &[u8], before: Option<char>) -> bool {
    let is_scheme = |scheme: &[u8]| rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    (is_scheme(b"http://") || is_scheme(b"https://")) && !before.is_some_and(joins)
}

/// Whether a scheme that follows `c` is part of a longer word.
#[must_use]
pub fn joins(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether `c` is left out at the end of an address. A closing bracket is left out only if the address has no matching opening
/// bracket.
#[must_use]
pub fn trails(c: char) -> bool {
    matches!(Kind::of(c), Kind::Trailing | Kind::Closing)
}

/// Whether an email client may extend an address into `rest`, the text after it. Email clients end an address only at white
/// space and ASCII punctuation.
#[must_use]
pub fn runs_on(rest: &str) -> bool {
    let next = rest.chars().find(|c| !c.is_ascii() || !trails(*c));
    next.is_some_and(|c| !c.is_ascii() && !c.is_whitespace() && Kind::of(c) != Kind::Other)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Opening,
    Closing,
    /// Part of the address only if more of the address follows.
    Trailing,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            // Not allowed in addresses (RFC 3986). Text may follow a closing `"` directly: `"https://a.example"です`.
            '<' | '>' | '"'
            // Ideographic and full-width sentence punctuation.
            | '。' | '、' | '，' | '．' | '！' | '？' | '：' | '；' | '｡' | '､'
            // Quotation marks (Unicode property `Quotation_Mark`).
            | '«'
            | '»'
            | '‚'..='‟'
            | '‹'
            | '›'
            | '⹂'
            | '「'..='』'
            | '〝'..='〟'
            | '﹁'..='﹄'
            | '＂'
            | '＇'
            | '｢'
            | '｣' => Self::End,
            '(' | '[' | '{' => Self::Opening,
            ')' | ']' | '}' => Self::Closing,
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '‘' | '’' => Self::Trailing,
            '!'..='~' => Self::Other,
            _ if c.is_whitespace() => Self::End,
            _ => match CodePointMapData::<GeneralCategory>::new().get(c) {
                GeneralCategory::Control | GeneralCategory::Format => Self::End,
                GeneralCategory::OpenPunctuation => Self::Opening,
                GeneralCategory::ClosePunctuation => Self::Closing,
                category if GeneralCategoryGroup::Punctuation.contains(category) => Self::Trailing,
                _ => Self::Other,
            },
        }
    }
}

pub struct Extent {
    /// The length of the address in bytes.
    pub end: usize,
    /// The byte offset where the search for the next address continues.
    pub read: usize,
    pub is_address: bool,
}

impl Extent {
    /// Measures the possible address at the start of `text`. `meant` maps each character of `text` to the character
    /// that it represents.
    #[must_use]
    pub fn of(text: &str, meant: impl Fn(char) -> char) -> Self {
        let (mut end, mut read) = (0, text.len());
        let mut open = BTreeMap::<u32, usize>::new();
        // The number of open non-ASCII brackets, and the end of the address if one of these brackets is never closed.
        let (mut wide, mut before_wide) = (0_usize, 0);
        let mut before = None;
        for (at, written) in text.char_indices() {
            let (c, next) = (meant(written), at + written.len_utf8());
            let kind = Kind::of(c);
            if kind == Kind::End || (wide > 0 && begins(&text.as_bytes()[at..], before)) {
                read = at;
                break;
            }
            match kind {
                Kind::Opening => {
                    if !c.is_ascii() {
                        before_wide = if wide == 0 { end } else { before_wide };
                        wide += 1;
                    }
                    *open.entry(c.into()).or_default() += 1;
                    end = next;
                }
                Kind::Closing => {
                    // The code point of the opening bracket is one or two lower.
                    let opening = [1, 2].map(|distance| u32::from(c) - distance);
                    let opened = opening.iter().find(|code| open.get(code).is_some_and(|count| *count > 0));
                    if let Some(count) = opened.and_then(|code| open.get_mut(code)) {
                        *count -= 1;
                        wide -= usize::from(!c.is_ascii());
                        end = next;
                    } else if !c.is_ascii() {
                        read = at;
                        break;
                    }
                }
                Kind::End | Kind::Trailing => {}
                Kind::Other => end = next,
            }
            before = Some(c);
        }
        if wide > 0 {
            end = before_wide;
        }
        steps::take(read);
        let address: String = text[..end].chars().map(meant).collect();
        let is_address = address.chars().count() <= MAX_ADDRESS && Url::parse(&address).is_ok();
        Self { end, read, is_address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Sample {
        text: String,
        addresses: Vec<String>,
    }

    #[test]
    fn addresses_end_where_the_samples_say() {
        let samples: Vec<Sample> = serde_json::from_str(include_str!("../../../tests/addresses.json")).unwrap();
        for Sample { text, addresses } in samples {
            let found: Vec<&str> = find(&text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, addresses, "{text:?}");
        }
    }

    #[test]
    fn the_longest_address_has_2048_characters_and_a_longer_one_is_text() {
        for (letter, trailing) in [("a", ""), ("字", ""), ("a", "!!!"), ("字", "。")] {
            let longest = format!("https://a.example/{}", letter.repeat(MAX_ADDRESS - 18));
            assert_eq!(find(&format!("{longest}{trailing}")), vec![Range { start: 0, end: longest.len() }]);
            assert_eq!(find(&format!("{longest}{letter}{trailing} https://b.example")).len(), 1);
        }
    }
}
