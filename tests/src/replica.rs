//! A lagging copy of the table, like the one behind `DynamoDB`'s eventually consistent reads.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::engine::{Engine, EventFilter, Follower};
use server::template::Template;

use crate::settings::TABLE;

const BATCH: usize = 100;

/// Receives writes late and in any order, except that changes of the same item stay in order.
#[derive(Debug)]
pub(crate) struct Replica {
    engine: Engine,
    written: Follower,
    /// Writes that have not arrived yet, oldest first.
    pending: Vec<Pending>,
    most: Duration,
    random: u64,
    /// Texts in the keys of items whose changes are held back.
    held: Vec<String>,
}

#[derive(Debug)]
struct Pending {
    key: String,
    due: Instant,
    change: Value,
}

impl Replica {
    /// Creates a copy of a table. Each change is applied to it after a separate delay of up to `most`.
    pub(crate) fn of(table: &Engine, most: Duration, seed: u64) -> Self {
        let engine = Engine::memory().expect("an engine in memory");
        let definition = Template::deployed(&[]).and_then(|template| template.table()).expect("a table");
        for engine in [table, &engine] {
            engine.create_table(TABLE, &definition).expect("the table is created");
        }
        let written = table.follow(TABLE, EventFilter::default()).expect("a table to follow");
        Self { engine, written, pending: Vec::new(), most, random: seed, held: Vec::new() }
    }

    /// Holds back changes of items whose keys contain one of these texts, after applying the changes that are already
    /// due.
    pub(crate) async fn hold(&mut self, keys: Vec<String>) {
        self.catch_up().await;
        self.held = keys;
    }

    /// Returns the copy, with the changes that have arrived by now.
    pub(crate) async fn now(&mut self) -> Engine {
        self.catch_up().await;
        self.engine.clone()
    }

    async fn catch_up(&mut self) {
        while let Some(batch) = self.written.next_now(BATCH).await.expect("a stream") {
            for mut record in batch.records {
                self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let share = u32::try_from(self.random >> 44).expect("20 bits");
                let change = record.content["dynamodb"].take();
                let due = Instant::now() + self.most * share / (1 << 20);
                self.pending.push(Pending { key: change["Keys"].to_string(), due, change });
            }
            self.written.handled(batch.end, Vec::new()).await;
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
            Value::Null => ("DeleteItem", json!({ "TableName": TABLE, "Key": change["Keys"] })),
            item => ("PutItem", json!({ "TableName": TABLE, "Item": item })),
        };
        let answer = self.engine.answer(operation.to_owned(), body.to_string().into_bytes()).await;
        assert_eq!(answer.expect("the engine answers").0, 200, "{body}");
    }
}

/// Whether `DynamoDB` may serve this request from a lagging copy.
pub(crate) fn is_eventual(operation: &str, body: &str) -> bool {
    matches!(operation, "GetItem" | "BatchGetItem" | "Query" | "Scan") && !body.contains("\"ConsistentRead\":true")
}
