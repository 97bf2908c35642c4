//! Writes that hold together. Conflicts with other writers are tried again here, bounded and with jitter; a condition that
//! does not hold is a value, told by the place of its write.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, ReturnValue, TransactWriteItem, Update};

use super::keys::{Item, Key};
use super::{ATTEMPTS, Store, fault};
use crate::domain::ids::hex;
use crate::error::Fault;

const DOING: &str = "writing a transaction";

/// Says what became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Nothing was written. The places, in the order added, of the writes whose conditions did not hold.
    Failed(Vec<usize>),
}

/// One write of a transaction: `expression` and the conditions are `DynamoDB` expressions over the values given by `with`.
#[derive(Clone, Debug)]
pub(super) struct Write {
    kind: WriteKind,
    conditions: Vec<String>,
    values: Vec<(&'static str, AttributeValue)>,
}

#[derive(Clone, Debug)]
enum WriteKind {
    Put(Item),
    Update(Key, String),
    Delete(Key),
    Check(Key),
}

impl Write {
    pub(super) fn put(item: Item) -> Self {
        Self { kind: WriteKind::Put(item), conditions: Vec::new(), values: Vec::new() }
    }

    pub(super) fn update(key: Key, expression: impl Into<String>) -> Self {
        Self { kind: WriteKind::Update(key, expression.into()), conditions: Vec::new(), values: Vec::new() }
    }

    pub(super) fn delete(key: Key) -> Self {
        Self { kind: WriteKind::Delete(key), conditions: Vec::new(), values: Vec::new() }
    }

    /// Writes nothing, but holds the others to a condition.
    pub(super) fn check(key: Key, condition: impl Into<String>) -> Self {
        Self { kind: WriteKind::Check(key), conditions: vec![condition.into()], values: Vec::new() }
    }

    /// Conditions add up: all of them must hold.
    pub(super) fn when(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.values.push((name, value));
        self
    }

    fn build(self, table: &str) -> Result<TransactWriteItem, Fault> {
        let values = (!self.values.is_empty())
            .then(|| self.values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        let condition = match self.conditions.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("({})", several.join(") AND ("))),
        };
        let item = TransactWriteItem::builder();
        let invalid = |error| Fault::new(DOING, error);
        Ok(match self.kind {
            WriteKind::Put(row) => {
                let put = Put::builder().table_name(table).set_item(Some(row));
                let put = put.set_condition_expression(condition).set_expression_attribute_values(values);
                item.put(put.build().map_err(invalid)?)
            }
            WriteKind::Update(key, expression) => {
                let update = Update::builder().table_name(table).set_key(Some(key.item()));
                let update = update.update_expression(expression).set_condition_expression(condition);
                item.update(update.set_expression_attribute_values(values).build().map_err(invalid)?)
            }
            WriteKind::Delete(key) => {
                let delete = Delete::builder().table_name(table).set_key(Some(key.item()));
                let delete = delete.set_condition_expression(condition).set_expression_attribute_values(values);
                item.delete(delete.build().map_err(invalid)?)
            }
            WriteKind::Check(key) => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(key.item()));
                let check = check.set_condition_expression(condition).set_expression_attribute_values(values);
                item.condition_check(check.build().map_err(invalid)?)
            }
        }
        .build())
    }
}

impl Store {
    /// Does an update without a transaction: the item as it is then, `None` when the condition did not hold. For updates
    /// that may be done twice.
    pub(super) async fn update(&self, update: Write) -> Result<Option<Item>, Fault> {
        let doing = "updating an item";
        let update = update.build(&self.table)?.update.ok_or_else(|| Fault::new(doing, "not an update"))?;
        let request = self.client.update_item().table_name(update.table_name).set_key(Some(update.key));
        let request = request
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_values(update.expression_attribute_values)
            .return_values(ReturnValue::AllNew);
        match request.send().await {
            Ok(answer) => Ok(answer.attributes),
            Err(error)
                if error.as_service_error().is_some_and(UpdateItemError::is_conditional_check_failed_exception) =>
            {
                Ok(None)
            }
            Err(error) => Err(fault(doing, error)),
        }
    }

    pub(super) async fn transact(&self, writes: Vec<Write>) -> Result<Outcome, Fault> {
        let items = writes.into_iter().map(|write| write.build(&self.table)).collect::<Result<Vec<_>, _>>()?;
        // One for all attempts: what an attempt wrote without our hearing of it is then not written, or refused, again.
        let token = hex(&self.random.bytes::<16>());
        for attempt in 0..ATTEMPTS {
            self.pause(attempt).await;
            let request = self.client.transact_write_items().client_request_token(&token);
            let request = request.set_transact_items(Some(items.clone()));
            match request.send().await {
                Ok(_) => return Ok(Outcome::Done),
                Err(error) => match reasons(&error) {
                    Some(reasons) if reasons.iter().any(|reason| reason == "ConditionalCheckFailed") => {
                        let failed =
                            |(place, reason): (usize, &String)| (reason == "ConditionalCheckFailed").then_some(place);
                        return Ok(Outcome::Failed(reasons.iter().enumerate().filter_map(failed).collect()));
                    }
                    Some(reasons) if reasons.iter().all(|reason| passes(reason)) => {}
                    _ => return Err(fault(DOING, error)),
                },
            }
        }
        Err(Fault::transient(DOING))
    }
}

/// Why a transaction was cancelled, a code for each write; `None` when it failed otherwise.
fn reasons<R>(error: &SdkError<TransactWriteItemsError, R>) -> Option<Vec<String>> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(
            cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap_or("None").to_owned()).collect(),
        ),
        TransactWriteItemsError::TransactionInProgressException(_) => Some(vec!["TransactionConflict".to_owned()]),
        _ => None,
    }
}

fn passes(reason: &str) -> bool {
    matches!(reason, "None" | "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded")
}
