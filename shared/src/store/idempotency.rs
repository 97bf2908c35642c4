//! Handles requests with an `Idempotency-Key`. A reference to the first request's result is stored for a day. If the
//! result is in the table, both are written in the same transaction. The request's content isn't stored.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::schema::{PK, idempotency};
use super::transaction::{Label, Write};
use super::{Reading, Store, keys, number, write};
use crate::domain::ids::Visitor;
use crate::domain::time::{Timestamp, stored};
use crate::error::Fault;

const ANSWER_TTL: Duration = Duration::from_hours(24);

/// A request that the client may repeat.
#[derive(Clone, Debug)]
pub struct IdempotencyRequest {
    pub visitor: Visitor,
    /// Keyed hash of the path and the `Idempotency-Key`.
    pub key: String,
    /// Hash of the request's content.
    pub request: String,
    pub now: Timestamp,
}

/// The result of an earlier request with the same key.
#[derive(Debug, PartialEq, Eq)]
pub enum PriorResult<T> {
    Nothing,
    /// The result of the same request.
    Same(T),
    /// The key was used for another request.
    Other,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Row<T> {
    /// In whole seconds. `DynamoDB` removes the item some time later.
    #[serde(rename = "x", with = "stored::seconds")]
    expires: Timestamp,
    #[serde(rename = "rq")]
    request: String,
    #[serde(rename = "an")]
    answer: T,
}

impl IdempotencyRequest {
    /// Stores the result. The write belongs to the transaction that carries out the request, and its condition fails if the
    /// request was carried out before.
    pub(super) fn write(&self, answer: impl Serialize) -> Result<Write, Fault> {
        let row = Row { expires: self.now.start_of_second() + ANSWER_TTL, request: self.request.clone(), answer };
        let put = Write::put(write(&keys::idempotency(&self.visitor, &self.key), &row)?);
        // DynamoDB may not have removed an expired result yet.
        let free = format!("attribute_not_exists({PK}) OR {} <= :now", idempotency::EXPIRES);
        Ok(put.when(free).with(":now", number(self.now.seconds())).label(Label::Idempotency))
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
        Ok(match row.filter(|row| row.expires > idempotency.now) {
            None => PriorResult::Nothing,
            Some(row) if row.request == idempotency.request => PriorResult::Same(row.answer),
            Some(_) => PriorResult::Other,
        })
    }

    /// Stores the result of a request that writes nothing else to the table. Returns false if another request with the same key
    /// was first.
    pub async fn remember(&self, idempotency: &IdempotencyRequest, answer: impl Serialize) -> Result<bool, Fault> {
        self.put("storing an idempotent result", idempotency.write(answer)?).await
    }
}
