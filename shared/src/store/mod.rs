//! Access to the table, with one function for each access pattern. Conflicts are return values, and only faults are errors.
//! `schema` lists the items, attributes and indexes; `placement` decides where a comment is in the indexes. Keys, queries and
//! transactions are public only for the tools in `infra/transfer`; the service's functions don't use them.

pub mod addresses;
pub mod bans;
pub mod bounds;
pub mod client;
pub mod comments;
pub mod counts;
pub mod deletion;
pub mod events;
pub mod idempotency;
pub mod jobs;
pub mod keys;
pub mod limits;
pub mod lists;
pub mod log;
pub mod meter;
pub mod moderation;
pub mod newest;
pub mod notifications;
pub mod placeholder;
pub mod placement;
pub mod queue;
pub mod reactions;
mod reject_recent;
pub mod schema;
pub mod sign_in;
pub mod threads;
pub mod transaction;
mod trust;
pub mod users;
mod versioned;
pub mod webhooks;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use futures_util::future::try_join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::addresses::Addresses;
use self::keys::{Item, Key};
use self::limits::Counts;
use crate::domain::ids::{CommentId, Random};
use crate::domain::list::Order;
use crate::error::Fault;

/// Maximum keys in one `BatchGetItem`, as set by `DynamoDB`.
const BATCH: usize = 100;
/// Attempts at an operation before it fails with a transient fault.
const ATTEMPTS: u32 = 10;

#[derive(Clone)]
pub struct Store {
    client: Client,
    table: String,
    random: Random,
    /// Maximum replies of a parent that are inline, and embedded in lists.
    embedded: usize,
    addresses: Option<Addresses>,
    asks_for_trust: bool,
    counts: std::sync::Arc<Counts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// May miss the latest writes, at half the cost.
    Eventual,
    Consistent,
}

impl Store {
    /// A store without inline replies; see [`Self::embedding`]. `client` must be built by [`client::build`].
    #[must_use]
    pub fn new(client: Client, table: String, random: Random) -> Self {
        Self {
            client,
            table,
            random,
            embedded: 0,
            addresses: None,
            asks_for_trust: false,
            counts: std::sync::Arc::default(),
        }
    }

    /// Keeps up to this many replies of a parent inline, to be embedded in lists (`SVC_REPLIES_PER_PARENT`).
    #[must_use]
    pub fn embedding(self, embedded: usize) -> Self {
        Self { embedded, ..self }
    }

    /// Stores only the address hashes that the settings allow. By default, a store keeps Gravatar's hashes.
    #[must_use]
    pub fn keeping(self, addresses: Addresses) -> Self {
        Self { addresses: Some(addresses), ..self }
    }

    /// With `true`, a recount treats comments that were public before `SVC_REQUIRE_APPROVAL=new` was set as approved.
    #[must_use]
    pub fn asking_for_trust(self, asks_for_trust: bool) -> Self {
        Self { asks_for_trust, ..self }
    }

    /// Opens two connections before the first request needs them, because most requests make two concurrent reads.
    pub async fn warm(&self) {
        let nothing = Key::of_nothing();
        let read = || self.one_item(&nothing, Reading::Eventual);
        if let Err(fault) = tokio::try_join!(read(), read()) {
            tracing::warn!("the table could not be reached at start: {}", fault.chain());
        }
    }

    /// Reads an item. If an eventually consistent read misses it, reads it again consistently.
    pub async fn item(&self, key: &Key, reading: Reading) -> Result<Option<Item>, Fault> {
        match self.one_item(key, reading).await? {
            None if reading == Reading::Eventual => self.one_item(key, Reading::Consistent).await,
            item => Ok(item),
        }
    }

