//! Threads, and the state of a visitor in a thread.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

use crate::ids::{CommentId, UserId};
use crate::origin;
use crate::time::{Timestamp, stored};
use crate::visible;

/// Maximum characters in a record's title.
pub const MAX_TITLE: usize = 300;
/// Maximum characters in a record's address.
pub const MAX_ADDRESS: usize = 2_048;

/// Maximum characters in the title and in the address that a page reports.
const MAX_PAGE_TITLE: usize = 200;
const MAX_PAGE_ADDRESS: usize = 2_000;

/// The title and address that a host page reported, if they are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageInfo {
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl PageInfo {
    /// Leaves out malformed values, and the address unless its origin is allowed. `None` if nothing is left.
    #[must_use]
    pub fn new(title: Option<&str>, url: Option<&str>, is_allowed: impl Fn(&str) -> bool) -> Option<Self> {
        let address = |url: &str| {
            let fits = url.chars().count() <= MAX_PAGE_ADDRESS && is_address(url);
            (fits && origin::of(url).is_some_and(|origin| is_allowed(&origin))).then(|| without_fragment(url))
        };
        let page = Self { title: title.and_then(page_title), url: url.and_then(address) };
        (page != Self::default()).then_some(page)
    }
}

fn without_fragment(url: &str) -> String {
    url.split_once('#').map_or(url, |(page, _)| page).to_owned()
}

/// The title of a page, trimmed and truncated, without control characters, line separators, and characters that reorder
/// text or have no width. Joiners are kept within words and emoji. `None` if nothing visible is left.
fn page_title(text: &str) -> Option<String> {
    let mut title = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_kept = match c {
            visible::NON_JOINER | visible::JOINER => {
                title.chars().next_back().is_some_and(visible::joins)
                    && rest.peek().copied().is_some_and(visible::joins)
            }
            c => !visible::breaks_names(c) && !visible::turns_text(c) && !visible::has_no_width(c),
        };
        if is_kept {
            title.push(c);
        }
    }
    let title: String = title.trim().chars().take(MAX_PAGE_TITLE).collect();
    let title = title.trim_end_matches([visible::NON_JOINER, visible::JOINER]).trim_end();
    (!visible::shows_nothing(title)).then(|| title.to_owned())
}

/// A thread. The default is a thread without an item in the table: it has no comments and no data about its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The number of approved top-level comments.
    #[serde(rename = "n", default, deserialize_with = "count")]
    pub parents: u64,
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// The author of the record.
    #[serde(rename = "au", default, skip_serializing_if = "Option::is_none")]
    pub author: Option<UserId>,
    /// The title and address that the host has set. Readers see [`Self::known_title`] and [`Self::known_url`].
    #[serde(rename = "ti", default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(rename = "url", default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The title and address that a page reported with a comment that a moderator approved or wrote, or with a member's comment
    /// that was public immediately.
    #[serde(rename = "pt", default, skip_serializing_if = "Option::is_none")]
    pub page_title: Option<String>,
    #[serde(rename = "pu", default, skip_serializing_if = "Option::is_none")]
    pub page_url: Option<String>,
    /// Whether a moderator closed the thread (true) or reopened it (false). `None` if its age decides.
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// The creation time of the top-level comment that became public first. The thread's age is counted from it.
    #[serde(rename = "op", default, skip_serializing_if = "Option::is_none", serialize_with = "stored::optional")]
    pub opened_at: Option<Timestamp>,
}

impl Thread {
    /// The title of the record: the host's, or else the title that a page reported.
    #[must_use]
    pub fn known_title(&self) -> Option<&str> {
        self.title.as_deref().or(self.page_title.as_deref())
    }

    /// The address of the record: the host's, or else the address that a page reported.
    #[must_use]
    pub fn known_url(&self) -> Option<&str> {
        self.url.as_deref().or(self.page_url.as_deref())
    }

    /// Like [`Self::known_title`], for moderators and emails: falls back to the title that the page reported with a comment.
    #[must_use]
    pub fn known_title_or<'a>(&'a self, page: Option<&'a PageInfo>) -> Option<&'a str> {
        self.known_title().or(page.and_then(|page| page.title.as_deref()))
    }

    /// Like [`Self::known_url`], for moderators, emails and the spam check: falls back to the address that the page
    /// reported with a comment.
    #[must_use]
    pub fn known_url_or<'a>(&'a self, page: Option<&'a PageInfo>) -> Option<&'a str> {
        self.known_url().or(page.and_then(|page| page.url.as_deref()))
    }

