//! Faults between the service and its table, by a seeded plan: nothing is lost, nothing doubled, every count is right in the
//! end, and every error is in the envelope. `FAULTS_SECONDS` makes it more than the quick run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::Method;
use local::engine::Engine;
use serde_json::{Value, json};
use shared::routes::ROUTES;
use shared::store;

use crate::replica::{Replica, is_eventual};
use crate::world::{Answer, Person, World};

const WRITERS: u64 = 16;
/// In a thousand, of each kind.
const RATE: u64 = 50;
/// Comments that must be written to show anything; a slow machine takes longer than asked for.
const ENOUGH: usize = 20;
const PATIENCE: Duration = Duration::from_mins(1);
/// No answer may ask the table more often: it tries a write ten times, each with two reads and ten attempts at most. Trips are
/// counted, as time depends on the machine.
const MOST_TRIPS: u32 = 130;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Throttled,
    Conflict,
    Broken,
    TimedOut,
    /// The answer gets lost, but what was asked is done.
    Dropped,
    /// Some of a batch is left over.
    Partial,
}

const FAULTS: [Fault; 6] =
    [Fault::Throttled, Fault::Conflict, Fault::Broken, Fault::TimedOut, Fault::Dropped, Fault::Partial];

/// In front of the engine.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    engine: Engine,
    /// What indexes and eventually consistent reads of the table see.
    replica: Option<Arc<tokio::sync::Mutex<Replica>>>,
    missing: Option<&'static str>,
    /// The next answer about an item whose partition begins so gets lost.
    losing: Arc<Mutex<Option<&'static str>>>,
    /// How many single updates of comments are still to meet a transaction.
    conflicts: Arc<AtomicU64>,
    seed: u64,
    asked: Arc<AtomicU64>,
    on: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
}

impl Faulty {
    pub(crate) fn new(engine: Engine, seed: u64) -> Self {
        let (asked, on, made) = (Arc::default(), Arc::new(AtomicBool::new(true)), Arc::default());
        Self {
            engine,
            replica: None,
            missing: None,
            losing: Arc::default(),
            conflicts: Arc::default(),
            seed,
            asked,
            on,
            made,
        }
    }

    /// Without faults.
    pub(crate) fn calm(self) -> Self {
        self.on.store(false, Ordering::Relaxed);
        self
    }

    /// The next updates of comments meet a transaction, and nothing else fails.
    fn with_conflicts(self, count: u64) -> Self {
        self.on.store(false, Ordering::Relaxed);
        self.conflicts.store(count, Ordering::Relaxed);
        self
    }

    /// Fails at every item whose partition begins so, and else at nothing.
    fn without(mut self, partition: &'static str) -> Self {
        self.on.store(false, Ordering::Relaxed);
        self.missing = Some(partition);
        self
    }

    /// Loses the next answer about an item whose partition begins so, and else nothing.
    fn losing(self, partition: &'static str) -> Self {
        self.on.store(false, Ordering::Relaxed);
        *self.losing.lock().unwrap() = Some(partition);
        self
    }

    /// With indexes and eventually consistent reads that lag behind the table, each item by a time of its own up to `most`.
    pub(crate) fn lagging(mut self, most: Duration) -> Self {
        self.replica = Some(Arc::new(tokio::sync::Mutex::new(Replica::of(&self.engine, most, self.seed))));
        self
    }

    /// As [`Replica::hold`].
    pub(crate) async fn hold(&self, keys: Vec<String>) {
        self.replica.as_ref().unwrap().lock().await.hold(keys).await;
    }

