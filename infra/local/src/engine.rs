//! The table's engine in this process, behind the real SDK, whose requests are answered without a socket.
//! Writes are observed in front of the engine and handed on as the stream records Lambda would get. Nothing here
//! knows what the table holds.

mod server;
mod stream;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::update_table::{
    CreateGsiAction, DeleteGsiAction, GlobalSecondaryIndexUpdate, UpdateTableRequest,
};
use dynoxide::actions::update_time_to_live::{TimeToLiveSpecification, UpdateTimeToLiveRequest};
use dynoxide::types::{AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement};
use dynoxide::{Database, DynoxideError, TableMetadata};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinError;

pub use self::stream::Subscription;
use self::stream::{Stream, Write};
use crate::access;

pub const REGION: &str = "us-east-1";
const TARGET: &str = "x-amz-target";
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";
const UNKNOWN_OPERATION: &[u8] = br#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// A table as the template describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TableDefinition {
    pub key_schema: Vec<KeySchemaElement>,
    pub attribute_definitions: Vec<AttributeDefinition>,
    #[serde(default)]
    pub global_secondary_indexes: Vec<GlobalSecondaryIndex>,
    #[serde(default)]
    pub time_to_live_specification: Option<TimeToLiveSpecification>,
    #[serde(default)]
    pub stream_specification: Option<StreamSpecification>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamSpecification {
    pub stream_view_type: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Database(#[from] DynoxideError),
    #[error("the stored table {0} has another key than its definition; move the data directory away to start afresh")]
    KeyDiffers(String),
}

/// Cheap to clone; all clones are one database.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    database: Database,
    /// Held by every write for as long as it takes, so that images and records come in commit order. The engine runs
    /// one operation at a time anyway.
    stream: Mutex<Stream>,
    /// Nanoseconds of processor time.
    busy: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Engine {
    pub fn memory() -> Result<Self, EngineError> {
        Ok(Self::new(Database::memory()?))
    }

    /// The file is created when it is missing.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let database = Database::new(&path.to_string_lossy())?;
        // SQLite's `synchronous = NORMAL`: a write does not wait for the disk. When the power fails the last ones may be
        // missing, and what is there is whole.
        database.disable_bulk_loading()?;
        Ok(Self::new(database))
    }

    fn new(database: Database) -> Self {
        Self { shared: Arc::new(Shared { database, stream: Mutex::default(), busy: AtomicU64::new(0) }) }
    }

    /// Makes the table, or brings the indexes and the TTL of a stored one up to its definition.
    pub fn create_table(&self, name: &str, definition: &TableDefinition) -> Result<(), EngineError> {
        let database = &self.shared.database;
        let stored = database.get_table_metadata(name)?;
        match &stored {
            None => {
                database.create_table(CreateTableRequest {
                    table_name: name.to_owned(),
                    key_schema: definition.key_schema.clone(),
                    attribute_definitions: definition.attribute_definitions.clone(),
                    global_secondary_indexes: Some(definition.global_secondary_indexes.clone())
                        .filter(|indexes| !indexes.is_empty()),
                    billing_mode: Some("PAY_PER_REQUEST".to_owned()),
                    ..CreateTableRequest::default()
                })?;
            }
            Some(stored) => self.update_indexes(name, stored, definition)?,
        }
        if let Some(ttl) = &definition.time_to_live_specification
            && !stored
                .is_some_and(|stored| stored.ttl_enabled && stored.ttl_attribute.as_ref() == Some(&ttl.attribute_name))
        {
            database.update_time_to_live(UpdateTimeToLiveRequest {
                table_name: name.to_owned(),
                time_to_live_specification: ttl.clone(),
            })?;
        }
        Ok(())
    }

    fn update_indexes(
        &self,
        name: &str,
        stored: &TableMetadata,
        definition: &TableDefinition,
    ) -> Result<(), EngineError> {
        let stored_key: Vec<KeySchemaElement> = parse_stored(&stored.key_schema)?;
        if stored_key != definition.key_schema {
            return Err(EngineError::KeyDiffers(name.to_owned()));
        }
        let stored_indexes: Vec<GlobalSecondaryIndex> =
            stored.gsi_definitions.as_deref().map_or(Ok(Vec::new()), parse_stored)?;
        let wanted = &definition.global_secondary_indexes;
        let stale =
            stored_indexes.iter().filter(|index| !wanted.contains(index)).map(|index| GlobalSecondaryIndexUpdate {
                delete: Some(DeleteGsiAction { index_name: index.index_name.clone() }),
                ..GlobalSecondaryIndexUpdate::default()
            });
        let missing =
            wanted.iter().filter(|index| !stored_indexes.contains(index)).map(|index| GlobalSecondaryIndexUpdate {
                create: Some(CreateGsiAction {
                    index_name: index.index_name.clone(),
                    key_schema: index.key_schema.clone(),
                    projection: index.projection.clone(),
                }),
                ..GlobalSecondaryIndexUpdate::default()
            });
        // One change a request is all that `UpdateTable` takes.
        for update in stale.chain(missing) {
            self.shared.database.update_table(UpdateTableRequest {
                table_name: name.to_owned(),
                attribute_definitions: update.create.is_some().then(|| definition.attribute_definitions.clone()),
                global_secondary_index_updates: Some(vec![update]),
                ..UpdateTableRequest::default()
            })?;
        }
        Ok(())
    }

    /// Every write from now on, one Lambda event (`{"Records": […]}`) a write, in commit order. What TTL removes is
    /// not reported.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.shared.stream().subscribe()
    }

    /// How many events have been made so far. Only grows while somebody subscribes.
    #[must_use]
    pub fn reported(&self) -> u64 {
        self.shared.stream().reported()
    }

    /// Removes what has expired; answers how many items that were.
    pub fn sweep_expired(&self) -> Result<usize, EngineError> {
        // No write sees an item vanish between its images.
        let _writes = self.shared.stream();
        Ok(self.shared.database.sweep_ttl()?)
    }

    /// Answers one request of the table's protocol: an operation's name and its JSON, a status and JSON.
    pub async fn answer(&self, operation: String, body: Vec<u8>) -> Result<(u16, Vec<u8>), JoinError> {
        let shared = Arc::clone(&self.shared);
        // The engine is synchronous and may wait for the disk.
        tokio::task::spawn_blocking(move || {
            let before = thread_time();
            let answer = shared.answer(&operation, &body);
            let took = thread_time().saturating_sub(before);
            shared.busy.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            answer
        })
        .await
    }

    /// Processor time that answers have taken so far, where the system tells.
    #[must_use]
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.shared.busy.load(Ordering::Relaxed))
    }

    /// Answers the SDK's requests. A connector that injects faults can wrap it.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_, _| connector.clone())
    }

    /// Everything but retries and interceptors is set.
    #[must_use]
    pub fn client_builder(&self) -> aws_sdk_dynamodb::config::Builder {
        aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .http_client(self.http_client())
    }

    #[must_use]
    pub fn client(&self) -> Client {
        Client::from_conf(self.client_builder().build())
    }
}

