//! A service whose calls to the table run in an order that the test chooses. Calls of two instances wait until the test
//! releases them, tasks wait until it drains them, and the clock moves only when the test moves it. Random numbers
//! don't depend on the order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use delivery::Senders;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use server::engine::{Engine, EventFilter, Follower};
use server::gateway::Gateway;
use server::queue::Queues;
use server::service::{self, Services};
use server::settings::{JOBS, MEDIA};
use server::template::Template;
use shared::app::App;
use shared::aws::call::Transport;
use shared::aws::https;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::{Clock, Timestamp};
use tokio::sync::oneshot;

use crate::settings::{START, TABLE};
use crate::twin::Engines;
use crate::world::config;
use crate::{Actor, privacy};

/// The number of the instance whose calls pass immediately. Calls of lower-numbered instances wait.
pub const FREE: usize = 2;
/// Milliseconds by which each instance's clock is ahead of the previous one's, so that its ids are higher.
const AHEAD: i64 = 20;

/// A call to the table, with prefixes of the keys that it names. The flag marks keys that it writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    operation: String,
    touches: BTreeSet<(String, bool)>,
}

impl Call {
    fn read(operation: &str, body: &Value) -> Self {
        let mut touches = BTreeSet::new();
        match operation {
            "Query" if body["IndexName"].is_null() => {
                let pk = body["ExpressionAttributeValues"][":pk"]["S"].as_str().unwrap_or_default();
                touches.insert((format!("{pk} "), false));
            }
            // Indexes are derived from comment items. A scan may read any item.
            "Query" => drop(touches.insert(("C#".to_owned(), false))),
            "Scan" => drop(touches.insert((String::new(), false))),
            _ => touch(body, !operation.contains("Get"), &mut touches),
        }
        // The order of request counters doesn't matter, and each log entry has a separate id.
        touches.retain(|(key, _)| !key.starts_with("L#") && !key.starts_with("A "));
        Self { operation: operation.to_owned(), touches }
    }

    /// Returns a pause in which other participants finish their calls.
    #[must_use]
    pub fn pause() -> Self {
        Self { operation: "pause".to_owned(), touches: BTreeSet::from([(String::new(), true)]) }
    }

    /// Whether the order of this call and `other` matters.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.touches.iter().any(|one| other.touches.iter().any(|two| meet(one, two)))
    }
}

/// Describes the effects of two participants' calls on shared items. Numbers are replaced by placeholders, so that
/// similar pairs have the same text.
#[must_use]
pub fn in_common([one, other]: [&[(usize, Call)]; 2]) -> String {
    let common = |calls: &[(usize, Call)], others: &[(usize, Call)]| {
        let (mut text, others) = (String::new(), others.iter().flat_map(|(_, call)| &call.touches).collect::<Vec<_>>());
        for (_, call) in calls {
            let touches = call.touches.iter().filter(|touch| others.iter().any(|other| meet(touch, other)));
            text.extend(touches.map(|touch| format!("{} {touch:?};", call.operation)));
        }
        text
    };
    let (text, mut numbers) = (format!("{} + {}", common(one, other), common(other, one)), Vec::new());
    let places = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(|part| {
        let (number, rest) = part.split_at(part.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
        let place = numbers.iter().position(|known| *known == number).unwrap_or(numbers.len());
        numbers.extend((place == numbers.len()).then(|| number.to_owned()));
        format!("{place}{rest}")
    });
    places.collect()
}

/// Whether the order of these accesses matters. An access is a key prefix and a flag for writes.
fn meet((one, writes): &(String, bool), (two, others): &(String, bool)) -> bool {
    (*writes || *others) && (one.starts_with(two) || two.starts_with(one))
}

fn touch(value: &Value, writes: bool, touches: &mut BTreeSet<(String, bool)>) {
    if let (Some(pk), Some(sk)) = (value["pk"]["S"].as_str(), value["sk"]["S"].as_str()) {
        touches.insert((format!("{pk} {sk}."), writes));
        return;
    }
    value.as_array().into_iter().flatten().for_each(|value| touch(value, writes, touches));
    for (name, value) in value.as_object().into_iter().flatten() {
        touch(value, writes && name != "ConditionCheck", touches);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Turns {
    /// Waiting calls by instance, with the channels that release them.
    waiting: [Vec<(Call, oneshot::Sender<()>)>; FREE],
    released: usize,
    made: Vec<(usize, Call)>,
    /// Woken when a call arrives or is made, which happens in separate tasks.
    scheduler: Option<Waker>,
}

impl Turns {
    fn tell(&self) {
        if let Some(scheduler) = &self.scheduler {
            scheduler.wake_by_ref();
        }
    }
}

/// An instance's connection to the table.
#[derive(Clone, Debug)]
struct Line {
    engine: Engine,
    turns: Arc<Mutex<Turns>>,
    instance: usize,
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { engine, turns, instance } = self.clone();
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
            let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).expect("JSON");
            let mut call = Call::read(&operation, &body);
            if instance < FREE {
                let (release, released) = oneshot::channel();
                {
                    let mut turns = locked(&turns);
                    turns.waiting[instance].push((call.clone(), release));
                    turns.tell();
                }
                released.await.expect("the call is released");
            }
            // Random numbers repeat, so the engine would mistake the next transaction for a retry of this one.
            body.as_object_mut().expect("an object").remove("ClientRequestToken");
            let (status, answer) = engine.answer_here(&operation, body.to_string().as_bytes());
            if status != 200 {
                // The call had no effect: it only read a condition, which failed.
                call.touches = call.touches.into_iter().map(|(key, _)| (key, false)).collect();
            }
            if instance < FREE {
                let mut turns = locked(&turns);
                turns.made.push((instance, call));
                turns.tell();
            }
            let mut response = HttpResponse::new(status.try_into().expect("a status"), SdkBody::from(answer));
            response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
            Ok(response)
        })
    }
}

