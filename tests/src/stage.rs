//! A service whose calls to its table the test puts in order. Two instances make a call only when it is released; the calls of
//! a third one pass. Streams and queues wait until they are drained, the clock until it is moved, and chance repeats itself.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use delivery::Senders;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use server::bucket::Bucket;
use server::engine::{Engine, Follower};
use server::gateway::{Gateway, function};
use server::outbox::{Outbox, SentMail};
use server::queue::Queues;
use server::service;
use server::settings::{DELIVERIES, JOBS, MEDIA};
use server::template::{DEPLOYED, Template};
use shared::app::App;
use shared::aws::call::Transport;
use shared::aws::https;
use shared::aws::outbound::Lookup;
use shared::config::Config;
use shared::domain::ids::Random;
use shared::domain::time::{Clock, Timestamp};
use shared::store;
use tokio::sync::oneshot;

use crate::settings::{SECRET, START, TABLE};
use crate::world::config;
use crate::{Actor, sign};

/// The instance whose calls pass. Those before it wait.
pub const FREE: usize = 2;
const INSTANCES: usize = FREE + 1;
/// How far the clock of each instance is ahead of that of the instance before, so that it is known whose ids are higher.
const AHEAD: i64 = 20;
/// Further attempts at a message, and the time between two of them.
const ATTEMPTS: usize = 5;
const AGAIN: i64 = 60_000;

/// A call to the table: what it does to which items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    operation: String,
    touches: Vec<Touch>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    pk: String,
    /// `None` for all of the partition, or of an index.
    sk: Option<String>,
    writes: bool,
}

impl Call {
    fn read(operation: &str, body: &Value) -> Self {
        let touch = |key: &Value, writes| {
            let text = |name: &str| key[name]["S"].as_str().map(str::to_owned);
            Touch { pk: text("pk").unwrap_or_default(), sk: text("sk"), writes }
        };
        let touches = match operation {
            "GetItem" => vec![touch(&body["Key"], false)],
            "PutItem" => vec![touch(&body["Item"], true)],
            "UpdateItem" | "DeleteItem" => vec![touch(&body["Key"], true)],
            "BatchGetItem" => rows(&body["RequestItems"][TABLE]["Keys"]).iter().map(|key| touch(key, false)).collect(),
            "BatchWriteItem" => {
                let writes = rows(&body["RequestItems"][TABLE]).iter().filter_map(Value::as_object);
                let writes = writes.flat_map(Map::values);
                writes.map(|write| touch(write.get("Item").unwrap_or(&write["Key"]), true)).collect()
            }
            "TransactWriteItems" => {
                let kinds = rows(&body["TransactItems"]).iter().filter_map(Value::as_object).flatten();
                kinds
                    .map(|(kind, write)| touch(write.get("Item").unwrap_or(&write["Key"]), kind != "ConditionCheck"))
                    .collect()
            }
            "Query" if body["IndexName"].is_null() => {
                let pk = body["ExpressionAttributeValues"][":pk"]["S"].as_str().unwrap_or_default().to_owned();
                vec![Touch { pk, sk: None, writes: false }]
            }
            // What is in an index follows from the items of comments. Any item may be in a scan.
            "Query" => vec![Touch { pk: "C#".to_owned(), sk: None, writes: false }],
            _ => vec![Touch { pk: String::new(), sk: None, writes: false }],
        };
        // Counters of requests follow no rule but their own, and each entry of the log has an id of its own.
        let mut touches: Vec<Touch> =
            touches.into_iter().filter(|touch| !touch.pk.starts_with("L#") && touch.pk != "A").collect();
        touches.sort();
        Self { operation: operation.to_owned(), touches }
    }

    /// Whether it matters which of the two is first.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.touches.iter().any(|one| other.touches.iter().any(|two| one.meets(two)))
    }
}

