//! Messages of the queue `Deliveries`, which the function `delivery` handles. A message may be delivered late or more than
//! once.

use serde::{Deserialize, Serialize};

use crate::mail_keys::Recipient;
use crate::sign_in::keys::FlowId;
use crate::webhook::{EndpointId, Event, MessageId};

/// `Type` is SNS's field for the kind of a message. Our messages use it too, so that one tag distinguishes all kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "Type")]
pub enum Message {
    /// An email to this recipient may be due.
    Mail {
        recipient: Recipient,
    },
    /// A sign-in code was requested.
    Code {
        flow: FlowId,
    },
    Webhook(DueWebhook),
    /// An SNS notification whose text is an SES event about a sent email.
    #[serde(rename = "Notification")]
    Feedback {
        #[serde(rename = "Message")]
        text: String,
    },
}

/// A webhook delivery whose next attempt may be due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueWebhook {
    pub webhook: EndpointId,
    pub message: MessageId,
    #[serde(flatten)]
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommentId, ThreadId};
    use crate::time::Timestamp;
    use crate::webhook::{EventKind, Subject};

    #[test]
    fn every_delivery_message_survives_a_round_trip() {
        let subject =
            Subject { comment: CommentId(9), parent: Some(CommentId(8)), thread: ThreadId::new("posts", "1").unwrap() };
        let webhook = |event, subject| {
            let (webhook, at) = (EndpointId(7), Timestamp(1_800_000_000_000));
            let message = MessageId::new(webhook, event, "record", at);
            Message::Webhook(DueWebhook { webhook, message, event: Event { kind: event, at, subject } })
        };
        for message in [
            Message::Mail { recipient: Recipient::moderators() },
            Message::Code { flow: FlowId { inbox: "i".repeat(22), nonce: "n".repeat(22) } },
            webhook(EventKind::Created, Some(subject)),
            webhook(EventKind::Test, None),
        ] {
            let body = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&body).unwrap(), message, "{body}");
        }
    }

    #[test]
    fn a_notification_of_sns_is_feedback() {
        let body = r#"{"Type":"Notification","MessageId":"1","TopicArn":"arn","Message":"{}","SignatureVersion":"1"}"#;
        let text = "{}".to_owned();
        assert_eq!(serde_json::from_str::<Message>(body).unwrap(), Message::Feedback { text });
    }

    #[test]
    fn a_malformed_delivery_message_is_refused() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"Type":"Mail"}"#,
            r#"{"Type":"Code","flow":"x"}"#,
            r#"{"Type":"Webhook","webhook":7,"message":"msg_x"}"#,
            r#"{"Type":"Notification"}"#,
            r#"{"Type":"Other","recipient":"u7"}"#,
            r#"{"Message":"{}"}"#,
        ] {
            assert!(serde_json::from_str::<Message>(body).is_err(), "{body}");
        }
    }
}
