//! Emulates Lambda's event source mappings: invokes a function with batches of records, in order, and retries on
//! failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::account::{ACCOUNT_ID, REGION};
use crate::engine::Follower;
use crate::gateway::BoxFuture;
use crate::publisher::{Batch, Record, Subscription};
use crate::queue::{Handling, Message, QueueError, Queues};

/// A function that is invoked with messages of a queue, and reports those that failed.
pub type QueueFunction = Arc<dyn Fn(Value) -> BoxFuture<Result<Value, lambda_http::Error>> + Send + Sync>;

pub type EventFunction = Arc<dyn Fn(Value) -> BoxFuture<Result<(), lambda_http::Error>> + Send + Sync>;

/// Lambda's default batch size for streams.
const BATCH_SIZE: usize = 100;
/// Maximum attempts to deliver a record alone. AWS retries for longer, but here a failing record blocks the records
/// after it, and the next start retries it anyway.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

pub trait Source: Send + 'static {
    /// The number of the record after which delivery starts.
    fn start(&self) -> i64;

    /// Waits for records, and returns at most `most`. `None` if there will be no more.
    fn next(&mut self, most: usize) -> impl Future<Output = Option<Batch>> + Send;

    /// Records that everything up to `end` was delivered, except the records in `given_up`.
    fn handled(&mut self, end: i64, given_up: Vec<i64>) -> impl Future<Output = ()> + Send;
}

impl Source for Follower {
    fn start(&self) -> i64 {
        self.position()
    }

    async fn next(&mut self, most: usize) -> Option<Batch> {
        Some(Self::next(self, most).await)
    }

    async fn handled(&mut self, end: i64, given_up: Vec<i64>) {
        Self::handled(self, end, given_up).await;
    }
}

impl Source for Subscription {
    fn start(&self) -> i64 {
        self.start
    }

    async fn next(&mut self, most: usize) -> Option<Batch> {
        Self::next(self, most).await
    }

    async fn handled(&mut self, _end: i64, _given_up: Vec<i64>) {}
}

pub struct Target {
    pub name: String,
    pub function: EventFunction,
    /// The queue that receives records after the last failed attempt.
    pub dead_letters: Option<(Queues, String)>,
}

