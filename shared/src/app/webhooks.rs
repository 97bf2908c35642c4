//! Webhooks, as far as several functions have to do with them: messages to the function `delivery`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::domain::seal::Seal;
use crate::domain::webhook::{EndpointId, Happening, MessageId};
use crate::error::Fault;

/// A message of the queue `Deliveries`: an attempt at this delivery may be due. It may be delivered twice, and late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueWebhook {
    pub webhook: EndpointId,
    pub message: MessageId,
    #[serde(flatten)]
    pub happening: Happening,
}

impl App {
    /// What seals the secrets of webhooks.
    #[must_use]
    pub fn webhook_seal(&self) -> Seal {
        Seal::of_webhooks(&self.config.visitor_salt)
    }

    /// Sends a message about a delivery.
    ///
    /// # Errors
    ///
    /// When the queue does not take it.
    pub async fn start_webhook(&self, due: &DueWebhook, delay: Duration) -> Result<(), Fault> {
        let queue = self.queues.deliveries.as_ref();
        let queue = queue.ok_or_else(|| Fault::new("telling a webhook", "DELIVERIES_QUEUE_URL is not set"))?;
        queue.send(due, delay).await
    }
}
