//! Tests phrase matching, and the matched text that moderators see, against a naive search.

use std::ops::RangeInclusive;

use domain::comparable::Comparable;
use domain::fold::fold;
use domain::markdown::{self, Shown};
use domain::spam::Rules;
use domain::verdict::{Detail, Rule, Verdict};
use domain::visible;
use icu_normalizer::ComposingNormalizerBorrowed;
use proptest::prelude::*;

/// The verdicts on a body, for phrases that require a review.
fn verdicts(phrases: &[&str], forms: &[Shown]) -> Vec<Verdict> {
    let rules = Rules { review: phrases.iter().map(|phrase| (*phrase).to_owned()).collect(), ..Rules::default() };
    rules.judge(forms).into_iter().map(|found| found.verdict).collect()
}

fn matched(phrase: &str, body: &str) -> Option<String> {
    verdicts(&[phrase], &[markdown::shown(body)]).into_iter().next().and_then(|verdict| verdict.matched)
}

#[test]
fn a_match_is_as_written_in_the_text() {
    for (phrase, body, words) in [
        ("casino", "a CaSiNo here", "CaSiNo"),
        ("casino", "c&#97;sino", "casino"),
        ("casino", "**cas**ino", "casino"),
        ("casino", "ca\u{200b}sino!", "ca\u{200b}sino"),
        ("casino", "(ＣＡＳＩＮＯ)", "ＣＡＳＩＮＯ"),
        ("free money", "so free \u{a0} money", "free \u{a0} money"),
        ("strasse", "die Straße", "Straße"),
        ("fi", "ﬁne", "ﬁ"),
        ("café", "CAFE\u{301}s", "CAFE\u{301}"),
        ("각", "\u{1100}\u{1161}\u{11a8}", "\u{1100}\u{1161}\u{11a8}"),
    ] {
        assert_eq!(matched(phrase, body).as_deref(), Some(words), "{body:?}");
    }
}

#[test]
fn a_match_in_a_link_is_the_text_of_its_address_or_title() {
    for (body, words) in [
        ("[x](http://CASINO.example)", "CASINO"),
        ("[x](//c%61sino.example)", "c%61sino"),
        ("at https://a.example/c%61s%69no, now", "c%61s%69no"),
        ("[x](y \"the Casino\")", "Casino"),
        ("![x](http://a.example/cas%C3%ADno/casino.png)", "casino"),
        ("casino [x](http://CASINO.example)", "casino"),
    ] {
        assert_eq!(matched("casino", body).as_deref(), Some(words), "{body:?}");
    }
}

#[test]
fn a_match_is_cut_at_a_hundred_characters() {
    let phrase = "ä".repeat(150);
    assert_eq!(matched(&phrase, &phrase), Some("ä".repeat(100)));
}

#[test]
fn every_phrase_is_found_once_whatever_the_form_of_the_body() {
    let body = "casino casino [x](http://casino.example)";
    let forms = [markdown::shown(body), Shown::plain(body)];
    assert_eq!(verdicts(&["casino", "money"], &forms), [Verdict::phrase("casino")]);
    assert_eq!(verdicts(&["sin", "casino"], &forms), [Verdict::phrase("sin"), Verdict::phrase("casino")]);
}

#[test]
fn links_are_counted_against_their_limit() {
    let rules = Rules { review_links: 2, deny_links: 9, ..Rules::default() };
    let found = rules.judge(&[markdown::shown("http://a.example http://b.example http://c.example")]);
    let detail = Detail { count: Some(3), limit: Some(2), ..Detail::default() };
    assert_eq!((found.len(), found[0].verdict.rule, &found[0].verdict.detail), (1, Rule::Links, &Some(detail)));
}

/// The form used to compare phrases, computed from the whole text.
fn naive(text: &str) -> String {
    const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
    let seen: String = text.chars().filter(|c| !visible::is_unseen(*c)).collect();
    let normal = NFKC.normalize(&seen);
    let words: Vec<&str> = normal.split_whitespace().collect();
    NFKC.normalize(&fold(&words.join(" "))).into_owned()
}

