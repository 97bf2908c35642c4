//! Sends emails through Amazon SES.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::aws::call::{Call, CallError, Caller, Operation};

pub const TIMEOUT: Duration = Duration::from_secs(10);
pub const SEND_EMAIL: &str = "/v2/email/outbound-emails";
/// The email tag that names the recipient. Bounces and complaints include it.
pub const RECIPIENT: &str = "recipient";

#[derive(Clone, Debug)]
pub struct RawMail {
    pub from: String,
    pub to: String,
    /// Headers and body (RFC 5322).
    pub raw: Vec<u8>,
    /// A key that identifies the recipient but contains no email address.
    pub recipient: String,
}

/// A failed or unconfirmed attempt to send an email.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct NotSent {
    /// Whether the email may have been sent.
    pub unknown: bool,
    /// Whether the server permanently refuses the email.
    pub permanent: bool,
    /// Whether the permanent refusal concerns the recipient rather than this account's right to send.
    pub of_recipient: bool,
    /// The reason, without an email address.
    pub reason: String,
}

pub struct Ses {
    region: String,
    host: String,
    configuration_set: Option<String>,
    caller: Caller,
}

impl Ses {
    #[must_use]
    pub fn new(region: String, configuration_set: Option<String>, caller: Caller) -> Self {
        let host = format!("https://email.{region}.amazonaws.com");
        Self { region, host, configuration_set, caller }
    }

    /// # Errors
    ///
    /// When SES does not confirm that it has accepted the email.
    pub async fn send(&self, mail: &RawMail) -> Result<(), NotSent> {
        let mut input = json!({
            "FromEmailAddress": mail.from,
            "Destination": { "ToAddresses": [mail.to] },
            "Content": { "Raw": { "Data": STANDARD.encode(&mail.raw) } },
            "EmailTags": [{ "Name": RECIPIENT, "Value": mail.recipient }],
        });
        if let Some(name) = &self.configuration_set {
            input["ConfigurationSetName"] = json!(name);
        }
        let operation = Operation::Path(SEND_EMAIL);
        let call = Call { service: "ses", region: &self.region, host: &self.host, operation, input };
        let sent = self.caller.call(&call).await;
        // SES's message about a refusal may contain the address, so only the kind of error is kept.
        sent.map(drop).map_err(|error| {
            let says = |text| matches!(&error, CallError::Refused { reason, .. } if reason.contains(text));
            let permanent = says("MessageRejected");
            // In the sandbox, SES refuses unverified addresses that it may accept once the account has left the sandbox.
            let of_recipient = permanent && !says("not verified");
            NotSent { unknown: error.may_be_done(), permanent, of_recipient, reason: error.kind() }
        })
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

    fn ses(url: &str) -> Ses {
        let credentials = Credentials::new("AKIDTEST", "key", None, None, "test");
        let credentials = SharedCredentialsProvider::new(credentials);
        let config = SdkConfig::builder().credentials_provider(credentials).endpoint_url(url).build();
        let caller = Caller::new(config, https::Client::for_aws(Duration::from_secs(2)));
        Ses::new("eu-west-1".to_owned(), Some("mails".to_owned()), caller)
    }

    fn mail() -> RawMail {
        RawMail {
            from: "comments@example.org".to_owned(),
            to: "ada@example.org".to_owned(),
            raw: b"Subject: Hello\r\n\r\nAda".to_vec(),
            recipient: "u7".to_owned(),
        }
    }

    #[tokio::test]
    async fn an_email_is_sent_whole_by_a_signed_request() {
        let server = Loopback::start(r#"{"MessageId":"1"}"#).await;
        ses(&server.url).send(&mail()).await.unwrap();
        let request = &server.requests()[0];
        assert!(request.starts_with("POST /v2/email/outbound-emails HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("/eu-west-1/ses/aws4_request"), "{request}");
        for part in [
            r#""FromEmailAddress":"comments@example.org""#,
            r#""ToAddresses":["ada@example.org"]"#,
            r#""ConfigurationSetName":"mails""#,
            &STANDARD.encode(mail().raw),
        ] {
            assert!(request.contains(part), "{part} in {request}");
        }
    }

    #[tokio::test]
    async fn after_a_refusal_an_email_was_not_sent_and_after_a_failure_it_may_have_been() {
        let server = Loopback::start("").await;
        for (status, unknown) in [(400, false), (403, false), (429, false), (500, true), (503, false)] {
            server.set(status, r#"{"message":"ada@example.org is suppressed"}"#);
            let error = ses(&server.url).send(&mail()).await.unwrap_err();
            assert_eq!(error.unknown, unknown, "{status}");
            assert!(!error.to_string().contains('@'), "{error}");
        }
        let rejected = |message| format!(r#"{{"__type":"MessageRejected","message":"{message}"}}"#);
        for (message, of_recipient) in [("Address blacklisted.", true), ("Email address is not verified.", false)] {
            server.set(400, rejected(message));
            let error = ses(&server.url).send(&mail()).await.unwrap_err();
            assert!(error.permanent && error.of_recipient == of_recipient, "{message}");
        }
        // Nothing listens on that port.
        assert!(!ses("http://127.0.0.1:9").send(&mail()).await.unwrap_err().unknown);
    }
}
