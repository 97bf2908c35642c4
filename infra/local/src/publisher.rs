//! Lambda events (`{"Records": […]}`) on their way from the table and the bucket to their subscribers. Each gets the records
//! that pass its filter. Under load, many events wait: they wait as text, which takes a tenth of the memory.

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::event_filter::EventFilter;

/// The events that are published from its beginning on, one for each, also when none of the records passes.
#[derive(Debug)]
pub struct Subscription {
    events: UnboundedReceiver<String>,
    /// How many events had been published before this subscription.
    pub missed: u64,
}

impl Subscription {
    /// The next event. `None` once the publisher is gone.
    pub async fn next(&mut self) -> Option<Value> {
        self.events.recv().await.map(|event| parse(&event))
    }

    /// The next event, if there is one already.
    pub fn next_now(&mut self) -> Option<Value> {
        self.events.try_recv().ok().map(|event| parse(&event))
    }

    /// The next events: those that are there already, at least one and at most `most`. None once the publisher is gone.
    pub async fn next_batch(&mut self, most: usize) -> Vec<Value> {
        let mut batch = Vec::new();
        self.events.recv_many(&mut batch, most).await;
        batch.iter().map(|event| parse(event)).collect()
    }
}

fn parse(event: &str) -> Value {
    serde_json::from_str(event).expect("JSON, as it was published")
}

struct Subscriber {
    events: UnboundedSender<String>,
    filter: EventFilter,
}

#[derive(Default)]
pub(crate) struct Publisher {
    subscribers: Vec<Subscriber>,
    published: u64,
}

impl Publisher {
    pub(crate) fn subscribe(&mut self, filter: EventFilter) -> Subscription {
        let (sender, events) = unbounded_channel();
        self.subscribers.push(Subscriber { events: sender, filter });
        Subscription { events, missed: self.published }
    }

    pub(crate) fn has_subscribers(&mut self) -> bool {
        self.subscribers.retain(|subscriber| !subscriber.events.is_closed());
        !self.subscribers.is_empty()
    }

    pub(crate) fn publish(&mut self, event: &Value) {
        self.published += 1;
        self.subscribers.retain(|Subscriber { events, filter }| events.send(filter.apply(event).to_string()).is_ok());
    }

    pub(crate) fn published(&self) -> u64 {
        self.published
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_subscriber_gets_an_event_for_each_with_the_records_that_pass() {
        let mut publisher = Publisher::default();
        publisher.publish(&json!({ "Records": [{ "n": 0 }] }));
        let mut subscription = publisher.subscribe(EventFilter::new(vec![json!({ "n": [2] })]));
        publisher.publish(&json!({ "Records": [{ "n": 1 }] }));
        publisher.publish(&json!({ "Records": [{ "n": 1 }, { "n": 2 }] }));
        assert_eq!((subscription.missed, publisher.published()), (1, 3));
        assert_eq!(subscription.next_now(), Some(json!({ "Records": [] })));
        assert_eq!(subscription.next().await, Some(json!({ "Records": [{ "n": 2 }] })));
        assert_eq!(subscription.next_now(), None);
        drop(publisher);
        assert_eq!(subscription.next_batch(10).await, [Value::Null; 0]);
    }
}
