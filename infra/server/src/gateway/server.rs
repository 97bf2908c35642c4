//! Serves the gateway over HTTP, and limits the resources that clients can occupy.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::client::Proxies;
use super::pace::{IDLE, Pace, Paced};
use super::{BODY_LIMIT, Exchange, Gateway, Refusal, route};

/// The time that open requests have to finish once the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum connections served at once, in total and per address.
const CONNECTIONS: usize = 1_000;
const CONNECTIONS_OF_ONE: usize = 100;
/// Maximum waiting connections per address.
const WAITING_OF_ONE: usize = 200;
/// Maximum total bytes of request bodies in memory.
const HELD: usize = 64_000_000;
/// The timeouts for the next bytes of a body, and for the whole body.
const BODY_PAUSE: Duration = Duration::from_secs(30);
const BODY_TIME: Duration = Duration::from_mins(5);
/// The limits for draining a refused body, so that the client gets the response before the connection closes.
const DRAINED: usize = 32 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The limits for a server's clients.
#[derive(Clone, Debug, Default)]
pub struct Front {
    pub proxies: Proxies,
    /// The limit for request bodies, with one exempt function.
    pub small_bodies: Option<SmallBodies>,
}

#[derive(Clone, Copy, Debug)]
pub struct SmallBodies {
    pub limit: usize,
    pub except: &'static str,
}

/// State that all connections share.
struct House {
    gateway: Gateway,
    front: Front,
    connections: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    held: Arc<Semaphore>,
}

impl Gateway {
    /// Serves until `shutdown` resolves, then lets open requests finish. Calls `log` for every response.
    pub async fn serve(
        self,
        listener: TcpListener,
        front: Front,
        shutdown: impl Future<Output = ()>,
        log: impl Fn(&Exchange) + Clone + Send + Sync + 'static,
    ) {
        let house = Arc::new(House {
            gateway: self,
            front,
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            by_address: Mutex::default(),
            held: Arc::new(Semaphore::new(HELD)),
        });
        let (stop, stopping) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, peer) = tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!("accepting a connection failed: {error}");
                        // Most likely no file descriptors are left. Without a pause, this loop would spin.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            while connections.try_join_next().is_some() {}
            let peer = peer.ip().to_canonical();
            if let Some(turn) = house.turn(peer) {
                connections.spawn(Arc::clone(&house).connection(stream, peer, turn, stopping.clone(), log.clone()));
            }
        }
        drop((listener, stopping, stop));
        let finished = async { while connections.join_next().await.is_some() {} };
        if timeout(GRACE, finished).await.is_err() {
            tracing::warn!("stopped with requests still open");
        }
    }
}

