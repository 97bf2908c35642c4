//! Serves the queues to functions in other processes, over HTTP.

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;

use super::Queues;
use super::protocol::{PROTOCOL, operation};
use crate::http_server;

impl Queues {
    /// Serves until the future is dropped. Doesn't check signatures.
    pub async fn serve(self, listener: TcpListener) {
        http_server::serve(listener, move |request| {
            let queues = self.clone();
            async move {
                let (status, answer) = match operation(request.headers()) {
                    Ok(operation) => queues.answer(&operation, request.body()),
                    Err(error) => error.answer(),
                };
                let response = http::Response::builder().status(status).header(CONTENT_TYPE, PROTOCOL.content_type());
                response
                    .body(Bytes::from(answer.to_string()))
                    .unwrap_or_else(|_| http_server::empty(StatusCode::INTERNAL_SERVER_ERROR))
            }
        })
        .await;
    }
}
