//! Secret settings: a value, or the ARN of a Secrets Manager secret or an SSM parameter that holds it.

use std::time::Duration;

use aws_config::SdkConfig;
use serde_json::{Value, json};

use crate::aws::call::{Call, CallError, Caller, Operation, Version};
use crate::aws::https;
use crate::config::{Config, ConfigError};
use crate::domain::secret::{Secret, is_name};

const TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses before the second and the third attempt. Many instances may start at once, and their reads may be throttled.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(600)];

/// May contain the name of a secret, but never its value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} names neither a Secrets Manager secret nor an SSM parameter")]
    Name(String),
    #[error("{arn} could not be read: {source}")]
    Call { arn: String, source: CallError },
    #[error("{0} has no string value")]
    NotText(String),
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Secret(#[from] Error),
}

/// Replaces each setting that names a secret with the fetched secret.
pub async fn resolve_all(mut config: Config, sdk: &SdkConfig) -> Result<Config, StartError> {
    for (secret, check) in config.secrets_mut() {
        *secret = resolve(secret.expose(), sdk).await?;
        check(secret)?;
    }
    Ok(config)
}

/// Returns `value` as a secret, or fetches the secret if `value` is its ARN. Any other ARN is an error, because ARNs are too
/// easy to guess to be secrets.
///
/// # Errors
///
/// When the named secret cannot be read. Temporary failures are retried, up to three attempts.
pub async fn resolve(value: &str, config: &SdkConfig) -> Result<Secret, Error> {
    if !is_name(value) {
        return Ok(Secret::from(value.to_owned()));
    }
    let source = Source::parse(value).ok_or_else(|| Error::Name(value.to_owned()))?;
    let caller = Caller::new(config.clone(), https::Client::for_aws(TIMEOUT));
    let call = source.call();
    let mut pauses = PAUSES.into_iter();
    let output = loop {
        match (caller.call(&call).await, pauses.next()) {
            (Err(error), Some(pause)) if error.is_transient() => tokio::time::sleep(pause).await,
            (outcome, _) => break outcome.map_err(|source| Error::Call { arn: value.to_owned(), source })?,
        }
    };
    match output.pointer(source.service.output()) {
        Some(Value::String(secret)) => Ok(Secret::from(secret.clone())),
        _ => Err(Error::NotText(value.to_owned())),
    }
}

struct Source<'a> {
    arn: &'a str,
    host: String,
    region: &'a str,
    service: Service,
}

#[derive(Clone, Copy)]
enum Service {
    SecretsManager,
    Ssm,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Self::SecretsManager => "secretsmanager",
            Self::Ssm => "ssm",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::SecretsManager => "secretsmanager.GetSecretValue",
            Self::Ssm => "AmazonSSM.GetParameter",
        }
    }

    fn input(self, arn: &str) -> Value {
        match self {
            Self::SecretsManager => json!({ "SecretId": arn }),
            Self::Ssm => json!({ "Name": arn, "WithDecryption": true }),
        }
    }

    /// The JSON pointer to the secret in the output.
    fn output(self) -> &'static str {
        match self {
            Self::SecretsManager => "/SecretString",
            Self::Ssm => "/Parameter/Value",
        }
    }
}

