//! The gateway over HTTP.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;

use super::{BODY_LIMIT, Exchange, Gateway, Refusal, route};

/// The time that open connections have to finish once the server stops.
const GRACE: Duration = Duration::from_secs(5);

impl Gateway {
    /// Serves until `shutdown` resolves, then lets open requests finish. Calls `log` for every answer.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
        log: impl Fn(&Exchange) + Clone + Send + Sync + 'static,
    ) {
        let connections = GracefulShutdown::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, peer) = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!("accepting a connection failed: {error}");
                        // Most likely there are no file descriptors left. Without a pause this loop would spin.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let gateway = self.clone();
            let log = log.clone();
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let gateway = gateway.clone();
                let log = log.clone();
                async move { Ok::<_, Infallible>(gateway.exchange(request, peer.ip(), log).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!("connection ended: {error}");
                }
            });
        }
        drop(listener);
        if tokio::time::timeout(GRACE, connections.shutdown()).await.is_err() {
            tracing::warn!("stopped with requests still open");
        }
    }

    async fn exchange(&self, request: Request<Incoming>, ip: IpAddr, log: impl Fn(&Exchange)) -> Response<Full<Bytes>> {
        let start = Instant::now();
        let (head, body) = request.into_parts();
        let (method, path) = (head.method.clone(), route::without_token(&self.shared.routes, head.uri.path()));
        let response = match read(body).await {
            Ok(body) => self.call(Request::from_parts(head, body), ip).await,
            Err(error) => {
                tracing::debug!("reading a request body failed: {error}");
                Refusal::BadRequest.into_response()
            }
        };
        let extensions = response.extensions().clone();
        log(&Exchange { method, path, status: response.status(), elapsed: start.elapsed(), extensions });
        response.map(Full::new)
    }
}

/// Keeps at most one byte more than the limit. The rest is read and dropped, so that the client receives the answer.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut kept = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            let room = (BODY_LIMIT + 1).saturating_sub(kept.len());
            kept.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    Ok(kept.freeze())
}
