//! Emails with codes for sign-in. A code is computed when its email is written, and never stored.

use std::time::Duration;

use shared::domain::language::Language;
use shared::domain::mail_keys::Recipient;
use shared::domain::sign_in::keys::{FlowId, FlowKeys};
use shared::error::Fault;

use crate::{Disposition, Worker, compose, hide};

/// Minimum delay before a retry if a mail server doesn't accept a code. Longer delays equal the age of the code, so
/// that the email is retried a few times while the code is valid.
const PAUSE: Duration = Duration::from_secs(5);

impl Worker<'_> {
    /// Sends the code of a flow, unless the flow has ended or no code may be sent to the address
    /// ([`shared::app::App::takes_codes`]). The same code may be sent twice, with the same `Message-ID`.
    pub(crate) async fn send_code(&self, id: &FlowId, receipt: &str) -> Result<Disposition, Fault> {
        let (keys, now) = (FlowKeys::new(&self.app.config.visitor_salt), self.app.clock.now());
        let inbox = self.app.store.inbox(&id.inbox).await?;
        let flow = inbox.flow(&id.nonce, now);
        let Some((flow, to)) = flow.and_then(|flow| Some((flow, keys.open(&flow.address)?))) else {
            return Ok(Disposition::Done);
        };
        // Other codes to this address may have failed after this one was requested.
        if !self.app.takes_codes(&to).await? {
            tracing::warn!("code not sent: codes to this address failed, or too many codes failed this hour");
            return Ok(Disposition::Done);
        }
        let recipient = Recipient::of_codes(&id.inbox);
        let letter = self.letter(&recipient, &id.nonce, to.clone(), Language::of_tag(&flow.language));
        let mail = compose::code(&letter, &keys.code(id), &flow.host)?;
        let Err(error) = self.mailer.send(&mail).await else { return Ok(Disposition::Done) };
        tracing::warn!(%error, unknown = error.unknown, permanent = error.permanent, "code not sent");
        if error.of_recipient {
            self.app.stop_codes(&to, true).await?;
        }
        if error.permanent {
            return Ok(Disposition::Done);
        }
        hide(self.app, receipt, flow.age(now).max(PAUSE)).await
    }
}
