//! Helpers for functions that send emails: keys, and messages to the function `delivery`.

use std::time::Duration;

use crate::app::App;
use crate::domain::deliveries::Message;
use crate::domain::email::mailable;
use crate::domain::mail_keys::{MailKeys, Recipient};
use crate::domain::notifications::{Address, Enrolment, NotificationState, Notified};
use crate::domain::time::{Hour, Timestamp};
use crate::domain::user::User;
use crate::error::Fault;
use crate::http::request::{Call, Credential};

/// Maximum number of unproven addresses that callers on one network may enter per hour.
const MAX_OF_NETWORK: usize = 5;

impl App {
    #[must_use]
    pub fn mail_keys(&self) -> MailKeys {
        MailKeys::new(&self.config.visitor_salt)
    }

    /// A member's email address: the account's, which a code or the provider has proven, or without an account, the
    /// token's. `None` if there is none, or no email can be sent there.
    #[must_use]
    pub fn member_address(&self, call: &Call, member: &User) -> Option<Address> {
        let language = call.language().tag().to_owned();
        if let Some(account) = &member.account {
            return Some(Address { sealed: account.address.clone()?, language, confirmed: true });
        }
        let Credential::User(identity) = &call.credential else { return None };
        let email = identity.claims.email.as_deref().and_then(mailable)?;
        Some(Address { sealed: self.mail_keys().seal(&email), language, confirmed: !identity.claims.email_unverified })
    }

    /// Sends the queue message that triggers the recipient's next email when it is due. Does nothing if no email is waiting.
    pub async fn start_delivery(&self, recipient: &Recipient, state: &NotificationState) -> Result<(), Fault> {
        let Some(due) = state.due() else { return Ok(()) };
        let message = Message::Mail { recipient: recipient.clone() };
        self.deliveries()?.send(&message, self.until(due)).await
    }

    /// Counts an unproven address toward the hourly limit of a network ([`MailKeys::network`]), and returns whether it is
    /// within the limit. Safe to repeat: a refused address isn't counted, and a repeated one is counted once.
    pub async fn count_asking(&self, network: &str, address: &Address) -> Result<bool, Fault> {
        let Some(name) = self.mail_keys().address(&address.sealed) else { return Ok(false) };
        self.store.count_asking(network, &name, MAX_OF_NETWORK, self.clock.now()).await
    }

    /// The recipient who owns an address: the guest who uses it. `None` if the address was sealed under another salt.
    #[must_use]
    pub fn owner(&self, address: &Address) -> Option<Recipient> {
        let keys = self.mail_keys();
        keys.open(&address.sealed).map(|email| keys.guest(&email))
    }

    /// Whether the owner of the recipient's address is another recipient, whose unsubscription from all emails also
    /// applies to this one. See [`Enrolment::is_stopped_by`].
    pub async fn is_stopped(&self, recipient: &Recipient, enrolment: &Enrolment) -> Result<bool, Fault> {
        let Some(address) = &enrolment.address else { return Ok(false) };
        self.is_stopped_at(recipient, enrolment, address).await
    }

    /// Like [`Self::is_stopped`], for an address that the recipient may not have yet.
    pub async fn is_stopped_at(
        &self,
        recipient: &Recipient,
        enrolment: &Enrolment,
        address: &Address,
    ) -> Result<bool, Fault> {
        match self.owner(address).filter(|owner| owner != recipient) {
            Some(owner) => {
                let owner = self.store.notification_state(&owner).await?.enrolment;
                Ok(enrolment.is_stopped_by(&owner, address, self.clock.now()))
            }
            None => Ok(false),
        }
    }

    /// Unsubscribes a recipient from all emails, and the recipient's address for everyone who uses it. An unconfirmed address
    /// is unsubscribed only if the request proves that an email arrived there. `confirmed_address_hash` is then the
    /// [`MailKeys::address`] of that address.
    pub async fn stop_mails(&self, recipient: &Recipient, confirmed_address_hash: Option<&str>) -> Result<(), Fault> {
        let keys = self.mail_keys();
        let is_theirs = |address: &Address| {
            address.confirmed
                || confirmed_address_hash.is_some_and(|known| keys.address(&address.sealed).as_deref() == Some(known))
        };
        let enrolment = self.store.notification_state(recipient).await?.enrolment;
        let address = enrolment.addresses().find(|address| is_theirs(address));
        // Stops the owner first, because stopping the recipient deletes the address.
        if let Some(owner) = address.and_then(|address| self.owner(address)).filter(|owner| owner != recipient) {
            self.stop_recipient(&owner).await?;
        }
        self.stop_recipient(recipient).await
    }

    /// Unsubscribes one recipient from all emails, and deletes the recipient's address.
    pub async fn stop_recipient(&self, recipient: &Recipient) -> Result<(), Fault> {
        let (keys, now) = (self.mail_keys(), self.clock.now());
        let stop = |state: &mut NotificationState| {
            let confirmed = state.enrolment.address.as_ref().filter(|address| address.confirmed);
            let proven = confirmed.and_then(|address| keys.address(&address.sealed));
            state.stop(now, proven);
        };
        self.store.change_notification_state(recipient, stop).await.map(drop)
    }

    /// The start of the next hour, when limits reset.
    #[must_use]
    pub fn next_hour(&self) -> Timestamp {
        Hour::of(self.clock.now()).after(1).start()
    }

    /// The duration until `time`, rounded up to whole seconds. Zero if `time` has passed.
    #[must_use]
    pub fn until(&self, time: Timestamp) -> Duration {
        Duration::from_secs(u64::try_from(time.since(self.clock.now()).as_millis()).unwrap_or(u64::MAX).div_ceil(1_000))
    }

    /// Updates a recipient's state with `notify`, and returns its result. Sends a queue message if an email becomes due, or due
    /// earlier, or if an earlier message may be lost.
    pub async fn notify(
        &self,
        recipient: &Recipient,
        notify: impl Fn(&mut NotificationState) -> Notified,
    ) -> Result<Notified, Fault> {
        let now = self.clock.now();
        let change = |state: &mut NotificationState| {
            let (before, is_lost) = (state.due(), state.is_overdue(now));
            let notified = notify(state);
            let is_earlier = state.due().is_some_and(|due| before.is_none_or(|before| due < before));
            let needs_message = match notified {
                Notified::No => false,
                Notified::Added => is_lost || is_earlier,
                Notified::Waiting => true,
            };
            (notified, needs_message)
        };
        let (state, (notified, needs_message)) = self.store.change_notification_state(recipient, change).await?;
        if needs_message {
            self.start_delivery(recipient, &state).await?;
        }
        Ok(notified)
    }
}
