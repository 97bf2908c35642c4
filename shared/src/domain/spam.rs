//! The configured rules of the spam check. `app::akismet` asks Akismet, and `policy` decides what follows from a
//! verdict.

use icu_normalizer::ComposingNormalizerBorrowed;
use percent_encoding::percent_decode_str;

use crate::domain::fold::fold;
use crate::domain::markdown::{Link, Shown};
use crate::domain::visible;

/// Ordered from good to bad, so `max` is the worse of two verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Pass,
    /// A moderator should look at it first.
    Review,
    /// It must not be stored.
    Deny,
}

/// Phrases are searched in the text that readers see and in the addresses and titles of links, without regard to case,
/// to white space, and to variants of letters that NFKC makes one. A limit is reached with this many links; 0 means no limit.
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

/// An empty phrase matches nothing.
fn contains(texts: &[String], phrase: &str) -> bool {
    let phrase = comparable(phrase);
    !phrase.is_empty() && texts.iter().any(|text| text.contains(&phrase))
}

/// Counts the absolute addresses in the text, and the links and images that lead to one. A link whose text contains an
/// address is not counted again.
fn count_links(shown: &Shown) -> usize {
    let unnamed = |link: &&Link| is_absolute(&link.address) && count_addresses(&shown.text[link.text.clone()]) == 0;
    count_addresses(&shown.text) + shown.links.iter().filter(unnamed).count()
}

fn count_addresses(text: &str) -> usize {
    let text = comparable(text);
    text.matches("http://").count() + text.matches("https://").count()
}

/// Whether it leads to a named host. `//host` does in browsers, and `http:host` does on a page with another scheme.
fn is_absolute(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    ["//", "http:", "https:"].iter().any(|start| address.starts_with(start))
}

/// `text` in NFKC and one case, with one space for each run of white space, and without invisible characters.
fn comparable(text: &str) -> String {
    const NFKC: ComposingNormalizerBorrowed<'_> = ComposingNormalizerBorrowed::new_nfkc();
    let visible = visible::without_invisible(text);
    let normal = NFKC.normalize(&visible);
    let words: Vec<&str> = normal.split_whitespace().collect();
    // Once more, because folding takes some letters apart.
    NFKC.normalize(&fold(&words.join(" "))).into_owned()
}
