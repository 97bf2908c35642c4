//! HTTP clients built directly on hyper and rustls, to keep functions small and quick to start: the SDK's own client would add a
//! second crypto library and read root certificates from disk. [`Client`] is for any HTTPS server, [`aws_client`] for the SDK.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector as SdkConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::TrustAnchor;
use rustls::{ClientConfig, RootCertStore};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER_LIMIT: usize = 1024 * 1024;

/// Connects when the first request is sent. Clones share connections.
#[derive(Clone)]
pub struct Client {
    timeout: Duration,
    /// Maximum bytes of a response's body.
    limit: usize,
    roots: fn() -> Vec<TrustAnchor<'static>>,
    pool: Arc<OnceLock<Pool<HttpsConnector<HttpConnector>, Full<Bytes>>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no response within {0:?}")]
    Timeout(Duration),
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the connection failed")]
    Connection(#[source] Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// Whether the server may have received the request.
    #[must_use]
    pub fn may_be_sent(&self) -> bool {
        match self {
            Self::Connection(error) => {
                let error = error.downcast_ref::<hyper_util::client::legacy::Error>();
                !error.is_some_and(hyper_util::client::legacy::Error::is_connect)
            }
            Self::Timeout(_) | Self::TooLarge(_) => true,
        }
    }
}

impl Client {
    /// A client for any public host, which trusts Mozilla's roots. `timeout` bounds a whole exchange, from the DNS lookup to
    /// the last byte of the response.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self::trusting(public_roots, timeout)
    }

    /// A client for AWS, which trusts only Amazon's roots.
    #[must_use]
    pub fn for_aws(timeout: Duration) -> Self {
        Self::trusting(amazon_roots, timeout)
    }

    fn trusting(roots: fn() -> Vec<TrustAnchor<'static>>, timeout: Duration) -> Self {
        Self { timeout, limit: ANSWER_LIMIT, roots, pool: Arc::default() }
    }

    #[must_use]
    pub fn limited_to(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sends `request` to its absolute `http` or `https` URI, and returns the response. Redirects are not followed.
    ///
    /// # Errors
    ///
    /// When no complete response arrives in time, or its body exceeds the limit (1 MiB by default). A response with an
    /// error status is not an error.
    pub async fn send(&self, request: http::Request<impl Into<Bytes>>) -> Result<http::Response<Vec<u8>>, Error> {
        let pool = self.pool.get_or_init(|| pool((self.roots)()));
        let request = request.map(|body| Full::new(body.into()));
        let exchange = async {
            let (head, body) =
                pool.request(request).await.map_err(|error| Error::Connection(error.into()))?.into_parts();
            let body = Limited::new(body, self.limit).collect().await.map_err(|error| {
                let is_too_large = error.is::<http_body_util::LengthLimitError>();
                if is_too_large { Error::TooLarge(self.limit) } else { Error::Connection(error) }
            })?;
            Ok(http::Response::from_parts(head, body.to_bytes().into()))
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or(Err(Error::Timeout(self.timeout)))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The HTTP client of every AWS SDK client: HTTP/1.1, pooled, trusting only Amazon Trust Services. The read timeout comes from
/// the SDK configuration.
#[must_use]
pub fn aws_client() -> SharedHttpClient {
    let pool = pool(amazon_roots());
    http_client_fn(move |settings, _| {
        SharedHttpConnector::new(AwsConnector { pool: pool.clone(), read_timeout: settings.read_timeout() })
    })
}

/// Amazon Trust Services: its four roots, and the older root that cross-signed them.
fn amazon_roots() -> Vec<TrustAnchor<'static>> {
    const COMMON_NAMES: [&[u8]; 5] = [
        b"Amazon Root CA 1",
        b"Amazon Root CA 2",
        b"Amazon Root CA 3",
        b"Amazon Root CA 4",
        b"Starfield Services Root Certificate Authority - G2",
    ];
    webpki_roots::TLS_SERVER_ROOTS
        .iter()
        .filter(|root| COMMON_NAMES.iter().any(|name| root.subject.ends_with(name)))
        .cloned()
        .collect()
}

pub(super) fn public_roots() -> Vec<TrustAnchor<'static>> {
    webpki_roots::TLS_SERVER_ROOTS.to_vec()
}

fn pool<B>(roots: Vec<TrustAnchor<'static>>) -> Pool<HttpsConnector<HttpConnector>, B>
where
    B: hyper::body::Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    pool_by(tcp, roots)
}

pub(super) fn pool_by<B, R>(
    mut tcp: HttpConnector<R>,
    roots: Vec<TrustAnchor<'static>>,
) -> Pool<HttpsConnector<HttpConnector<R>>, B>
where
    B: hyper::body::Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    HttpsConnector<HttpConnector<R>>: Connect + Clone + Send + Sync + 'static,
{
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(RootCertStore { roots })
        .with_no_client_auth();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
    Pool::builder(TokioExecutor::new()).build(connector)
}

#[derive(Clone, Debug)]
struct AwsConnector {
    pool: Pool<HttpsConnector<HttpConnector>, SdkBody>,
    read_timeout: Option<Duration>,
}

impl SdkConnector for AwsConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { pool, read_timeout } = self.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let answer = match read_timeout {
                Some(limit) => tokio::time::timeout(limit, pool.request(request))
                    .await
                    .map_err(|elapsed| ConnectorError::timeout(elapsed.into()))?,
                None => pool.request(request).await,
            };
            let answer = answer.map_err(classify)?.map(SdkBody::from_body_1_x);
            HttpResponse::try_from(answer).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Classifies an error for the SDK's retries. Network failures may be temporary, but a request that hyper refuses to send
/// always fails.
fn classify(error: hyper_util::client::legacy::Error) -> ConnectorError {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
    if cause.is_some_and(hyper::Error::is_user) {
        ConnectorError::user(error.into())
    } else if error.is_connect() {
        ConnectorError::io(error.into())
    } else {
        ConnectorError::other(error.into(), Some(ErrorKind::TransientError))
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use ring::digest;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;

    use super::*;
    use crate::aws::loopback::Loopback;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn get(url: &str) -> http::Request<String> {
        http::Request::get(url).body(String::new()).unwrap()
    }

    #[tokio::test]
    async fn a_response_is_returned_whole() {
        let server = Loopback::start("hello").await;
        let request = http::Request::post(&server.url).body("body".to_owned()).unwrap();
        let answer = Client::new(PATIENCE).send(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.body(), b"hello");
        assert!(server.requests()[0].starts_with("POST / HTTP/1.1\r\n"));
        assert!(server.requests()[0].ends_with("\r\n\r\nbody"));
    }

    #[tokio::test]
    async fn a_response_of_one_megabyte_is_accepted_and_a_larger_one_is_not() {
        let server = Loopback::start("x".repeat(ANSWER_LIMIT)).await;
        let client = Client::new(PATIENCE);
        let answer = client.send(get(&server.url)).await.unwrap();
        assert_eq!(answer.body().len(), ANSWER_LIMIT);
        server.set(200, "x".repeat(ANSWER_LIMIT + 1));
        let error = client.send(get(&server.url)).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge(ANSWER_LIMIT)), "{error:?}");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let elsewhere = Loopback::start("").await;
        let server = Loopback::start("").await;
        server.set(302, "");
        server.set_headers(&format!("location: {}\r\n", elsewhere.url));
        let answer = Client::new(PATIENCE).send(get(&server.url)).await.unwrap();
        assert_eq!(answer.status(), 302);
        assert_eq!(elsewhere.hits(), 0);
    }

    #[tokio::test]
    async fn a_slow_response_is_given_up() {
        let server = Loopback::start("").await;
        server.set_delay(Duration::from_mins(1));
        let client = Client::new(Duration::from_millis(50));
        let error = client.send(get(&server.url)).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    }

    #[tokio::test]
    async fn a_closed_port_is_a_connection_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let error = Client::new(PATIENCE).send(get(&url)).await.unwrap_err();
        assert!(matches!(error, Error::Connection(_)), "{error:?}");
    }

