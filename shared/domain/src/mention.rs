//! Mentions: the handles of users, and finding them in text.

use std::ops::Range;

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::address;
use crate::email::is_email;
use crate::letters::{Scripts, is_digit, is_format, is_letter, is_mark, is_punctuation, is_symbol};

const NFC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfc();

/// Maximum characters in a handle.
const MAX_HANDLE: usize = 50;

/// Maximum candidate handles of one mention.
const MAX_TRIES: usize = 4;

/// The characters that begin a mention.
const SIGNS: [char; 2] = ['@', '＠'];

/// The handle for a name: the name in NFC and lower case, with `_` for each run of characters other than letters, marks and
/// digits, truncated to `MAX_HANDLE` characters. `None` if it would have neither a letter nor a digit.
#[must_use]
pub fn handle(name: &str) -> Option<String> {
    let mut handle = String::new();
    for c in normal(name).chars() {
        if is_letter(c) || is_mark(c) || is_digit(c) {
            handle.push(c);
        } else if !handle.ends_with('_') {
            handle.push('_');
        }
    }
    if let Some((end, _)) = handle.char_indices().nth(MAX_HANDLE) {
        handle.truncate(end);
    }
    names_somebody(&handle).then_some(handle)
}

/// A handle that a text may mention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    pub handle: String,
    /// The byte offset in the text where the handle ends.
    pub end: usize,
}

/// A place in a text that mentions a user, if one of its handles is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The byte offset of the mention's `@`.
    pub start: usize,
    /// The handles that the mention may refer to, longest first.
    pub tries: Vec<Try>,
}

#[must_use]
pub fn has_sign(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(*sign))
}

/// Finds the mentions in `text`, except those within addresses. `before` is the character that readers see in front of `text`.
pub fn find(text: &str, before: Option<char>) -> impl Iterator<Item = Mention> {
    let mut addresses = address::find(text).into_iter().peekable();
    text.match_indices(SIGNS).filter_map(move |(start, _)| {
        while addresses.next_if(|address| address.end <= start).is_some() {}
        let end = addresses.peek().map_or(text.len(), |address| address.start);
        (start < end).then(|| mention_at(text, start..end, before)).flatten()
    })
}

/// The last visible character of a text, ignoring marks, or `before` if the text has none.
#[must_use]
pub fn last_seen(text: &str, before: Option<char>) -> Option<char> {
    text.chars().rev().find(|c| !is_mark(*c) && !is_format(*c)).or(before)
}

/// Whether an underscore isn't markup, because it begins a handle. `before` is the text in front of the underscore.
#[must_use]
pub fn begins_handle(before: &str) -> bool {
    let underscores = before.bytes().rev().take(MAX_HANDLE).take_while(|byte| *byte == b'_').count();
    before[..before.len() - underscores].ends_with(SIGNS)
}

/// The mention at the start of `range`, if there is one. The range ends where the next address begins.
fn mention_at(text: &str, range: Range<usize>, before: Option<char>) -> Option<Mention> {
    let Range { start, end } = range;
    let name = after_sign(text, start);
    let run = &text[name..end][..length(text[name..end].chars(), is_of_run)];
    let tries: Vec<Try> = tries(run).map(|(handle, end)| Try { handle, end: name + end }).collect();
    if tries.is_empty() || !last_seen(&text[..start], before).is_none_or(precedes) {
        return None;
    }
    let end = name + run.len();
    let is_in_email =
        is_in_email(text, start, before) || text[end..].starts_with(SIGNS) && is_in_email(text, end, before);
    (!is_in_email).then_some(Mention { start, tries })
}