    pub async fn one_item(&self, key: &Key, reading: Reading) -> Result<Option<Item>, Fault> {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(key.item()));
        let answer = request.consistent_read(reading == Reading::Consistent).send().await;
        Ok(answer.map_err(|error| fault("reading an item", error))?.item)
    }

    pub async fn get<T: DeserializeOwned>(&self, key: &Key, reading: Reading) -> Result<Option<T>, Fault> {
        self.item(key, reading).await?.map(read).transpose()
    }

    /// Adds the items that an eventually consistent read missed: reads each of `keys` that isn't in `items` consistently.
    async fn complete(&self, keys: &[Key], items: &mut HashMap<Key, Item>) -> Result<(), Fault> {
        let missed = keys.iter().filter(|key| !items.contains_key(key)).cloned().collect();
        items.extend(self.batch_get(missed, Reading::Consistent).await?);
        Ok(())
    }

    /// The items that exist, by key. An eventually consistent read may miss some.
    pub async fn batch_get(&self, keys: Vec<Key>, reading: Reading) -> Result<HashMap<Key, Item>, Fault> {
        let batches = keys.chunks(BATCH).map(|keys| self.one_batch(keys, reading));
        Ok(try_join_all(batches).await?.into_iter().flatten().collect())
    }

    async fn one_batch(&self, keys: &[Key], reading: Reading) -> Result<HashMap<Key, Item>, Fault> {
        let doing = "reading a batch of items";
        let consistent = reading == Reading::Consistent;
        let keys = KeysAndAttributes::builder().set_keys(Some(keys.iter().map(Key::item).collect()));
        let keys = keys.consistent_read(consistent).build().map_err(|error| Fault::new(doing, error))?;
        let mut wanted = Some(HashMap::from([(self.table.clone(), keys)]));
        let mut found = HashMap::new();
        let mut attempts = self.attempts(doing);
        loop {
            attempts.next().await?;
            let answer = self.client.batch_get_item().set_request_items(wanted.take()).send().await;
            let answer = answer.map_err(|error| fault(doing, error))?;
            let items = answer.responses.into_iter().flatten().flat_map(|(_, items)| items);
            found.extend(items.filter_map(|item| Some((Key::of(&item)?, item))));
            wanted = answer.unprocessed_keys.filter(|left| !left.is_empty());
            if wanted.is_none() {
                return Ok(found);
            }
        }
    }

    async fn query(&self, query: &Query, start: Option<Item>) -> Result<(Vec<Item>, Option<Item>), Fault> {
        let (index, pk, sk) = query.index.names();
        let consistent = matches!(query.index, Index::Table(Reading::Consistent));
        let mut request = self
            .client
            .query()
            .table_name(&self.table)
            .set_index_name(index.map(str::to_owned))
            .set_consistent_read(consistent.then_some(true))
            .expression_attribute_values(":pk", AttributeValue::S(query.partition.clone()))
            .scan_index_forward(!query.order.is_descending())
            .set_projection_expression(query.index.projection().map(str::to_owned))
            .limit(i32::try_from(query.limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start);
        request = match query.bounds.clone() {
            Some((low, high)) => request
                .key_condition_expression(format!("{pk} = :pk AND {sk} BETWEEN :low AND :high"))
                .expression_attribute_values(":low", low)
                .expression_attribute_values(":high", high),
            None => request.key_condition_expression(format!("{pk} = :pk")),
        };
        let answer = request.send().await.map_err(|error| fault("querying", error))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key.filter(|key| !key.is_empty())))
    }

    /// Reads up to `query.limit` items, with as many Queries as needed.
    pub async fn query_all(&self, mut query: Query) -> Result<Vec<Item>, Fault> {
        let mut found = Vec::new();
        let mut start = None;
        while query.limit > 0 {
            let (items, next) = self.query(&query, start).await?;
            query.limit = query.limit.saturating_sub(items.len());
            found.extend(items);
            if next.is_none() {
                break;
            }
            start = next;
        }
        Ok(found)
    }

    /// One page of the whole table, read consistently, and the start key of the next page. Only for tools.
    pub async fn scan(&self, start: Option<Item>) -> Result<(Vec<Item>, Option<Item>), Fault> {
        #[expect(clippy::disallowed_methods, reason = "an export, a recount and an erasure read everything")]
        let scan = self.client.scan().table_name(&self.table).consistent_read(true);
        let page = scan.set_exclusive_start_key(start).send().await;
        let page = page.map_err(|error| fault("scanning the table", error))?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key.filter(|key| !key.is_empty())))
    }

    pub fn embedded(&self) -> usize {
        self.embedded
    }

    /// Whether comments of new writers are held for approval.
    pub fn asks_for_trust(&self) -> bool {
        self.asks_for_trust
    }

    /// Determines which hashes of addresses may be stored.
    pub fn addresses(&self) -> Option<&Addresses> {
        self.addresses.as_ref()
    }

    pub fn attempts(&self, doing: &'static str) -> Attempts<'_> {
        Attempts { store: self, doing, made: 0 }
    }
}

/// Attempts at an operation, with exponential backoff and jitter between them.
pub struct Attempts<'a> {
    store: &'a Store,
    doing: &'static str,
    made: u32,
}