fn parse_stored<T: DeserializeOwned>(json: &str) -> Result<T, DynoxideError> {
    serde_json::from_str(json).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Processor time of this thread.
#[cfg(unix)]
fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(not(unix))]
fn thread_time() -> Duration {
    Duration::ZERO
}

/// From the header that names it.
fn operation(target: Option<&str>) -> String {
    target.and_then(|target| target.strip_prefix("DynamoDB_20120810.")).unwrap_or_default().to_owned()
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = self.clone();
        HttpConnectorFuture::new(async move {
            let operation = operation(request.headers().get(TARGET));
            let body = request
                .body()
                .bytes()
                .map(<[u8]>::to_vec)
                .ok_or_else(|| ConnectorError::user("the engine takes no streaming body".into()))?;
            if let Err(denied) = access::check(&operation, &body) {
                tracing::error!("{denied}");
                let answer = json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "Message": denied });
                let status = 400_u16.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
                return Ok(HttpResponse::new(status, SdkBody::from(answer.to_string())));
            }
            // As over a network, calls made together are under way together.
            tokio::task::yield_now().await;
            let answer = engine.answer(operation, body).await;
            let (status, answer) = answer.map_err(|panic| ConnectorError::other(panic.into(), None))?;
            let status = status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
            let mut response = HttpResponse::new(status, SdkBody::from(answer));
            response.headers_mut().insert("content-type", CONTENT_TYPE);
            response.headers_mut().insert("x-amzn-requestid", "LOCAL");
            Ok(response)
        })
    }
}