impl Touch {
    fn meets(&self, other: &Self) -> bool {
        let covers = |one: &Self, two: &Self| match &one.sk {
            Some(_) => one.pk == two.pk && one.sk == two.sk,
            None if one.pk == "C#" => two.pk.starts_with("C#") && two.sk.as_deref() == Some("C"),
            None => one.pk.is_empty() || one.pk == two.pk,
        };
        (self.writes || other.writes) && (covers(self, other) || covers(other, self))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        for Touch { pk, sk, writes } in &self.touches {
            write!(f, " {}{pk} {}", if *writes { "!" } else { "" }, sk.as_deref().unwrap_or("*"))?;
        }
        Ok(())
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call, and what lets it go on.
type HeldCall = (Call, oneshot::Sender<()>);

/// The calls that wait, by instance.
#[derive(Default)]
struct Turns {
    is_held: AtomicBool,
    waiting: [Mutex<VecDeque<HeldCall>>; FREE],
}

/// The connection of an instance to the table.
#[derive(Clone)]
struct Line {
    engine: Engine,
    turns: Arc<Turns>,
    instance: usize,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line {}", self.instance)
    }
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { engine, turns, instance } = self.clone();
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
            let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).expect("JSON");
            if let Some(waiting) = turns.waiting.get(instance)
                && turns.is_held.load(Ordering::Relaxed)
            {
                let (release, released) = oneshot::channel();
                locked(waiting).push_back((Call::read(&operation, &body), release));
                // An error means that all calls pass from now on.
                drop(released.await);
            }
            // Chance repeats itself, and the engine would take the next transaction for this one.
            body.as_object_mut().expect("an object").remove("ClientRequestToken");
            let (status, answer) = engine.answer_here(&operation, body.to_string().as_bytes());
            let mut response = HttpResponse::new(status.try_into().expect("a status"), SdkBody::from(answer));
            response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
            Ok(response)
        })
    }
}

/// A message of a queue.
#[derive(Clone, Debug)]
pub struct Message {
    queue: &'static str,
    body: String,
    due: i64,
    attempts: usize,
}

/// The queues, in the order in which messages came.
#[derive(Clone, Default)]
struct Messages {
    sent: Arc<Mutex<Vec<Message>>>,
    time: Arc<AtomicI64>,
}

impl Transport for Messages {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>> {
        let body: Value = serde_json::from_str(request.body()).unwrap_or_default();
        if let Some(message) = body["MessageBody"].as_str() {
            let queue = if body["QueueUrl"] == Queues::url(JOBS) { JOBS } else { DELIVERIES };
            let due = self.time.load(Ordering::Relaxed) + body["DelaySeconds"].as_i64().unwrap_or_default() * 1000;
            locked(&self.sent).push(Message { queue, body: message.to_owned(), due, attempts: 0 });
        }
        Box::pin(async { Ok(http::Response::new(b"{}".to_vec())) })
    }
}

/// The items by key, and the time.
#[derive(Clone, Debug, Default)]
pub struct State {
    items: BTreeMap<String, Value>,
    at: i64,
}

type Apps = Arc<[Mutex<Option<Arc<App>>>; INSTANCES]>;

pub struct Stage {
    engine: Engine,
    follower: tokio::sync::Mutex<Follower>,
    /// What every order begins with.
    kept: State,
    config: Config,
    clients: [Client; INSTANCES],
    gateways: [Gateway; INSTANCES],
    apps: Apps,
    turns: Arc<Turns>,
    messages: Messages,
    senders: Senders,
    outbox: Outbox,
    bucket: Bucket,
}

impl Stage {
    #[must_use]
    pub fn new(settings: &[(&str, &str)]) -> Self {
        let template = Template::parse(DEPLOYED, &[("SignIn", "true"), ("Webhooks", "true")]).expect("a template");
        let engine = Engine::memory().expect("an engine in memory");
        engine.create_table(TABLE, &template.table().expect("a table")).expect("the table is created");
        let filter = template.stream_functions().expect("functions").swap_remove(0).1;
        let follower = engine.follow(TABLE, filter).expect("a table to follow").into();
        let (turns, apps) = (Arc::<Turns>::default(), Apps::default());
        let bucket = Bucket::temporary(MEDIA).expect("a bucket");
        let clients = [0, 1, FREE].map(|instance| {
            let line = SharedHttpConnector::new(Line { engine: engine.clone(), turns: Arc::clone(&turns), instance });
            let http: SharedHttpClient = http_client_fn(move |_, _| line.clone());
            store::client::build(engine.client_builder().http_client(http))
        });
        let gateways = [0, 1, FREE].map(|instance| {
            let functions = service::handlers(&bucket).map(|(name, handler)| {
                let apps = Arc::clone(&apps);
                let answer = move |request| {
                    let (app, handler) = (locked(&apps[instance]).clone().expect("an app"), Arc::clone(&handler));
                    async move { Ok(app.answer(&*handler, request).await) }
                };
                (name.to_owned(), function(answer))
            });
            let (routes, cors) = (template.routes().expect("routes"), template.cors().expect("origins"));
            Gateway::new(routes, functions.into(), Vec::new(), cors).expect("a gateway")
        });
        let messages = Messages { time: Arc::new(START.into()), ..Messages::default() };
        let config = config(settings);
        let app = App::new(
            config.clone(),
            clients[FREE].clone(),
            service::app_queues(&messages),
            clock(&messages, 0),
            Random::system(),
        );
        let queues = service::queue_settings().expect("queues");
        let queues = Queues::temporary(queues, Clock::system(), Random::system()).expect("queues");
        let outbox = Outbox::temporary(queues, DELIVERIES, Clock::system()).expect("a folder for mails");
        let senders = service::senders(&app, &outbox, nowhere()).expect("senders");
        let stage = Self {
            engine,
            follower,
            kept: State::default(),
            config,
            clients,
            gateways,
            apps,
            turns,
            messages,
            senders,
            outbox,
            bucket,
        };
        stage.start_instances();
        stage
    }

