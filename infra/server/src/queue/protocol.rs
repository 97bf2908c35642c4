//! SQS's JSON protocol: requests by operation, and errors as SQS returns them.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};
use shared::aws::call::Version;
use shared::domain::time::Timestamp;

use super::messages::{Message, Queue};
use super::{QueueError, Queues, Result};

pub(super) const PROTOCOL: Version = Version::V1_0;
/// The limits of SQS.
pub(super) const MAX_BODY: usize = 1_048_576;
const MAX_BATCH: usize = 10;
const MAX_DELAY: u64 = 900;
const MAX_VISIBILITY: u64 = 12 * 60 * 60;
const MAX_WAIT: u64 = 20;

impl Queues {
    /// The queue of a request, and its other fields.
    fn queue_of(&self, request: &Value) -> Result<&Queue> {
        self.queue(queue_name(request))
    }

    /// Handles one request of SQS's JSON protocol. `operation` is the last part of `X-Amz-Target`.
    pub async fn answer(&self, operation: &str, body: &[u8]) -> (StatusCode, Value) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = match operation {
            "SendMessage" => self.send_message(&request),
            "SendMessageBatch" => self.send_batch(&request),
            "ReceiveMessage" => self.receive_message(&request).await,
            "DeleteMessage" => self.delete_message(&request),
            "ChangeMessageVisibility" => self.change_visibility(&request),
            "GetQueueAttributes" => self.attributes(&request),
            "PurgeQueue" => self.purge(&request),
            other => Err(QueueError::Operation(other.to_owned())),
        };
        answer.map_or_else(|error| error.answer(), |answer| (StatusCode::OK, answer))
    }

    fn send_message(&self, request: &Value) -> Result<Value> {
        let message = self.send(self.queue_of(request)?, request)?;
        Ok(json!({ "MessageId": message.id, "MD5OfMessageBody": message.md5() }))
    }

    fn send_batch(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let entries = request["Entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !(1..=MAX_BATCH).contains(&entries.len()) {
            return Err(QueueError::Parameter(format!("A batch has 1 to {MAX_BATCH} entries.")));
        }
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for entry in entries {
            match self.send(queue, entry) {
                Ok(message) => {
                    done.push(json!({ "Id": entry["Id"], "MessageId": message.id, "MD5OfMessageBody": message.md5() }));
                }
                Err(error) => failed.push(json!({
                    "Id": entry["Id"], "SenderFault": true, "Code": error.code(), "Message": error.to_string(),
                })),
            }
        }
        Ok(json!({ "Successful": done, "Failed": failed }))
    }

    pub(super) fn send(&self, queue: &Queue, entry: &Value) -> Result<Message> {
        let body = entry["MessageBody"].as_str().unwrap_or_default();
        if body.is_empty() || body.len() > MAX_BODY {
            return Err(QueueError::Parameter(format!("A message has 1 to {MAX_BODY} bytes.")));
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

    async fn receive_message(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let most = match &request["MaxNumberOfMessages"] {
            Value::Null => 1,
            number => number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default(),
        };
        if !(1..=MAX_BATCH).contains(&most) {
            return Err(QueueError::Parameter(format!("MaxNumberOfMessages is 1 to {MAX_BATCH}.")));
        }
        let visibility = seconds(request, "VisibilityTimeout", MAX_VISIBILITY)?;
        let wait = seconds(request, "WaitTimeSeconds", MAX_WAIT)?.unwrap_or_default();
        let until = self.now() + wait;
        loop {
            let messages = self.receive_from(queue, most, visibility)?;
            if !messages.is_empty() || self.now() >= until {
                let messages: Vec<Value> = messages.iter().map(received).collect();
                return Ok(if messages.is_empty() { json!({}) } else { json!({ "Messages": messages }) });
            }
            queue.wait(self.now(), until.since(self.now())).await;
        }
    }

    /// The message of a receipt handle.
    fn with_receipt<T>(
        &self,
        request: &Value,
        work: impl FnOnce(&Queue, &mut BTreeMap<String, Message>, &str) -> Result<T>,
    ) -> Result<Option<T>> {
        let queue = self.queue_of(request)?;
        let receipt = request["ReceiptHandle"].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(receipt).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let id = decoded.as_deref().and_then(|text| text.split(' ').next()).ok_or(QueueError::Receipt)?;
        let mut messages = queue.messages();
        let valid = messages.get(id).is_some_and(|message| message.receipt.as_deref() == Some(receipt));
        valid.then(|| work(queue, &mut messages, id)).transpose()
    }

    /// Deletes a message. It isn't an error if the message is already deleted, or has been received again.
    pub(super) fn delete_message(&self, request: &Value) -> Result<Value> {
        self.with_receipt(request, |queue, messages, id| {
            queue.remove(id)?;
            messages.remove(id);
            Ok(())
        })?;
        Ok(json!({}))
    }

    fn change_visibility(&self, request: &Value) -> Result<Value> {
        let timeout = seconds(request, "VisibilityTimeout", MAX_VISIBILITY)?
            .ok_or_else(|| QueueError::Parameter("VisibilityTimeout is required.".to_owned()))?;
        let now = self.now();
        let changed = self.with_receipt(request, |queue, messages, id| {
            let message = messages.get_mut(id).ok_or(QueueError::Receipt)?;
            let most = message.received_at.unwrap_or(now) + Duration::from_secs(MAX_VISIBILITY);
            if now + timeout > most {
                return Err(QueueError::Parameter(format!(
                    "A message is invisible for at most {MAX_VISIBILITY} seconds from its receipt."
                )));
            }
            message.visible_at = now + timeout;
            queue.changed.notify_waiters();
            Ok(())
        })?;
        changed.map(|()| json!({})).ok_or(QueueError::Receipt)
    }

    fn attributes(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let now = self.now();
        let messages = queue.messages();
        let count = |of: fn(&Message, Timestamp) -> bool| messages.values().filter(|message| of(message, now)).count();
        Ok(json!({ "Attributes": {
            "ApproximateNumberOfMessages": count(|message, now| message.visible_at <= now).to_string(),
            "ApproximateNumberOfMessagesNotVisible":
                count(|message, now| message.visible_at > now && message.receives > 0).to_string(),
            "ApproximateNumberOfMessagesDelayed":
                count(|message, now| message.visible_at > now && message.receives == 0).to_string(),
            "VisibilityTimeout": queue.settings.visibility.as_secs().to_string(),
        } }))
    }

    fn purge(&self, request: &Value) -> Result<Value> {
        let queue = self.queue_of(request)?;
        let mut messages = queue.messages();
        for id in messages.keys() {
            queue.remove(id)?;
        }
        messages.clear();
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

/// The last segment of the `QueueUrl`.
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
            None => Err(QueueError::Parameter(format!("{name} is 0 to {most}."))),
        },
    }
}
