//! A small HTTP server for the table, bucket, queues and tests. The gateway has a separate one that stops gracefully.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Serves until the future is dropped.
pub async fn serve<F, A>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Bytes>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<Bytes>> + Send + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("accepting a connection failed: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let answer = answer.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer.clone();
            async move {
                let (head, body) = request.into_parts();
                let answer = match body.collect().await {
                    Ok(body) => answer(Request::from_parts(head, body.to_bytes())).await,
                    Err(_) => empty(StatusCode::BAD_REQUEST),
                };
                Ok::<_, Infallible>(answer.map(Full::new))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("connection ended: {error}");
            }
        });
    }
}

#[must_use]
pub fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
