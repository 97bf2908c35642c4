//! An SDK client for the engine. Its requests are handled in this process, without a socket.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region, StalledStreamProtectionConfig};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use serde_json::json;

use super::Engine;
use super::protocol::{PROTOCOL, operation};
use crate::access;
use crate::account::{ACCESS_KEY, REGION};

impl Engine {
    /// An HTTP client for the SDK. Tests wrap the connector to inject faults.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_, _| connector.clone())
    }

    /// A complete configuration except for retries and interceptors.
    #[must_use]
    pub fn client_builder(&self) -> Builder {
        aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "local"))
            .http_client(self.http_client())
            // On a busy machine, a large response may stall for longer than the SDK allows.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
    }

    #[must_use]
    pub fn client(&self) -> Client {
        Client::from_conf(self.client_builder().build())
    }

    async fn respond(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let operation = operation(|name| request.headers().get(name));
        let body = request.body().bytes().map(<[u8]>::to_vec);
        let body = body.ok_or_else(|| ConnectorError::user("the engine takes no streaming body".into()))?;
        if let Err(denied) = access::check_table(&operation, &body) {
            tracing::error!("{denied}");
            let answer = json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "Message": denied });
            return response(400, answer.to_string());
        }
        // Yields, so that concurrent calls overlap as they would over a network.
        tokio::task::yield_now().await;
        let answer = self.answer(operation, body).await;
        let (status, answer) = answer.map_err(|panic| ConnectorError::other(panic.into(), None))?;
        let mut response = response(status, answer)?;
        response.headers_mut().insert("content-type", PROTOCOL.content_type());
        response.headers_mut().insert("x-amzn-requestid", "LOCAL");
        Ok(response)
    }
}

fn response(status: u16, body: impl Into<SdkBody>) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
    Ok(HttpResponse::new(status, body.into()))
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = self.clone();
        HttpConnectorFuture::new(async move { engine.respond(request).await })
    }
}
