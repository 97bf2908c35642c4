//! Lambda events (`{"Records": […]}`) on their way from the table and the bucket to their subscribers.

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Debug)]
pub struct Subscription {
    pub events: UnboundedReceiver<Value>,
    /// How many events had been published before this subscription.
    pub missed: u64,
}

#[derive(Default)]
pub(crate) struct Publisher {
    subscribers: Vec<UnboundedSender<Value>>,
    published: u64,
}

impl Publisher {
    pub(crate) fn subscribe(&mut self) -> Subscription {
        let (sender, events) = unbounded_channel();
        self.subscribers.push(sender);
        Subscription { events, missed: self.published }
    }

    pub(crate) fn has_subscribers(&mut self) -> bool {
        self.subscribers.retain(|subscriber| !subscriber.is_closed());
        !self.subscribers.is_empty()
    }

    pub(crate) fn publish(&mut self, event: &Value) {
        self.published += 1;
        self.subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
    }

    pub(crate) fn published(&self) -> u64 {
        self.published
    }
}