    /// New instances, which know nothing of earlier requests.
    fn start_instances(&self) {
        for (instance, place) in self.apps.iter().enumerate() {
            let ahead = AHEAD * i64::try_from(instance).expect("few instances");
            let queues = service::app_queues(&self.messages);
            let clock = clock(&self.messages, ahead);
            let app = App::new(self.config.clone(), self.clients[instance].clone(), queues, clock, repeating(instance));
            *locked(place) = Some(Arc::new(app));
        }
    }

    #[must_use]
    pub fn app(&self, instance: usize) -> Arc<App> {
        locked(&self.apps[instance]).clone().expect("an app")
    }

    #[must_use]
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// A member with these claims, or a guest, at the address and the browser of this number.
    #[must_use]
    pub fn actor(&self, instance: usize, number: u64, claims: Option<Value>) -> Actor {
        let actor = Actor::new(&self.gateways[instance], &self.config.api_prefix, number);
        let Some(mut claims) = claims else { return actor };
        let seconds = self.now() / 1000;
        claims["exp"] = (seconds + 3600).into();
        claims["iat"] = (seconds + claims["iat"].as_i64().unwrap_or_default()).into();
        actor.with_token(&sign(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, SECRET))
    }

    #[must_use]
    pub fn now(&self) -> i64 {
        self.messages.time.load(Ordering::Relaxed)
    }

    pub fn pass(&self, time: Duration) {
        self.messages.time.fetch_add(i64::try_from(time.as_millis()).expect("a short time"), Ordering::Relaxed);
    }

    /// From now on calls wait until they are released, or pass.
    pub fn hold(&self, is_held: bool) {
        self.turns.is_held.store(is_held, Ordering::Relaxed);
        self.turns.waiting.iter().for_each(|waiting| locked(waiting).clear());
    }

    /// The next call of an instance, if it waits.
    #[must_use]
    pub fn waiting(&self, instance: usize) -> Option<Call> {
        locked(&self.turns.waiting[instance]).front().map(|(call, _)| call.clone())
    }

    pub fn release(&self, instance: usize) {
        let next = locked(&self.turns.waiting[instance]).pop_front();
        // An error means that nobody waits for the answer any more.
        let _is_awaited = next.expect("a call that waits").1.send(());
    }

    /// The changes of the table that nobody has handled, as an event.
    pub async fn take_changes(&self) -> Option<Value> {
        let mut follower = self.follower.lock().await;
        let mut records = Vec::new();
        while let Some(batch) = follower.next_now(100).await.expect("a stream") {
            records.extend(batch.records.into_iter().map(|record| record.content));
            follower.handled(batch.end, Vec::new()).await;
        }
        for (number, record) in records.iter_mut().enumerate() {
            record["dynamodb"]["ApproximateCreationDateTime"] = (self.now() / 1000).into();
            record["eventID"] = number.into();
            record["dynamodb"]["SequenceNumber"] = number.to_string().into();
        }
        (!records.is_empty()).then(|| json!({ "Records": records }))
    }

    /// The messages of a queue that nobody has handled.
    #[must_use]
    pub fn take_messages(&self, queue: &str) -> Vec<Message> {
        locked(&self.messages.sent).extract_if(.., |message| message.queue == queue).collect()
    }

