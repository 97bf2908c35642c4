//! The engine over HTTP, for functions in other processes. Anybody on this machine may use it; nobody's signature is checked.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::{Engine, TARGET};

impl Engine {
    /// Serves until `shutdown` resolves.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let stream = tokio::select! {
                () = &mut shutdown => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!("no connection accepted: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let engine = self.clone();
            let service = service_fn(move |request| {
                let engine = engine.clone();
                async move { Ok::<_, Infallible>(engine.respond(request).await) }
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

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let operation = super::operation(request.headers().get(TARGET).and_then(|target| target.to_str().ok()));
        let Ok(body) = request.into_body().collect().await else { return empty(StatusCode::BAD_REQUEST) };
        match self.answer(operation, body.to_bytes().to_vec()).await {
            Ok((status, answer)) => {
                let response = Response::builder().status(status).header(CONTENT_TYPE, super::CONTENT_TYPE);
                let response = response.body(Full::new(Bytes::from(answer)));
                response.unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
            }
            Err(panic) => {
                tracing::error!("the table's engine failed: {panic}");
                empty(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
