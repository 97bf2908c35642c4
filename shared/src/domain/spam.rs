//! The spam check: rules of our own, and Akismet where a key is set. What follows from a verdict is policy's to say.

use percent_encoding::percent_decode_str;

use crate::domain::fold::fold;
use crate::domain::markdown::{Link, Shown};
use crate::domain::visible;

/// From good to bad: of two verdicts the worse is the `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Pass,
    /// To be seen by a moderator first.
    Review,
    /// Not to be stored at all.
    Deny,
}

/// Phrases are found anywhere in what a body shows, whatever their case and white space, and in the addresses and titles
/// of its links. Limits are this many links or more; 0 is no limit.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub deny: Vec<String>,
    pub review: Vec<String>,
    pub review_links: usize,
    pub deny_links: usize,
}

impl Rules {
    #[must_use]
    pub fn judge(&self, shown: &Shown) -> Verdict {
        let links = shown.links.iter().flat_map(|link| {
            let address = percent_decode_str(&link.address).decode_utf8_lossy();
            [comparable(&address), comparable(&link.title)]
        });
        let texts: Vec<String> = [comparable(&shown.text)].into_iter().chain(links).collect();
        let links = count_links(shown);
        let holds = |phrases: &[String]| phrases.iter().any(|phrase| contains(&texts, phrase));
        let reaches = |limit: usize| limit > 0 && links >= limit;

        if holds(&self.deny) || reaches(self.deny_links) {
            Verdict::Deny
        } else if holds(&self.review) || reaches(self.review_links) {
            Verdict::Review
        } else {
            Verdict::Pass
        }
    }
}

/// An empty phrase is in no text.
fn contains(texts: &[String], phrase: &str) -> bool {
    let phrase = comparable(phrase);
    !phrase.is_empty() && texts.iter().any(|text| text.contains(&phrase))
}

/// Absolute addresses in the text, and links and images that lead to one. A link and the first address of its text are one
/// place.
fn count_links(shown: &Shown) -> usize {
    let unnamed = |link: &&Link| is_absolute(&link.address) && count_addresses(&shown.text[link.text.clone()]) == 0;
    count_addresses(&shown.text) + shown.links.iter().filter(unnamed).count()
}

fn count_addresses(text: &str) -> usize {
    let text = comparable(text);
    text.matches("http://").count() + text.matches("https://").count()
}

/// Browsers take `http:host` and `//host` for absolute where the page is served by the other scheme or the same.
fn is_absolute(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    ["//", "http:", "https:"].iter().any(|start| address.starts_with(start))
}

/// `text` in one case, with one space for each run of white space, and without what cannot be seen.
fn comparable(text: &str) -> String {
    let visible = visible::without_invisible(text);
    let words: Vec<&str> = visible.split_whitespace().collect();
    fold(&words.join(" "))
}
