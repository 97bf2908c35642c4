//! Requests with an `Idempotency-Key`: what the first one came to is kept for a day, written with what it wrote.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::transaction::Write;
use super::{Reading, Store, keys, number, write};
use crate::error::Fault;
use crate::ids::Visitor;
use crate::time::Timestamp;

/// Seconds that an answer is kept.
const KEPT: i64 = 86_400;

/// One request that its sender may send again.
#[derive(Clone, Debug)]
pub struct Once {
    pub visitor: Visitor,
    /// Of the route and the key.
    pub key: String,
    /// Of what was asked.
    pub request: String,
    pub now: Timestamp,
}

/// What is known of a request that was sent before.
#[derive(Debug, PartialEq, Eq)]
pub enum Earlier<T> {
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

impl Once {
    /// Goes into the transaction that does what was asked; its condition fails when that was done before.
    pub(super) fn write<T: Serialize>(&self, answer: T) -> Result<Write, Fault> {
        let row = Row { expires: self.now.seconds() + KEPT, request: self.request.clone(), answer };
        let row = write(&keys::idempotency(&self.visitor, &self.key), &row)?;
        Ok(Write::put(row).when("attribute_not_exists(pk) OR x <= :now").with(":now", number(self.now.seconds())))
    }
}

impl Store {
    pub async fn earlier<T: DeserializeOwned>(&self, once: Option<&Once>) -> Result<Earlier<T>, Fault> {
        let Some(once) = once else { return Ok(Earlier::Nothing) };
        let row: Option<Row<T>> = self.get(&keys::idempotency(&once.visitor, &once.key), Reading::Consistent).await?;
        Ok(match row.filter(|row| row.expires > once.now.seconds()) {
            None => Earlier::Nothing,
            Some(row) if row.request == once.request => Earlier::Same(row.answer),
            Some(_) => Earlier::Other,
        })
    }
}
