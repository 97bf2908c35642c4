//! The callers: connections that each send the next request as soon as the last is answered.

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

/// Makes the requests with this number, which are sent one after the other and count as one.
pub(super) type RequestMaker = Arc<dyn Fn(usize) -> Vec<Request<Full<Bytes>>> + Send + Sync>;

/// The result of a load.
pub(super) struct Load {
    pub(super) elapsed: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
    bytes: usize,
}

impl Load {
    /// Sends requests for this time. An answer other than a success is an error.
    pub(super) async fn run(make: &RequestMaker, connections: usize, time: Duration) -> Result<Self, Failure> {
        let start = Instant::now();
        // Loads with different numbers of connections use different numbers, because a member can like a comment only
        // once.
        let number = Arc::new(AtomicUsize::new(connections * 100_000));
        let mut callers = JoinSet::new();
        for _ in 0..connections {
            let (make, number) = (Arc::clone(make), Arc::clone(&number));
            callers.spawn(async move {
                let client = client();
                let (mut latencies, mut bytes) = (Vec::new(), 0);
                while start.elapsed() < time {
                    let requests = make(number.fetch_add(1, Ordering::Relaxed));
                    let sent = Instant::now();
                    for request in requests {
                        bytes += send(&client, request).await?.len();
                    }
                    latencies.push(sent.elapsed());
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

    /// The average size of an answer's body.
    pub(super) fn bytes(&self) -> usize {
        self.bytes / self.requests().max(1)
    }

    /// The latency that this percentage of answers did not exceed.
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
    let line = format!("{} {}", request.method(), request.uri());
    let answer = client.request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() {
        Ok(body)
    } else {
        Err(format!("{line}: {status} {}", String::from_utf8_lossy(&body)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_longest_of_that_many_latencies() {
        let latencies = (1..=200).map(Duration::from_millis).collect();
        let load = Load { elapsed: Duration::from_secs(1), latencies, bytes: 400 };
        assert_eq!(load.percentile(50), Duration::from_millis(100));
        assert_eq!(load.percentile(99), Duration::from_millis(198));
        assert_eq!(load.bytes(), 2);
    }
}
