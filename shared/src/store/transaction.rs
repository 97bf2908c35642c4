//! Single writes, and transactions of several. Conflicts with other writers are retried a limited number of times, with jitter.
//! A failed condition is a return value, not an error: the outcome names the labeled writes whose conditions failed.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, ReturnValue, TransactWriteItem, Update};

use super::keys::{Item, Key};
use super::schema::{PK, thread};
use super::{Store, fault};
use crate::domain::ids::hex;
use crate::error::Fault;

const DOING: &str = "writing a transaction";
/// The only attribute whose name `DynamoDB` reserves, so expressions must use a placeholder for it.
const RESERVED: &str = thread::URL;

/// The condition that the item exists.
pub fn exists() -> String {
    format!("attribute_exists({PK})")
}

/// The condition that the item doesn't exist.
pub fn absent() -> String {
    format!("attribute_not_exists({PK})")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Nothing was written.
    Failed(Failed),
}

/// The labels of the writes whose conditions failed, in the order of the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(Vec<Option<Label>>);

impl Failed {
    pub fn includes(&self, label: Label) -> bool {
        self.0.contains(&Some(label))
    }

    pub fn is_only(&self, label: Label) -> bool {
        self.0 == [Some(label)]
    }
}

/// Identifies a write whose failed condition determines the result of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The item of a counted comment.
    Counted,
    /// The entry of a like or report in the visitor's thread state.
    Entry,
    EndpointCount,
    GuestBound,
    Idempotency,
    Inbox,
    /// A log entry under a new id.
    Log,
    Pin,
}

/// One write. An update is built attribute by attribute; conditions are `DynamoDB` expressions over the values of its
/// changes and those given by [`with`](Self::with), and all of them must hold.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Write {
    kind: WriteKind,
    /// Changes of an update. An attribute is changed at most once, so that `:name` is its value.
    changes: Vec<(Action, &'static str)>,
    conditions: Vec<String>,
    values: HashMap<String, AttributeValue>,
    label: Option<Label>,
}

#[derive(Clone, Debug, PartialEq)]
enum WriteKind {
    Put(Item),
    Update(Key),
    Delete(Key),
    Check(Key),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Set,
    SetOnce,
    Remove,
    Add,
    Delete,
}

impl Action {
    /// The keyword of the action's clause in an update expression.
    fn keyword(self) -> &'static str {
        match self {
            Self::Set | Self::SetOnce => "SET",
            Self::Remove => "REMOVE",
            Self::Add => "ADD",
            Self::Delete => "DELETE",
        }
    }
}

impl Write {
    fn new(kind: WriteKind) -> Self {
        Self { kind, changes: Vec::new(), conditions: Vec::new(), values: HashMap::new(), label: None }
    }

    pub fn put(item: Item) -> Self {
        Self::new(WriteKind::Put(item))
    }

    pub fn update(key: Key) -> Self {
        Self::new(WriteKind::Update(key))
    }

    pub fn delete(key: Key) -> Self {
        Self::new(WriteKind::Delete(key))
    }

    /// Writes nothing. The transaction fails if the condition does not hold.
    pub fn check(key: Key, condition: impl Into<String>) -> Self {
        Self::unchanged(key).when(condition)
    }

    /// A check without conditions, which the caller adds.
    pub fn unchanged(key: Key) -> Self {
        Self::new(WriteKind::Check(key))
    }

    pub fn set(self, attribute: &'static str, value: AttributeValue) -> Self {
        self.change(Action::Set, attribute, Some(value))
    }

    pub fn remove(self, attribute: &'static str) -> Self {
        self.change(Action::Remove, attribute, None)
    }