    /// With the patience of the functions' own client.
    pub(crate) fn client(&self) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        let http: SharedHttpClient = http_client_fn(move |_, _| connector.clone());
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(Duration::from_secs(3))
            .operation_timeout(Duration::from_secs(9));
        let config = self.engine.client_builder().http_client(http);
        let config = config.retry_config(RetryConfig::standard().with_max_attempts(3)).timeout_config(timeouts.build());
        store::client::build(config)
    }

    /// The fault this request meets, if any.
    fn next(&self) -> Option<Fault> {
        if !self.on.load(Ordering::Relaxed) {
            return None;
        }
        let mut bits = self.seed ^ self.asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let place = usize::try_from((bits ^ (bits >> 31)) % 1000 / RATE).unwrap_or(usize::MAX);
        FAULTS.get(place).copied()
    }

    async fn answer(self, mut request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let missing = self.missing.is_some_and(|partition| body.contains(&format!("{{\"S\":\"{partition}")));
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let conflict = operation == "UpdateItem" && body.contains("{\"S\":\"C#");
        let conflict = conflict
            && self.conflicts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let about = |partition: &mut &str| body.contains(&format!("{{\"S\":\"{partition}"));
        let lost = self.losing.lock().unwrap().take_if(about).is_some();
        let fault = if missing {
            Some(Fault::Broken)
        } else if lost {
            Some(Fault::Dropped)
        } else if conflict {
            Some(Fault::Conflict)
        } else {
            self.next()
        };
        if fault.is_some() {
            self.made.fetch_add(1, Ordering::Relaxed);
        }
        match fault {
            Some(Fault::Throttled) => {
                return Ok(refusal(400, &json!({ "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException" })));
            }
            Some(Fault::Broken) => {
                return Ok(refusal(500, &json!({ "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError" })));
            }
            Some(Fault::Conflict) if operation == "TransactWriteItems" => {
                let body: Value =
                    serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
                let count = body["TransactItems"].as_array().map_or(1, Vec::len);
                let mut reasons = vec![json!({ "Code": "None" }); count];
                reasons[count - 1] = json!({ "Code": "TransactionConflict" });
                return Ok(refusal(
                    400,
                    &json!({
                        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                        "CancellationReasons": reasons,
                    }),
                ));
            }
            Some(Fault::Conflict) if matches!(operation, "UpdateItem" | "PutItem") => {
                return Ok(refusal(
                    400,
                    &json!({ "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException" }),
                ));
            }
            Some(Fault::TimedOut) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Err(ConnectorError::timeout("no answer in time".into()));
            }
            Some(Fault::Partial) => return self.partial(operation, request).await,
            _ => {}
        }
        let engine = match &self.replica {
            Some(replica) if is_eventual(operation, &body) => replica.lock().await.now().await,
            _ => self.engine.clone(),
        };
        let answer = engine.call(take(&mut request)).await?;
        match fault {
            Some(Fault::Dropped) => Err(ConnectorError::io("the connection was reset".into())),
            _ => Ok(answer),
        }
    }

    /// Does the first half of a batch and hands the other back.
    async fn partial(self, operation: &str, mut request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        let mut left = body["RequestItems"].clone();
        let halved = match operation {
            "BatchGetItem" => halve(&mut body["RequestItems"], &mut left, |table| &mut table["Keys"]),
            "BatchWriteItem" => halve(&mut body["RequestItems"], &mut left, |table| table),
            _ => false,
        };
        if !halved {
            return self.engine.call(take(&mut request)).await;
        }
        *request.body_mut() = SdkBody::from(body.to_string());
        let answer = self.engine.call(take(&mut request)).await?;
        let mut body: Value = serde_json::from_slice(answer.body().bytes().unwrap_or_default()).unwrap_or_default();
        body[field] = left;
        Ok(refusal(200, &body))
    }
}

/// False when there is too little to halve.
fn halve(done: &mut Value, left: &mut Value, list: fn(&mut Value) -> &mut Value) -> bool {
    let (Some(done), Some(left)) = (done.as_object_mut(), left.as_object_mut()) else { return false };
    let mut halved = false;
    for (table, done) in done.iter_mut() {
        let (Some(done), Some(left)) = (list(done).as_array_mut(), left.get_mut(table)) else { return false };
        let half = done.len() / 2;
        if let Some(left) = list(left).as_array_mut() {
            left.drain(..half);
        }
        done.truncate(half);
        halved = half > 0;
    }
    halved
}

