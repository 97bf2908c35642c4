//! The engine over HTTP, for functions in other processes. Anybody on this machine may use it; nobody's signature is checked.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use tokio::net::TcpListener;

use super::{Engine, TARGET};
use crate::server::{self, empty};

impl Engine {
    /// Serves until it is dropped.
    pub async fn serve(self, listener: TcpListener) {
        server::serve(listener, move |request| {
            let engine = self.clone();
            async move { engine.respond(request).await }
        })
        .await;
    }

    async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let operation = super::operation(request.headers().get(TARGET).and_then(|target| target.to_str().ok()));
        match self.answer(operation, request.into_body().to_vec()).await {
            Ok((status, answer)) => {
                let response = Response::builder().status(status).header(CONTENT_TYPE, super::CONTENT_TYPE);
                response.body(answer.into()).unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
            }
            Err(panic) => {
                tracing::error!("the table's engine failed: {panic}");
                empty(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}