    /// Whether `page` has a title and no page has reported a title for this thread before, or the same for the address.
    #[must_use]
    pub fn lacks(&self, page: &PageInfo) -> bool {
        (page.title.is_some() && self.page_title.is_none()) || (page.url.is_some() && self.page_url.is_none())
    }

    /// Whether the thread is closed. A thread that no moderator closed or reopened closes at `age`; `None` means never.
    #[must_use]
    pub fn is_closed(&self, age: Option<Duration>, now: Timestamp) -> bool {
        let is_old = |age| self.opened_at.is_some_and(|at| now.since(at) >= age);
        self.closed.unwrap_or_else(|| age.is_some_and(is_old))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    #[serde(rename = "c")]
    pub comment: CommentId,
    #[serde(rename = "at", serialize_with = "stored::time")]
    pub at: Timestamp,
}

/// A visitor's likes and reports in a thread, and the counts of their own unapproved comments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VisitorThreadState {
    #[serde(rename = "lk", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub liked: BTreeSet<u64>,
    #[serde(rename = "rd", default, skip_serializing_if = "BTreeSet::is_empty", with = "serde_dynamo::number_set")]
    pub reported: BTreeSet<u64>,
    /// Whether further likes and reports are stored in overflow items. Never unset, so that no like or report is in two items.
    #[serde(rename = "fl", default)]
    pub full: bool,
    /// The number of the visitor's top-level comments that aren't approved.
    #[serde(rename = "up", default, deserialize_with = "count")]
    pub hidden_parents: u64,
    /// The number of the visitor's replies that aren't approved.
    #[serde(rename = "ur", default, deserialize_with = "count")]
    pub hidden_replies: u64,
    /// Whether any of the visitor's unapproved replies is or was stored separately. Never unset.
    #[serde(rename = "ut", default)]
    pub hidden_separate: bool,
}

/// Whether this may be a record's address: the address of a web page, without user and password.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let is_web = |uri: http::Uri| {
        let host = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        matches!(uri.scheme_str(), Some("http" | "https")) && host.is_some_and(|host| !host.host().is_empty())
    };
    text.chars().count() <= MAX_ADDRESS && visible::is_plain_line(text) && text.parse().is_ok_and(is_web)
}

/// A record's address from another system. If the text isn't valid as it is, it is normalized by the URL standard,
/// without user and password. `None` if the result isn't an address either.
#[must_use]
pub fn imported_address(text: &str) -> Option<String> {
    if is_address(text) {
        return Some(text.to_owned());
    }
    let mut url = Url::parse(text).ok()?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(String::from(url)).filter(|text| is_address(text))
}

/// The title of a record from another system, as a [`visible::plain_line`], truncated. `None` if no character of it is
/// visible.
#[must_use]
pub fn imported_title(text: &str) -> Option<String> {
    let title: String = visible::plain_line(text).chars().take(MAX_TITLE).collect();
    (!visible::shows_nothing(&title)).then_some(title)
}

/// Converts a stored count to a number that is at least 0. The stored count becomes negative if comments are deleted that an
/// import has written but not counted yet.
#[must_use]
pub fn from_stored(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    i64::deserialize(deserializer).map(from_stored)
}

impl VisitorThreadState {
    /// This state's likes and reports, with the counts of unapproved comments from `other`.
    #[must_use]
    pub fn with_comments_of(self, other: &Self) -> Self {
        Self { liked: self.liked, reported: self.reported, full: self.full, ..*other }
    }

    pub fn has_hidden(&self) -> bool {
        self.hidden_parents + self.hidden_replies > 0
    }

