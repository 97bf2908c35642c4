//! Handles calls from functions in this process, without a socket.

use futures_util::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};
use shared::aws::call::Transport;
use shared::aws::https;

use super::Queues;
use super::protocol::{operation, queue_name};
use crate::access;

/// Checks permissions as AWS does.
impl Transport for Queues {
    fn send(&self, request: http::Request<String>) -> BoxFuture<'_, Result<http::Response<Vec<u8>>, https::Error>> {
        Box::pin(async move {
            let body: Value = serde_json::from_str(request.body()).unwrap_or_default();
            let (status, answer) = match operation(request.headers()) {
                Ok(operation) => match access::check_queue(&operation, queue_name(&body)) {
                    Ok(()) => self.answer(&operation, request.body().as_bytes()),
                    Err(denied) => {
                        tracing::error!("{denied}");
                        (StatusCode::FORBIDDEN, json!({ "__type": "AccessDeniedException", "message": denied }))
                    }
                },
                Err(error) => error.answer(),
            };
            let mut response = http::Response::new(answer.to_string().into_bytes());
            *response.status_mut() = status;
            Ok(response)
        })
    }
}