/// A task that is aborted when this is dropped.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Stops the task and waits until it has ended. A task that is only dropped may still be running when the runtime
    /// shuts down, and mistake the shutdown for a failure.
    pub(crate) async fn stop(mut self) {
        self.0.abort();
        // An error means that the task was aborted or had panicked.
        drop((&mut self.0).await);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Stops when dropped.
#[derive(Debug)]
pub struct Trigger {
    handled: watch::Receiver<i64>,
    has_given_up: Arc<AtomicBool>,
    task: Task,
}

impl Trigger {
    #[must_use]
    pub fn start(mut source: impl Source, target: Target) -> Self {
        let (report, handled) = watch::channel(source.start());
        let has_given_up = Arc::<AtomicBool>::default();
        let gave_up = Arc::clone(&has_given_up);
        let task = Task::spawn(async move {
            while let Some(Batch { records, end }) = source.next(BATCH_SIZE).await {
                let given_up = target.deliver(records).await;
                gave_up.fetch_or(!given_up.is_empty(), Ordering::Relaxed);
                source.handled(end, given_up).await;
                report.send_replace(end);
            }
        });
        Self { handled, has_given_up, task }
    }

    /// Waits until each record up to this number was handled or failed its last attempt.
    pub async fn handled(&self, number: i64) {
        // An error means that the task has ended, so no more records will be handled.
        drop(self.handled.clone().wait_for(|handled| *handled >= number).await);
    }

    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    pub async fn stop(self) {
        self.task.stop().await;
    }
}

impl Target {
    /// Delivers the records in order, and returns the numbers of the records that failed every attempt. A failing batch
    /// is split in half, so that a bad record doesn't hold back the others.
    async fn deliver(&self, records: Vec<Record>) -> Vec<i64> {
        let mut given_up = Vec::new();
        // A stack, so the next part is the last element.
        let mut parts = vec![records];
        while let Some(mut part) = parts.pop() {
            match part.as_slice() {
                [] => {}
                [record] => {
                    if let Err(error) = self.invoke_patiently(record).await {
                        self.give_up(record, &error);
                        given_up.push(record.number);
                    }
                }
                _ => {
                    if self.invoke(&part).await.is_err() {
                        let rest = part.split_off(part.len() / 2);
                        parts.extend([rest, part]);
                    }
                }
            }
        }
        given_up
    }

    async fn invoke_patiently(&self, record: &Record) -> Result<(), String> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..ATTEMPTS {
            if self.invoke(std::slice::from_ref(record)).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.invoke(std::slice::from_ref(record)).await
    }

    async fn invoke(&self, records: &[Record]) -> Result<(), String> {
        let records: Vec<&Value> = records.iter().map(|record| &record.content).collect();
        // A panic is a failure like any other, as in Lambda.
        let handled = tokio::spawn((self.function)(json!({ "Records": records }))).await;
        let handled =
            handled.map_err(|panic| panic.to_string()).and_then(|done| done.map_err(|error| error.to_string()));
        handled.inspect_err(|error| tracing::error!(function = self.name, "handling an event failed: {error}"))
    }

    /// Sends a failed record to the dead-letter queue. As in Lambda, the message only refers to a stream record, but
    /// contains any other record in full.
    fn give_up(&self, record: &Record, error: &str) {
        tracing::error!(function = self.name, "gave up on an event; the next start retries it");
        let Some((queues, queue)) = &self.dead_letters else { return };
        let mut message = json!({
            "version": "1.0",
            "timestamp": Timestamp::now().to_string(),
            "requestContext": {
                "functionArn": format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{}", self.name),
                "condition": "RetryAttemptsExhausted",
                "approximateInvokeCount": ATTEMPTS,
            },
            "responsePayload": { "errorMessage": error },
        });
        match &record.content["dynamodb"]["SequenceNumber"] {
            Value::Null => message["requestPayload"] = json!({ "Records": [record.content] }),
            number => {
                message["DDBStreamBatchInfo"] =
                    json!({ "startSequenceNumber": number, "endSequenceNumber": number, "batchSize": 1 });
            }
        }
        if let Err(error) = queues.put(queue, &message) {
            tracing::error!(queue, "the queue failed: {error}");
        }
    }
}

/// The longest time between two reads of a queue. It's short, because a test may set the queues' clock.
const POLL: Duration = Duration::from_millis(200);

/// Maximum batches handled concurrently. Lambda starts with five, and scales up to a thousand if they are slow.
const BATCHES: usize = 100;

/// Invokes a function with the messages of a queue, and deletes those that it handled. Stops when dropped.
#[derive(Debug)]
pub struct QueueTrigger {
    queue: String,
    task: Task,
}

impl QueueTrigger {
    #[must_use]
    pub fn start(queues: Queues, queue: String, batch: usize, function: QueueFunction) -> Self {
        let name = queue.clone();
        let task = Task::spawn(async move {
            // The batches that are being handled, which are aborted with this task.
            let mut batches = JoinSet::new();
            loop {
                while batches.len() >= BATCHES {
                    batches.join_next().await;
                }
                match Received::receive(&queues, &name, batch) {
                    Ok(Some(received)) => {
                        batches.spawn(received.handle(queues.clone(), name.clone(), Arc::clone(&function)));
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

    /// Waits until no message in the queue can be received and none is being handled.
    pub async fn idle(&self, queues: &Queues) {
        queues.idle(&self.queue).await;
    }

    pub async fn stop(self) {
        self.task.stop().await;
    }
}

struct Received {
    messages: Vec<Message>,
    _handling: Handling,
}

impl Received {
    fn receive(queues: &Queues, queue: &str, most: usize) -> Result<Option<Self>, QueueError> {
        let handling = queues.begin_handling(queue)?;
        let messages = queues.receive(queue, most)?;
        Ok((!messages.is_empty()).then_some(Self { messages, _handling: handling }))
    }

    /// Handles the messages, and deletes those that succeeded. Failed messages become visible again later.
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

/// A message in the form of Lambda's event.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

    use http::StatusCode;
    use shared::domain::ids::Random;
    use shared::domain::time::{Clock, Timestamp};
    use tokio::sync::Barrier;
    use tokio::time::Instant;

    use super::*;
    use crate::publisher::Publisher;
    use crate::queue::QueueSettings;

    fn target(function: EventFunction) -> Target {
        Target { name: "test".to_owned(), function, dead_letters: None }
    }

    #[tokio::test]
    async fn records_arrive_in_order_and_in_batches() {
        let mut publisher = Publisher::default();
        let records = publisher.subscribe();
        for n in 0..250 {
            publisher.publish(json!(n));
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let function: EventFunction = {
            let seen = Arc::clone(&seen);
            Arc::new(move |event| {
                seen.lock().unwrap().push(event["Records"].as_array().unwrap().clone());
                Box::pin(async { Ok(()) })
            })
        };
        let trigger = Trigger::start(records, target(function));
        trigger.handled(250).await;
        let batches = seen.lock().unwrap();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        assert!(batches.iter().flatten().map(|n| n.as_u64().unwrap()).eq(0..250));
        assert!(!trigger.has_given_up());
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_always_fails_does_not_block_the_rest_of_its_batch() {
        const BAD: u64 = 37;
        let mut publisher = Publisher::default();
        let records = publisher.subscribe();
        for n in 0..100 {
            publisher.publish(json!({ "n": n }));
        }
        let settings = QueueSettings { name: "Dead".to_owned(), visibility: Duration::from_secs(30), redrive: None };
        let queues = Queues::temporary(vec![settings], Clock::system(), Random::system()).unwrap();
        let handled = Arc::new(Mutex::new(Vec::new()));
        let function: EventFunction = {
            let handled = Arc::clone(&handled);
            Arc::new(move |event| {
                let records = event["Records"].as_array().unwrap();
                let numbers: Vec<_> = records.iter().map(|record| record["n"].as_u64().unwrap()).collect();
                if numbers.contains(&BAD) {
                    return Box::pin(async { Err("bad".into()) });
                }
                handled.lock().unwrap().extend(numbers);
                Box::pin(async { Ok(()) })
            })
        };
        let target = Target { dead_letters: Some((queues.clone(), "Dead".to_owned())), ..target(function) };
        let trigger = Trigger::start(records, target);
        trigger.handled(100).await;
        assert!(handled.lock().unwrap().iter().copied().eq((0..100).filter(|n| *n != BAD)));
        assert!(trigger.has_given_up());
        let message: Value = serde_json::from_str(&queues.bodies("Dead").unwrap()[0]).unwrap();
        assert_eq!(message["requestPayload"]["Records"][0]["n"], BAD);
        assert_eq!(message["responsePayload"]["errorMessage"], "bad");
    }

    #[tokio::test]
    async fn waiting_batches_do_not_block_other_batches() {
        const WAITING: usize = 20;
        let settings = QueueSettings { name: "Test".to_owned(), visibility: Duration::from_mins(10), redrive: None };
        let queues = Queues::temporary(vec![settings], Clock::system(), Random::system()).unwrap();
        for _ in 0..WAITING {
            let message = json!({ "QueueUrl": Queues::url("Test"), "MessageBody": "x" }).to_string();
            assert_eq!(queues.answer("SendMessage", message.as_bytes()).0, StatusCode::OK);
        }
        // Each message waits until all are being handled.
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
    async fn a_message_that_a_clock_of_a_test_makes_visible_is_handled_at_once() {
        let now = Arc::new(AtomicI64::new(0));
        let clock = Clock::new({
            let now = Arc::clone(&now);
            move || Timestamp(now.load(Ordering::Relaxed))
        });
        let settings = QueueSettings { name: "Test".to_owned(), visibility: Duration::from_mins(10), redrive: None };
        let queues = Queues::temporary(vec![settings], clock, Random::system()).unwrap();
        let function: QueueFunction = Arc::new(|_| Box::pin(async { Ok(json!({ "batchItemFailures": [] })) }));
        let trigger = QueueTrigger::start(queues.clone(), "Test".to_owned(), 1, function);
        let message = json!({ "QueueUrl": Queues::url("Test"), "MessageBody": "x", "DelaySeconds": 60 }).to_string();
        assert_eq!(queues.answer("SendMessage", message.as_bytes()).0, StatusCode::OK);
        // By now, the trigger is waiting for a message.
        tokio::time::sleep(POLL / 2).await;
        let before = Instant::now();
        now.store(60_000, Ordering::Relaxed);
        trigger.idle(&queues).await;
        assert_eq!(queues.bodies("Test").unwrap(), [""; 0]);
        assert_eq!(before.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_record_is_tried_again_and_never_stops_the_next() {
        let mut publisher = Publisher::default();
        let records = publisher.subscribe();
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
        let trigger = Trigger::start(records, target(function));
        for n in 0..3 {
            publisher.publish(json!(n));
            trigger.handled(n + 1).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 2 + ATTEMPTS + 1);
    }
}
