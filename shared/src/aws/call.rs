//! Signed calls to AWS services without their SDK crates, whose size and start-up time a few calls don't justify.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::SystemTime;

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::aws::https;

type BoxError = Box<dyn StdError + Send + Sync>;

pub struct Call<'a> {
    /// Name of the service in signatures, such as `ssm`.
    pub service: &'static str,
    pub region: &'a str,
    /// Scheme and host. An endpoint in the SDK configuration replaces them.
    pub host: &'a str,
    pub operation: Operation,
    pub input: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The header `X-Amz-Target` names the service and the operation. The body is JSON in this version of AWS's protocol.
    Json(Version, &'static str),
    /// The path names the operation.
    Path(&'static str),
    /// The input's field `Action` names the operation. The input is sent as a form, and the response is XML.
    Query,
}

/// The version of AWS's JSON protocol that a service supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// SQS and `DynamoDB`.
    V1_0,
    /// Secrets Manager and SSM.
    V1_1,
}

impl Version {
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::V1_0 => "application/x-amz-json-1.0",
            Self::V1_1 => "application/x-amz-json-1.1",
        }
    }
}

impl Operation {
    fn path(self) -> &'static str {
        match self {
            Self::Json(..) | Self::Query => "/",
            Self::Path(path) => path,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Json(version, _) => version.content_type(),
            Self::Path(_) => "application/json",
            Self::Query => "application/x-www-form-urlencoded",
        }
    }

    fn body(self, input: &Value) -> String {
        match (self, input) {
            (Self::Query, Value::Object(fields)) => {
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let fields = fields.iter().map(|(name, value)| (name, text(value)));
                form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
            }
            _ => input.to_string(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("no credentials")]
    Credentials(#[source] Option<BoxError>),
    #[error("the request could not be built or signed")]
    Request(#[source] BoxError),
    #[error("no response")]
    Https(#[from] https::Error),
    #[error("refused with {status} {reason}")]
    Refused { status: u16, reason: String },
}

impl CallError {
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Https(_) => true,
            Self::Refused { status, reason } => *status >= 500 || *status == 429 || reason.contains("Throttling"),
            Self::Credentials(_) | Self::Request(_) => false,
        }
    }

    /// Describes the failure without any text from the service.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Self::Refused { status, .. } => format!("refused with {status}"),
            Self::Https(error) => format!("no response: {error}"),
            other => other.to_string(),
        }
    }

    /// Whether the service may have carried out the call, although no response confirms it.
    pub(super) fn may_be_done(&self) -> bool {
        match self {
            Self::Https(error) => error.may_be_sent(),
            // A 503 means that the service has done nothing.
            Self::Refused { status, .. } => *status >= 500 && *status != 503,
            Self::Credentials(_) | Self::Request(_) => false,
        }
    }
}

/// Sends signed requests. [`https::Client`] sends them to AWS, and the single-machine server handles them itself.
pub trait Transport: Send + Sync + 'static {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>>;
}

impl Transport for https::Client {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>> {
        Box::pin(self.send(request))
    }
}

/// Makes calls with the credentials of an SDK configuration.
#[derive(Clone)]
pub struct Caller {
    config: SdkConfig,
    transport: Arc<dyn Transport>,
}

impl Caller {
    #[must_use]
    pub fn new(config: SdkConfig, transport: impl Transport) -> Self {
        Self { config, transport: Arc::new(transport) }
    }

    /// The response of the service, whatever its status.
    pub async fn send(&self, call: &Call<'_>) -> Result<http::Response<Vec<u8>>, CallError> {
        let provider = self.config.credentials_provider().ok_or(CallError::Credentials(None))?;
        let credentials = provider.provide_credentials().await;
        let identity = credentials.map_err(|error| CallError::Credentials(Some(error.into())))?.into();
        let now = self.config.time_source().unwrap_or_default().now();
        let endpoint = self.config.endpoint_url().unwrap_or(call.host);
        let request = signed(call, endpoint, &identity, now).map_err(CallError::Request)?;
        Ok(self.transport.send(request).await?)
    }

    /// The output of the operation; `null` if the response isn't JSON.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<Value, CallError> {
        let answer = self.send(call).await?;
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if answer.status().is_success() {
            return Ok(body);
        }
        let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        // REST services name the error in a header. Some services write `message`, others `Message`.
        let header = answer.headers().get("x-amzn-errortype").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let reason = format!("{header}{} {}{}", field("__type"), field("message"), field("Message"));
        Err(CallError::Refused { status: answer.status().as_u16(), reason })
    }
}

fn signed(
    call: &Call<'_>,
    endpoint: &str,
    identity: &Identity,
    now: SystemTime,
) -> Result<http::Request<String>, BoxError> {
    let request = http::Request::post(format!("{}{}", endpoint.trim_end_matches('/'), call.operation.path()));
    let mut request = request.header("content-type", call.operation.content_type());
    if let Operation::Json(_, target) = call.operation {
        request = request.header("x-amz-target", target);
    }
    let mut request = request.body(call.operation.body(&call.input))?;
    let parameters = v4::SigningParams::builder()
        .identity(identity)
        .region(call.region)
        .name(call.service)
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
