//! The table's stream, made from the items before and after each write. The engine has a stream of its own, but with it
//! each write takes longer the more has been written before.

use std::collections::HashMap;

use dynoxide::actions::batch_write_item::BatchWriteItemRequest;
use dynoxide::actions::delete_item::DeleteItemRequest;
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::actions::put_item::PutItemRequest;
use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::actions::update_item::UpdateItemRequest;
use dynoxide::types::{Item, KeySchemaElement, item_size};
use dynoxide::{Database, DynoxideError};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::parse_stored;
use crate::account::{ACCOUNT_ID, REGION};
use crate::publisher::Publisher;

#[derive(Default)]
pub(super) struct Stream {
    pub(super) publisher: Publisher,
    /// By table.
    key_names: HashMap<String, Vec<String>>,
    last_sequence_number: i64,
}

/// An item before a write that may change it.
struct Before {
    table: String,
    key: Item,
    image: Option<Item>,
}

impl Stream {
    /// Runs a write and publishes the records of the items that it changed.
    pub(super) fn record_write<Q: Write, A>(
        &mut self,
        database: &Database,
        request: Q,
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<A, DynoxideError> {
        if !self.publisher.has_subscribers() {
            return run(database, request);
        }
        let mut items = Vec::new();
        for (table, item) in request.targets() {
            let key = self.key_of(database, table, item)?;
            let image = image(database, table, &key)?;
            items.push(Before { table: table.to_owned(), key, image });
        }
        let response = run(database, request)?;
        let mut records = Vec::new();
        for Before { table, key, image: old } in items {
            let new = image(database, &table, &key)?;
            if old != new {
                records.push(self.record(&table, &key, old.as_ref(), new.as_ref()));
            }
        }
        if !records.is_empty() {
            self.publisher.publish(&json!({ "Records": records }));
        }
        Ok(response)
    }

    /// The key attributes of an item; a key is an item too.
    fn key_of(&mut self, database: &Database, table: &str, item: &Item) -> Result<Item, DynoxideError> {
        if !self.key_names.contains_key(table) {
            let Some(stored) = database.get_table_metadata(table)? else {
                return Err(DynoxideError::ResourceNotFoundException("Requested resource not found".to_owned()));
            };
            let schema: Vec<KeySchemaElement> = parse_stored(&stored.key_schema)?;
            let names = schema.into_iter().map(|element| element.attribute_name).collect();
            self.key_names.insert(table.to_owned(), names);
        }
        let names = &self.key_names[table];
        Ok(names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect())
    }

    fn record(&mut self, table: &str, key: &Item, old: Option<&Item>, new: Option<&Item>) -> Value {
        let now = Timestamp::now();
        // From the clock, so that the numbers also grow across restarts.
        self.last_sequence_number = now.as_microsecond().max(self.last_sequence_number + 1);
        let sequence_number = format!("{:021}", self.last_sequence_number);

        let size = [Some(key), old, new].into_iter().flatten().map(item_size).sum::<usize>();
        let mut change = json!({
            "ApproximateCreationDateTime": now.as_second(),
            "Keys": key,
            "SequenceNumber": sequence_number,
            "SizeBytes": size,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        if let Some(old) = old {
            change["OldImage"] = json!(old);
        }
        if let Some(new) = new {
            change["NewImage"] = json!(new);
        }
        json!({
            "eventID": format!("{:032x}", self.last_sequence_number),
            "eventName": match (old, new) {
                (None, _) => "INSERT",
                (Some(_), Some(_)) => "MODIFY",
                (Some(_), None) => "REMOVE",
            },
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": REGION,
            "dynamodb": change,
            "eventSourceARN": format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}/stream/local"),
        })
    }
}

fn image(database: &Database, table: &str, key: &Item) -> Result<Option<Item>, DynoxideError> {
    let request = GetItemRequest { table_name: table.to_owned(), key: key.clone(), ..GetItemRequest::default() };
    Ok(database.get_item(request)?.item)
}

pub(super) trait Write {
    /// The table, and the item or its key, of everything that the request may change.
    fn targets(&self) -> Vec<(&str, &Item)>;
}

impl Write for PutItemRequest {
    fn targets(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.item)]
    }
}

impl Write for UpdateItemRequest {
    fn targets(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.key)]
    }
}

impl Write for DeleteItemRequest {
    fn targets(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.key)]
    }
}

impl Write for BatchWriteItemRequest {
    fn targets(&self) -> Vec<(&str, &Item)> {
        let puts_and_deletes = self.request_items.iter().flat_map(|(table, requests)| {
            requests.iter().map(move |request| {
                let put = request.put_request.as_ref().map(|put| &put.item);
                (table.as_str(), put.or(request.delete_request.as_ref().map(|delete| &delete.key)))
            })
        });
        puts_and_deletes.filter_map(|(table, item)| Some((table, item?))).collect()
    }
}

impl Write for TransactWriteItemsRequest {
    fn targets(&self) -> Vec<(&str, &Item)> {
        let actions = self.transact_items.iter().filter_map(|action| {
            let put = action.put.as_ref().map(|put| (put.table_name.as_str(), &put.item));
            let update = action.update.as_ref().map(|update| (update.table_name.as_str(), &update.key));
            let delete = action.delete.as_ref().map(|delete| (delete.table_name.as_str(), &delete.key));
            put.or(update).or(delete)
        });
        actions.collect()
    }
}
