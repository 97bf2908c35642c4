//! Lambda's event source mappings: invoke a function with events in order, in batches, and retry when it fails.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::account::{ACCOUNT_ID, REGION};
use crate::gateway::BoxFuture;
use crate::publisher::Subscription;
use crate::queue::{Handling, Message, QueueError, Queues};

/// A function that is invoked with messages of a queue, and answers which of them failed.
pub type QueueFunction = Arc<dyn Fn(Value) -> BoxFuture<Result<Value, lambda_http::Error>> + Send + Sync>;

/// A function that is invoked with events.
pub type EventFunction = Arc<dyn Fn(Value) -> BoxFuture<Result<(), lambda_http::Error>> + Send + Sync>;

/// Lambda's default for streams.
const BATCH_SIZE: usize = 100;
/// Lambda retries ten times and then sends the batch to the dead letters. Here a failing batch blocks the events behind it,
/// so it is retried less.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Stops when dropped.
#[derive(Debug)]
pub struct Trigger {
    handled: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Trigger {
    #[must_use]
    pub fn start(name: String, mut events: Subscription, function: EventFunction) -> Self {
        let (report, handled) = watch::channel(events.missed);
        let task = tokio::spawn(async move {
            loop {
                let batch = events.next_batch(BATCH_SIZE).await;
                let count = batch.len();
                if count == 0 {
                    return;
                }
                let records: Vec<Value> =
                    batch.into_iter().filter_map(|event| event.get("Records")?.as_array().cloned()).flatten().collect();
                if !records.is_empty() {
                    deliver(&name, &function, json!({ "Records": records })).await;
                }
                report.send_modify(|handled| *handled += count as u64);
            }
        });
        Self { handled, task }
    }

    /// Waits until this many events have been handled. The events before the subscription count as handled.
    pub async fn handled(&self, count: u64) {
        // An error means that the task has ended and will handle no more events.
        drop(self.handled.clone().wait_for(|handled| *handled >= count).await);
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How often a queue is read at least. The clock of the queues may be set by a test.
const POLL: Duration = Duration::from_millis(200);

/// Batches that are handled at once. Lambda begins with five and comes to a thousand when they are slow.
const BATCHES: usize = 100;

/// Invokes a function with the messages of a queue, and deletes those that it handled. Stops when dropped.
#[derive(Debug)]
pub struct QueueTrigger {
    queue: String,
    task: JoinHandle<()>,
}

impl QueueTrigger {
    #[must_use]
    pub fn start(queues: Queues, queue: String, batch: usize, function: QueueFunction) -> Self {
        let name = queue.clone();
        let task = tokio::spawn(async move {
            // Those that are being handled; aborted with this task.
            let mut batches = JoinSet::new();
            loop {
                while batches.len() >= BATCHES {
                    batches.join_next().await;
                }
                match Batch::receive(&queues, &name, batch) {
                    Ok(Some(batch)) => {
                        batches.spawn(batch.handle(queues.clone(), name.clone(), Arc::clone(&function)));
                    }
                    Ok(None) => queues.wait(&name, POLL).await,
                    Err(error) => {
                        tracing::error!(queue = name, "the queue failed: {error}");
                        tokio::time::sleep(POLL).await;
                    }
                }
                while batches.try_join_next().is_some() {}
            }
        });
        Self { queue, task }
    }

    /// Waits until no message of the queue can be received and none is being handled.
    pub async fn idle(&self, queues: &Queues) {
        queues.idle(&self.queue).await;
    }
}

impl Drop for QueueTrigger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Messages that were received together.
struct Batch {
    messages: Vec<Message>,
    _handling: Handling,
}

impl Batch {
    /// `None` when there are no messages.
    fn receive(queues: &Queues, queue: &str, most: usize) -> Result<Option<Self>, QueueError> {
        let handling = queues.begin_handling(queue)?;
        let messages = queues.receive(queue, most)?;
        Ok((!messages.is_empty()).then_some(Self { messages, _handling: handling }))
    }

    /// Messages that failed become visible again later.
    async fn handle(self, queues: Queues, queue: String, function: QueueFunction) {
        let records: Vec<Value> = self.messages.iter().map(|message| record(&queue, message)).collect();
        // A panic is a failure like any other, as in Lambda.
        let answer = match tokio::spawn(function(json!({ "Records": records }))).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!(queue, "handling messages failed: {error}");
                return;
            }
            Err(panic) => {
                tracing::error!(queue, "handling messages failed: {panic}");
                return;
            }
        };
        let failures = answer["batchItemFailures"].as_array().map(Vec::as_slice).unwrap_or_default();
        for message in &self.messages {
            if failures.iter().any(|failure| failure["itemIdentifier"] == *message.id) {
                continue;
            }
            if let Err(error) = queues.delete(&queue, message) {
                tracing::error!(queue, "the queue failed: {error}");
            }
        }
    }
}

/// A message as in Lambda's event.
fn record(queue: &str, message: &Message) -> Value {
    json!({
        "messageId": message.id,
        "receiptHandle": message.receipt(),
        "body": message.body,
        "attributes": message.attributes(),
        "messageAttributes": {},
        "md5OfBody": message.md5(),
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue}"),
        "awsRegion": REGION,
    })
}

