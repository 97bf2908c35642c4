//! `DynamoDB`'s protocol: takes the name of an operation and its JSON, and returns a status and JSON.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::aws::call::Version;

use super::Shared;

const TARGET: &str = "x-amz-target";
pub(super) const PROTOCOL: Version = Version::V1_0;
const UNKNOWN_OPERATION: &[u8] = br#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// The operation that the headers name; empty if it's missing or the protocol's version isn't `DynamoDB`'s.
pub(super) fn operation<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> String {
    let target = header(TARGET).filter(|_| header("content-type") == Some(PROTOCOL.content_type()));
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
        match operation {
            "GetItem" => self.run(body, Database::get_item),
            "Query" => self.run(body, Database::query),
            "Scan" => self.run(body, Database::scan),
            "BatchGetItem" => self.run(body, Database::batch_get_item),
            "DescribeTable" => self.run(body, Database::describe_table),
            "CreateTable" => self.run(body, Database::create_table),
            "PutItem" => self.write(body, Database::put_item),
            "UpdateItem" => self.write(body, Database::update_item),
            "DeleteItem" => self.write(body, Database::delete_item),
            "BatchWriteItem" => self.write(body, Database::batch_write_item),
            "TransactWriteItems" => self.write(body, Database::transact_write_items),
            _ => Err(DynoxideError::UnsupportedCapability(operation.to_owned())),
        }
    }

    fn run<Q: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<Vec<u8>, DynoxideError> {
        let request = parse(body)?;
        let answer = run(&self.connections().database, request);
        serde_json::to_vec(&answer?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
    }

    fn write<Q: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        run: impl FnOnce(&Database, Q) -> Result<A, DynoxideError>,
    ) -> Result<Vec<u8>, DynoxideError> {
        let answer = self.run(body, run);
        self.barrier.wrote();
        self.changed.notify_waiters();
        answer
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
