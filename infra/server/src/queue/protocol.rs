//! SQS's JSON protocol: requests by operation, and errors as SQS returns them.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use shared::aws::call::Version;

use super::messages::{Message, Queue};
use super::{QueueError, Queues, Result};

pub(super) const PROTOCOL: Version = Version::V1_0;
/// SQS's limits: bytes of a body, messages of a batch, and seconds of a delay and of a visibility timeout.
pub(super) const MAX_BODY: usize = 1_048_576;
const MAX_BATCH: usize = 10;
const MAX_DELAY: u64 = 900;
const MAX_VISIBILITY: u64 = 12 * 60 * 60;

impl Queues {
    /// Handles one request of SQS's JSON protocol. `operation` is the last part of `X-Amz-Target`.
    pub fn answer(&self, operation: &str, body: &[u8]) -> (StatusCode, Value) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = match operation {
            "SendMessage" => self.send_message(&request),
            "ReceiveMessage" => self.receive_message(&request),
            "ChangeMessageVisibility" => self.change_visibility(&request),
            other => Err(QueueError::Operation(other.to_owned())),
        };
        answer.map_or_else(|error| error.answer(), |answer| (StatusCode::OK, answer))
    }

    fn send_message(&self, request: &Value) -> Result<Value> {
        let message = self.send(self.queue(queue_name(request))?, request)?;
        Ok(json!({ "MessageId": message.id, "MD5OfMessageBody": message.md5() }))
    }

    pub(super) fn send(&self, queue: &Queue, entry: &Value) -> Result<Message> {
        let body = entry["MessageBody"].as_str().unwrap_or_default();
        if body.is_empty() || body.len() > MAX_BODY {
            return Err(QueueError::Parameter(format!("A message must be 1 to {MAX_BODY} bytes long.")));
        }
        let delay = seconds(entry, "DelaySeconds", MAX_DELAY)?.unwrap_or_default();
        let now = self.now();
        let message = Message {
            id: self.message_id(now),
            body: body.to_owned(),
            sent_at: now,
            visible_at: now + delay,
            receives: 0,
            first_received_at: None,
            received_at: None,
            receipt: None,
        };
        queue.put(message.clone())?;
        Ok(message)
    }

    fn receive_message(&self, request: &Value) -> Result<Value> {
        let most = match &request["MaxNumberOfMessages"] {
            Value::Null => 1,
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default(),
        };
        if !(1..=MAX_BATCH).contains(&most) {
            return Err(QueueError::Parameter(format!("MaxNumberOfMessages must be between 1 and {MAX_BATCH}.")));
        }
        let messages: Vec<Value> = self.receive(queue_name(request), most)?.iter().map(received).collect();
        Ok(if messages.is_empty() { json!({}) } else { json!({ "Messages": messages }) })
    }

    fn change_visibility(&self, request: &Value) -> Result<Value> {
        let timeout = seconds(request, "VisibilityTimeout", MAX_VISIBILITY)?
            .ok_or_else(|| QueueError::Parameter("VisibilityTimeout is required.".to_owned()))?;
        let (queue, now) = (self.queue(queue_name(request))?, self.now());
        let receipt = request["ReceiptHandle"].as_str().unwrap_or_default();
        let mut messages = queue.messages();
        let message = messages.values_mut().find(|message| message.receipt.as_deref() == Some(receipt));
        let message = message.ok_or(QueueError::Receipt)?;
        let most = message.received_at.unwrap_or(now) + Duration::from_secs(MAX_VISIBILITY);
        if now + timeout > most {
            return Err(QueueError::Parameter(format!(
                "VisibilityTimeout is too long: a message is hidden for at most {MAX_VISIBILITY} seconds."
            )));
        }
        message.visible_at = now + timeout;
        queue.changed.notify_waiters();
        Ok(json!({}))
    }
}

impl QueueError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoQueue => "QueueDoesNotExist",
            Self::Receipt => "ReceiptHandleIsInvalid",
            Self::Parameter(_) => "InvalidParameterValue",
            Self::Operation(_) => "UnsupportedOperation",
            Self::Protocol(_) => "UnknownOperationException",
            Self::File(_) => "InternalError",
        }
    }

    pub(super) fn answer(&self) -> (StatusCode, Value) {
        let status = match self {
            Self::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        (status, json!({ "__type": format!("com.amazonaws.sqs#{}", self.code()), "message": self.to_string() }))
    }
}

/// The operation in `X-Amz-Target`, such as `SendMessage`. SQS supports a single version of the JSON protocol.
pub(super) fn operation(headers: &http::HeaderMap) -> Result<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = text("content-type");
    if content_type != PROTOCOL.content_type() {
        return Err(QueueError::Protocol(content_type.to_owned()));
    }
    Ok(text("x-amz-target").strip_prefix("AmazonSQS.").unwrap_or_default().to_owned())
}

pub(super) fn queue_name(request: &Value) -> &str {
    request["QueueUrl"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default()
}

fn received(message: &Message) -> Value {
    json!({
        "MessageId": message.id,
        "ReceiptHandle": message.receipt(),
        "Body": message.body,
        "MD5OfBody": message.md5(),
        "Attributes": message.attributes(),
    })
}

/// A whole number of seconds up to `most`.
fn seconds(request: &Value, name: &str, most: u64) -> Result<Option<Duration>> {
    match &request[name] {
        Value::Null => Ok(None),
        number => match number.as_u64().filter(|number| *number <= most) {
            Some(number) => Ok(Some(Duration::from_secs(number))),
            None => Err(QueueError::Parameter(format!("{name} must be between 0 and {most}."))),
        },
    }
}