    /// Whether the visitor sees the thread like everyone else.
    pub fn is_plain(&self) -> bool {
        self.liked.is_empty() && self.reported.is_empty() && !self.full && !self.has_hidden()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_closed_by_its_age_unless_a_moderator_closed_or_opened_it() {
        let month = Duration::from_hours(30 * 24);
        let at = |days: i64| Timestamp(days * 24 * 60 * 60 * 1000);
        for (closed, opened_at, age, expected) in [
            (None, Some(0), None, false),
            (None, None, Some(month), false),
            (None, Some(0), Some(month), true),
            (None, Some(1), Some(month), false),
            (Some(false), Some(0), Some(month), false),
            (Some(true), None, None, true),
        ] {
            let thread = Thread { closed, opened_at: opened_at.map(Timestamp), ..Thread::default() };
            assert_eq!(thread.is_closed(age, at(30)), expected, "{thread:?} {age:?}");
        }
    }

    #[test]
    fn an_address_is_that_of_a_web_page_without_a_user() {
        for good in
            ["https://example.org", "http://localhost:8080/a?b#c", "HTTPS://example.org/é/@ada", "https://[::1]/"]
        {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "example.org",
            "//example.org/",
            "ftp://example.org/",
            "javascript:alert(1)",
            "https:///a",
            "https://ada@example.org/",
            "https://ada:secret@example.org/",
            "https://@example.org/",
            "https://example.org/\u{202e}gnp.exe",
            "https://example.org/a\u{2029}b",
            "https://example.org/a\u{85}b",
            "https://example.org/a\tb",
            &format!("https://example.org/{}", "a".repeat(MAX_ADDRESS)),
        ] {
            assert!(!is_address(bad), "{bad:?}");
        }
    }

    #[test]
    fn the_title_of_a_page_is_trimmed_cut_and_free_of_invisible_characters() {
        for (given, kept) in [
            (" \t Tea\n", Some("Tea")),
            ("a\u{0}b\u{7f}c\u{85}d\u{2028}e", Some("abcde")),
            ("a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{61c}f", Some("abcdef")),
            ("a\u{200b}b\u{feff}c\u{2060}d", Some("abcd")),
            ("می\u{200c}خواهم", Some("می\u{200c}خواهم")),
            ("👩\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥", Some("👩\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥")),
            ("👩🏽\u{200d}🚀", Some("👩🏽\u{200d}🚀")),
            ("क्\u{200d}ष", Some("क्\u{200d}ष")),
            ("\u{200d}a \u{200c}b\u{200d} c\u{200c}", Some("a b c")),
            ("a\u{200d}\u{200d}b", Some("a\u{200d}b")),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", Some("🏴\u{e0067}\u{e0062}\u{e007f}")),
            ("", None),
            (" \u{200b}\u{202e}\u{200d} ", None),
        ] {
            assert_eq!(page_title(given).as_deref(), kept, "{given:?}");
        }
        assert_eq!(page_title(&"é".repeat(201)), Some("é".repeat(200)));
        assert_eq!(page_title(&format!("{} b", "a".repeat(199))), Some("a".repeat(199)));
        assert_eq!(page_title(&format!("{}\u{200d}b", "a".repeat(199))), Some("a".repeat(199)));
    }

    #[test]
    fn the_address_of_a_page_is_of_an_allowed_origin_and_loses_its_fragment() {
        let url = |url: &str| PageInfo::new(None, Some(url), |origin| origin == "https://blog.example")?.url;
        for (given, kept) in [
            ("https://blog.example/a?b#c", Some("https://blog.example/a?b")),
            ("https://Blog.example:443/", Some("https://Blog.example:443/")),
            ("https://blog.example", Some("https://blog.example")),
            ("http://blog.example/", None),
            ("https://blog.example:8443/", None),
            ("https://blog.example.evil.example/", None),
            ("https://ada@blog.example/", None),
            ("https://blog.example@evil.example/", None),
            ("javascript:alert(1)", None),
            ("//blog.example/", None),
            ("/a", None),
            ("", None),
        ] {
            assert_eq!(url(given).as_deref(), kept, "{given:?}");
        }
        let long = |count: usize| format!("https://blog.example/{}", "a".repeat(count - 21));
        assert_eq!((url(&long(2_000)), url(&long(2_001))), (Some(long(2_000)), None));
    }

    #[test]
    fn imported_addresses_are_kept_normalized_or_dropped() {
        for (given, kept) in [
            ("https://Example.org", Some("https://Example.org")),
            (" https://example.org/a\n", Some("https://example.org/a")),
            ("https://ada:secret@example.org/a", Some("https://example.org/a")),
            ("https://example.org/a b", Some("https://example.org/a%20b")),
            ("https://example.org/\u{202e}b", Some("https://example.org/%E2%80%AEb")),
            ("https://bücher.example/a", Some("https://xn--bcher-kva.example/a")),
            ("/a", None),
            ("javascript:alert(1)", None),
            ("mailto:ada@example.org", None),
        ] {
            assert_eq!(imported_address(given).as_deref(), kept, "{given:?}");
        }
    }

    #[test]
    fn imported_titles_become_one_line_of_limited_length() {
        for (given, kept) in [
            ("Hello  \u{2067}עדה\u{2069}", Some("Hello  \u{2067}עדה\u{2069}")),
            ("a\u{202e}b\nc\u{2028}d\u{0}e", Some("ab c d e")),
            (" \t\u{202e}", None),
            ("", None),
        ] {
            assert_eq!(imported_title(given).as_deref(), kept, "{given:?}");
        }
        assert_eq!(imported_title(&"é".repeat(301)).map(|title| title.chars().count()), Some(MAX_TITLE));
    }
}