impl Attempts<'_> {
    /// Begins an attempt, and returns whether it is a retry. After the last attempt, returns a transient fault.
    pub async fn next(&mut self) -> Result<bool, Fault> {
        let made = self.made;
        if made == ATTEMPTS {
            return Err(Fault::transient(self.doing));
        }
        self.made += 1;
        if made > 0 {
            let [random] = self.store.random.bytes::<1>();
            let base = 10_u64 << made.min(6);
            tokio::time::sleep(Duration::from_millis(base / 2 + base * u64::from(random) / 256)).await;
        }
        Ok(made > 0)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Index {
    Table(Reading),
    /// This index and the following ones have no consistent reads.
    Thread,
    Time,
    Likes,
    Replied,
    Author,
}

impl Index {
    /// The name of the index (`None` for the table) and of its partition key and sort key.
    fn names(self) -> (Option<&'static str>, &'static str, &'static str) {
        let of = |index: schema::IndexSchema| (Some(index.name), index.partition, index.sort);
        match self {
            Self::Table(_) => (None, schema::PK, schema::SK),
            Self::Thread => of(schema::THREAD),
            Self::Time => of(schema::TIME),
            Self::Likes => of(schema::LIKES),
            Self::Replied => of(schema::REPLIED),
            Self::Author => of(schema::AUTHOR),
        }
    }

    /// The attributes to read, without index keys, which every item of a page would repeat. `None` means all.
    fn projection(self) -> Option<&'static str> {
        match self {
            Self::Thread => Some(&comments::ATTRIBUTES),
            // These indexes contain only keys, and the table contains items of all kinds.
            Self::Table(_) | Self::Time | Self::Likes | Self::Replied | Self::Author => None,
        }
    }
}

/// A range of one partition. It always has a limit, so that no read is unbounded.
#[derive(Clone, Debug)]
pub struct Query {
    pub index: Index,
    pub partition: String,
    /// The lowest and the highest sort key, both included.
    pub bounds: Option<(AttributeValue, AttributeValue)>,
    /// The order of sort keys: `NewestFirst` begins with the highest.
    pub order: Order,
    pub limit: usize,
}

pub fn read<T: DeserializeOwned>(item: Item) -> Result<T, Fault> {
    serde_dynamo::from_item(item).map_err(|error| Fault::new("parsing an item", error))
}

pub fn write(key: &Key, row: &impl Serialize) -> Result<Item, Fault> {
    let item = serde_dynamo::to_item(row).map_err(|error| Fault::new("serializing an item", error));
    let mut item: Item = item?;
    item.extend(key.item());
    Ok(item)
}

pub fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// Accepts only integers, because the text of any other value, such as a time, may not be a number.
#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub fn number(value: impl ToString + TryInto<i128>) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// An integer attribute of an item; 0 if it is missing.
pub fn stored_number(item: &Item, name: &str) -> i64 {
    item.get(name).and_then(|value| value.as_n().ok()?.parse().ok()).unwrap_or_default()
}

pub fn yes() -> AttributeValue {
    AttributeValue::Bool(true)
}

/// The ids as a number set; `None` if there are none, because `DynamoDB` doesn't support empty sets.
pub fn number_set(ids: &BTreeSet<u64>) -> Option<AttributeValue> {
    (!ids.is_empty()).then(|| AttributeValue::Ns(ids.iter().map(u64::to_string).collect()))
}

pub fn id_set(id: CommentId) -> AttributeValue {
    AttributeValue::Ns(vec![id.to_string()])
}

/// The fault for an SDK error. Throttling, conflicts, and network and server errors that outlast the SDK's retries are
/// transient; any other error is a bug or a misconfiguration.
pub fn fault<E, R>(doing: &'static str, error: SdkError<E, R>) -> Fault
where
    E: std::error::Error + aws_smithy_types::error::metadata::ProvideErrorMetadata + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    let transient = match &error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        SdkError::ServiceError(error) => error.err().code().is_some_and(|code| {
            [
                "ProvisionedThroughputExceededException",
                "TransactionConflictException",
                "ThrottlingException",
                "RequestLimitExceeded",
                "InternalServerError",
            ]
            .iter()
            .any(|transient| code.ends_with(transient))
        }),
        _ => false,
    };
    let mut fault = Fault::new(doing, error);
    fault.transient = transient;
    fault
}
