//! Sends messages to an SQS queue, and delays the redelivery of received ones.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::aws::call::{Call, Caller, Operation, Version};
use crate::domain::origin;
use crate::error::Fault;

/// Timeout of each attempt.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
pub const MAX_DELAY: Duration = Duration::from_mins(15);
/// Maximum time that a received message is hidden. SQS allows twelve hours from receipt.
pub const MAX_HIDDEN: Duration = Duration::from_hours(10);

const SEND: Operation = Operation::Json(Version::V1_0, "AmazonSQS.SendMessage");
const HIDE: Operation = Operation::Json(Version::V1_0, "AmazonSQS.ChangeMessageVisibility");

#[derive(Clone)]
pub struct Queue {
    url: String,
    host: String,
    region: String,
    caller: Caller,
}

impl Queue {
    #[must_use]
    pub fn new(url: String, region: String, caller: Caller) -> Self {
        let host = origin::of(&url).unwrap_or_default();
        Self { url, host, region, caller }
    }

    /// Sends a message as JSON. It is delivered at least once, after `delay`, which is limited to [`MAX_DELAY`].
    ///
    /// # Errors
    ///
    /// When SQS refuses the message, or fails in three attempts.
    pub async fn send(&self, message: &impl Serialize, delay: Duration) -> Result<(), Fault> {
        let doing = "sending a message";
        let body = serde_json::to_string(message).map_err(|error| Fault::new(doing, error))?;
        let seconds = delay.min(MAX_DELAY).as_secs();
        let input = json!({ "QueueUrl": self.url, "MessageBody": body, "DelaySeconds": seconds });
        self.call(doing, SEND, input).await
    }

    /// Hides a received message for `delay`, which is limited to [`MAX_HIDDEN`]. SQS then delivers it again unless it was
    /// deleted.
    ///
    /// # Errors
    ///
    /// When SQS refuses the delay, or fails in three attempts.
    pub async fn hide(&self, receipt: &str, delay: Duration) -> Result<(), Fault> {
        let seconds = delay.min(MAX_HIDDEN).as_secs();
        let input = json!({ "QueueUrl": self.url, "ReceiptHandle": receipt, "VisibilityTimeout": seconds });
        self.call("delaying a message", HIDE, input).await
    }

    async fn call(&self, doing: &'static str, operation: Operation, input: Value) -> Result<(), Fault> {
        let call = Call { service: "sqs", region: &self.region, host: &self.host, operation, input };
        let mut pauses = PAUSES.into_iter();
        loop {
            match (self.caller.call(&call).await, pauses.next()) {
                (Ok(_), _) => return Ok(()),
                (Err(error), Some(pause)) if error.is_transient() => {
                    tracing::debug!(%error, "retrying a call to the queue");
                    tokio::time::sleep(pause).await;
                }
                (Err(error), _) => {
                    let mut fault = Fault::new(doing, error);
                    fault.transient = true;
                    return Err(fault);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_config::SdkConfig;
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;

    use super::*;
    use crate::aws::https;
    use crate::aws::loopback::Loopback;

    fn queue(server: &Loopback) -> Queue {
        let credentials = Credentials::new("AKIDTEST", "key", None, None, "test");
        let config = SdkConfig::builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build();
        let caller = Caller::new(config, https::Client::for_aws(TIMEOUT));
        Queue::new(format!("{}/123456789012/jobs", server.url), "eu-west-1".to_owned(), caller)
    }

    #[tokio::test]
    async fn a_message_is_sent_with_its_delay_to_the_host_of_the_queue() {
        let server = Loopback::start(r#"{"MessageId":"1"}"#).await;
        queue(&server).send(&json!({ "job": "x" }), Duration::from_secs(7)).await.unwrap();
        let request = &server.requests()[0];
        assert!(request.contains("x-amz-target: AmazonSQS.SendMessage"), "{request}");
        assert!(request.contains("content-type: application/x-amz-json-1.0\r\n"), "{request}");
        assert!(request.contains("/eu-west-1/sqs/aws4_request"), "{request}");
        assert!(
            request.contains(r#""DelaySeconds":7"#) && request.contains(r#""MessageBody":"{\"job\":\"x\"}""#),
            "{request}"
        );
        assert!(request.contains("/123456789012/jobs"), "{request}");
    }

    #[tokio::test]
    async fn a_delay_is_cut_to_a_quarter_of_an_hour() {
        let server = Loopback::start("{}").await;
        queue(&server).send(&json!(1), Duration::from_hours(1)).await.unwrap();
        assert!(server.requests()[0].contains(r#""DelaySeconds":900"#));
    }

    #[tokio::test]
    async fn a_message_is_hidden_for_ten_hours_at_most() {
        let server = Loopback::start("{}").await;
        queue(&server).hide("receipt", Duration::from_hours(20)).await.unwrap();
        let request = &server.requests()[0];
        assert!(request.contains("x-amz-target: AmazonSQS.ChangeMessageVisibility"), "{request}");
        assert!(request.contains("content-type: application/x-amz-json-1.0\r\n"), "{request}");
        assert!(request.contains(r#""ReceiptHandle":"receipt""#), "{request}");
        assert!(request.contains(r#""VisibilityTimeout":36000"#), "{request}");
    }

    #[tokio::test]
    async fn a_failing_queue_is_tried_three_times_and_one_that_refuses_once() {
        let server = Loopback::start("").await;
        server.set(503, "{}");
        assert!(queue(&server).send(&json!(1), Duration::ZERO).await.unwrap_err().transient);
        assert_eq!(server.hits(), 3);
        server.set(400, r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}"#);
        queue(&server).send(&json!(1), Duration::ZERO).await.unwrap_err();
        assert_eq!(server.hits(), 4);
    }
}
