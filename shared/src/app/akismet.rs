//! Checks comments with Akismet, an external spam filter.

use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};

use crate::aws::https;
use crate::domain::spam::{Action, Finding};
use crate::domain::verdict::{Failure, Verdict};

/// A comment for Akismet to check. Doesn't implement `Debug`, so that it is never logged.
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
    pub const TIMEOUT: Duration = Duration::from_secs(2);

    /// `base_url` is the setting `SVC_AKISMET_URL`, with or without the path of the check or its version.
    #[must_use]
    pub fn new(key: String, base_url: &str) -> Self {
        let base_url = base_url.trim_end_matches('/');
        let url = if base_url.ends_with("/comment-check") {
            base_url.to_owned()
        } else {
            format!("{}/1.1/comment-check", base_url.strip_suffix("/1.1").unwrap_or(base_url))
        };
        Self { key, url, client: https::Client::new(Self::TIMEOUT) }
    }

    /// Akismet's finding, if any. A text needs review if there is no verdict within [`Self::TIMEOUT`].
    pub async fn judge(&self, submission: &Submission<'_>) -> Option<Finding> {
        match self.ask(submission).await {
            Ok(action) => action.map(|action| Finding::new(action, Verdict::akismet())),
            Err(failure) => Some(Finding::new(Action::Review, Verdict::akismet_failed(failure))),
        }
    }

    async fn ask(&self, submission: &Submission<'_>) -> Result<Option<Action>, Failure> {
        let request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(USER_AGENT, concat!("comments/", env!("CARGO_PKG_VERSION")))
            .body(self.form(submission));
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(%error, "SVC_AKISMET_URL is not a valid address");
                return Err(Failure::Timeout);
            }
        };
        match self.client.send(request).await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers());
                action(status, headers, response.body()).inspect_err(|_| {
                    tracing::warn!(status = status.as_u16(), "Akismet gave no verdict");
                })
            }
            Err(error) => {
                tracing::warn!(%error, "Akismet did not respond");
                Err(Failure::Timeout)
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

/// The action that a response demands, if any. An error unless the status is 200 and the body is `true` or `false`.
fn action(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Option<Action>, Failure> {
    let discard =
        || headers.get("x-akismet-pro-tip").is_some_and(|tip| tip.as_bytes().eq_ignore_ascii_case(b"discard"));
    match body.trim_ascii() {
        _ if status != StatusCode::OK => Err(Failure::Answer),
        b"true" if discard() => Ok(Some(Action::Deny)),
        b"true" => Ok(Some(Action::Review)),
        b"false" => Ok(None),
        _ => Err(Failure::Answer),
    }
}
