//! Limits confirmation emails, to protect the owner of the address, their mail server and this service. A confirmation
//! over a limit is postponed, and dropped if the comment that caused it is no longer public by then.

use shared::domain::mail_keys::Recipient;
use shared::domain::notifications::{Asker, Asking, NotificationState};
use shared::error::Fault;
use shared::policy;
use shared::store::Reading;

use crate::{Content, Sent, Worker, content};

/// Maximum addresses per hour that are asked to confirm, overall.
const MAX_OF_ALL: usize = 200;
/// Maximum addresses of one domain per hour that are asked to confirm: half of the total, because most readers use one
/// of a few providers. If twenty networks exhaust one provider's limit, its users have to wait, but other domains still
/// have half.
const MAX_OF_DOMAIN: usize = 100;

impl Worker<'_> {
    pub(crate) async fn confirmation(
        &self,
        recipient: &Recipient,
        state: &NotificationState,
        asker: &Asker,
    ) -> Result<Content, Fault> {
        if self.is_withdrawn(asker).await? {
            return Ok(Content::default());
        }
        let Some(owner) = self.app.owner(&asker.address) else { return Ok(Content::default()) };
        match self.ask(recipient, &owner, asker).await? {
            Asking::Allowed => Ok(Content::of(content::confirmation(self, recipient, state, asker)?)),
            Asking::From(time) => Ok(Content { sent: Sent::PutOff(time), ..Content::default() }),
            // Recorded as sent, so that no one learns that the owner unsubscribed or that the address bounced.
            Asking::Never => Ok(Content { sent: Sent::Accepted, ..Content::default() }),
        }
    }

    /// Whether the comment that caused the request is no longer public.
    async fn is_withdrawn(&self, asker: &Asker) -> Result<bool, Fault> {
        let Some(comment) = asker.comment else { return Ok(false) };
        let found = self.app.store.comment_with_ancestors(comment, Reading::Consistent).await?;
        let is_there =
            found.is_some_and(|found| found.comment.may_count() && policy::is_public(&found.comment, &found.ancestors));
        Ok(!is_there)
    }

    /// Returns whether a confirmation may be sent now, and counts it if so.
    async fn ask(&self, recipient: &Recipient, owner: &Recipient, asker: &Asker) -> Result<Asking, Fault> {
        let (keys, now) = (self.app.mail_keys(), self.app.clock.now());
        let asking =
            if owner == recipient { asker.asking_of(&asker.name) } else { asker.asking_of(&keys.member(recipient)) };
        let book = |state: &mut NotificationState| state.enrolment.book(&asking, &asker.network, now);
        // The address's own limit comes first, so that a refusal by it doesn't count against the other limits.
        let allowed = book(&mut self.app.store.notification_state(owner).await?);
        if allowed != Asking::Allowed {
            return Ok(allowed);
        }
        let names = keys.address(&asker.address.sealed).zip(keys.domain(&asker.address.sealed));
        let Some((address, domain)) = names else { return Ok(Asking::Never) };
        for (whose, most) in [(domain.as_str(), MAX_OF_DOMAIN), ("all", MAX_OF_ALL)] {
            if !self.app.store.count_asking(whose, &address, most, now).await? {
                return Ok(Asking::From(self.app.next_hour()));
            }
        }
        Ok(self.app.store.change_notification_state(owner, book).await?.1)
    }
}