    /// Handles these changes, all messages, and whatever follows. The clock moves on for messages that wait. The error is a fault.
    pub async fn drain(&self, mut changes: Option<Value>) -> Result<(), String> {
        loop {
            if changes.is_none() {
                changes = self.take_changes().await;
            }
            if let Some(changes) = changes.take() {
                events::handle(&self.app(FREE), &changes).await.map_err(|fault| fault.chain())?;
                continue;
            }
            let next = {
                let mut sent = locked(&self.messages.sent);
                let next = (0..sent.len()).min_by_key(|place| (sent[*place].due, *place));
                let Some(next) = next else { return Ok(()) };
                sent.remove(next)
            };
            self.messages.time.fetch_max(next.due, Ordering::Relaxed);
            self.handle(FREE, next).await?;
        }
    }

    /// The mail that was sent last.
    #[must_use]
    pub fn last_mail(&self) -> Option<SentMail> {
        self.outbox.mails().expect("the folder of mails can be read").pop()
    }

    /// The messages that nobody has handled, in words.
    #[must_use]
    pub fn messages(&self) -> String {
        format!("{:?}", locked(&self.messages.sent))
    }

    /// Hands a message to the function of its queue. It comes again if it fails, and is a fault if it always does.
    pub async fn handle(&self, instance: usize, message: Message) -> Result<(), String> {
        let event = json!({ "Records": [{ "messageId": "1", "receiptHandle": "1", "body": message.body }] });
        let answer = if message.queue == JOBS {
            jobs::handle(&self.app(instance), &event).await
        } else {
            delivery::handle(&self.app(instance), &self.senders, &event).await
        };
        if !rows(&answer["batchItemFailures"]).is_empty() {
            if message.attempts == ATTEMPTS {
                return Err(format!("{} is given up", message.body));
            }
            let again = Message { attempts: message.attempts + 1, due: self.now() + AGAIN, ..message };
            locked(&self.messages.sent).push(again);
        }
        Ok(())
    }

    /// All items by key.
    #[must_use]
    pub fn items(&self) -> BTreeMap<String, Value> {
        let (mut items, mut body) = (BTreeMap::new(), json!({ "TableName": TABLE, "ConsistentRead": true }));
        loop {
            let mut page = self.ask("Scan", &body);
            let found = page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            items.extend(found.into_iter().map(|item| (key(&item).to_string(), item)));
            if page["LastEvaluatedKey"].is_null() {
                return items;
            }
            body["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        }
    }

    fn ask(&self, operation: &str, body: &Value) -> Value {
        let (status, answer) = self.engine.answer_here(operation, body.to_string().as_bytes());
        let answer = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    #[must_use]
    pub fn state(&self) -> State {
        State { items: self.items(), at: self.now() }
    }

    /// Every order begins with this state.
    pub fn keep(&mut self, state: State) {
        self.kept = state;
    }

    /// Brings back the state that was kept, with new instances.
    pub async fn restore(&self) {
        self.hold(false);
        let (now, kept) = (self.items(), &self.kept.items);
        for (name, item) in &now {
            if !kept.contains_key(name) {
                self.ask("DeleteItem", &json!({ "TableName": TABLE, "Key": key(item) }));
            }
        }
        for (name, item) in kept {
            if now.get(name) != Some(item) {
                self.ask("PutItem", &json!({ "TableName": TABLE, "Item": item }));
            }
        }
        drop(self.take_changes().await);
        locked(&self.messages.sent).clear();
        self.messages.time.store(self.kept.at, Ordering::Relaxed);
        self.start_instances();
    }
}

fn key(item: &Value) -> Value {
    json!({ "pk": item["pk"], "sk": item["sk"] })
}

fn clock(messages: &Messages, ahead: i64) -> Clock {
    let time = Arc::clone(&messages.time);
    Clock::new(move || Timestamp(time.load(Ordering::Relaxed) + ahead))
}

/// No host is found.
fn nowhere() -> Lookup {
    Arc::new(|_| Box::pin(async { Ok(Vec::new()) }))
}

/// Chance that is the same in every order.
fn repeating(instance: usize) -> Random {
    let drawn = AtomicU64::new(u64::try_from(instance).expect("few instances") << 32);
    Random::new(move |bytes| {
        for bytes in bytes.chunks_mut(8) {
            let mut bits = drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bytes.copy_from_slice(&(bits ^ (bits >> 27)).to_be_bytes()[..bytes.len()]);
        }
    })
}