impl<'a> Source<'a> {
    /// Parses `arn:partition:service:region:account:resource`.
    fn parse(arn: &'a str) -> Option<Self> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let &["arn", partition, service, region, account, resource] = parts.as_slice() else {
            return None;
        };
        let service = match service {
            "secretsmanager" if resource.starts_with("secret:") => Service::SecretsManager,
            "ssm" if resource.starts_with("parameter/") => Service::Ssm,
            _ => return None,
        };
        let domain = match partition {
            "aws" | "aws-us-gov" => "amazonaws.com",
            "aws-cn" => "amazonaws.com.cn",
            _ => return None,
        };
        // The region becomes part of a host name, so anything that doesn't look like a region is refused.
        let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_region && !account.is_empty()).then(|| Self {
            arn,
            host: format!("https://{}.{region}.{domain}", service.name()),
            region,
            service,
        })
    }

    fn call(&self) -> Call<'_> {
        Call {
            service: self.service.name(),
            region: self.region,
            host: &self.host,
            operation: Operation::Json(Version::V1_1, self.service.target()),
            input: self.service.input(self.arn),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;

    use super::*;
    use crate::aws::loopback::Loopback;

    const MANAGED: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf";
    const PARAMETER: &str = "arn:aws:ssm:eu-central-1:123456789012:parameter/comments/salt";

    fn config(server: &Loopback) -> SdkConfig {
        let credentials = Credentials::new("AKIDTEST", "key", Some("session".into()), None, "test");
        SdkConfig::builder()
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(&server.url)
            .build()
    }

    #[tokio::test]
    async fn a_value_that_is_not_an_arn_is_the_secret() {
        let server = Loopback::start("").await;
        let secret = resolve("s3cret", &config(&server)).await.unwrap();
        assert_eq!(secret.expose(), "s3cret");
        assert_eq!(server.hits(), 0);
    }

    #[tokio::test]
    async fn a_secrets_manager_secret_is_read() {
        let server = Loopback::start(r#"{"SecretString":"from the manager"}"#).await;
        let secret = resolve(MANAGED, &config(&server)).await.unwrap();
        assert_eq!(secret.expose(), "from the manager");
        let request = &server.requests()[0];
        assert!(request.contains("x-amz-target: secretsmanager.GetSecretValue"), "{request}");
        assert!(request.contains("content-type: application/x-amz-json-1.1\r\n"), "{request}");
        assert!(request.contains("/eu-west-1/secretsmanager/aws4_request"), "{request}");
        assert!(request.contains("Credential=AKIDTEST/"), "{request}");
        assert!(request.contains("x-amz-security-token: session"), "{request}");
        assert!(
            request.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target"),
            "{request}"
        );
        assert!(request.ends_with(&format!(r#"{{"SecretId":"{MANAGED}"}}"#)), "{request}");
    }

    #[tokio::test]
    async fn a_parameter_is_read_and_decrypted() {
        let server = Loopback::start(r#"{"Parameter":{"Value":"from the store"}}"#).await;
        let secret = resolve(PARAMETER, &config(&server)).await.unwrap();
        assert_eq!(secret.expose(), "from the store");
        let request = &server.requests()[0];
        assert!(request.contains("x-amz-target: AmazonSSM.GetParameter"), "{request}");
        assert!(request.contains("content-type: application/x-amz-json-1.1\r\n"), "{request}");
        assert!(request.contains("/eu-central-1/ssm/aws4_request"), "{request}");
        assert!(request.contains(r#""WithDecryption":true"#), "{request}");
        assert!(request.contains(&format!(r#""Name":"{PARAMETER}""#)), "{request}");
    }

    #[tokio::test]
    async fn an_arn_of_anything_else_is_not_a_secret() {
        let server = Loopback::start("").await;
        for arn in [
            "arn:aws:s3:::bucket",
            "arn:aws:ssm:eu-west-1:123456789012:document/x",
            "arn:aws:secretsmanager:eu-west-1:123456789012:key:x",
            "arn:aws:ssm::123456789012:parameter/x",
            "arn:aws:ssm:evil.example/:123456789012:parameter/x",
            "arn:other:ssm:eu-west-1:123456789012:parameter/x",
            "arn:aws:ssm",
        ] {
            let error = resolve(arn, &config(&server)).await.unwrap_err();
            assert!(matches!(error, Error::Name(_)), "{arn}");
        }
        assert_eq!(server.hits(), 0);
    }

    #[test]
    fn every_partition_has_its_hosts() {
        let host = |arn| Source::parse(arn).unwrap().host;
        assert_eq!(host(MANAGED), "https://secretsmanager.eu-west-1.amazonaws.com");
        assert_eq!(
            host("arn:aws-cn:ssm:cn-north-1:123456789012:parameter/x"),
            "https://ssm.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(
            host("arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:secret:x"),
            "https://secretsmanager.us-gov-west-1.amazonaws.com"
        );
    }

    #[tokio::test]
    async fn a_refusal_says_why_and_is_final() {
        let server = Loopback::start("").await;
        server.set(400, r#"{"__type":"AccessDeniedException","message":"not yours"}"#);
        let error = resolve(MANAGED, &config(&server)).await.unwrap_err();
        assert!(error.to_string().contains("400 AccessDeniedException not yours"), "{error}");
        assert_eq!(server.hits(), 1);
    }

    #[tokio::test]
    async fn a_throttled_read_is_tried_three_times() {
        let server = Loopback::start("").await;
        server.set(400, r#"{"__type":"ThrottlingException"}"#);
        resolve(PARAMETER, &config(&server)).await.unwrap_err();
        assert_eq!(server.hits(), 3);
    }

    #[tokio::test]
    async fn a_secret_that_is_not_text_is_an_error_without_its_value() {
        let server = Loopback::start(r#"{"SecretBinary":"aHVzaA=="}"#).await;
        let error = resolve(MANAGED, &config(&server)).await.unwrap_err();
        assert!(matches!(error, Error::NotText(_)));
        assert!(!format!("{error} {error:?}").contains("aHVzaA"));
    }

    #[tokio::test]
    async fn without_credentials_nothing_is_sent() {
        let error = resolve(MANAGED, &SdkConfig::builder().build()).await.unwrap_err();
        assert!(matches!(error, Error::Call { source: CallError::Credentials(None), .. }), "{error:?}");
    }

    #[tokio::test]
    async fn a_secret_of_fewer_than_32_bytes_stops_the_start_when_it_is_fetched_too() {
        let server = Loopback::start(r#"{"SecretString":"short"}"#).await;
        let with = |variable: &'static str| {
            let value = move |name: &str| match name {
                name if name == variable => Some(MANAGED.to_owned()),
                "TABLE_NAME" | "SVC_JWT_SECRET" | "SVC_VISITOR_SALT" => Some("x".repeat(32)),
                _ => None,
            };
            Config::from_vars(value).unwrap()
        };
        for (variable, least) in [("SVC_JWT_SECRET", 32), ("SVC_VISITOR_SALT", 16)] {
            let error = resolve_all(with(variable), &config(&server)).await.unwrap_err().to_string();
            assert_eq!(error, format!("{variable}: expected a secret of at least {least} bytes"));
        }
        server.set(200, r#"{"SecretString":"a secret of at least thirty-two bytes"}"#);
        assert!(resolve_all(with("SVC_JWT_SECRET"), &config(&server)).await.is_ok());
    }
}