/// An event for a handler: `events`, `jobs` or `delivery`.
#[derive(Clone, Debug)]
pub struct Task {
    due: i64,
    pub handler: &'static str,
    event: Value,
}

/// The unhandled messages, oldest first, and the current time.
#[derive(Clone, Default)]
struct Messages {
    sent: Arc<Mutex<Vec<Task>>>,
    now: Arc<AtomicI64>,
}

impl Transport for Messages {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>> {
        let body: Value = serde_json::from_str(request.body()).unwrap_or_default();
        // The stage has no receiver for webhooks.
        let is_sent = |message: &&str| !message.contains(r#""Type":"Webhook""#);
        if let Some(message) = body["MessageBody"].as_str().filter(is_sent) {
            let handler = if body["QueueUrl"] == Queues::url(JOBS) { "jobs" } else { "delivery" };
            let due = self.now.load(Ordering::Relaxed) + body["DelaySeconds"].as_i64().unwrap_or_default() * 1000;
            let event = json!({ "Records": [{ "messageId": "1", "receiptHandle": "1", "body": message }] });
            locked(&self.sent).push(Task { due, handler, event });
        }
        Box::pin(async { Ok(http::Response::new(b"{}".to_vec())) })
    }
}

/// All changes of the table, and the number that the stream handler has received.
struct Journal {
    follower: Follower,
    records: Vec<Value>,
    handled: usize,
}

/// A point in time without pending tasks: the number of the table's changes so far, and the time.
pub type Mark = (usize, i64);

/// Items before and after changes, by key. `null` for a missing item.
pub type Changes = BTreeMap<String, [Value; 2]>;

pub struct Stage {
    config: Config,
    template: Template,
    turns: Arc<Mutex<Turns>>,
    messages: Messages,
    senders: Senders,
    journal: tokio::sync::Mutex<Journal>,
    pub services: Services,
}

/// An instance of the service without state from earlier requests.
pub struct Instance {
    pub app: Arc<App>,
    gateway: Gateway,
}

impl Instance {
    /// Returns a visitor whose IP address and user agent depend on `number`.
    #[must_use]
    pub fn visitor(&self, number: u64) -> Actor {
        Actor::new(&self.gateway, &self.app.config.api_prefix, number)
    }
}

impl Stage {
    #[must_use]
    pub fn new(settings: &[(&str, &str)]) -> Self {
        privacy::watch_the_log();
        let template = Template::deployed(&[("SignIn", "true"), ("Webhooks", "true")]).expect("a template");
        let engine = Engine::memory().expect("an engine in memory");
        engine.create_table(TABLE, &template.table().expect("a table")).expect("the table is created");
        let follower = engine.follow(TABLE, EventFilter::default()).expect("a table to follow");
        let journal = Journal { follower, records: Vec::new(), handled: 0 }.into();
        let messages = Messages { now: Arc::new(START.into()), ..Messages::default() };
        let (config, queues, client) = (config(settings), service::app_queues(&messages), service::client(&engine));
        let services = Services::temporary(engine, MEDIA).expect("services");
        let app = App::new(config.clone(), client, queues, Clock::system(), Random::system());
        // No host name resolves.
        let nowhere = Arc::new(|_| Box::pin(async { Ok(Vec::new()) }) as _);
        let senders = service::senders(&app, &services.outbox, nowhere).expect("senders");
        Self { config, template, turns: Arc::default(), messages, senders, journal, services }
    }