async fn deliver(name: &str, function: &EventFunction, event: Value) {
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        // A panic is a failure like any other, as in Lambda.
        let error = match tokio::spawn(function(event.clone())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.to_string(),
        };
        tracing::error!(function = name, attempt, "handling an event failed: {error}");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use http::StatusCode;
    use shared::domain::ids::Random;
    use shared::domain::time::Clock;
    use tokio::sync::Barrier;

    use super::*;
    use crate::event_filter::EventFilter;
    use crate::publisher::Publisher;
    use crate::queue::QueueSettings;

    #[tokio::test]
    async fn records_arrive_in_order_and_in_batches() {
        let mut publisher = Publisher::default();
        let events = publisher.subscribe(EventFilter::default());
        for n in 0..250 {
            publisher.publish(&json!({"Records": [n]}));
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let function: EventFunction = {
            let seen = Arc::clone(&seen);
            Arc::new(move |event| {
                seen.lock().unwrap().push(event["Records"].as_array().unwrap().clone());
                Box::pin(async { Ok(()) })
            })
        };
        let trigger = Trigger::start("test".to_owned(), events, function);
        trigger.handled(250).await;
        let batches = seen.lock().unwrap();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        assert!(batches.iter().flatten().map(|n| n.as_u64().unwrap()).eq(0..250));
    }

    #[tokio::test]
    async fn batches_that_wait_hold_up_no_other() {
        const WAITING: usize = 20;
        let settings = QueueSettings { name: "Test".to_owned(), visibility: Duration::from_mins(10), redrive: None };
        let queues = Queues::temporary(vec![settings], Clock::system(), Random::system()).unwrap();
        for _ in 0..WAITING {
            let message = json!({ "QueueUrl": Queues::url("Test"), "MessageBody": "x" }).to_string();
            assert_eq!(queues.answer("SendMessage", message.as_bytes()).await.0, StatusCode::OK);
        }
        // Each waits until all are being handled.
        let all = Arc::new(Barrier::new(WAITING));
        let function: QueueFunction = Arc::new(move |_| {
            let all = Arc::clone(&all);
            Box::pin(async move {
                all.wait().await;
                Ok(json!({ "batchItemFailures": [] }))
            })
        });
        let trigger = QueueTrigger::start(queues.clone(), "Test".to_owned(), 1, function);
        trigger.idle(&queues).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_batch_is_tried_again_and_never_stops_the_next() {
        let mut publisher = Publisher::default();
        let events = publisher.subscribe(EventFilter::default());
        let calls = Arc::new(AtomicU32::new(0));
        let function: EventFunction = {
            let calls = Arc::clone(&calls);
            Arc::new(move |event| {
                let call = calls.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    match (event["Records"][0].as_u64(), call) {
                        (Some(0), 0) => panic!("the first time"),
                        (Some(1), _) => Err("always".into()),
                        _ => Ok(()),
                    }
                })
            })
        };
        let trigger = Trigger::start("test".to_owned(), events, function);
        for n in 0..3 {
            publisher.publish(&json!({"Records": [n]}));
            trigger.handled(n + 1).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 2 + ATTEMPTS + 1);
    }
}
