//! Helpers for functions that use webhooks: the key that seals webhook secrets, and messages to the function `delivery`.

use std::time::Duration;

use crate::app::App;
use crate::domain::deliveries::{DueWebhook, Message};
use crate::domain::seal::Seal;
use crate::error::Fault;

impl App {
    #[must_use]
    pub fn webhook_seal(&self) -> Seal {
        Seal::of_webhooks(&self.config.visitor_salt)
    }

    /// Sends the queue message that triggers a webhook delivery after `delay`.
    pub async fn start_webhook(&self, due: DueWebhook, delay: Duration) -> Result<(), Fault> {
        self.deliveries()?.send(&Message::Webhook(due), delay).await
    }
}
