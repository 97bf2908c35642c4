//! Faults injected between the service and its table, either by a seeded plan or at a test's request.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use server::engine::Engine;
use shared::store;
use tokio::sync::oneshot;

use crate::replica::{Replica, is_eventual};

/// Requests per thousand that the plan fails with each kind of fault.
const RATE: u64 = 50;
/// Maximum wait for a delayed request, so that a service that never sends it doesn't hang the test.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Throttled,
    Conflict,
    Broken,
    TimedOut,
    /// The request is carried out, but its response is lost.
    Dropped,
    /// The request is refused permanently, so the client doesn't retry.
    Denied,
    /// Half of a batch is returned as unprocessed.
    Partial,
}

const FAULTS: [Fault; 6] =
    [Fault::Throttled, Fault::Conflict, Fault::Broken, Fault::TimedOut, Fault::Dropped, Fault::Partial];

/// Injects faults once a test enables them. Clones share their state.
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    /// The maximum lag of the copy that serves eventually consistent reads.
    lag: Option<Duration>,
    replica: Arc<Mutex<Option<SharedReplica>>>,
    state: Arc<FaultState>,
}

type SharedReplica = Arc<tokio::sync::Mutex<Replica>>;

#[derive(Debug, Default)]
struct FaultState {
    /// Whether the plan applies, so that any request may fail.
    random: AtomicBool,
    requests: AtomicU64,
    made: AtomicU64,
    unreachable: Mutex<Option<&'static str>>,
    /// Requests to the unreachable partition that still succeed.
    passing: AtomicU64,
    losing: Mutex<Option<&'static str>>,
    conflicts: AtomicU64,
    /// Remaining requests that are carried out before the kill. [`u64::MAX`] if there is none.
    left: AtomicU64,
    delayed: Mutex<Option<Delay>>,
}

/// The service's end of a delayed request.
#[derive(Debug)]
struct Delay {
    operation: &'static str,
    partition: &'static str,
    arrived: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

/// The test's end of a delayed request.
#[derive(Debug)]
pub struct Delayed {
    arrived: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

impl Delayed {
    /// Runs `meanwhile` while the request waits, then lets the request continue.
    pub async fn during(self, meanwhile: impl Future<Output = ()>) {
        tokio::time::timeout(PATIENCE, self.arrived).await.expect("the request is made").expect("the faults live on");
        meanwhile.await;
        self.release.send(()).expect("the request waits");
    }
}

impl Faults {
    /// `seed` determines the plan.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = FaultState { left: AtomicU64::new(u64::MAX), ..FaultState::default() };
        Self { seed, lag: None, replica: Arc::default(), state: Arc::new(state) }
    }

    /// Makes indexes and eventually consistent reads lag behind the table. Each change has a separate delay of up to
    /// `most`.
    #[must_use]
    pub fn lagging(self, most: Duration) -> Self {
        Self { lag: Some(most), ..self }
    }

    /// Makes requests fail according to the plan, until [`Self::stop`].
    pub fn start(&self) {
        self.state.random.store(true, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.state.random.store(false, Ordering::Relaxed);
        *self.state.unreachable.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Fails every request that names an item whose partition key begins with `partition`, until [`Self::stop`] is
    /// called.
    pub fn fail(&self, partition: &'static str) {
        self.fail_after(0, partition);
    }

    /// Like [`Self::fail`], but lets the next `passing` of these requests succeed.
    pub fn fail_after(&self, passing: u64, partition: &'static str) {
        self.state.passing.store(passing, Ordering::Relaxed);
        set(&self.state.unreachable, partition);
    }

    /// Loses the response to the next request that names an item whose partition key begins with `partition`.
    pub fn lose_answer(&self, partition: &'static str) {
        set(&self.state.losing, partition);
    }

    /// Makes the next `count` updates of a comment conflict with a transaction.
    pub fn conflict(&self, count: u64) {
        self.state.conflicts.store(count, Ordering::Relaxed);
    }

    /// Holds the next request of this operation that names an item whose partition key begins with `partition`, until
    /// the test releases it.
    #[must_use]
    pub fn delay(&self, operation: &'static str, partition: &'static str) -> Delayed {
        let ((arrive, arrived), (release, released)) = (oneshot::channel(), oneshot::channel());
        let delay = Delay { operation, partition, arrived: arrive, released };
        *self.state.delayed.lock().unwrap_or_else(PoisonError::into_inner) = Some(delay);
        Delayed { arrived, release }
    }

    /// Carries out this many more requests and then none, as if the process had been killed.
    pub fn kill_after(&self, requests: u64) {
        self.state.left.store(requests, Ordering::Relaxed);
    }

    /// Returns the number of conflicts left to inject.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.state.conflicts.load(Ordering::Relaxed)
    }

    /// Returns the number of faults injected so far.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.state.made.load(Ordering::Relaxed)
    }

    /// Makes the lagging copy miss changes to items whose keys contain one of these texts, and receive all other
    /// changes.
    pub async fn hold(&self, keys: Vec<String>) {
        let replica = self.replica().expect("a world whose reads lag");
        replica.lock().await.hold(keys).await;
    }

    fn replica(&self) -> Option<SharedReplica> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a connection to `table` that injects these faults.
    pub(crate) fn before(&self, table: &Engine) -> Faulty {
        let replica = self.lag.map(|most| Arc::new(tokio::sync::Mutex::new(Replica::of(table, most, self.seed))));
        *self.replica.lock().unwrap_or_else(PoisonError::into_inner) = replica;
        Faulty { engine: table.clone(), faults: self.clone() }
    }