    /// An HTTPS server at `localhost`, and its root certificate, which no client trusts by default.
    async fn private_server() -> (String, TrustAnchor<'static>) {
        let root_key = KeyPair::generate().unwrap();
        let mut root = CertificateParams::new([]).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_certificate = root.self_signed(&root_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &Issuer::new(root, root_key))
            .unwrap();
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let server = Loopback::start("{}").await;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    server.answer(stream).await;
                }
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(root_certificate.der().clone()).unwrap();
        (url, roots.roots.remove(0))
    }

    #[tokio::test]
    async fn a_server_under_a_trusted_root_is_accepted() {
        let (url, root) = private_server().await;
        let answer = pool::<String>(vec![root]).request(get(&url)).await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    #[tokio::test]
    async fn a_server_under_another_root_is_refused() {
        let (url, _) = private_server().await;
        for client in [Client::new(PATIENCE), Client::for_aws(PATIENCE)] {
            let error = client.send(get(&url)).await.unwrap_err();
            assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_sdk_refuses_a_server_under_another_root() {
        let (url, _) = private_server().await;
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .retry_config(aws_config::retry::RetryConfig::disabled())
            .endpoint_url(url)
            .http_client(aws_client())
            .build();
        let client = aws_sdk_dynamodb::Client::from_conf(config);
        let error = client.list_tables().send().await.unwrap_err();
        assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
    }

    /// The hashes are from <https://www.amazontrust.com/repository/>.
    #[test]
    fn aws_is_trusted_by_the_roots_amazon_publishes_and_no_others() {
        let mut found: Vec<String> = amazon_roots().iter().map(fingerprint).collect();
        found.sort();
        let published = [
            "2b071c59a0a0ae76b0eadb2bad23bad4580b69c3601b630c2eaf0613afa83f92",
            "36abc32656acfc645c61b71613c4bf21c787f5cabbee48348d58597803d7abc9",
            "7f4296fc5b6a4e3b35d3c369623e364ab1af381d8fa7121533c9d6c633ea2461",
            "f7ecded5c66047d28ed6466b543c40e0743abe81d109254dcf845d4c2c7853c5",
            "fbe3018031f9586bcbf41727e417b7d1c45c2f47f93be372a17b96b50757d5a2",
        ];
        assert_eq!(found, published);
    }

    /// SHA-256 of the subject's public key info. A trust anchor stores the info without its outermost DER header, so this
    /// function adds the header back.
    fn fingerprint(root: &TrustAnchor<'_>) -> String {
        let body = &root.subject_public_key_info;
        let mut der = match u16::try_from(body.len()).unwrap().to_be_bytes() {
            [0, short @ 0..0x80] => vec![0x30, short],
            [0, byte] => vec![0x30, 0x81, byte],
            [high, low] => vec![0x30, 0x82, high, low],
        };
        der.extend_from_slice(body);
        let hash = digest::digest(&digest::SHA256, &der);
        hash.as_ref().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }
}