impl Shared {
    fn stream(&self) -> MutexGuard<'_, Stream> {
        // What it guards is whole between any two statements.
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        match self.dispatch(operation, body) {
            Ok(answer) => (200, answer),
            Err(DynoxideError::UnsupportedCapability(_)) => (400, UNKNOWN_OPERATION.to_vec()),
            Err(error) => (error.status_code(), error.to_json().into_bytes()),
        }
    }

    fn dispatch(&self, operation: &str, body: &[u8]) -> Result<Vec<u8>, DynoxideError> {
        let database = &self.database;
        match operation {
            "GetItem" => answer(database.get_item(parse(body)?)),
            "Query" => answer(database.query(parse(body)?)),
            "Scan" => answer(database.scan(parse(body)?)),
            "BatchGetItem" => answer(database.batch_get_item(parse(body)?)),
            "TransactGetItems" => answer(database.transact_get_items(parse(body)?)),
            "DescribeTable" => answer(database.describe_table(parse(body)?)),
            "DescribeTimeToLive" => answer(database.describe_time_to_live(parse(body)?)),
            "ListTables" => answer(database.list_tables(parse(body)?)),
            "CreateTable" => answer(database.create_table(parse(body)?)),
            "PutItem" => self.observed(parse(body)?, Database::put_item),
            "UpdateItem" => self.observed(parse(body)?, Database::update_item),
            "DeleteItem" => self.observed(parse(body)?, Database::delete_item),
            "BatchWriteItem" => self.observed(parse(body)?, Database::batch_write_item),
            "TransactWriteItems" => self.observed(parse(body)?, Database::transact_write_items),
            _ => Err(DynoxideError::UnsupportedCapability(operation.to_owned())),
        }
    }

    fn observed<Q: Write, A: Serialize>(
        &self,
        request: Q,
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<Vec<u8>, DynoxideError> {
        answer(self.stream().observe(&self.database, request, run))
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| {
        let message = error.to_string();
        // The engine marks what its own decoders refuse as invalid.
        match message.split_once("VALIDATION:") {
            Some((_, invalid)) => DynoxideError::ValidationException(invalid.to_owned()),
            None => DynoxideError::SerializationException(message),
        }
    })
}

