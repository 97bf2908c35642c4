//! Tests that the loops that render, judge, link and email a body take a number of steps proportional to its length, even for
//! hostile bodies. `infra/measure/text` counts the instructions of the same work, including the parser's.

use serde::Deserialize;
use shared::domain::markdown::{MAX_HTML, MAX_MENTIONS, Shown, may_be_plain, mentions, render, shown};
use shared::domain::prose::as_typed;
use shared::domain::spam::Rules;
use shared::domain::steps;

/// Characters of the longest body.
const LONGEST: usize = 10_000;
/// Maximum steps per character. One Arabic ligature expands to eighteen letters.
const MAX_STEPS: u64 = 60;

/// A body that consists of `start`, then `unit` repeatedly, then `end`.
#[derive(Deserialize)]
struct Hostile {
    name: String,
    #[serde(default)]
    start: String,
    unit: String,
    #[serde(default)]
    end: String,
}

impl Hostile {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../../tests/hostile.json")).expect("the bodies are JSON")
    }

    fn body(&self, length: usize) -> String {
        let Self { start, unit, end, .. } = self;
        let room = length - end.chars().count();
        start.chars().chain(unit.chars().cycle()).take(room).chain(end.chars()).collect()
    }

    /// The same body with a second half that mirrors the first, so that opening delimiters can close.
    fn mirrored(&self, length: usize) -> String {
        let half = self.body(length / 2);
        half.chars().chain(half.chars().rev()).collect()
    }
}

/// Everything that the service does with a body: show it, judge it, and put it into feeds, pages and emails.
fn process(body: &str) {
    let html = render(body, "users", &["ada", "a"]);
    assert!(html.len() <= MAX_HTML, "{}", html.len());
    assert!(as_typed(&html).len() <= MAX_HTML);
    assert!(mentions(body).tries().len() <= 4 * MAX_MENTIONS);
    let text = shown(body);
    assert!(text.run_ons(&text.web_links()).len() <= text.text.len());
    let mailed = text.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(as_typed(&mailed).len() >= mailed.len());
    let words = ["casino".to_owned(), "\u{635}\u{644}\u{649} \u{633}".to_owned()];
    let rules = Rules { deny: words.to_vec(), review: words.to_vec(), review_links: 2, deny_links: 9 };
    let forms: Vec<Shown> =
        std::iter::once(text).chain(may_be_plain(body, "users").then(|| Shown::plain(body))).collect();
    assert!(rules.judge(&forms).len() <= 6);
}

/// `infra/measure/text` counts the instructions that this function executes.
#[inline(never)]
fn measured(body: &str) {
    process(body);
}

#[test]
#[ignore = "counts nothing by itself"]
fn bodies_are_processed_one_by_one() {
    for hostile in Hostile::all() {
        println!("measured {}", hostile.name);
        measured(&hostile.body(LONGEST / 2));
        measured(&hostile.body(LONGEST));
    }
}

#[test]
fn the_steps_of_a_hostile_body_are_bounded_and_grow_as_it_does() {
    let all = Hostile::all();
    assert!(all.len() >= 100);
    for hostile in all {
        let steps = |body: &str| steps::of(|| process(body));
        let (half, whole) = (steps(&hostile.body(LONGEST / 2)), steps(&hostile.body(LONGEST)));
        let mirrored = steps(&hostile.mirrored(LONGEST));
        let name = &hostile.name;
        assert_eq!(hostile.body(LONGEST).chars().count(), LONGEST, "{name}");
        // The parser reads two characters for each typed noncharacter.
        let bound = MAX_STEPS * LONGEST as u64 * if name == "noncharacters" { 2 } else { 1 };
        assert!(whole.max(mirrored) <= bound, "{name}: {whole} steps, mirrored {mirrored}");
        // The slack allows for a long `start`, which both lengths share.
        assert!(whole <= half * 11 / 5 + LONGEST as u64, "{name}: {half} steps, then {whole}");
    }
}
