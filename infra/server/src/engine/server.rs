//! Serves the engine over HTTP, for functions in other processes. Any process on this machine may use it, because
//! signatures aren't checked.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use tokio::net::TcpListener;

use super::Engine;
use super::protocol::{PROTOCOL, operation};
use crate::http_server::{self, empty};

impl Engine {
    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        http_server::serve(listener, move |request| {
            let engine = self.clone();
            async move { engine.respond_over_http(request).await }
        })
        .await;
    }

    async fn respond_over_http(&self, request: Request<Bytes>) -> Response<Bytes> {
        let operation = operation(|name| request.headers().get(name)?.to_str().ok());
        match self.answer(operation, request.into_body().to_vec()).await {
            Ok((status, answer)) => {
                let response = Response::builder().status(status).header(CONTENT_TYPE, PROTOCOL.content_type());
                response.body(answer.into()).unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
            }
            Err(panic) => {
                tracing::error!("the table's engine panicked: {panic}");
                empty(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}
