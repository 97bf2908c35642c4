//! Requests to URLs that users choose, such as webhook URLs. The resolved address is checked and then used for the connection,
//! so a name can't resolve to a private address after the check.

use std::error::Error as StdError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::https;
use crate::domain::webhook_url::is_public;

/// Bounds a whole exchange, from the DNS lookup to the head of the response.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

#[must_use]
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    })
}

type Connections = Pool<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

#[derive(Clone)]
pub struct Outbound {
    resolver: Resolver,
    timeout: Duration,
    pool: Arc<OnceLock<Connections>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no response within {0:?}")]
    Timeout(Duration),
    #[error("the address is private")]
    Private,
    #[error("the connection failed")]
    Connection(#[source] Box<dyn StdError + Send + Sync>),
}

impl Outbound {
    /// `private`: whether to allow connections to private addresses.
    #[must_use]
    pub fn new(lookup: Lookup, private: bool) -> Self {
        Self { resolver: Resolver { lookup, private }, timeout: TIMEOUT, pool: Arc::default() }
    }

    /// Sends a request and returns the response's status. The body isn't read, and redirects aren't followed.
    ///
    /// # Errors
    ///
    /// When the address is private and private addresses aren't allowed, or no response head arrives in time. A
    /// response with an error status is not an error.
    pub async fn send(&self, request: http::Request<String>) -> Result<StatusCode, Error> {
        // The connector doesn't pass IP addresses to the resolver, so they are checked here.
        let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']);
        if host.parse().is_ok_and(|ip: IpAddr| !self.resolver.allows(ip)) {
            return Err(Error::Private);
        }
        let pool = self.pool.get_or_init(|| https::pool_by(self.connector(), https::public_roots()));
        let request = request.map(|body| Full::new(body.into()));
        match tokio::time::timeout(self.timeout, pool.request(request)).await {
            Ok(Ok(answer)) => Ok(answer.status()),
            Ok(Err(error)) => Err(Error::Connection(error.into())),
            Err(_) => Err(Error::Timeout(self.timeout)),
        }
    }

    fn connector(&self) -> HttpConnector<Resolver> {
        let mut connector = HttpConnector::new_with_resolver(self.resolver.clone());
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector
    }
}

/// Resolves names, and leaves out private addresses unless they are allowed.
#[derive(Clone)]
struct Resolver {
    lookup: Lookup,
    private: bool,
}

impl Resolver {
    fn allows(&self, ip: IpAddr) -> bool {
        self.private || is_public(ip)
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move {
            let found = (resolver.lookup)(name.as_str().to_owned()).await?;
            let allowed = found.into_iter().filter(|ip| resolver.allows(*ip)).map(|ip| SocketAddr::new(ip, 0));
            let allowed: Vec<_> = allowed.collect();
            if allowed.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "no public address"));
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::aws::loopback::Loopback;

    fn lookup(addresses: &'static [&'static str]) -> Lookup {
        Arc::new(move |_| Box::pin(async move { Ok(addresses.iter().map(|ip| ip.parse().unwrap()).collect()) }))
    }

    fn post(url: &str) -> http::Request<String> {
        http::Request::post(url).body("body".to_owned()).unwrap()
    }

    fn named(server: &Loopback, name: &str) -> String {
        server.url.replace("127.0.0.1", name)
    }

    #[tokio::test]
    async fn a_name_is_connected_to_at_the_address_that_was_checked() {
        let server = Loopback::start("").await;
        let client = Outbound::new(lookup(&["127.0.0.1"]), true);
        assert_eq!(client.send(post(&named(&server, "example.org"))).await.unwrap(), 200);
        assert!(server.requests()[0].to_lowercase().contains("host: example.org:"), "{:?}", server.requests());
    }

    #[tokio::test]
    async fn no_private_address_is_connected_to_whatever_the_name() {
        let server = Loopback::start("").await;
        for addresses in [&["127.0.0.1"][..], &["::1"], &["::ffff:127.0.0.1"], &["10.0.0.1", "127.0.0.1"], &[]] {
            let client = Outbound::new(lookup(addresses), false);
            client.send(post(&named(&server, "example.org"))).await.unwrap_err();
        }
        let client = Outbound::new(system_lookup(), false);
        for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"] {
            client.send(post(&named(&server, host))).await.unwrap_err();
        }
        assert_eq!(server.hits(), 0);
    }

    #[tokio::test]
    async fn a_name_is_looked_up_for_every_request_and_checked_each_time() {
        let server = Loopback::start("").await;
        let answers = Arc::new(Mutex::new(vec!["127.0.0.1", "192.0.2.1"]));
        let rebinding: Lookup = Arc::new(move |_| {
            let answer = answers.lock().unwrap().pop().unwrap();
            Box::pin(async move { Ok(vec![answer.parse().unwrap()]) })
        });
        let client = Outbound::new(rebinding, false);
        for _ in 0..2 {
            client.send(post(&named(&server, "example.org"))).await.unwrap_err();
        }
        assert_eq!(server.hits(), 0);
    }

    #[tokio::test]
    async fn a_redirect_is_a_response_and_is_not_followed() {
        let (server, elsewhere) = (Loopback::start("").await, Loopback::start("").await);
        server.set(307, "");
        server.set_headers(&format!("location: {}\r\n", elsewhere.url));
        let status = Outbound::new(system_lookup(), true).send(post(&server.url)).await.unwrap();
        assert_eq!((status.as_u16(), elsewhere.hits()), (307, 0));
    }

    #[tokio::test]
    async fn a_slow_server_is_given_up() {
        let server = Loopback::start("").await;
        server.set_delay(Duration::from_mins(1));
        let client = Outbound::new(system_lookup(), true);
        assert_eq!(client.timeout, Duration::from_secs(10));
        let client = Outbound { timeout: Duration::from_millis(50), ..client };
        let error = client.send(post(&server.url)).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    }
}