impl House {
    /// The semaphore for connections from an address. `None` if too many of them are already waiting.
    fn turn(&self, peer: IpAddr) -> Option<Arc<Semaphore>> {
        if self.front.proxies.contain(peer) {
            return Some(Arc::clone(&self.connections));
        }
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = by_address.get(&peer).and_then(Weak::upgrade) {
            // Each connection, served or waiting, holds a handle.
            return (Arc::strong_count(&turns) <= CONNECTIONS_OF_ONE + WAITING_OF_ONE).then_some(turns);
        }
        by_address.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(CONNECTIONS_OF_ONE));
        by_address.insert(peer, Arc::downgrade(&turns));
        Some(turns)
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: IpAddr,
        of_address: Arc<Semaphore>,
        mut stopping: watch::Receiver<()>,
        log: impl Fn(&Exchange) + Clone + Send + Sync + 'static,
    ) {
        let is_proxy = Arc::ptr_eq(&of_address, &self.connections);
        let turns = async {
            let own = if is_proxy { None } else { Some(of_address.acquire().await) };
            (own, self.connections.acquire().await)
        };
        let _turns = tokio::select! {
            turns = timeout(IDLE, turns) => match turns { Ok(turns) => turns, Err(_) => return },
            _ = stopping.changed() => return,
        };
        let pace = Pace::default();
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let (house, pace, log) = (Arc::clone(&self), pace.clone(), log.clone());
            async move {
                pace.begin();
                let response = house.exchange(request, peer, log).await;
                pace.end();
                Ok::<_, Infallible>(response)
            }
        });
        let stream = TokioIo::new(Paced::new(stream, pace.clone()));
        let mut http = hyper::server::conn::http1::Builder::new();
        let http = http.timer(TokioTimer::new()).header_read_timeout(None);
        let mut connection = std::pin::pin!(http.serve_connection(stream, service));
        let served = tokio::select! {
            served = connection.as_mut() => served,
            _ = stopping.changed() => {
                if pace.is_idle() {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!("connection ended: {error}");
        }
    }

    async fn exchange(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        log: impl Fn(&Exchange),
    ) -> Response<Full<Bytes>> {
        let start = std::time::Instant::now();
        let (head, body) = request.into_parts();
        let (method, path) = (head.method.clone(), route::without_token(&self.gateway.shared.routes, head.uri.path()));
        let (route, function) = self.gateway.route_of(&method, head.uri.path());
        let small = self.front.small_bodies.filter(|small| function != Some(small.except));
        let response = match self.read(body, small.map_or(BODY_LIMIT, |small| small.limit)).await {
            Ok((body, _held)) => {
                let client = self.front.proxies.client(peer, &head.headers);
                self.gateway.call(Request::from_parts(head, body), client).await
            }
            Err(refusal) => {
                let mut response = self.gateway.refuse(&Request::from_parts(head, ()), refusal);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
        };
        let extensions = response.extensions().clone();
        log(&Exchange { method, path, route, status: response.status(), elapsed: start.elapsed(), extensions });
        response.map(Full::new)
    }

    /// Reads a whole body of at most `most` bytes. The body counts toward `HELD` until the permit is dropped.
    async fn read(&self, mut body: Incoming, most: usize) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let read =
            if announced > most { Err(Refusal::BodyTooLarge) } else { read_some(&self.held, &mut body, most).await };
        if matches!(read, Err(Refusal::BodyTooLarge | Refusal::Busy)) {
            tokio::spawn(timeout(DRAIN_TIME, drain(body)));
        }
        read
    }
}

/// Reads a body of at most `most` bytes. Fails if the client is too slow or `held` has no room.
async fn read_some<B: Body<Data = Bytes> + Unpin>(
    held: &Arc<Semaphore>,
    body: &mut B,
    most: usize,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
    let end = Instant::now() + BODY_TIME;
    let (mut kept, mut permit) = (BytesMut::new(), None::<OwnedSemaphorePermit>);
    loop {
        let frame = timeout_at(end.min(Instant::now() + BODY_PAUSE), body.frame()).await;
        let Some(frame) = frame.map_err(|_| Refusal::TooSlow)? else { return Ok((kept.freeze(), permit)) };
        let Ok(data) = frame.map_err(|_| Refusal::BadRequest)?.into_data() else { continue };
        if kept.len() + data.len() > most {
            return Err(Refusal::BodyTooLarge);
        }
        let more = u32::try_from(data.len()).map_err(|_| Refusal::BodyTooLarge)?;
        let more = Arc::clone(held).try_acquire_many_owned(more).map_err(|_| Refusal::Busy)?;
        match &mut permit {
            Some(permit) => permit.merge(more),
            None => permit = Some(more),
        }
        kept.extend_from_slice(&data);
    }
}

async fn drain(mut body: Incoming) {
    let mut drained = 0;
    while let Some(Ok(frame)) = body.frame().await {
        drained += frame.data_ref().map_or(0, Bytes::len);
        if drained > DRAINED {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::stream::unfold;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// An endless body that sends a byte after each pause.
    fn dripping(pause: u64) -> Pin<Box<dyn Body<Data = Bytes, Error = Infallible>>> {
        Box::pin(StreamBody::new(unfold((), move |()| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            Some((Ok(Frame::data(Bytes::from_static(b"a"))), ()))
        })))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_pause_for_thirty_seconds_and_take_five_minutes() {
        for (pause, patience) in [(31, 30), (29, 300), (1, 300)] {
            let (held, start) = (Arc::new(Semaphore::new(HELD)), Instant::now());
            let refusal = read_some(&held, &mut dripping(pause), BODY_LIMIT).await.err();
            assert!(matches!(refusal, Some(Refusal::TooSlow)), "{refusal:?}");
            assert_eq!(start.elapsed().as_secs(), patience, "a byte each {pause} seconds");
            assert_eq!(held.available_permits(), HELD, "nothing is held any more");
        }
    }
}
