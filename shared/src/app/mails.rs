//! Mails, as far as several functions have to do with them: keys, and messages to the function `delivery`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::domain::ids::Visitor;
use crate::domain::mail_keys::{MailKeys, Recipient};
use crate::domain::mailbox::{Address, Asking, Mailbox, Told};
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

/// Whether an address may be enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enrolment {
    Allowed,
    /// Not before so many seconds have passed.
    After(u64),
    /// The owner of the address wants no mails, or was asked for a confirmation as often as may be.
    Never,
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
    pub async fn enrolment(
        &self,
        by: &Visitor,
        recipient: &Recipient,
        mailbox: &Mailbox,
        address: &Address,
    ) -> Result<Enrolment, Fault> {
        let (keys, now) = (self.mail_keys(), self.clock.now());
        if !mailbox.takes(address, now.0) {
            return Ok(Enrolment::Allowed);
        }
        let Some(name) = keys.address(&address.sealed) else { return Ok(Enrolment::Never) };
        let asks = mailbox.would_confirm(address, now.0);
        let member = keys.member(recipient);
        let ask = |owner: &mut Mailbox| owner.ask_for_member(&member, now.0);
        let owner = self.owner(address).filter(|owner| owner != recipient);
        if let Some(owner) = &owner {
            let mut owner = self.store.mailbox(owner).await?;
            if mailbox.is_stopped_by(&owner, address) {
                return Ok(Enrolment::Never);
            }
            // An address is asked as seldom when several members claim it.
            let asking = if asks { ask(&mut owner) } else { Asking::Allowed };
            if asking != Asking::Allowed {
                return Ok(self.enrolment_when(asking));
            }
        }
        if !asks {
            return Ok(Enrolment::Allowed);
        }
        for (caller, most) in [(by.0.as_str(), MAX_ENROLLED), ("all", MAX_ENROLLED_BY_ALL)] {
            if !self.store.count_enrolled(caller, &name, most, now).await? {
                return Ok(Enrolment::After(self.rest_of_hour()));
            }
        }
        match owner {
            Some(owner) => Ok(self.enrolment_when(self.store.change_mailbox(&owner, ask).await?.1)),
            None => Ok(Enrolment::Allowed),
        }
    }

    fn enrolment_when(&self, asking: Asking) -> Enrolment {
        match asking {
            Asking::Allowed => Enrolment::Allowed,
            Asking::From(time) => Enrolment::After(self.until(time).as_secs()),
            Asking::Never => Enrolment::Never,
        }
    }

    /// Whose an address is: the recipient of guests' mails to it. `None` when it was sealed under another salt.
    #[must_use]
    pub fn owner(&self, address: &Address) -> Option<Recipient> {
        let keys = self.mail_keys();
        keys.open(&address.sealed).map(|email| keys.guest(&email))
    }

    /// Whether all mails to the address of this mailbox were stopped, by a mail to another recipient who has it.
    ///
    /// # Errors
    ///
    /// When the table fails.
    pub async fn is_stopped(&self, recipient: &Recipient, mailbox: &Mailbox) -> Result<bool, Fault> {
        let Some(address) = &mailbox.address else { return Ok(false) };
        match self.owner(address).filter(|owner| owner != recipient) {
            Some(owner) => Ok(mailbox.is_stopped_by(&self.store.mailbox(&owner).await?, address)),
            None => Ok(false),
        }
    }

    /// Stops all mails to a recipient and to the address, whoever else has it. An address that is merely claimed is stopped by
    /// who has got a mail there: `got_mail_at` is what stands for that one, [`MailKeys::address`].
    ///
    /// # Errors
    ///
    /// When the table fails.
    pub async fn stop_mails(&self, recipient: &Recipient, got_mail_at: Option<&str>) -> Result<(), Fault> {
        let keys = self.mail_keys();
        let is_theirs = |address: &Address| {
            address.confirmed
                || got_mail_at.is_some_and(|known| keys.address(&address.sealed).as_deref() == Some(known))
        };
        let address = self.store.mailbox(recipient).await?.address.filter(is_theirs);
        // First, because the recipient's own mailbox forgets the address.
        if let Some(owner) = address.and_then(|address| self.owner(&address)).filter(|owner| owner != recipient) {
            self.stop_mailbox(&owner).await?;
        }
        self.stop_mailbox(recipient).await
    }

    /// Stops all mails to a recipient, and none to others who have the address.
    ///
    /// # Errors
    ///
    /// When the table fails.
    pub async fn stop_mailbox(&self, recipient: &Recipient) -> Result<(), Fault> {
        let (keys, now) = (self.mail_keys(), self.clock.now().0);
        let stop = |mailbox: &mut Mailbox| {
            let confirmed = mailbox.address.as_ref().filter(|address| address.confirmed);
            let proven = confirmed.and_then(|address| keys.address(&address.sealed));
            mailbox.stop(now, proven);
        };
        self.store.change_mailbox(recipient, stop).await.map(drop)
    }

    /// Seconds until the bounds of the next hour hold.
    fn rest_of_hour(&self) -> u64 {
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
