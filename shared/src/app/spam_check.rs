//! Checks a text before it is stored. The spam check applies our rules, detects repeats and queries Akismet. The strictest
//! resulting action applies. Independently, the writer's comments may need approval.

use http::header;

use crate::app::App;
use crate::app::akismet::Submission;
use crate::domain::ids::{hex, sha256_hex};
use crate::domain::markdown::{self, Shown};
use crate::domain::spam::{Action, Finding};
use crate::domain::trust::Trust;
use crate::domain::verdict::{Judgment, Verdict};
use crate::domain::viewer::Viewer;
use crate::error::{Refusal, Result};
use crate::http::request::{Call, RefusedBecause};
use crate::policy;

#[derive(Clone, Copy)]
pub struct Draft<'a> {
    pub body: &'a str,
    pub author: &'a str,
    /// A guest's email address.
    pub email: Option<&'a str>,
    /// The address of the text's page.
    pub url: Option<&'a str>,
    /// Whether the text is an edit. Edits are not checked for repeats, because they may leave the body unchanged.
    pub edit: bool,
}

impl App {
    /// Applies our rules to every form of the text that readers may see.
    fn apply_rules(&self, body: &str) -> Vec<Finding> {
        let may_be_plain = markdown::may_be_plain(body, &self.config.users_route_prefix);
        let forms: Vec<Shown> =
            std::iter::once(markdown::shown(body)).chain(may_be_plain.then(|| Shown::plain(body))).collect();
        self.config.spam.rules.judge(&forms)
    }

    /// The findings about the viewer's text, and whether it needs approval. Refuses spam.
    pub async fn judge(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Judgment> {
        let (found, trust) = tokio::try_join!(self.check_for_spam(call, viewer, draft), self.trust(viewer))?;
        let now = self.clock.now();
        let approval = if draft.edit {
            policy::edit_needs_approval(&self.config, viewer, &trust, now)
        } else {
            policy::needs_approval(&self.config, viewer, &trust, now)
        };
        Ok(Judgment::new(found, approval))
    }

    /// The viewer's trust. Read only if the policy depends on it.
    async fn trust(&self, viewer: &Viewer) -> Result<Trust> {
        if !policy::depends_on_trust(&self.config, viewer) {
            return Ok(Trust::default());
        }
        match &viewer.user {
            Some(user) => Ok(user.trust.clone()),
            None => Ok(self.store.trust_in_guest(&viewer.owners.comments).await?),
        }
    }

    async fn check_for_spam(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Vec<Verdict>> {
        let found = self.find_spam(call, viewer, draft).await?;
        if let Some(denied) = denied(&found) {
            let rule = denied.verdict.rule;
            tracing::info!(rule = rule.name(), "a text was refused as spam");
            call.refused_because.get_or_init(|| RefusedBecause::Spam(rule));
            return Err(Refusal::SpamRejected.into());
        }
        Ok(found.into_iter().map(|finding| finding.verdict).collect())
    }

    async fn find_spam(&self, call: &Call, viewer: &Viewer, draft: Draft<'_>) -> Result<Vec<Finding>> {
        let mut found = self.apply_rules(draft.body);
        if self.config.spam.review_repeats && !draft.edit && denied(&found).is_none() {
            let hash = sha256_hex(draft.body);
            // A retry by the SDK, or by a caller with an `Idempotency-Key`, doesn't count as a repeated text.
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
                permalink: draft.url,
            };
            found.extend(akismet.judge(&submission).await);
        }
        Ok(found)
    }
}

fn denied(found: &[Finding]) -> Option<&Finding> {
    found.iter().find(|finding| finding.action == Action::Deny)
}