fn take(request: &mut HttpRequest) -> HttpRequest {
    std::mem::replace(request, HttpRequest::new(SdkBody::empty()))
}

fn refusal(status: u16, body: &Value) -> HttpResponse {
    let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

impl HttpConnector for Faulty {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().answer(request))
    }
}

/// What the writers were told.
#[derive(Default)]
struct Told {
    /// By its body, which no two share.
    created: BTreeMap<String, u64>,
    deleted: Vec<u64>,
    answers: BTreeMap<u16, u64>,
    most_trips: u32,
}

struct Writer {
    person: Person,
    number: u64,
    parents: Arc<Mutex<Vec<u64>>>,
    told: Arc<Mutex<Told>>,
}

impl Writer {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let answer = self.person.call(method, path, body).await;
        let mut told = self.told.lock().unwrap();
        told.most_trips = told.most_trips.max(answer.trips);
        *told.answers.entry(answer.status).or_default() += 1;
        if answer.status >= 400 {
            assert!(
                matches!(answer.status, 404 | 422 | 409 | 500 | 503),
                "{} {path}: {:#}",
                answer.status,
                answer.json
            );
            assert!(answer.json["code"].is_string() && answer.json["errors"].is_object(), "{path}: {:#}", answer.json);
            // What passes is no fault of ours.
            assert_ne!(answer.status, 500, "{path}: {:#}", answer.json);
        }
        answer
    }

    fn too_little(&self) -> bool {
        self.told.lock().unwrap().created.len() <= ENOUGH
    }

    async fn write(&self, until: Instant) {
        let mut own = Vec::new();
        let mut turn = 0_usize;
        while Instant::now() < until || (self.too_little() && Instant::now() < until + PATIENCE) {
            turn += 1;
            let parents = self.parents.lock().unwrap().clone();
            let any = parents[(turn * 7 + usize::try_from(self.number).unwrap()) % parents.len()];
            let body = format!("{} {turn}{}", self.number, if turn.is_multiple_of(5) { " doubtful" } else { "" });
            let parent = (!turn.is_multiple_of(4)).then_some(any);
            let comment = json!({ "body": body, "parent_id": parent });
            let answer = self.ask(Method::POST, "posts/1/comments", Some(comment)).await;
            if answer.status == 201 {
                own.push(answer.id());
                self.told.lock().unwrap().created.insert(body, answer.id());
                if parent.is_none() && turn.is_multiple_of(8) {
                    self.parents.lock().unwrap().push(answer.id());
                }
            }
            self.ask(Method::POST, &format!("comments/{any}/like"), None).await;
            self.ask(Method::GET, "posts/1/comments?sort=most_replied", None).await;
            let newest = own.last().copied().unwrap_or(any);
            match turn % 6 {
                0 => drop(
                    self.ask(Method::POST, &format!("comments/{any}/report"), Some(json!({ "reason": "spam" }))).await,
                ),
                1 if self.person.moderator => {
                    self.ask(Method::POST, &format!("comments/{newest}/reject"), None).await;
                    self.ask(Method::POST, &format!("comments/{newest}/approve"), None).await;
                }
                2 if self.person.moderator => drop(self.ask(Method::POST, &format!("comments/{any}/pin"), None).await),
                3 => {
                    // A parent of others is spared, so that what was answered can be looked for.
                    let spared = self.parents.lock().unwrap().contains(&newest);
                    if !spared && self.ask(Method::DELETE, &format!("comments/{newest}"), None).await.status < 500 {
                        own.pop();
                        self.told.lock().unwrap().deleted.push(newest);
                    } else if !spared {
                        // It may be gone or not.
                        self.told.lock().unwrap().created.retain(|_, id| *id != newest);
                        own.pop();
                    }
                }
                _ => drop(self.ask(Method::GET, &format!("comments/{any}/replies?cursor="), None).await),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_faults_nothing_is_lost_or_doubled_and_counts_are_right() {
    let engine = Engine::memory().unwrap();
    keeps_its_promises(&engine, Faulty::new(engine.clone(), 7)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nor_are_they_when_indexes_lag_besides() {
    let engine = Engine::memory().unwrap();
    keeps_its_promises(&engine, Faulty::new(engine.clone(), 8).lagging(Duration::from_secs(1))).await;
}

#[expect(clippy::disallowed_methods, reason = "a setting of the test's own")]
async fn keeps_its_promises(engine: &Engine, faulty: Faulty) {
    let seconds = std::env::var("FAULTS_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(3);
    faulty.on.store(false, Ordering::Relaxed);
    let world = World::on(engine.clone(), faulty.client(), &[("SVC_SPAM_REVIEW", "doubtful")]);
    let first = world.user(1, "Ada").write("posts/1", None, "the first").await.ok(201).id();
    let (parents, told) = (Arc::new(Mutex::new(vec![first])), Arc::<Mutex<Told>>::default());
    faulty.on.store(true, Ordering::Relaxed);

    let until = Instant::now() + Duration::from_secs(seconds);
    let writers = (0..WRITERS).map(|number| {
        let name = format!("Writer {number}");
        let id = 100 + number;
        let person = if number % 4 == 0 { world.moderator(id, &name) } else { world.user(id, &name) };
        let writer = Writer { person, number, parents: Arc::clone(&parents), told: Arc::clone(&told) };
        tokio::spawn(async move { writer.write(until).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    faulty.on.store(false, Ordering::Relaxed);
    world.stack.wait_until_idle().await;

    let told = std::mem::take(&mut *told.lock().unwrap());
    let made = faulty.made.load(Ordering::Relaxed);
    eprintln!("{made} faults; answers {:?}; at most {} trips", told.answers, told.most_trips);
    assert!(made > 50 && told.created.len() > ENOUGH, "too little happened");
    assert!((1..=MOST_TRIPS).contains(&told.most_trips), "an answer took {} trips", told.most_trips);
    let stored = bodies(&world).await;
    for (body, id) in told.created.iter().filter(|(_, id)| !told.deleted.contains(id)) {
        assert_eq!(stored.get(body), Some(&vec![*id]), "{body}");
    }
    for (body, ids) in &stored {
        assert_eq!(ids.len(), 1, "{body}: {ids:?}");
        assert!(!told.deleted.contains(&ids[0]), "{body} was deleted");
    }
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn what_hangs_below_a_deleted_comment_goes_though_its_index_does_not_name_it_yet() {
    let engine = Engine::memory().unwrap();
    let faulty = Faulty::new(engine.clone(), 9).lagging(Duration::from_secs(1));
    faulty.on.store(false, Ordering::Relaxed);
    let world = World::on(engine, faulty.client(), &[]);
    let ada = world.user(7, "Ada");
    for _ in 0..3 {
        let parent = ada.write("posts/1", None, "parent").await.ok(201).id();
        let reply = ada.write("posts/1", Some(parent), "reply").await.ok(201).id();
        for above in [parent, parent, parent, parent, reply, reply] {
            ada.write("posts/1", Some(above), "below").await.ok(201);
        }
        ada.call(Method::DELETE, &format!("comments/{parent}"), None).await.ok(204);
    }
    world.stack.wait_until_idle().await;
    assert_eq!(bodies(&world).await, BTreeMap::new());
    assert_eq!(world.findings().await, [""; 0]);
}

#[tokio::test]
async fn an_edit_that_meets_a_transaction_is_tried_again() {
    let engine = Engine::memory().unwrap();
    let faulty = Faulty::new(engine.clone(), 12).with_conflicts(2);
    let world = World::on(engine, faulty.client(), &[]);
    let ada = world.user(7, "Ada");
    let id = ada.write("posts/1", None, "first").await.ok(201).id();
    let edited = ada.call(Method::PATCH, &format!("comments/{id}"), Some(json!({ "body": "second" }))).await.ok(200);
    assert_eq!(edited.json["data"]["body"], "second");
    assert_eq!(faulty.conflicts.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_text_is_no_repeat_because_an_answer_of_the_table_got_lost() {
    let engine = Engine::memory().unwrap();
    let faulty = Faulty::new(engine.clone(), 13).losing("P#");
    let world = World::on(engine, faulty.client(), &[("SVC_SPAM_REVIEW_REPEATS", "true")]);
    let ada = world.user(7, "Ada");
    let first = ada.write("posts/1", None, "once").await.ok(201);
    assert_eq!((faulty.made.load(Ordering::Relaxed), &first.json["data"]["is_approved"]), (1, &json!(true)));
    let second = ada.write("posts/1", None, "once").await.ok(201);
    assert_eq!(second.json["data"]["is_approved"], false);
}

#[tokio::test]
async fn without_the_limiters_rows_reads_are_answered_and_writes_are_not_taken() {
    let engine = Engine::memory().unwrap();
    let faulty = Faulty::new(engine.clone(), 10).without("L#");
    let world = World::on(engine, faulty.client(), &[("SVC_READ_LIMIT", "300")]);
    let ada = world.user(7, "Ada");
    for _ in 0..25 {
        ada.get("posts/1/comments").await.ok(200);
    }
    let answer = ada.write("posts/1", None, "lost?").await.ok(503);
    assert_eq!((&answer.json["code"], &answer.json["errors"]), (&json!("unavailable"), &json!({})));
    assert_eq!(bodies(&world).await, BTreeMap::new());
}

#[tokio::test]
async fn without_the_table_every_route_says_so_in_the_envelope() {
    let engine = Engine::memory().unwrap();
    let world = World::on(engine.clone(), Faulty::new(engine, 11).without("").client(), &[]);
    let moderator = world.moderator(7, "Ada");
    // The page of documents is no JSON.
    let asked = ROUTES.iter().filter(|route| route.path != "docs").map(|route| {
        let (moderator, path) = (moderator.clone(), route.path.replace("{type}", "posts").replace("{id}", "7"));
        let path = path.replace("{name}", "aaaaaaaaaaaaaaaaaaaaaaaa.png");
        async move {
            let body = json!({ "body": "x", "reason": "spam" });
            let method: Method = route.method.parse().unwrap();
            let query = if route.path == "users" { "?q=a" } else { "" };
            let answer = moderator.call(method, &format!("{path}{query}"), Some(body)).await;
            assert!(answer.trips <= MOST_TRIPS, "{} took {} trips", route.name, answer.trips);
            assert_eq!(answer.status, 503, "{}: {:#}", route.name, answer.json);
            assert_eq!((&answer.json["code"], &answer.json["errors"]), (&json!("unavailable"), &json!({})));
        }
    });
    futures_util::future::join_all(asked).await;
}

/// Of all comments there are, with their ids.
async fn bodies(world: &World) -> BTreeMap<String, Vec<u64>> {
    let mut bodies: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut start = None;
    loop {
        #[expect(clippy::disallowed_methods, reason = "everything is looked at")]
        let scan = world.engine.client().scan().table_name(crate::world::TABLE).set_exclusive_start_key(start);
        let page = scan.send().await.unwrap();
        for item in page.items() {
            if item["sk"].as_s().is_ok_and(|sk| sk == "C") {
                let id = item["i"].as_n().unwrap().parse().unwrap();
                bodies.entry(item["b"].as_s().unwrap().clone()).or_default().push(id);
            }
        }
        start = page.last_evaluated_key().cloned();
        if start.is_none() {
            return bodies;
        }
    }
}
