//! The spam check: rules of our own, and Akismet where a key is set. What follows from a verdict is policy's to say.

use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use percent_encoding::percent_decode_str;

use crate::fold::fold;
use crate::https;
use crate::markdown::{Link, Shown};
use crate::visible;

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

/// What Akismet is told of a comment. Has no `Debug`, so that it reaches no log.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Address of the site's front page.
    pub blog: &'a str,
    pub user_ip: &'a str,
    pub user_agent: &'a str,
    pub author: &'a str,
    pub author_email: Option<&'a str>,
    pub content: &'a str,
    /// Address of the page the comment is on.
    pub permalink: Option<&'a str>,
}

/// Akismet's [comment check](https://akismet.com/developers/detailed-docs/comment-check/), version 1.1.
pub struct Akismet {
    key: String,
    url: String,
    client: https::Client,
}

impl Akismet {
    pub const BASE_URL: &str = "https://rest.akismet.com";
    pub const TIMEOUT: Duration = Duration::from_secs(2);

    /// `base_url` is [`Self::BASE_URL`] or what stands in for it, with or without the path of the check.
    #[must_use]
    pub fn new(key: String, base_url: &str) -> Self {
        let base_url = base_url.trim_end_matches('/');
        let url = if base_url.ends_with("/comment-check") {
            base_url.to_owned()
        } else {
            format!("{base_url}/1.1/comment-check")
        };
        Self { key, url, client: https::Client::new(Self::TIMEOUT) }
    }

    /// [`Verdict::Review`] when Akismet does not say, or not within [`Self::TIMEOUT`].
    pub async fn judge(&self, submission: &Submission<'_>) -> Verdict {
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(USER_AGENT, concat!("comments/", env!("CARGO_PKG_VERSION")))
            .body(self.form(submission));
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, "Akismet's address is none");
                return Verdict::Review;
            }
        };
        match self.client.send(request).await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers());
                verdict(status, headers, response.body()).unwrap_or_else(|| {
                    tracing::warn!(status = status.as_u16(), "Akismet did not say what a comment is");
                    Verdict::Review
                })
            }
            Err(error) => {
                tracing::warn!(%error, "Akismet did not answer");
                Verdict::Review
            }
        }
    }

    fn form(&self, submission: &Submission<'_>) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("api_key", &self.key)
            .append_pair("blog", submission.blog)
            .append_pair("user_ip", submission.user_ip)
            .append_pair("user_agent", submission.user_agent)
            .append_pair("comment_type", "comment")
            .append_pair("comment_author", submission.author)
            .append_pair("comment_content", submission.content);
        if let Some(email) = submission.author_email {
            form.append_pair("comment_author_email", email);
        }
        if let Some(permalink) = submission.permalink {
            form.append_pair("permalink", permalink);
        }
        form.finish()
    }
}

/// `None` for an answer that is not Akismet's `true` or `false`, such as `invalid`.
fn verdict(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<Verdict> {
    let discard =
        || headers.get("x-akismet-pro-tip").is_some_and(|tip| tip.as_bytes().eq_ignore_ascii_case(b"discard"));
    match body.trim_ascii() {
        _ if status != StatusCode::OK => None,
        b"true" if discard() => Some(Verdict::Deny),
        b"true" => Some(Verdict::Review),
        b"false" => Some(Verdict::Pass),
        _ => None,
    }
}
