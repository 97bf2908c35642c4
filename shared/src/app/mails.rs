//! Mails, as far as several functions have to do with them: keys, and messages to the function `delivery`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::domain::ids::Visitor;
use crate::domain::mail_keys::{MailKeys, Recipient};
use crate::domain::mailbox::{Address, Mailbox, Told};
use crate::error::Fault;

/// Unconfirmed addresses that one visitor enrols in an hour, and that all do.
const MAX_ENROLLED: usize = 5;
const MAX_ENROLLED_BY_ALL: usize = 200;
/// Seconds.
const HOUR: i64 = 3_600;

/// A message of the queue `Deliveries`: this mailbox has something to send. It may be delivered twice, and late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueMailbox {
    pub mailbox: Recipient,
}

impl App {
    #[must_use]
    pub fn mail_keys(&self) -> MailKeys {
        MailKeys::new(&self.config.visitor_salt)
    }

    /// Sends a message about this mailbox, for when it is due. Nothing when it is not.
    ///
    /// # Errors
    ///
    /// When the queue does not take it.
    pub async fn start_delivery(&self, recipient: &Recipient, mailbox: &Mailbox) -> Result<(), Fault> {
        let Some(due) = mailbox.due() else { return Ok(()) };
        let queue = self.queues.deliveries.as_ref();
        let queue = queue.ok_or_else(|| Fault::new("telling a recipient", "DELIVERIES_QUEUE_URL is not set"))?;
        queue.send(&DueMailbox { mailbox: recipient.clone() }, self.until(due)).await
    }

    /// Whether an address may be enrolled in this mailbox. One that would be asked for a confirmation counts against the bounds
    /// of its hour. Safe to repeat: what is refused does not count, and what is repeated counts once.
    ///
    /// # Errors
    ///
    /// When the table fails.
    pub async fn may_enrol(
        &self,
        by: &Visitor,
        recipient: &Recipient,
        mailbox: &Mailbox,
        address: &Address,
    ) -> Result<bool, Fault> {
        let (keys, now) = (self.mail_keys(), self.clock.now());
        let Some(email) = keys.open(&address.sealed).filter(|_| mailbox.would_confirm(address, now.0)) else {
            return Ok(true);
        };
        // An address is asked as seldom when several members claim it.
        let member = keys.member(recipient);
        let ask = |owner: &mut Mailbox| owner.ask_for_member(&member, now.0);
        let owner = Some(keys.guest(&email)).filter(|owner| owner != recipient);
        if let Some(owner) = &owner
            && !ask(&mut self.store.mailbox(owner).await?)
        {
            return Ok(false);
        }
        let address = keys.plain_address(&email);
        for (caller, most) in [(by.0.as_str(), MAX_ENROLLED), ("all", MAX_ENROLLED_BY_ALL)] {
            if !self.store.count_enrolled(caller, &address, most, now).await? {
                return Ok(false);
            }
        }
        match owner {
            Some(owner) => Ok(self.store.change_mailbox(&owner, ask).await?.1),
            None => Ok(true),
        }
    }

    /// Seconds until the bounds of the next hour hold.
    #[must_use]
    pub fn rest_of_hour(&self) -> u64 {
        (HOUR - self.clock.now().seconds().rem_euclid(HOUR)).unsigned_abs()
    }

    /// How long it is until then, in whole seconds. `time` is in Unix milliseconds.
    #[must_use]
    pub fn until(&self, time: i64) -> Duration {
        Duration::from_secs(u64::try_from(time - self.clock.now().0).unwrap_or_default().div_ceil(1_000))
    }

    /// Changes a mailbox by telling it of something, and sends the message that this needs: when a mail became due, and when
    /// an earlier message may never have been sent. Returns what `tell` says.
    ///
    /// # Errors
    ///
    /// When the table or the queue fails.
    pub async fn tell(&self, recipient: &Recipient, tell: impl Fn(&mut Mailbox) -> Told) -> Result<Told, Fault> {
        let now = self.clock.now().0;
        let change = |mailbox: &mut Mailbox| {
            let lost = mailbox.due().is_none() || mailbox.is_overdue(now);
            let told = tell(mailbox);
            let needs_message = match told {
                Told::No => false,
                Told::Added => lost,
                Told::Waiting => true,
            };
            (told, needs_message)
        };
        let (mailbox, (told, needs_message)) = self.store.change_mailbox(recipient, change).await?;
        if needs_message {
            self.start_delivery(recipient, &mailbox).await?;
        }
        Ok(told)
    }
}
