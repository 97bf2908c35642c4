//! Secret settings: written out, or named by the ARN of a Secrets Manager secret or an SSM parameter. What they are for is
//! not known here.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use serde_json::{Value, json};

use crate::aws::https;
use crate::domain::secret::Secret;

const TIMEOUT: Duration = Duration::from_secs(3);
/// Before the second and the third attempt: every instance that starts at once asks at once.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(600)];

/// Names the secret at most, and never holds its value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} names neither a Secrets Manager secret nor an SSM parameter")]
    Name(String),
    #[error("no credentials to read {arn} with")]
    Credentials {
        arn: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    #[error("no request for {arn} could be made")]
    Request {
        arn: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{arn} could not be read")]
    Https {
        arn: String,
        #[source]
        source: https::Error,
    },
    #[error("{arn} was refused: {status} {reason}")]
    Refused { arn: String, status: u16, reason: String },
    #[error("{0} holds no string")]
    NotText(String),
}

/// Whether `value` says where a secret is kept instead of being one.
#[must_use]
pub fn is_name(value: &str) -> bool {
    value.starts_with("arn:")
}

/// `value` itself, unless it is an ARN: then what that names. An ARN of anything else is an error, because names are
/// easily guessed.
///
/// # Errors
///
/// When the named secret cannot be read, after three attempts if another might help.
pub async fn resolve(value: &str, config: &SdkConfig) -> Result<Secret, Error> {
    if !is_name(value) {
        return Ok(Secret::from(value.to_owned()));
    }
    let source = Source::parse(value).ok_or_else(|| Error::Name(value.to_owned()))?;
    let client = https::Client::for_aws(TIMEOUT);
    for pause in PAUSES {
        match source.read(&client, config).await {
            Err(error) if error.is_transient() => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
    source.read(&client, config).await
}

impl Error {
    fn is_transient(&self) -> bool {
        match self {
            Self::Https { .. } => true,
            Self::Refused { status, reason, .. } => *status >= 500 || *status == 429 || reason.contains("Throttling"),
            _ => false,
        }
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

    fn operation(self) -> &'static str {
        match self {
            Self::SecretsManager => "secretsmanager.GetSecretValue",
            Self::Ssm => "AmazonSSM.GetParameter",
        }
    }

    fn input(self, arn: &str) -> String {
        match self {
            Self::SecretsManager => json!({ "SecretId": arn }),
            Self::Ssm => json!({ "Name": arn, "WithDecryption": true }),
        }
        .to_string()
    }

    fn output(self) -> &'static str {
        match self {
            Self::SecretsManager => "/SecretString",
            Self::Ssm => "/Parameter/Value",
        }
    }
}

impl<'a> Source<'a> {
    /// `arn:partition:service:region:account:resource`
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
        // It becomes part of a host name.
        let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_region && !account.is_empty()).then(|| Self {
            arn,
            host: format!("https://{}.{region}.{domain}", service.name()),
            region,
            service,
        })
    }

    async fn read(&self, client: &https::Client, config: &SdkConfig) -> Result<Secret, Error> {
        let arn = || self.arn.to_owned();
        let request = self.request(config).await?;
        let answer = client.send(request).await.map_err(|source| Error::Https { arn: arn(), source })?;
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if !answer.status().is_success() {
            let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
            return Err(Error::Refused {
                arn: arn(),
                status: answer.status().as_u16(),
                reason: format!("{} {}{}", field("__type"), field("message"), field("Message")),
            });
        }
        match body.pointer(self.service.output()) {
            Some(Value::String(value)) => Ok(Secret::from(value.clone())),
            _ => Err(Error::NotText(arn())),
        }
    }

    async fn request(&self, config: &SdkConfig) -> Result<http::Request<String>, Error> {
        let provider = config
            .credentials_provider()
            .ok_or_else(|| Error::Credentials { arn: self.arn.to_owned(), source: None })?;
        let identity = provider
            .provide_credentials()
            .await
            .map_err(|error| Error::Credentials { arn: self.arn.to_owned(), source: Some(error.into()) })?
            .into();
        let now = config.time_source().unwrap_or_default().now();
        self.signed(config.endpoint_url().unwrap_or(&self.host), &identity, now)
            .map_err(|source| Error::Request { arn: self.arn.to_owned(), source })
    }

    fn signed(
        &self,
        endpoint: &str,
        identity: &aws_smithy_runtime_api::client::identity::Identity,
        now: std::time::SystemTime,
    ) -> Result<http::Request<String>, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = http::Request::post(format!("{}/", endpoint.trim_end_matches('/')))
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", self.service.operation())
            .body(self.service.input(self.arn))?;
        let parameters = v4::SigningParams::builder()
            .identity(identity)
            .region(self.region)
            .name(self.service.name())
            .time(now)
            .settings(SigningSettings::default())
            .build()?
            .into();
        let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.uri().to_string(),
            headers,
            SignableBody::Bytes(request.body().as_bytes()),
        )?;
        let (instructions, _signature) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
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
    async fn a_value_written_out_passes_through() {
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
        assert!(request.contains("/eu-central-1/ssm/aws4_request"), "{request}");
        assert!(request.contains(r#""WithDecryption":true"#), "{request}");
        assert!(request.contains(&format!(r#""Name":"{PARAMETER}""#)), "{request}");
    }

    #[tokio::test]
    async fn an_arn_of_anything_else_is_no_secret() {
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
    async fn a_secret_that_is_no_text_is_an_error_without_its_value() {
        let server = Loopback::start(r#"{"SecretBinary":"aHVzaA=="}"#).await;
        let error = resolve(MANAGED, &config(&server)).await.unwrap_err();
        assert!(matches!(error, Error::NotText(_)));
        assert!(!format!("{error} {error:?}").contains("aHVzaA"));
    }

    #[tokio::test]
    async fn without_credentials_nothing_is_sent() {
        let error = resolve(MANAGED, &SdkConfig::builder().build()).await.unwrap_err();
        assert!(matches!(error, Error::Credentials { .. }));
    }
}