    #[must_use]
    pub fn instance(&self, instance: usize) -> Instance {
        let (engine, turns) = (self.services.engine.clone(), Arc::clone(&self.turns));
        let line = SharedHttpConnector::new(Line { engine: engine.clone(), turns, instance });
        let client = Engines::Embedded(engine).client_over(line);
        let (time, ahead) = (Arc::clone(&self.messages.now), AHEAD * i64::try_from(instance).expect("few instances"));
        let clock = Clock::new(move || Timestamp(time.load(Ordering::Relaxed) + ahead));
        let queues = service::app_queues(&self.messages);
        let app = Arc::new(App::new(self.config.clone(), client, queues, clock, repeating(instance)));
        let gateway = service::gateway(&app, &self.services, &self.template).expect("a gateway");
        Instance { app, gateway }
    }

    fn now(&self) -> i64 {
        self.messages.now.load(Ordering::Relaxed)
    }

    pub fn pass(&self, time: Duration) {
        self.messages.now.fetch_add(i64::try_from(time.as_millis()).expect("a short time"), Ordering::Relaxed);
    }

    /// Returns the next call of each instance. If an instance has concurrent calls, returns the smallest. `None` until
    /// every released call is made. Wakes `scheduler` when the result may have changed.
    #[must_use]
    pub fn next(&self, scheduler: &Waker) -> Option<[Option<Call>; FREE]> {
        let mut turns = locked(&self.turns);
        turns.scheduler = Some(scheduler.clone());
        turns.waiting.iter_mut().for_each(|waiting| waiting.retain(|(_, release)| !release.is_closed()));
        let next = turns.waiting.each_ref().map(|waiting| waiting.iter().map(|(call, _)| call).min().cloned());
        (turns.released == turns.made.len()).then_some(next)
    }

    /// Lets an instance make its next call or, if `pauses` is set, end its pause.
    pub fn release(&self, instance: usize, pauses: bool) {
        let mut turns = locked(&self.turns);
        turns.released += 1;
        if pauses {
            turns.made.push((instance, Call::pause()));
            return;
        }
        let waiting = &mut turns.waiting[instance];
        let first = (0..waiting.len()).min_by_key(|place| waiting[*place].0.clone()).expect("a call that waits");
        let (_, release) = waiting.remove(first);
        release.send(()).expect("the call waits");
    }

    /// Returns the calls made since the last [`Self::undo`], each with its instance.
    #[must_use]
    pub fn made(&self) -> Vec<(usize, Call)> {
        locked(&self.turns).made.clone()
    }

    async fn journal(&self) -> tokio::sync::MutexGuard<'_, Journal> {
        let mut journal = self.journal.lock().await;
        while let Some(batch) = journal.follower.next_now(1000).await.expect("a stream") {
            journal.records.extend(batch.records.into_iter().map(|record| record.content));
            journal.follower.handled(batch.end, Vec::new()).await;
        }
        journal
    }

