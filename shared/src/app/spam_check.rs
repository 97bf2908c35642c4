//! The spam check of a body before it is stored: our rules, repeats, Akismet. The worst of their actions counts.

use http::header;

use crate::app::App;
use crate::app::akismet::Submission;
use crate::domain::ids::{hex, sha256_hex};
use crate::domain::markdown::{self, Shown};
use crate::domain::spam::{Action, Finding};
use crate::domain::verdict::{MAX_VERDICTS, Verdict};
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
    /// What our rules find in everything that readers may see.
    fn judge(&self, body: &str) -> Vec<Finding> {
        let may_be_plain = markdown::may_be_plain(body, &self.config.users_route_prefix);
        let forms: Vec<Shown> =
            std::iter::once(markdown::shown(body)).chain(may_be_plain.then(|| Shown::plain(body))).collect();
        self.config.spam.rules.judge(&forms)
    }

    /// Why a moderator should review the text; nothing when it may be shown. Refuses spam.
    pub async fn check_for_spam(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Vec<Verdict>> {
        let found = self.find_spam(call, viewer, draft).await?;
        if let Some(denied) = denied(&found) {
            tracing::info!(rule = denied.verdict.rule.name(), "a text was refused as spam");
            return Err(Refusal::SpamRejected.into());
        }
        Ok(found.into_iter().map(|finding| finding.verdict).take(MAX_VERDICTS).collect())
    }

    async fn find_spam(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Vec<Finding>> {
        let mut found = self.judge(draft.body);
        if self.config.spam.review_repeats && !draft.edit && denied(&found).is_none() {
            let hash = sha256_hex(draft.body);
            // Repeating a request, by the SDK or by a caller with an `Idempotency-Key`, is not repeating a text.
            let request =
                self.idempotency(call)?.map_or_else(|| hex(&self.random.bytes::<16>()), |idempotency| idempotency.key);
            if self.store.is_repeat(&viewer.owners.reactions, &hash, request, self.clock.now()).await? {
                found.push(Finding::new(Action::Review, Verdict::repeat()));
            }
        }
        if let Some(akismet) = self.akismet.as_ref().filter(|_| denied(&found).is_none()) {
            let submission = Submission {
                blog: self.config.public_url.as_deref().unwrap_or(&call.base_url),
                user_ip: &call.network.to_string(),
                user_agent: call.header(header::USER_AGENT).unwrap_or_default(),
                author: draft.author,
                author_email: draft.email,
                content: draft.body,
                permalink: None,
            };
            found.extend(akismet.judge(&submission).await);
        }
        Ok(found)
    }
}

/// The first finding that refuses the text.
fn denied(found: &[Finding]) -> Option<&Finding> {
    found.iter().find(|finding| finding.action == Action::Deny)
}
