//! An SDK client for the bucket. Its signed requests are handled in this process, without a socket.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::{Request, StatusCode};
use http_body_util::BodyExt;

use super::{Bucket, refused};
use crate::access;
use crate::account::{ACCESS_KEY, REGION};

/// No server listens at this host name, because requests don't leave the process.
const HOST_NAME: &str = "bucket.localhost";

impl Bucket {
    #[must_use]
    pub fn client(&self) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "local"))
            .endpoint_url(format!("http://{HOST_NAME}"))
            .force_path_style(true)
            .http_client(http_client_fn(move |_, _| connector.clone()));
        Client::from_conf(config.build())
    }

    async fn respond_to_sdk(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request: Request<SdkBody> =
            request.try_into_http1x().map_err(|error| ConnectorError::user(Box::new(error)))?;
        let key = request.uri().path().trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        let response = if let Err(denied) = access::check_object(request.method(), key) {
            tracing::error!("{denied}");
            refused(StatusCode::FORBIDDEN, "AccessDenied", &denied)
        } else {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(ConnectorError::user)?;
            self.respond(Request::from_parts(head, body.to_bytes())).await
        };
        HttpResponse::try_from(response.map(SdkBody::from))
            .map_err(|error| ConnectorError::other(Box::new(error), None))
    }
}

impl HttpConnector for Bucket {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let bucket = self.clone();
        HttpConnectorFuture::new(async move { bucket.respond_to_sdk(request).await })
    }
}
