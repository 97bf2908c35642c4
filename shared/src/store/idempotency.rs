//! Requests with an `Idempotency-Key`: what names the outcome of the first one is kept for a day, written with what it
//! wrote. Nothing that its sender said is kept here.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::keys::Item;
use super::transaction::Write;
use super::{Reading, Store, keys, number, stored, write};
use crate::domain::ids::Visitor;
use crate::domain::time::Timestamp;
use crate::error::Fault;

/// Seconds that an answer is kept.
const KEPT: i64 = 86_400;
/// Nothing is there, or what `DynamoDB` has not yet removed.
const FREE: &str = "attribute_not_exists(pk) OR x <= :now";

/// One request that its sender may send again.
#[derive(Clone, Debug)]
pub struct IdempotencyRequest {
    pub visitor: Visitor,
    /// Of the route and the key.
    pub key: String,
    /// Of what was asked.
    pub request: String,
    pub now: Timestamp,
}

/// What is known of a request that was sent before.
#[derive(Debug, PartialEq, Eq)]
pub enum PriorResult<T> {
    Nothing,
    /// The very same: what it came to.
    Same(T),
    /// The key was used for something else.
    Other,
}

#[derive(Serialize, Deserialize)]
struct Row<T> {
    /// Unix seconds; `DynamoDB` removes the row some time after.
    #[serde(rename = "x")]
    expires: i64,
    #[serde(rename = "rq")]
    request: String,
    #[serde(rename = "an")]
    answer: T,
}

impl IdempotencyRequest {
    /// Goes into the transaction that does what was asked; its condition fails when that was done before.
    pub(super) fn write(&self, answer: impl Serialize) -> Result<Write, Fault> {
        Ok(Write::put(self.item(answer)?).when(FREE).with(":now", number(self.now.seconds())))
    }

    fn item(&self, answer: impl Serialize) -> Result<Item, Fault> {
        let row = Row { expires: self.now.seconds() + KEPT, request: self.request.clone(), answer };
        write(&keys::idempotency(&self.visitor, &self.key), &row)
    }
}

impl Store {
    pub async fn prior_result<T: DeserializeOwned>(
        &self,
        idempotency: Option<&IdempotencyRequest>,
    ) -> Result<PriorResult<T>, Fault> {
        let Some(idempotency) = idempotency else { return Ok(PriorResult::Nothing) };
        let row: Option<Row<T>> =
            self.get(&keys::idempotency(&idempotency.visitor, &idempotency.key), Reading::Consistent).await?;
        Ok(match row.filter(|row| row.expires > idempotency.now.seconds()) {
            None => PriorResult::Nothing,
            Some(row) if row.request == idempotency.request => PriorResult::Same(row.answer),
            Some(_) => PriorResult::Other,
        })
    }

    /// Keeps the answer of a request that writes nothing else to the table. False when one with the same key was first.
    pub async fn remember(&self, idempotency: &IdempotencyRequest, answer: impl Serialize) -> Result<bool, Fault> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(idempotency.item(answer)?))
            .condition_expression(FREE)
            .expression_attribute_values(":now", number(idempotency.now.seconds()));
        stored("remembering an answer", put.send().await)
    }
}
