//! `DynamoDB`'s protocol: the name of an operation and its JSON in, a status and JSON out.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Shared;
use super::stream::Write;

/// The header that names the operation.
pub(super) const TARGET: &str = "x-amz-target";
pub(super) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";
const UNKNOWN_OPERATION: &[u8] = br#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// The operation that the header names; empty when there is none.
pub(super) fn operation(target: Option<&str>) -> String {
    target.and_then(|target| target.strip_prefix("DynamoDB_20120810.")).unwrap_or_default().to_owned()
}

impl Shared {
    pub(super) fn answer(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        match self.dispatch(operation, body) {
            Ok(answer) => (200, answer),
            Err(DynoxideError::UnsupportedCapability(_)) => (400, UNKNOWN_OPERATION.to_vec()),
            Err(error) => (error.status_code(), error.to_json().into_bytes()),
        }
    }

    fn dispatch(&self, operation: &str, body: &[u8]) -> Result<Vec<u8>, DynoxideError> {
        let database = &self.database;
        match operation {
            "GetItem" => serialize(database.get_item(parse(body)?)),
            "Query" => serialize(database.query(parse(body)?)),
            "Scan" => serialize(database.scan(parse(body)?)),
            "BatchGetItem" => serialize(database.batch_get_item(parse(body)?)),
            "TransactGetItems" => serialize(database.transact_get_items(parse(body)?)),
            "DescribeTable" => serialize(database.describe_table(parse(body)?)),
            "DescribeTimeToLive" => serialize(database.describe_time_to_live(parse(body)?)),
            "ListTables" => serialize(database.list_tables(parse(body)?)),
            "CreateTable" => serialize(database.create_table(parse(body)?)),
            "PutItem" => self.write(parse(body)?, Database::put_item),
            "UpdateItem" => self.write(parse(body)?, Database::update_item),
            "DeleteItem" => self.write(parse(body)?, Database::delete_item),
            "BatchWriteItem" => self.write(parse(body)?, Database::batch_write_item),
            "TransactWriteItems" => self.write(parse(body)?, Database::transact_write_items),
            _ => Err(DynoxideError::UnsupportedCapability(operation.to_owned())),
        }
    }

    fn write<Q: Write, A: Serialize>(
        &self,
        request: Q,
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<Vec<u8>, DynoxideError> {
        serialize(self.stream().record_write(&self.database, request, run))
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| {
        let message = error.to_string();
        // The engine's own decoders mark a validation error with this prefix.
        match message.split_once("VALIDATION:") {
            Some((_, invalid)) => DynoxideError::ValidationException(invalid.to_owned()),
            None => DynoxideError::SerializationException(message),
        }
    })
}

fn serialize<T: Serialize>(response: Result<T, DynoxideError>) -> Result<Vec<u8>, DynoxideError> {
    serde_json::to_vec(&response?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