/// Letters and marks of many scripts, chosen to exercise normalization and folding.
fn texts(most: usize) -> impl Strategy<Value = String> {
    const RANGES: &[RangeInclusive<char>] = &[
        'a'..='f',
        'A'..='F',
        '\u{9}'..='\u{d}',
        ' '..=' ',
        '\u{a0}'..='\u{ff}',
        '\u{131}'..='\u{133}',
        '\u{149}'..='\u{149}',
        '\u{1c4}'..='\u{1cc}',
        '\u{1f0}'..='\u{1f0}',
        '\u{2000}'..='\u{200f}',
        '\u{300}'..='\u{345}',
        '\u{37a}'..='\u{3d6}',
        '\u{400}'..='\u{45f}',
        '\u{587}'..='\u{587}',
        '\u{591}'..='\u{5f2}',
        '\u{622}'..='\u{655}',
        '\u{915}'..='\u{95f}',
        '\u{9be}'..='\u{9dd}',
        '\u{b3e}'..='\u{b5d}',
        '\u{bbe}'..='\u{bd7}',
        '\u{e33}'..='\u{e3a}',
        '\u{f71}'..='\u{f81}',
        '\u{1025}'..='\u{102f}',
        '\u{1100}'..='\u{1112}',
        '\u{1161}'..='\u{1175}',
        '\u{11a7}'..='\u{11c3}',
        '\u{1b05}'..='\u{1b35}',
        '\u{1e96}'..='\u{1e9e}',
        '\u{1f80}'..='\u{1faf}',
        '\u{2460}'..='\u{2473}',
        '\u{3041}'..='\u{309c}',
        '\u{3300}'..='\u{330f}',
        '\u{ac00}'..='\u{ac20}',
        '\u{fb00}'..='\u{fb17}',
        '\u{fdfa}'..='\u{fdfb}',
        '\u{ff21}'..='\u{ff26}',
        '\u{ff66}'..='\u{ff9f}',
        '\u{11127}'..='\u{11132}',
        '\u{1d400}'..='\u{1d40f}',
        '\u{1f600}'..='\u{1f602}',
    ];
    prop::collection::vec(prop::char::ranges(RANGES.into()), 0..most).prop_map(String::from_iter)
}

/// Whether the words no longer contain the phrase if they are shortened at either end.
fn is_shortest(words: &str, phrase: &str) -> bool {
    let is_needed = |rest: Option<&str>| rest.is_none_or(|rest| !naive(rest).contains(phrase));
    is_needed(words.get(1..)) && is_needed(words.get(..words.len() - 1))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn a_text_is_normalized_as_a_whole_for_comparison(text in texts(12)) {
        let comparable = Comparable::of(&text);
        prop_assert_eq!(comparable.as_str(), naive(&text));
    }

    #[test]
    fn a_phrase_is_found_where_a_naive_search_finds_it(text in texts(12), other in texts(3), cut in 0..12_usize, length in 1..5_usize) {
        let part: String = text.chars().skip(cut).take(length).collect();
        for phrase in [part, other] {
            let (text_form, phrase_form) = (naive(&text), naive(&phrase));
            let is_there = !phrase_form.is_empty() && text_form.contains(&phrase_form);
            let comparable = Comparable::of(&text);
            let found = comparable.find(&Comparable::of(&phrase));
            prop_assert_eq!(found.is_some(), is_there);
            let Some(words) = found else { continue };
            prop_assert!(text.contains(words));
            prop_assert!(naive(words).contains(&phrase_form), "{:?} in {:?}", phrase, words);
            // A match includes the marks of its letters, so only ASCII matches are the shortest possible.
            prop_assert!(!words.is_ascii() || is_shortest(words, &phrase_form), "{:?} in {:?}", phrase, words);
        }
    }
}