fn after_sign(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// Whether a mention may follow the character.
fn precedes(c: char) -> bool {
    let parts_words = || (is_punctuation(c) && c != '_' && !SIGNS.contains(&c)) || is_symbol(c) || c == '\u{200b}';
    c.is_whitespace() || parts_words() || (is_letter(c) && Scripts::of(c).are_unspaced())
}

fn is_of_run(c: char) -> bool {
    c == '_' || is_letter(c) || is_mark(c) || is_digit(c)
}

/// The handles that may be at the start of `run`, longest first, each with the byte offset of its end: all of `run`, and the
/// part before each change into or out of a script of [`Scripts`].
fn tries(run: &str) -> impl Iterator<Item = (String, usize)> {
    let mut ends = Vec::new();
    let (mut start, mut length) = (0, 0);
    for end in changes(run).chain([run.len()]) {
        length += normal(&run[start..end]).chars().count();
        if length > MAX_HANDLE {
            break;
        }
        ends.push(end);
        start = end;
    }
    let handles = ends.into_iter().rev().map(|end| (normal(&run[..end]), end));
    handles.filter(|(handle, _)| names_somebody(handle)).take(MAX_TRIES)
}

/// The byte offsets of letters whose script differs from that of the letters before. Marks, digits and `_` are ignored.
fn changes(run: &str) -> impl Iterator<Item = usize> {
    let mut scripts: Option<Scripts> = None;
    run.char_indices().filter_map(move |(at, c)| {
        if !is_letter(c) {
            return None;
        }
        let own = Scripts::of(c);
        let common = scripts.map_or(Some(own), |scripts| scripts.and(own));
        scripts = Some(common.unwrap_or(own));
        common.is_none().then_some(at)
    })
}

/// Whether the `@` at byte `at` is part of an email address: it has text on both sides, and it follows a word or the text
/// around it is a valid address.
fn is_in_email(text: &str, at: usize, before: Option<char>) -> bool {
    let is_of_domain = |c: char| is_of_run(c) && c != '_' || matches!(c, '-' | '.');
    let is_of_local = |c: char| is_of_run(c) || "!#$%&'*+/=?^`{|}~-.".contains(c);
    let (local, domain) = (&text[..at], &text[after_sign(text, at)..]);
    let local = local[local.len() - length(local.chars().rev(), is_of_local)..].trim_start_matches('.');
    let domain = domain[..length(domain.chars(), is_of_domain)].trim_end_matches(['.', '-']);
    let joins = || !last_seen(&text[..at], before).is_none_or(precedes);
    !local.is_empty() && !domain.is_empty() && (joins() || is_email(&format!("{local}@{domain}")))
}

/// The length in bytes of the leading characters that match `is_of_kind`.
fn length(text: impl Iterator<Item = char>, is_of_kind: impl Fn(char) -> bool) -> usize {
    text.take_while(|c| is_of_kind(*c)).map(char::len_utf8).sum()
}

fn names_somebody(handle: &str) -> bool {
    handle.chars().any(|c| is_letter(c) || is_digit(c))
}

/// Normalizes the text to NFC and lower case.
fn normal(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    NFC.normalize(&NFC.normalize(text).to_lowercase()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Samples that the widget's tests use too.
    #[derive(Deserialize)]
    struct Samples {
        handles: Vec<(String, Option<String>)>,
    }

    fn samples() -> Samples {
        serde_json::from_str(include_str!("../../../tests/mentions.json")).expect("samples")
    }

    #[test]
    fn a_handle_is_the_name_in_lower_case_with_other_runs_as_one_underscore() {
        for (name, expected) in samples().handles {
            assert_eq!(handle(&name), expected, "{name}");
        }
    }

    #[test]
    fn a_handle_is_cut_at_fifty_characters() {
        assert_eq!(handle(&"x".repeat(60)), Some("x".repeat(50)));
        assert_eq!(handle(&"李".repeat(60)), Some("李".repeat(50)));
        assert_eq!(handle(&"e\u{301}".repeat(60)), Some("é".repeat(50)));
    }

    #[test]
    fn a_handle_may_begin_with_no_more_underscores_than_its_maximum_length() {
        let before = |underscores| format!("@{}", "_".repeat(underscores));
        for underscores in [0, 1, MAX_HANDLE - 1, MAX_HANDLE] {
            assert!(begins_handle(&before(underscores)), "{underscores}");
        }
        assert!(
            !begins_handle(&before(MAX_HANDLE + 1))
                && !begins_handle("a_")
                && !begins_handle("_")
                && begins_handle("李＠_")
        );
    }

    #[test]
    fn every_handle_is_found_whole_where_it_is_mentioned() {
        for (name, handle) in samples().handles {
            let Some(handle) = handle else { continue };
            let found: Vec<Mention> = find(&format!("@{handle} x"), None).collect();
            assert_eq!(found.first().map(|found| &found.tries[0].handle), Some(&handle), "{name}");
        }
    }

    fn tried(run: &str) -> Vec<String> {
        tries(run).map(|(handle, _)| handle).collect()
    }

    #[test]
    fn a_mention_may_be_a_whole_run_or_end_at_any_change_of_script() {
        for (run, expected) in [
            ("ada_lovelace", &["ada_lovelace"][..]),
            ("adaさん", &["adaさん", "ada"]),
            ("李雷你好", &["李雷你好"]),
            ("田中さんへ", &["田中さんへ", "田中"]),
            ("김철수Ada", &["김철수ada", "김철수"]),
            ("サーバーさん", &["サーバーさん", "サーバー"]),
            ("Ada7李雷", &["ada7李雷", "ada7"]),
            ("ada_李雷", &["ada_李雷", "ada_"]),
            ("李1雷_", &["李1雷_"]),
            ("สมชาย2Ada", &["สมชาย2ada", "สมชาย2"]),
            ("aあaあaあ", &["aあaあaあ", "aあaあa", "aあaあ", "aあa"]),
            ("_7李", &["_7李"]),
            ("__", &[]),
        ] {
            assert_eq!(tried(run), expected, "{run}");
        }
    }

    #[test]
    fn no_more_than_fifty_characters_are_tried() {
        let (fifty, han) = ("a".repeat(50), "李".repeat(50));
        assert_eq!(tried(&format!("{fifty}b")), [""; 0]);
        assert_eq!(tried(&format!("{fifty}李")), [fifty]);
        assert_eq!(tried(&format!("{}b", "e\u{301}".repeat(49))), [format!("{}b", "é".repeat(49))]);
        assert_eq!(tried(&format!("{han}a李a")), [han]);
    }
}