    fn next(&self, operation: &str, body: &str) -> Option<Fault> {
        let state = &self.state;
        let names = |partition: &str| body.contains(&format!("{{\"S\":\"{partition}"));
        let unreachable = *state.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        let mut losing = state.losing.lock().unwrap_or_else(PoisonError::into_inner);
        let one_less = |left: u64| left.checked_sub(1);
        let is_dead = match state.left.load(Ordering::Relaxed) {
            u64::MAX => false,
            _ => state.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err(),
        };
        let passes = || state.passing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        let fault = if is_dead {
            Some(Fault::Denied)
        } else if unreachable.is_some_and(names) && !passes() {
            Some(Fault::Broken)
        } else if losing.take_if(|partition| names(partition)).is_some() {
            Some(Fault::Dropped)
        } else if operation == "UpdateItem"
            && names("C#")
            && state.conflicts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
        {
            Some(Fault::Conflict)
        } else {
            self.by_plan()
        };
        state.made.fetch_add(u64::from(fault.is_some()), Ordering::Relaxed);
        fault
    }

    /// Waits if a test holds this request.
    async fn wait(&self, operation: &str, body: &str) {
        let wanted = |delay: &mut Delay| {
            delay.operation == operation && body.contains(&format!("{{\"S\":\"{}", delay.partition))
        };
        let delay = self.state.delayed.lock().unwrap_or_else(PoisonError::into_inner).take_if(wanted);
        if let Some(delay) = delay
            && delay.arrived.send(()).is_ok()
        {
            drop(delay.released.await);
        }
    }

    fn by_plan(&self) -> Option<Fault> {
        if !self.state.random.load(Ordering::Relaxed) {
            return None;
        }
        let request = self.state.requests.fetch_add(1, Ordering::Relaxed);
        let mut bits = self.seed ^ request.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let place = usize::try_from((bits ^ (bits >> 31)) % 1000 / RATE).unwrap_or(usize::MAX);
        FAULTS.get(place).copied()
    }
}

fn set(place: &Mutex<Option<&'static str>>, partition: &'static str) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(partition);
}

#[derive(Clone)]
pub(crate) struct Faulty {
    engine: Engine,
    faults: Faults,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Faulty {
    pub(crate) fn lags(&self) -> bool {
        self.faults.lag.is_some()
    }

    /// Returns a client with the same timeouts and attempts as the functions' client.
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

    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        self.faults.wait(&operation, &body).await;
        let fault = self.faults.next(&operation, &body);
        if let Some(refusal) = fault.and_then(|fault| refusal(fault, &operation, &body)) {
            return Ok(refusal);
        }
        match fault {
            Some(Fault::TimedOut) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(ConnectorError::timeout("no answer in time".into()))
            }
            Some(Fault::Partial) => self.half(&operation, &body, request).await,
            Some(Fault::Dropped) => {
                self.ask(&operation, &body, request).await?;
                Err(ConnectorError::io("the connection was reset".into()))
            }
            _ => self.ask(&operation, &body, request).await,
        }
    }

    async fn ask(&self, operation: &str, body: &str, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        match self.faults.replica() {
            Some(replica) if is_eventual(operation, body) => {
                let copy = replica.lock().await.now().await;
                copy.call(request).await
            }
            _ => self.engine.call(request).await,
        }
    }

    /// Carries out the first half of a batch and returns the other half as unprocessed.
    async fn half(
        &self,
        operation: &str,
        body: &str,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let mut done: Value = serde_json::from_str(body).unwrap_or_default();
        let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        let mut left = done["RequestItems"].clone();
        let halved = match operation {
            "BatchGetItem" => halve(&mut done["RequestItems"], &mut left, |table| &mut table["Keys"]),
            "BatchWriteItem" => halve(&mut done["RequestItems"], &mut left, |table| table),
            _ => false,
        };
        if !halved {
            return self.engine.call(request).await;
        }
        *request.body_mut() = SdkBody::from(done.to_string());
        let answer = self.engine.call(request).await?;
        let mut answer: Value = serde_json::from_slice(answer.body().bytes().unwrap_or_default()).unwrap_or_default();
        answer[field] = left;
        Ok(response(200, &answer))
    }
}

impl HttpConnector for Faulty {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().answer(request))
    }
}

/// Returns the error response to a request that isn't carried out. `None` if the fault is of another kind or can't
/// occur in this operation.
fn refusal(fault: Fault, operation: &str, body: &str) -> Option<HttpResponse> {
    let kind = |name: &str| json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{name}") });
    match (fault, operation) {
        (Fault::Throttled, _) => Some(response(400, &kind("ThrottlingException"))),
        (Fault::Denied, _) => Some(response(400, &kind("AccessDeniedException"))),
        (Fault::Broken, _) => Some(response(500, &kind("InternalServerError"))),
        (Fault::Conflict, "TransactWriteItems") => {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let mut reasons = vec![json!({ "Code": "None" }); body["TransactItems"].as_array().map_or(1, Vec::len)];
            if let Some(last) = reasons.last_mut() {
                *last = json!({ "Code": "TransactionConflict" });
            }
            let mut answer = kind("TransactionCanceledException");
            answer["CancellationReasons"] = reasons.into();
            Some(response(400, &answer))
        }
        (Fault::Conflict, "UpdateItem" | "PutItem") => Some(response(400, &kind("TransactionConflictException"))),
        _ => None,
    }
}

/// Leaves the first half of each list in `done` and the second half in `left`. Returns false if no list is long enough
/// to halve.
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

fn response(status: u16, body: &Value) -> HttpResponse {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}