    /// Removes and returns the pending tasks.
    pub async fn take(&self) -> Vec<Task> {
        let mut journal = self.journal().await;
        let mut records = journal.records[journal.handled..].to_vec();
        journal.handled = journal.records.len();
        let filter = self.template.stream_functions().expect("functions").swap_remove(0).1;
        records.retain(|record| filter.passes(record));
        for (number, record) in records.iter_mut().enumerate() {
            record["dynamodb"]["ApproximateCreationDateTime"] = (self.now() / 1000).into();
            record["dynamodb"]["SequenceNumber"] = number.to_string().into();
            record["eventID"] = number.into();
        }
        let changed = Task { due: 0, handler: "events", event: json!({ "Records": records }) };
        let changed = (!records.is_empty()).then_some(changed);
        changed.into_iter().chain(locked(&self.messages.sent).drain(..)).collect()
    }

    /// Handles these tasks and all that follow from them, except the tasks of handler `kept`, which it returns.
    /// Advances the clock for tasks that aren't due yet. The error describes a fault.
    pub async fn drain(&self, mut tasks: Vec<Task>, kept: &str) -> Result<Vec<Task>, String> {
        let instance = self.instance(FREE);
        loop {
            tasks.extend(self.take().await);
            let others = (0..tasks.len()).filter(|place| tasks[*place].handler != kept);
            let Some(next) = others.min_by_key(|place| (tasks[*place].due, *place)) else { return Ok(tasks) };
            let next = tasks.remove(next);
            self.messages.now.fetch_max(next.due, Ordering::Relaxed);
            self.handle(&instance.app, &next).await?;
        }
    }

    /// Passes a task to its handler. If the handler fails, the task becomes pending again, and the error describes the
    /// fault.
    pub async fn handle(&self, app: &App, task: &Task) -> Result<(), String> {
        let answer = match task.handler {
            "events" => {
                let fault = events::handle(app, &task.event).await.err();
                json!({ "batchItemFailures": Vec::from_iter(fault.map(|fault| fault.chain())) })
            }
            "jobs" => jobs::handle(app, &task.event).await,
            _ => delivery::handle(app, &self.senders, &task.event).await,
        };
        if answer["batchItemFailures"].as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        locked(&self.messages.sent).push(task.clone());
        Err(format!("{answer}: {task:?}"))
    }

    pub async fn mark(&self) -> Mark {
        (self.journal().await.records.len(), self.now())
    }

    pub async fn changes_since(&self, mark: Mark) -> Changes {
        let mut changes = Changes::new();
        for record in &self.journal().await.records[mark.0..] {
            let change = &record["dynamodb"];
            let images = ["OldImage", "NewImage"].map(|image| change[image].clone());
            let now = images[1].clone();
            changes.entry(change["Keys"].to_string()).or_insert(images)[1] = now;
        }
        changes.retain(|_, [before, after]| before != after);
        changes
    }

    /// Restores items to their state before these changes, or after them if `after` is set.
    pub fn set(&self, changes: &Changes, after: bool) {
        for (key, images) in changes {
            let item = &images[usize::from(after)];
            let (operation, body) = if item.is_null() {
                ("DeleteItem", format!(r#"{{"TableName":"{TABLE}","Key":{key}}}"#))
            } else {
                ("PutItem", format!(r#"{{"TableName":"{TABLE}","Item":{item}}}"#))
            };
            let (status, answer) = self.services.engine.answer_here(operation, body.as_bytes());
            assert_eq!(status, 200, "{operation}: {}", String::from_utf8_lossy(&answer));
        }
    }

    /// Restores the table and the clock to this mark, and drops all pending tasks.
    pub async fn undo(&self, mark: Mark) {
        self.set(&self.changes_since(mark).await, false);
        let mut journal = self.journal().await;
        journal.records.truncate(mark.0);
        journal.handled = mark.0;
        locked(&self.messages.sent).clear();
        self.messages.now.store(mark.1, Ordering::Relaxed);
        *locked(&self.turns) = Turns::default();
    }
}

/// Returns random numbers that don't depend on the number of retries, because draws of each size have a separate
/// sequence.
fn repeating(instance: usize) -> Random {
    let drawn: [AtomicU64; 64] =
        std::array::from_fn(|size| AtomicU64::new((instance as u64) << 32 | (size as u64) << 16));
    Random::new(move |bytes| {
        let drawn = &drawn[bytes.len() % 64];
        for bytes in bytes.chunks_mut(8) {
            let mut bits = drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bytes.copy_from_slice(&(bits ^ (bits >> 27)).to_be_bytes()[..bytes.len()]);
        }
    })
}
