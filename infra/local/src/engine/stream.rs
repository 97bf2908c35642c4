//! The table's stream, made by looking at items before and after each write: the engine's own would slow every write
//! down by all that was written before.

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
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{REGION, parse_stored};

const ACCOUNT: &str = "000000000000";

#[derive(Debug)]
pub struct Subscription {
    pub events: UnboundedReceiver<Value>,
    /// How many events there were before: what is counted from here meets [`reported`](super::Engine::reported).
    pub missed: u64,
}

#[derive(Default)]
pub(super) struct Stream {
    observers: Vec<UnboundedSender<Value>>,
    key_names: HashMap<String, Vec<String>>,
    last_sequence_number: i64,
    reported: u64,
}

impl Stream {
    pub(super) fn subscribe(&mut self) -> Subscription {
        let (sender, events) = unbounded_channel();
        self.observers.push(sender);
        Subscription { events, missed: self.reported }
    }

    pub(super) fn reported(&self) -> u64 {
        self.reported
    }

    /// Runs a write and tells the subscribers what it changed.
    pub(super) fn observe<Q: Write, A>(
        &mut self,
        database: &Database,
        request: Q,
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<A, DynoxideError> {
        self.observers.retain(|observer| !observer.is_closed());
        if self.observers.is_empty() {
            return run(database, request);
        }
        let mut written = Vec::new();
        for (table, item) in request.written() {
            let key = self.key_of(database, table, item)?;
            let old = image(database, table, &key)?;
            written.push((table.to_owned(), key, old));
        }
        let response = run(database, request)?;
        let mut records = Vec::new();
        for (table, key, old) in written {
            let new = image(database, &table, &key)?;
            if old != new {
                records.push(self.record(&table, &key, old.as_ref(), new.as_ref()));
            }
        }
        if !records.is_empty() {
            self.reported += 1;
            let event = json!({ "Records": records });
            for observer in &self.observers {
                // A receiver that has just gone away wants no records.
                drop(observer.send(event.clone()));
            }
        }
        Ok(response)
    }

    /// The key attributes of an item, or of a key.
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
        // Starts at the clock, so that numbers grow across restarts too.
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
            "eventSourceARN": format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}/stream/local"),
        })
    }
}

fn image(database: &Database, table: &str, key: &Item) -> Result<Option<Item>, DynoxideError> {
    let request = GetItemRequest { table_name: table.to_owned(), key: key.clone(), ..GetItemRequest::default() };
    Ok(database.get_item(request)?.item)
}

pub(super) trait Write {
    /// Table and item, or key, of everything that the request may change.
    fn written(&self) -> Vec<(&str, &Item)>;
}

impl Write for PutItemRequest {
    fn written(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.item)]
    }
}

impl Write for UpdateItemRequest {
    fn written(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.key)]
    }
}

impl Write for DeleteItemRequest {
    fn written(&self) -> Vec<(&str, &Item)> {
        vec![(&self.table_name, &self.key)]
    }
}

impl Write for BatchWriteItemRequest {
    fn written(&self) -> Vec<(&str, &Item)> {
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
    fn written(&self) -> Vec<(&str, &Item)> {
        let actions = self.transact_items.iter().filter_map(|action| {
            let put = action.put.as_ref().map(|put| (put.table_name.as_str(), &put.item));
            let update = action.update.as_ref().map(|update| (update.table_name.as_str(), &update.key));
            let delete = action.delete.as_ref().map(|delete| (delete.table_name.as_str(), &delete.key));
            put.or(update).or(delete)
        });
        actions.collect()
    }
}