    /// Sets the attribute, or removes it if there is no value.
    pub fn assign(self, attribute: &'static str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove(attribute),
        }
    }

    /// Sets the attribute unless it exists.
    pub fn set_once(self, attribute: &'static str, value: AttributeValue) -> Self {
        self.change(Action::SetOnce, attribute, Some(value))
    }

    /// Adds to a number or a set.
    pub fn add(self, attribute: &'static str, value: AttributeValue) -> Self {
        self.change(Action::Add, attribute, Some(value))
    }

    /// Removes elements from a set.
    pub fn subtract(self, attribute: &'static str, set: AttributeValue) -> Self {
        self.change(Action::Delete, attribute, Some(set))
    }

    fn change(mut self, action: Action, attribute: &'static str, value: Option<AttributeValue>) -> Self {
        self.changes.push((action, attribute));
        self.values.extend(value.map(|value| (format!(":{attribute}"), value)));
        self
    }

    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    pub fn when(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    /// Requires that the item exists.
    pub fn exists(self) -> Self {
        self.when(exists())
    }

    /// Requires that an attribute still has the value that was read, or is still missing.
    pub fn still(self, attribute: &'static str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => {
                let name = format!(":was_{attribute}");
                self.when(format!("{attribute} = {name}")).with(name, value)
            }
            None => self.when(format!("attribute_not_exists({attribute})")),
        }
    }

    pub fn with(mut self, name: impl Into<String>, value: AttributeValue) -> Self {
        let earlier = self.values.insert(name.into(), value);
        debug_assert!(earlier.is_none(), "two values of one name");
        self
    }

    pub fn label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }

    fn condition(&self) -> Option<String> {
        match self.conditions.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("({})", several.join(") AND ("))),
        }
    }

    fn expression(&self) -> String {
        let clause = |keyword: &'static str| {
            let changed = self.changes.iter().filter(|(action, _)| action.keyword() == keyword);
            let changed: Vec<String> = changed
                .map(|(action, attribute)| {
                    let name = if *attribute == RESERVED { format!("#{attribute}") } else { (*attribute).to_owned() };
                    match action {
                        Action::Set => format!("{name} = :{attribute}"),
                        Action::SetOnce => format!("{name} = if_not_exists({name}, :{attribute})"),
                        Action::Remove => name,
                        Action::Add | Action::Delete => format!("{name} :{attribute}"),
                    }
                })
                .collect();
            (!changed.is_empty()).then(|| format!("{keyword} {}", changed.join(", ")))
        };
        let clauses = ["SET", "REMOVE", "ADD", "DELETE"].into_iter().filter_map(clause);
        clauses.collect::<Vec<_>>().join(" ")
    }

    /// The attribute names behind the placeholders of [`expression`](Self::expression).
    fn names(&self) -> Option<HashMap<String, String>> {
        let reserved = self.changes.iter().any(|(_, attribute)| *attribute == RESERVED);
        reserved.then(|| HashMap::from([(format!("#{RESERVED}"), RESERVED.to_owned())]))
    }

    fn build(self, table: &str) -> Result<TransactWriteItem, Fault> {
        let (condition, expression, names) = (self.condition(), self.expression(), self.names());
        let values = (!self.values.is_empty()).then_some(self.values);
        let item = TransactWriteItem::builder();
        let invalid = |error| Fault::new(DOING, error);
        Ok(match self.kind {
            WriteKind::Put(row) => {
                let put = Put::builder().table_name(table).set_item(Some(row));
                let put = put.set_condition_expression(condition).set_expression_attribute_values(values);
                item.put(put.build().map_err(invalid)?)
            }
            WriteKind::Update(key) => {
                let update = Update::builder().table_name(table).set_key(Some(key.item()));
                let update = update.update_expression(expression).set_expression_attribute_names(names);
                let update = update.set_condition_expression(condition).set_expression_attribute_values(values);
                item.update(update.build().map_err(invalid)?)
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
    /// Puts an item without a transaction. Returns false if a condition failed.
    pub async fn put(&self, doing: &'static str, put: Write) -> Result<bool, Fault> {
        let put = put.build(&self.table)?.put.ok_or_else(|| Fault::new(doing, "not a put"))?;
        let request = self
            .client
            .put_item()
            .table_name(put.table_name)
            .set_item(Some(put.item))
            .set_condition_expression(put.condition_expression)
            .set_expression_attribute_values(put.expression_attribute_values);
        match request.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception) => {
                Ok(false)
            }
            Err(error) => Err(fault(doing, error)),
        }
    }

    /// Updates an item without a transaction, at half the price, and returns the updated item; `None` if a condition failed.
    /// The SDK may repeat the update after a lost response, so it must be safe to repeat.
    pub async fn update(&self, doing: &'static str, update: Write) -> Result<Option<Item>, Fault> {
        let update = update.build(&self.table)?.update.ok_or_else(|| Fault::new(doing, "not an update"))?;
        let request = self
            .client
            .update_item()
            .table_name(update.table_name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .return_values(ReturnValue::AllNew);
        match request.send().await {
            Ok(answer) => Ok(Some(answer.attributes.unwrap_or_default())),
            Err(error)
                if error.as_service_error().is_some_and(UpdateItemError::is_conditional_check_failed_exception) =>
            {
                Ok(None)
            }
            Err(error) => Err(fault(doing, error)),
        }
    }

    /// Performs all `writes` or none.
    pub async fn transact(&self, writes: Vec<Write>) -> Result<Outcome, Fault> {
        let labels: Vec<Option<Label>> = writes.iter().map(|write| write.label).collect();
        let items = writes.into_iter().map(|write| write.build(&self.table)).collect::<Result<Vec<_>, _>>()?;
        // All attempts share a token, so that DynamoDB doesn't repeat a successful attempt after a lost response.
        let token = hex(&self.random.bytes::<16>());
        let mut attempts = self.attempts(DOING);
        loop {
            attempts.next().await?;
            let request = self.client.transact_write_items().client_request_token(&token);
            let Err(error) = request.set_transact_items(Some(items.clone())).send().await else {
                return Ok(Outcome::Done);
            };
            let Some(reasons) = reasons(&error) else { return Err(fault(DOING, error)) };
            let failed = reasons.iter().zip(&labels).filter(|(reason, _)| *reason == "ConditionalCheckFailed");
            let failed: Vec<Option<Label>> = failed.map(|(_, label)| *label).collect();
            if !failed.is_empty() {
                return Ok(Outcome::Failed(Failed(failed)));
            }
            if !reasons.iter().all(|reason| is_transient(reason)) {
                return Err(fault(DOING, error));
            }
        }
    }
}

/// The reason codes of a canceled transaction, one per write; `None` if it failed for another reason.
fn reasons<R>(error: &SdkError<TransactWriteItemsError, R>) -> Option<Vec<String>> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(
            cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap_or("None").to_owned()).collect(),
        ),
        TransactWriteItemsError::TransactionInProgressException(_) => Some(vec!["TransactionConflict".to_owned()]),
        _ => None,
    }
}