fn answer<T: Serialize>(response: Result<T, DynoxideError>) -> Result<Vec<u8>, DynoxideError> {
    serde_json::to_vec(&response?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_lambda_events::event::dynamodb::Event;
    use aws_sdk_dynamodb::error::ProvideErrorMetadata;
    use aws_sdk_dynamodb::types::AttributeValue::{self, N, S};
    use aws_sdk_dynamodb::types::{
        ConditionCheck, Delete, DeleteRequest, Put, PutRequest, ReturnConsumedCapacity,
        ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
    };

    use serde_json::Value;

    use super::*;

    const TABLE: &str = "things";

    fn definition(indexes: &[&str]) -> TableDefinition {
        let indexes: Vec<Value> = indexes
            .iter()
            .map(|name| {
                json!({
                    "IndexName": name,
                    "KeySchema": [
                        {"AttributeName": "owner", "KeyType": "HASH"},
                        {"AttributeName": "n", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                })
            })
            .collect();
        let mut attributes = vec![
            json!({"AttributeName": "pk", "AttributeType": "S"}),
            json!({"AttributeName": "sk", "AttributeType": "S"}),
        ];
        if !indexes.is_empty() {
            attributes.push(json!({"AttributeName": "owner", "AttributeType": "S"}));
            attributes.push(json!({"AttributeName": "n", "AttributeType": "N"}));
        }
        serde_json::from_value(json!({
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": attributes,
            "GlobalSecondaryIndexes": indexes,
            "TimeToLiveSpecification": {"AttributeName": "x", "Enabled": true},
        }))
        .unwrap()
    }

    fn engine() -> Engine {
        let engine = Engine::memory().unwrap();
        engine.create_table(TABLE, &definition(&["by_owner"])).unwrap();
        engine
    }

    fn text(value: &str) -> AttributeValue {
        S(value.to_owned())
    }

    fn number(value: u64) -> AttributeValue {
        N(value.to_string())
    }

    fn thing(pk: &str, n: u64) -> HashMap<String, AttributeValue> {
        let item = [("pk", text(pk)), ("sk", text("thing")), ("owner", text("ada")), ("n", number(n))];
        item.map(|(name, value)| (name.to_owned(), value)).into()
    }

    fn key(pk: &str) -> HashMap<String, AttributeValue> {
        [("pk", text(pk)), ("sk", text("thing"))].map(|(name, value)| (name.to_owned(), value)).into()
    }

    async fn put(client: &Client, pk: &str, n: u64) {
        client.put_item().table_name(TABLE).set_item(Some(thing(pk, n))).send().await.unwrap();
    }

    async fn get(client: &Client, pk: &str) -> Option<HashMap<String, AttributeValue>> {
        client.get_item().table_name(TABLE).set_key(Some(key(pk))).send().await.unwrap().item
    }

    async fn owned(client: &Client, index: &str) -> Vec<HashMap<String, AttributeValue>> {
        let query = client
            .query()
            .table_name(TABLE)
            .index_name(index)
            .key_condition_expression("#o = :o")
            .expression_attribute_names("#o", "owner")
            .expression_attribute_values(":o", text("ada"));
        query.send().await.unwrap().items().to_vec()
    }

    fn names_and_keys(event: Value) -> Vec<(String, String)> {
        let event: Event = serde_json::from_value(event).unwrap();
        let named = event.records.into_iter().map(|record| {
            let keys = serde_json::to_value(record.change.keys.into_inner()).unwrap();
            (record.event_name, keys["pk"]["S"].as_str().unwrap().to_owned())
        });
        named.collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect()
    }

    #[tokio::test]
    async fn what_is_put_can_be_read_by_key_and_by_index() {
        let client = engine().client();
        put(&client, "a", 2).await;
        put(&client, "b", 1).await;

        assert_eq!(get(&client, "a").await, Some(thing("a", 2)));
        assert_eq!(owned(&client, "by_owner").await, [thing("b", 1), thing("a", 2)]);
    }

    #[tokio::test]
    async fn consumed_capacity_counts_the_index_too() {
        let answer = engine()
            .client()
            .put_item()
            .table_name(TABLE)
            .set_item(Some(thing("a", 1)))
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await
            .unwrap();
        let capacity = answer.consumed_capacity.unwrap();
        assert_eq!(capacity.capacity_units, Some(2.0));
        assert_eq!(capacity.global_secondary_indexes.unwrap()["by_owner"].capacity_units, Some(1.0));
    }

    #[tokio::test]
    async fn a_cancelled_transaction_tells_the_reasons_in_order_and_writes_nothing() {
        let client = engine().client();
        put(&client, "taken", 1).await;
        let fresh = Put::builder().table_name(TABLE).set_item(Some(thing("fresh", 1))).build().unwrap();
        let taken = Put::builder()
            .table_name(TABLE)
            .set_item(Some(thing("taken", 2)))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .unwrap();
        let error = client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(fresh).build())
            .transact_items(TransactWriteItem::builder().put(taken).build())
            .send()
            .await
            .unwrap_err()
            .into_service_error();

        let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
            cancelled,
        ) = error
        else {
            panic!("not cancelled: {error}");
        };
        let reasons = cancelled.cancellation_reasons();
        assert_eq!(reasons[0].code(), Some("None"));
        assert_eq!(reasons[1].code(), Some("ConditionalCheckFailed"));
        assert_eq!(reasons[1].item(), Some(&thing("taken", 1)));
        assert_eq!(get(&client, "fresh").await, None);
    }

    #[tokio::test]
    async fn an_operation_the_engine_lacks_is_an_error_and_not_a_silence() {
        let error = engine().client().list_backups().send().await.unwrap_err().into_service_error();
        assert_eq!(error.code(), Some("UnknownOperationException"));
    }

    #[tokio::test]
    async fn a_write_to_a_missing_table_says_so() {
        let engine = Engine::memory().unwrap();
        let _records = engine.subscribe();
        let put = engine.client().put_item().table_name(TABLE).set_item(Some(thing("a", 1)));
        assert!(put.send().await.unwrap_err().into_service_error().is_resource_not_found_exception());
    }

    #[tokio::test]
    async fn each_kind_of_write_leaves_its_stream_record() {
        let engine = engine();
        let client = engine.client();
        let mut records = engine.subscribe().events;

        put(&client, "a", 1).await;
        assert_eq!(names_and_keys(records.recv().await.unwrap()), pairs(&[("INSERT", "a")]));

        let increment = client
            .update_item()
            .table_name(TABLE)
            .set_key(Some(key("a")))
            .update_expression("ADD n :one")
            .expression_attribute_values(":one", number(1));
        increment.send().await.unwrap();
        let event: Event = serde_json::from_value(records.recv().await.unwrap()).unwrap();
        let change = &event.records[0].change;
        assert_eq!(event.records[0].event_name, "MODIFY");
        assert_eq!(json!(change.old_image)["n"]["N"], "1");
        assert_eq!(json!(change.new_image)["n"]["N"], "2");
        assert_eq!(json!(change.keys), json!({"pk": {"S": "a"}, "sk": {"S": "thing"}}));

        client.delete_item().table_name(TABLE).set_key(Some(key("a"))).send().await.unwrap();
        assert_eq!(names_and_keys(records.recv().await.unwrap()), pairs(&[("REMOVE", "a")]));

        put(&client, "old", 1).await;
        records.recv().await.unwrap();
        let new = PutRequest::builder().set_item(Some(thing("new", 1))).build().unwrap();
        let old = DeleteRequest::builder().set_key(Some(key("old"))).build().unwrap();
        client
            .batch_write_item()
            .request_items(
                TABLE,
                vec![
                    WriteRequest::builder().put_request(new).build(),
                    WriteRequest::builder().delete_request(old).build(),
                ],
            )
            .send()
            .await
            .unwrap();
        let batch = names_and_keys(records.recv().await.unwrap());
        assert_eq!(batch, pairs(&[("INSERT", "new"), ("REMOVE", "old")]));

        put(&client, "b", 1).await;
        put(&client, "c", 1).await;
        records.recv().await.unwrap();
        records.recv().await.unwrap();
        let update = Update::builder()
            .table_name(TABLE)
            .set_key(Some(key("b")))
            .update_expression("SET n = :n")
            .expression_attribute_values(":n", number(5))
            .build()
            .unwrap();
        let check = ConditionCheck::builder()
            .table_name(TABLE)
            .set_key(Some(key("new")))
            .condition_expression("attribute_exists(pk)")
            .build()
            .unwrap();
        let delete = Delete::builder().table_name(TABLE).set_key(Some(key("c"))).build().unwrap();
        let put_d = Put::builder().table_name(TABLE).set_item(Some(thing("d", 1))).build().unwrap();
        client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().update(update).build())
            .transact_items(TransactWriteItem::builder().condition_check(check).build())
            .transact_items(TransactWriteItem::builder().delete(delete).build())
            .transact_items(TransactWriteItem::builder().put(put_d).build())
            .send()
            .await
            .unwrap();
        let transaction = names_and_keys(records.recv().await.unwrap());
        assert_eq!(transaction, pairs(&[("MODIFY", "b"), ("REMOVE", "c"), ("INSERT", "d")]));
    }

    #[tokio::test]
    async fn a_write_that_changes_nothing_or_fails_leaves_no_record() {
        let engine = engine();
        let client = engine.client();
        put(&client, "a", 1).await;
        let mut records = engine.subscribe().events;

        put(&client, "a", 1).await;
        client.delete_item().table_name(TABLE).set_key(Some(key("none"))).send().await.unwrap();
        let refused = client.put_item().table_name(TABLE).set_item(Some(thing("a", 9)));
        let refused = refused.condition_expression("attribute_not_exists(pk)").send().await.unwrap_err();
        assert!(refused.into_service_error().is_conditional_check_failed_exception());
        assert!(records.try_recv().is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_writes_of_one_item_are_reported_as_an_unbroken_chain() {
        let engine = engine();
        let client = engine.client();
        put(&client, "a", 0).await;
        let mut records = engine.subscribe().events;
        let writers: Vec<_> = (0..50)
            .map(|_| {
                let increment = client
                    .update_item()
                    .table_name(TABLE)
                    .set_key(Some(key("a")))
                    .update_expression("ADD n :one")
                    .expression_attribute_values(":one", number(1));
                tokio::spawn(async move { increment.send().await.unwrap() })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }

        let mut last_number = String::new();
        for n in 0..50 {
            let event = records.recv().await.unwrap();
            let change = &event["Records"][0]["dynamodb"];
            assert_eq!(change["OldImage"]["n"]["N"], n.to_string());
            assert_eq!(change["NewImage"]["n"]["N"], (n + 1).to_string());
            let number = change["SequenceNumber"].as_str().unwrap().to_owned();
            assert!(number > last_number);
            last_number = number;
        }
    }

    #[tokio::test]
    async fn expired_items_go_when_swept() {
        let engine = engine();
        let client = engine.client();
        let mut item = thing("a", 1);
        item.insert("x".to_owned(), number(1_700_000_000));
        client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();

        assert_eq!(engine.sweep_expired().unwrap(), 1);
        assert_eq!(get(&client, "a").await, None);
    }

    #[tokio::test]
    async fn a_stored_table_keeps_its_items_and_gets_the_indexes_of_a_newer_definition() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.db");
        let engine = Engine::open(&path).unwrap();
        engine.create_table(TABLE, &definition(&["first"])).unwrap();
        put(&engine.client(), "a", 1).await;
        drop(engine);

        let engine = Engine::open(&path).unwrap();
        engine.create_table(TABLE, &definition(&["second", "third"])).unwrap();
        engine.create_table(TABLE, &definition(&["second", "third"])).unwrap();
        let client = engine.client();
        assert_eq!(get(&client, "a").await, Some(thing("a", 1)));
        let table = client.describe_table().table_name(TABLE).send().await.unwrap().table.unwrap();
        let mut indexes: Vec<_> =
            table.global_secondary_indexes().iter().filter_map(|index| index.index_name()).collect();
        indexes.sort_unstable();
        assert_eq!(indexes, ["second", "third"]);
        assert_eq!(owned(&client, "third").await, [thing("a", 1)]);
    }

    #[test]
    fn a_stored_table_with_another_key_is_refused() {
        let engine = engine();
        let mut other = definition(&[]);
        other.key_schema.pop();
        assert!(matches!(engine.create_table(TABLE, &other), Err(EngineError::KeyDiffers(_))));
    }
}
