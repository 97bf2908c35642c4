//! The configured rules of the spam check. `app::akismet` queries Akismet, and `app::spam_check` holds or refuses texts
//! with findings.

use std::collections::HashSet;

use crate::comparable::Comparable;
use crate::markdown::{Link, Shown};
use crate::verdict::Verdict;

/// The action on a text with a finding. Ordered, so that `max` is the stricter of two actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A moderator must review the text first.
    Review,
    /// The text must not be stored.
    Deny,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub action: Action,
    pub verdict: Verdict,
}

impl Finding {
    #[must_use]
    pub fn new(action: Action, verdict: Verdict) -> Self {
        Self { action, verdict }
    }
}

/// The configured phrases and link limits. Phrases are matched, as [`Comparable`] text, against the visible text and the
/// addresses and titles of links. A link limit is reached at this number of links; 0 means no limit.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub deny: Vec<String>,
    pub review: Vec<String>,
    pub review_links: usize,
    pub deny_links: usize,
}

impl Rules {
    /// Checks a body, which readers may see in any of these forms, against the rules. A phrase is reported once.
    #[must_use]
    pub fn judge(&self, forms: &[Shown]) -> Vec<Finding> {
        let forms: Vec<Form<'_>> = forms.iter().map(Form::of).collect();
        let texts: Vec<&Comparable<'_>> = forms.iter().flat_map(|form| &form.texts).collect();
        let containing = |phrases: &[String], action| -> Vec<Finding> {
            let words = phrases.iter().filter_map(|phrase| first(&texts, phrase));
            words.map(|words| Finding::new(action, Verdict::phrase(words))).collect()
        };
        let links = forms.iter().map(|form| form.links).max().unwrap_or_default();
        let reaching = |limit: usize, action| {
            (limit > 0 && links >= limit).then(|| Finding::new(action, Verdict::links(links, limit)))
        };
        let mut found = [containing(&self.deny, Action::Deny), containing(&self.review, Action::Review)].concat();
        found.extend(reaching(self.deny_links, Action::Deny));
        found.extend(reaching(self.review_links, Action::Review));
        found
    }
}

/// One form of a body that readers may see.
struct Form<'a> {
    /// The form's text first, then the addresses and titles of its links, then the addresses in prose.
    texts: Vec<Comparable<'a>>,
    links: usize,
}

impl<'a> Form<'a> {
    fn of(shown: &'a Shown) -> Self {
        let text = Comparable::of(&shown.text);
        let links = count_links(shown, &text);
        // A reference may be used very often, and each use is a link.
        let mut seen = HashSet::new();
        let distinct = shown.links.iter().filter(|link| seen.insert((&link.address, &link.title)));
        let of_links = distinct.flat_map(|link| [Comparable::of_address(&link.address), Comparable::of(&link.title)]);
        let bare = shown.bare_addresses().map(|range| Comparable::of_address(&shown.text[range]));
        Self { texts: std::iter::once(text).chain(of_links).chain(bare).collect(), links }
    }
}

/// The first match of a phrase, as it was written in the texts.
fn first<'a>(texts: &[&Comparable<'a>], phrase: &str) -> Option<&'a str> {
    let phrase = Comparable::of(phrase);
    texts.iter().find_map(|text| text.find(&phrase))
}

/// Counts the absolute addresses in the text, and the links and images that lead to one. A link whose text contains an
/// address is not counted again.
fn count_links(shown: &Shown, text: &Comparable<'_>) -> usize {
    let mut addresses: Vec<usize> = ["http://", "https://"].iter().flat_map(|start| text.places_of(start)).collect();
    addresses.sort_unstable();
    let is_unnamed = |link: &&Link| {
        let first = addresses.partition_point(|at| *at < link.text.start);
        is_absolute(&link.address) && addresses.get(first).is_none_or(|at| *at >= link.text.end)
    };
    addresses.len() + shown.links.iter().filter(is_unnamed).count()
}

/// Whether an address contains a host, as browsers read it: `//host` does, and `http:host` does on a page with another scheme.
fn is_absolute(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    ["//", "http:", "https:"].iter().any(|start| address.starts_with(start))
}
