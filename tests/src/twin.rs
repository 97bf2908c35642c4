//! Runs Amazon's own engine alongside the embedded one if `SECOND_ENGINE` is the address of `DynamoDB` Local. Both
//! receive the first requests to a table, one at a time, and must return the same responses. The service gets Amazon's
//! response. The embedded engine feeds the table's stream and counts write units, which `DynamoDB` Local counts
//! differently from AWS.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use server::access;
use server::engine::Engine;
use server::template::Template;
use shared::store;
use tokio::sync::{Mutex, OnceCell};

use crate::settings::TABLE;

/// The number of requests per table that both engines receive. Tests with more requests mostly repeat them, so the
/// embedded engine continues alone.
const REQUESTS: u64 = 300;

const TARGET: &str = "x-amz-target";
const DENIED: &str = "AccessDeniedException";

fn endpoint() -> Option<String> {
    crate::setting("SECOND_ENGINE")
}

#[derive(Clone, Debug)]
pub(crate) enum Engines {
    Embedded(Engine),
    Both(Twin),
}

impl Engines {
    pub(crate) fn of(engine: &Engine) -> Self {
        Twin::of(engine).map_or_else(|| Self::Embedded(engine.clone()), Self::Both)
    }

    pub(crate) fn connector(&self) -> SharedHttpConnector {
        match self {
            Self::Embedded(engine) => SharedHttpConnector::new(engine.clone()),
            Self::Both(twin) => SharedHttpConnector::new(twin.clone()),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_over(self.connector())
    }

    /// Returns a client that reaches the table through this connector.
    pub(crate) fn client_over(&self, connector: SharedHttpConnector) -> Client {
        let (Self::Embedded(engine) | Self::Both(Twin { engine, .. })) = self;
        let http: SharedHttpClient = http_client_fn(move |_, _| connector.clone());
        store::client::build(engine.client_builder().http_client(http))
    }

    /// Stops using the second engine, because the caller is about to change the table directly in the embedded one.
    pub(crate) fn leave_the_second(&self) {
        if let Self::Both(twin) = self {
            twin.left.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Twin {
    engine: Engine,
    endpoint: String,
    account: Arc<Account>,
    http: hyper_util::client::legacy::Client<Tcp, Full<Bytes>>,
    table: Arc<OnceCell<()>>,
    turn: Arc<Mutex<()>>,
    /// Requests that both engines still receive.
    left: Arc<AtomicU64>,
}

impl Twin {
    /// `None` unless `SECOND_ENGINE` is set.
    fn of(engine: &Engine) -> Option<Self> {
        let endpoint = endpoint()?;
        let account = Arc::new(Account::take());
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        let (table, turn, left) = (Arc::default(), Arc::default(), Arc::new(REQUESTS.into()));
        Some(Self { engine: engine.clone(), endpoint, account, http, table, turn, left })
    }

    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        self.table.get_or_init(|| self.create_table()).await;
        let target = request.headers().get(TARGET).unwrap_or_default().to_owned();
        let body = request.body().bytes().map(<[u8]>::to_vec).unwrap_or_default();
        let turn = self.turn.lock().await;
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            drop(turn);
            return self.engine.call(request).await;
        }
        let ours = self.engine.call(request).await?;
        let (status, answer) = (ours.status().as_u16(), parse(ours.body().bytes().unwrap_or_default()));
        if status == 400 && kind(&answer) == DENIED {
            return Ok(ours);
        }
        let (their_status, mut theirs) = self.ask(&target, body.clone()).await;
        let operation = target.rsplit('.').next().unwrap_or_default();
        let same = status == their_status
            && match operation {
                // Scans aren't compared, because each engine returns items in its own hash order.
                "Scan" => true,
                "Query" if breaks_off(&answer) && breaks_off(&theirs) => alike_so_far(&answer, &theirs),
                _ => plain(&answer) == plain(&theirs),
            };
        assert!(
            same,
            "{target} {}\nembedded: {status} {answer:#}\nAmazon's: {their_status} {theirs:#}",
            String::from_utf8_lossy(&body)
        );
        if !matches!(operation, "GetItem" | "Query" | "BatchGetItem") && !answer["ConsumedCapacity"].is_null() {
            theirs["ConsumedCapacity"] = answer["ConsumedCapacity"].clone();
        }
        let status = their_status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(theirs.to_string()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }

    async fn ask(&self, target: &str, body: Vec<u8>) -> (u16, Value) {
        let credential = format!(
            "AWS4-HMAC-SHA256 Credential={}/20500101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            self.account.access_key
        );
        let request = Request::post(&self.endpoint)
            .header(TARGET, target)
            .header("content-type", "application/x-amz-json-1.0")
            .header("authorization", credential);
        let request = request.body(Full::from(body)).expect("a request");
        self.account.unanswered.fetch_add(1, Ordering::Relaxed);
        let response = self.http.request(request).await.expect("the second engine answers");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("the second engine's answer is whole").to_bytes();
        self.account.unanswered.fetch_sub(1, Ordering::Relaxed);
        (status, parse(&body))
    }

    async fn create_table(&self) {
        if self.account.has_table.load(Ordering::Relaxed) {
            let body = json!({ "TableName": TABLE });
            let (status, answer) = self.ask("DynamoDB_20120810.DeleteTable", body.to_string().into_bytes()).await;
            assert_eq!(status, 200, "{answer:#}");
        }
        let table = Template::deployed(&[]).and_then(|template| template.table()).expect("a table");
        let body = json!({
            "TableName": TABLE,
            "KeySchema": table.key_schema,
            "AttributeDefinitions": table.attribute_definitions,
            "GlobalSecondaryIndexes": table.global_secondary_indexes,
            "BillingMode": "PAY_PER_REQUEST",
        });
        let (status, answer) = self.ask("DynamoDB_20120810.CreateTable", body.to_string().into_bytes()).await;
        assert_eq!(status, 200, "{answer:#}");
        self.account.has_table.store(true, Ordering::Relaxed);
    }
}

/// An account of the second engine. `DynamoDB` Local has a database for each access key and searches all of them
/// repeatedly, so tests reuse the accounts of tests that have ended.
#[derive(Debug)]
struct Account {
    access_key: String,
    has_table: AtomicBool,
    unanswered: AtomicU64,
}

/// The access keys of ended tests. Each has a table in the second engine.
static FREE: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

impl Account {
    fn take() -> Self {
        static NEW: AtomicU64 = AtomicU64::new(0);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let has_table = AtomicBool::new(free.is_some());
        let access_key =
            free.unwrap_or_else(|| format!("twin{}x{}", std::process::id(), NEW.fetch_add(1, Ordering::Relaxed)));
        Self { access_key, has_table, unanswered: AtomicU64::new(0) }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // A request without a response could still reach the table of the next test.
        if *self.has_table.get_mut() && *self.unanswered.get_mut() == 0 {
            let access_key = std::mem::take(&mut self.access_key);
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(access_key);
        }
    }
}

impl HttpConnector for Twin {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        // The caller may be killed meanwhile, but a request that one engine has received must reach the other engine.
        let answered = tokio::spawn(access::as_caller(self.clone().answer(request)));
        HttpConnectorFuture::new(async {
            answered.await.unwrap_or_else(|died| std::panic::resume_unwind(died.into_panic()))
        })
    }
}

fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Returns the kind of error, or an empty string if the request succeeded.
fn kind(answer: &Value) -> &str {
    answer["__type"].as_str().and_then(|kind| kind.rsplit('#').next()).unwrap_or_default()
}

fn breaks_off(answer: &Value) -> bool {
    answer["LastEvaluatedKey"].is_object()
}

/// Whether two pages of about 1 MB agree: one engine ends before the item that exceeds the limit, the other engine
/// after it.
fn alike_so_far(one: &Value, other: &Value) -> bool {
    let (one, other) = (ordered(&one["Items"]), ordered(&other["Items"]));
    let (Some(one), Some(other)) = (one.as_array(), other.as_array()) else { return false };
    one.len().abs_diff(other.len()) <= 1 && one.iter().zip(other).all(|(one, other)| one == other)
}

/// Returns the parts of a response that both engines must agree on.
fn plain(answer: &Value) -> Value {
    match kind(answer) {
        "" => ordered(answer),
        kind => {
            let reasons = answer["CancellationReasons"].as_array();
            let codes = reasons.map(|reasons| reasons.iter().map(|reason| reason["Code"].clone()).collect::<Vec<_>>());
            json!([kind, codes])
        }
    }
}

/// Returns the response in a comparable form: without fields that may differ between engines, and with sets and batch
/// items sorted.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| {
                !matches!(
                    &***name,
                    "ConsumedCapacity" | "ItemCollectionMetrics" | "UnprocessedKeys" | "UnprocessedItems"
                )
            });
            let field = |(name, value): (&String, &Value)| {
                let mut value = ordered(value);
                // The items in a batch response are unordered, like sets.
                if matches!(&**name, "NS" | "SS" | TABLE)
                    && let Some(members) = value.as_array_mut()
                {
                    members.sort_by_key(Value::to_string);
                }
                (name.clone(), value)
            };
            Value::Object(fields.map(field).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(ordered).collect()),
        other => other.clone(),
    }
}
