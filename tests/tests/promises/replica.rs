//! A copy of the table that lags behind it: what `DynamoDB` answers eventually consistent reads from.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use local::engine::{Engine, Subscription};
use local::template::{DEPLOYED, Template};
use serde_json::{Value, json};

/// A copy of the table that learns of writes late and in no order, save that what happens to one item stays in order.
#[derive(Debug)]
pub(crate) struct Replica {
    engine: Engine,
    written: Subscription,
    /// In the order of the writes.
    pending: Vec<Pending>,
    most: Duration,
    random: u64,
    /// Texts in the keys of items that the copy hears nothing of.
    held: Vec<String>,
}

/// A change of one item.
#[derive(Debug)]
struct Pending {
    key: String,
    due: Instant,
    change: Value,
}

impl Replica {
    pub(crate) fn of(table: &Engine, most: Duration, seed: u64) -> Self {
        let engine = Engine::memory().unwrap();
        let definition = Template::parse(DEPLOYED, &[]).unwrap().table().unwrap();
        engine.create_table(crate::world::TABLE, &definition).unwrap();
        let written = table.subscribe();
        Self { engine, written, pending: Vec::new(), most, random: seed, held: Vec::new() }
    }

    /// From now on nothing is heard of items whose keys hold one of these texts. What was written before is known, as far as
    /// it was not held.
    pub(crate) async fn hold(&mut self, keys: Vec<String>) {
        self.catch_up().await;
        self.held = keys;
    }

    /// The copy, with what it may know by now.
    pub(crate) async fn now(&mut self) -> Engine {
        self.catch_up().await;
        self.engine.clone()
    }

    async fn catch_up(&mut self) {
        while let Ok(mut event) = self.written.events.try_recv() {
            for record in event["Records"].as_array_mut().into_iter().flatten() {
                self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let share = u32::try_from(self.random >> 44).unwrap();
                let change = record["dynamodb"].take();
                let due = Instant::now() + self.most * share / (1 << 20);
                self.pending.push(Pending { key: change["Keys"].to_string(), due, change });
            }
        }
        let now = Instant::now();
        let mut late = BTreeSet::new();
        for Pending { key, due, change } in std::mem::take(&mut self.pending) {
            let held = self.held.iter().any(|held| key.contains(held));
            if held || due > now || late.contains(&key) {
                late.insert(key.clone());
                self.pending.push(Pending { key, due, change });
            } else {
                self.apply(&change).await;
            }
        }
    }

    async fn apply(&self, change: &Value) {
        let (operation, body) = match &change["NewImage"] {
            Value::Null => ("DeleteItem", json!({ "TableName": crate::world::TABLE, "Key": change["Keys"] })),
            item => ("PutItem", json!({ "TableName": crate::world::TABLE, "Item": item })),
        };
        let (status, _) = self.engine.answer(operation.to_owned(), body.to_string().into_bytes()).await.unwrap();
        assert_eq!(status, 200, "{body}");
    }
}

/// Whether `DynamoDB` may answer this from a copy that lags.
pub(crate) fn is_eventual(operation: &str, body: &str) -> bool {
    matches!(operation, "GetItem" | "BatchGetItem" | "Query" | "Scan") && !body.contains("\"ConsistentRead\":true")
}
