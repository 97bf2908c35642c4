//! The spam check of a body before it is stored: our rules, repeats, Akismet. The worst verdict counts.

use http::header;

use crate::app::App;
use crate::app::akismet::Submission;
use crate::domain::ids::{hex, sha256_hex};
use crate::domain::markdown::{self, Shown};
use crate::domain::spam::Verdict;
use crate::domain::viewer::Viewer;
use crate::error::{Refusal, Result};
use crate::http::request::Call;

/// A text that is about to be stored.
#[derive(Clone, Copy)]
pub struct Draft<'a> {
    pub body: &'a str,
    pub author: &'a str,
    /// The address of a guest.
    pub email: Option<&'a str>,
    /// Edits are not checked for repeats, because they may leave the body as it was.
    pub edit: bool,
}

impl App {
    /// The verdict of our rules on everything that readers may see.
    fn judge(&self, body: &str) -> Verdict {
        let rules = &self.config.spam.rules;
        let verdict = rules.judge(&markdown::shown(body));
        if markdown::may_be_plain(body, &self.config.users_route_prefix) {
            verdict.max(rules.judge(&Shown::plain(body)))
        } else {
            verdict
        }
    }

    /// Whether a moderator should review the text. Refuses spam.
    pub async fn check_for_spam(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<bool> {
        match self.verdict(call, viewer, draft).await? {
            Verdict::Pass => Ok(false),
            Verdict::Review => Ok(true),
            Verdict::Deny => Err(Refusal::SpamRejected.into()),
        }
    }

    async fn verdict(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Verdict> {
        let mut verdict = self.judge(draft.body);
        if self.config.spam.review_repeats && !draft.edit && verdict == Verdict::Pass {
            let hash = sha256_hex(draft.body);
            // Repeating a request, by the SDK or by a caller with an `Idempotency-Key`, is not repeating a text.
            let request =
                self.idempotency(call)?.map_or_else(|| hex(&self.random.bytes::<16>()), |idempotency| idempotency.key);
            if self.store.is_repeat(&viewer.owners.reactions, &hash, request, self.clock.now()).await? {
                verdict = Verdict::Review;
            }
        }
        match &self.akismet {
            Some(akismet) if verdict != Verdict::Deny => {
                let submission = Submission {
                    blog: self.config.public_url.as_deref().unwrap_or(&call.base_url),
                    user_ip: &call.network.to_string(),
                    user_agent: call.header(header::USER_AGENT).unwrap_or_default(),
                    author: draft.author,
                    author_email: draft.email,
                    content: draft.body,
                    permalink: None,
                };
                Ok(verdict.max(akismet.judge(&submission).await))
            }
            _ => Ok(verdict),
        }
    }
}
