//! The callers: so many connections, each asking again as soon as it is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

use super::Failure;

/// The request of this number.
pub(super) type Ask = Arc<dyn Fn(usize) -> Request<Full<Bytes>> + Send + Sync>;

/// What came of it.
pub(super) struct Load {
    pub(super) elapsed: Duration,
    /// From the shortest to the longest.
    latencies: Vec<Duration>,
    bytes: usize,
}

impl Load {
    /// Asks for as long as told. Any answer but a success ends it.
    pub(super) async fn put(ask: &Ask, connections: usize, time: Duration) -> Result<Self, Failure> {
        let start = Instant::now();
        // Loads of different width ask for different things: who has liked something may not do so again.
        let number = Arc::new(AtomicUsize::new(connections * 100_000));
        let mut callers = JoinSet::new();
        for _ in 0..connections {
            let (ask, number) = (Arc::clone(ask), Arc::clone(&number));
            callers.spawn(async move {
                let client = client();
                let (mut latencies, mut bytes) = (Vec::new(), 0);
                while start.elapsed() < time {
                    let request = ask(number.fetch_add(1, Ordering::Relaxed));
                    let asked = Instant::now();
                    bytes += send(&client, request).await?.len();
                    latencies.push(asked.elapsed());
                }
                Ok::<_, Failure>((latencies, bytes))
            });
        }
        let mut load = Self { elapsed: Duration::ZERO, latencies: Vec::new(), bytes: 0 };
        while let Some(caller) = callers.join_next().await {
            let (latencies, bytes) = caller??;
            load.latencies.extend(latencies);
            load.bytes += bytes;
        }
        load.elapsed = start.elapsed();
        load.latencies.sort_unstable();
        Ok(load)
    }

    pub(super) fn requests(&self) -> usize {
        self.latencies.len()
    }

    /// Of an answer's body, on average.
    pub(super) fn bytes(&self) -> usize {
        self.bytes / self.requests().max(1)
    }

    /// That this many of a hundred answers took no longer than.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let place = (self.requests() * percent).div_ceil(100).saturating_sub(1);
        self.latencies.get(place).copied().unwrap_or_default()
    }
}

pub(super) fn client() -> Client<HttpConnector, Full<Bytes>> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(tcp)
}

/// The body of a successful answer.
pub(super) async fn send(
    client: &Client<HttpConnector, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Bytes, Failure> {
    let asked = format!("{} {}", request.method(), request.uri());
    let answer = client.request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() {
        Ok(body)
    } else {
        Err(format!("{asked}: {status} {}", String::from_utf8_lossy(&body)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_longest_of_the_shortest() {
        let latencies = (1..=200).map(Duration::from_millis).collect();
        let load = Load { elapsed: Duration::from_secs(1), latencies, bytes: 400 };
        assert_eq!(load.percentile(50), Duration::from_millis(100));
        assert_eq!(load.percentile(99), Duration::from_millis(198));
        assert_eq!(load.bytes(), 2);
    }
}
