//! Publishes records to the triggers that invoke functions with them.

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// An element of the `Records` of Lambda's event.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Increases with each record from a source.
    pub number: i64,
    pub content: Value,
}

/// The next records from a source.
#[derive(Debug, PartialEq)]
pub struct Batch {
    pub records: Vec<Record>,
    /// The number of the last record, even if it was filtered out.
    pub end: i64,
}

/// Receives all records published after it was created.
#[derive(Debug)]
pub struct Subscription {
    records: UnboundedReceiver<Record>,
    /// The number of the last record before this subscription.
    pub start: i64,
}

impl Subscription {
    /// Waits for at least one record, and returns at most `most`. `None` once the publisher is gone.
    pub async fn next(&mut self, most: usize) -> Option<Batch> {
        let mut records = Vec::new();
        self.records.recv_many(&mut records, most).await;
        let end = records.last()?.number;
        Some(Batch { records, end })
    }
}

#[derive(Default)]
pub(crate) struct Publisher {
    subscribers: Vec<UnboundedSender<Record>>,
    published: i64,
}

impl Publisher {
    pub(crate) fn subscribe(&mut self) -> Subscription {
        let (sender, records) = unbounded_channel();
        self.subscribers.push(sender);
        Subscription { records, start: self.published }
    }

    pub(crate) fn publish(&mut self, content: Value) {
        self.published += 1;
        let record = Record { number: self.published, content };
        self.subscribers.retain(|subscriber| subscriber.send(record.clone()).is_ok());
    }

    /// The number of the last published record.
    pub(crate) fn published(&self) -> i64 {
        self.published
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_subscriber_gets_the_records_from_its_beginning_on() {
        let mut publisher = Publisher::default();
        publisher.publish(json!(1));
        let mut subscription = publisher.subscribe();
        publisher.publish(json!(2));
        publisher.publish(json!(3));
        publisher.publish(json!(4));
        assert_eq!((subscription.start, publisher.published()), (1, 4));
        let record = |number| Record { number, content: json!(number) };
        assert_eq!(subscription.next(2).await, Some(Batch { records: vec![record(2), record(3)], end: 3 }));
        assert_eq!(subscription.next(2).await, Some(Batch { records: vec![record(4)], end: 4 }));
        drop(publisher);
        assert_eq!(subscription.next(2).await, None);
    }
}