fn is_transient(reason: &str) -> bool {
    matches!(reason, "None" | "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded")
}

#[cfg(test)]
impl Write {
    pub fn expressions(&self) -> (String, String) {
        (self.expression(), self.condition().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{keys, number};
    use super::*;
    use crate::domain::ids::CommentId;

    #[test]
    fn an_update_has_one_clause_for_each_kind_of_change() {
        let update = Write::update(keys::comment(CommentId(1)))
            .set("a", number(1))
            .add("b", number(2))
            .set("c", number(3))
            .remove("d")
            .subtract("e", number(4));
        assert_eq!(update.expressions().0, "SET a = :a, c = :c REMOVE d ADD b :b DELETE e :e");
        let record = Write::update(keys::comment(CommentId(1))).set("ti", number(1)).remove("url");
        assert_eq!(record.expressions().0, "SET ti = :ti REMOVE #url");
        assert_eq!(record.names().unwrap()["#url"], "url");
    }

    #[test]
    fn all_conditions_must_hold() {
        let update = Write::update(keys::comment(CommentId(1))).when("a OR b").still("c", Some(number(1)));
        assert_eq!(update.clone().expressions().1, "(a OR b) AND (c = :was_c)");
        assert_eq!(update.still("d", None).expressions().1, "(a OR b) AND (c = :was_c) AND (attribute_not_exists(d))");
    }
}
