//! A request: its path, parameters, headers, body and caller.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::OnceLock;

use http::header::{self, HeaderName};
use http::{HeaderMap, Method};
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use percent_encoding::percent_decode_str;
use ring::digest;
use serde_json::{Map, Value};

use crate::auth::token::BadToken;
use crate::config::Config;
use crate::domain::language::Language;
use crate::domain::mend::mended;
use crate::domain::origin::{self, Origins};
use crate::domain::rate_limit::RateLimitStatus;
use crate::domain::user::Identity;
use crate::domain::verdict::Rule;
use crate::error::{FieldErrors, Refusal};
use crate::http::{language, quality};
use crate::routes::{self, Route};

/// The caller according to the token alone.
#[derive(Debug)]
pub enum Credential {
    None,
    Bad,
    /// A token that cannot be verified at the moment, because the keys cannot be fetched.
    Unverified,
    User(Identity),
}

/// The header that identifies a guest.
const COMMENT_KEY: &str = "comment-key";

pub struct Call {
    /// GET instead of HEAD, if the route serves HEAD.
    pub method: Method,
    /// Whether the response is sent without its body.
    pub is_head: bool,
    pub route: Option<&'static Route>,
    /// The decoded segments of the path below the API's prefix. Empty for a path that is not below it.
    pub segments: Vec<String>,
    /// Decoded parameters, in the order of the request.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub credential: Credential,
    /// The client's IP address, as seen by CloudFront if it is in front, otherwise by API Gateway. IPv6 addresses are truncated
    /// to their /64 prefix.
    pub network: IpAddr,
    /// Absolute address of the API, without a trailing slash.
    pub base_url: String,
    /// Set by the limiter, for the headers of the response.
    pub rate_limit: OnceLock<RateLimitStatus>,
    /// Set by the limiter when an admitted read reserves its maximum cost.
    pub reserved: OnceLock<RateLimitStatus>,
    /// Set if the token belongs to a session that has ended, on a route that ignores bad tokens.
    pub session_ended: OnceLock<()>,
    /// Set if the response doesn't reveal the reason for refusing the request.
    pub refused_because: OnceLock<RefusedBecause>,
}

/// The reason for refusing a request, attached to the response as an extension, for developers. Contains no user's
/// text, token or address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBecause {
    Token(BadToken),
    Spam(Rule),
}

impl fmt::Display for RefusedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(reason) => write!(f, "token not accepted: {reason}"),
            Self::Spam(rule) => write!(f, "text refused by the spam rule {}", rule.name()),
        }
    }
}

impl Call {
    #[must_use]
    pub fn new(config: &Config, request: lambda_http::Request, credential: Credential) -> Self {
        let path = percent_decode_str(request.raw_http_path()).decode_utf8_lossy().into_owned();
        let below = path.strip_prefix('/').and_then(|path| path.strip_prefix(config.api_prefix.as_str()));
        let segments = below
            .and_then(|path| path.strip_prefix('/'))
            .map_or_else(Vec::new, |path| path.split('/').map(str::to_owned).collect());
        let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
        let network = network(edge_ip(config, request.headers()).unwrap_or_else(|| source_ip(&request)));
        let base_url = base_url(config, request.headers());
        let (parts, body) = request.into_parts();
        let is_head = parts.method == Method::HEAD;
        let route = routes::find(&parts.method, &segments.iter().map(String::as_str).collect::<Vec<_>>());
        Self {
            method: if is_head && route.is_some() { Method::GET } else { parts.method },
            is_head,
            route,
            segments,
            query,
            headers: parts.headers,
            body: body.to_vec(),
            credential,
            network,
            base_url,
            rate_limit: OnceLock::new(),
            reserved: OnceLock::new(),
            session_ended: OnceLock::new(),
            refused_because: OnceLock::new(),
        }
    }

    #[must_use]
    pub fn path(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    #[must_use]
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether a browser sends this request for a page whose origin is neither listed nor the API's own.
    #[must_use]
    pub fn is_from_elsewhere(&self, listed: &Origins) -> bool {
        let Some(origin) = self.headers.get(header::ORIGIN) else { return false };
        let origin = origin.to_str().unwrap_or("null");
        let own = || origin::of(&self.base_url).is_some_and(|own| own.eq_ignore_ascii_case(origin));
        !listed.contains(origin) && !own()
    }

    /// The last value given for a query parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as a JSON object. An empty body counts as an empty object.
    pub fn json(&self) -> Result<Map<String, Value>, Refusal> {
        if self.body.is_empty() {
            return Ok(Map::new());
        }
        let read = serde_json::from_slice(&self.body);
        match read.or_else(|error| self.mended().ok_or(error)) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err(FieldErrors::one("json", "The request must be a JSON object.")),
            Err(_) => Err(FieldErrors::one("json", "The request is not valid JSON.")),
        }
    }

    /// The body as JSON, if its only fault is half a surrogate pair in `page`. The page's title and address never cause a
    /// refusal.
    fn mended(&self) -> Option<Value> {
        let read: Value = serde_json::from_slice(&mended(&self.body)?).ok()?;
        let is_whole = |value: &Value| !value.to_string().contains(char::REPLACEMENT_CHARACTER);
        read.as_object()?.iter().all(|(name, value)| name == "page" || is_whole(value)).then_some(read)
    }

    /// The request's `Idempotency-Key`, if it has one: 1 to 255 ASCII characters.
    pub fn idempotency_key(&self) -> Result<Option<&str>, Refusal> {
        const NAME: &str = "idempotency-key";
        let Some(key) = self.headers.get(NAME) else { return Ok(None) };
        let key = key.to_str().ok().map(str::trim).filter(|key| (1..=255).contains(&key.len()));
        key.map(Some).ok_or_else(|| FieldErrors::one(NAME, "The Idempotency-Key must be 1 to 255 ASCII characters."))
    }

    /// Whether the request has a `Comment-Key`, well-formed or not.
    #[must_use]
    pub fn has_comment_key(&self) -> bool {
        self.headers.contains_key(COMMENT_KEY)
    }

    /// A guest's `Comment-Key`: 32 bytes in base64url. `None` for users, who have a token.
    pub fn comment_key(&self) -> Result<Option<&str>, Refusal> {
        let key = match &self.credential {
            Credential::User(_) => None,
            Credential::None | Credential::Bad | Credential::Unverified => self.headers.get(COMMENT_KEY),
        };
        let Some(key) = key else { return Ok(None) };
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let key = key.to_str().ok().filter(|key| key.len() == 43 && key.bytes().all(is_plain));
        let refusal =
            || FieldErrors::one("comment_key", "The Comment-Key must be 43 characters of A-Z, a-z, 0-9, - and _.");
        key.map(Some).ok_or_else(refusal)
    }

    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        match &self.credential {
            Credential::User(identity) => identity.claims.issuer.as_deref(),
            Credential::None | Credential::Bad | Credential::Unverified => None,
        }
    }

    /// The language of the response.
    #[must_use]
    pub fn language(&self) -> Language {
        language::preferred(self.header(header::ACCEPT_LANGUAGE))
    }

    /// The language that the parameter `lang` names, for responses that are the same for everyone.
    #[must_use]
    pub fn named_language(&self) -> Language {
        Language::of_tag(self.parameter("lang").unwrap_or_default())
    }

    pub(super) fn accepts_gzip(&self) -> bool {
        let accepted = self.header(header::ACCEPT_ENCODING).unwrap_or_default();
        quality::weight_of(accepted, "gzip").is_some_and(|weight| weight > 0)
    }

    /// Whether the response includes the caller's own comments, likes and reports, so no cache may share it: a GET
    /// request has `mine=1`, or the request has a guest's `Comment-Key`.
    pub(super) fn is_for_the_caller_alone(&self) -> bool {
        let is_marked = self.method == Method::GET && self.parameter("mine") == Some("1");
        is_marked || matches!(self.comment_key(), Ok(Some(_)))
    }

    /// Whether the caller has cached the body with this entity tag. Compares tags without the prefix `W/`.
    pub(super) fn holds(&self, tag: &str) -> bool {
        let known = self.header(header::IF_NONE_MATCH).unwrap_or_default();
        known.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    }
}

/// Parses a path segment as an id; 404 if it is not one.
pub fn path_id<T: FromStr>(segment: &str) -> Result<T, Refusal> {
    segment.parse().map_err(|_| Refusal::NotFound)
}

/// The bearer token of a request that has an `Authorization` header. Returns an empty token for any other scheme.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" })
}

fn source_ip(request: &lambda_http::Request) -> IpAddr {
    let ip = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.http.source_ip.as_deref(),
        _ => None,
    };
    ip.and_then(|ip| ip.parse().ok()).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The client's address from CloudFront's header, if the request proves that it came through CloudFront. API Gateway then sees
/// only CloudFront's own address.
fn edge_ip(config: &Config, headers: &HeaderMap) -> Option<IpAddr> {
    let expected = config.edge_secret.as_ref()?;
    let hash = |secret: &[u8]| digest::digest(&digest::SHA256, secret);
    // Compares hashes, so that the timing reveals nothing about the secret.
    if hash(headers.get("x-edge-secret")?.as_bytes()).as_ref() != hash(expected.expose().as_bytes()).as_ref() {
        return None;
    }
    let (ip, _port) = headers.get("cloudfront-viewer-address")?.to_str().ok()?.rsplit_once(':')?;
    ip.trim_matches(['[', ']']).parse().ok()
}

/// Truncates an IPv6 address to its /64 prefix, because a household usually has a whole /64.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => IpAddr::V4(ip),
            None => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        },
    }
}

fn base_url(config: &Config, headers: &HeaderMap) -> String {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let root = config.public_url.clone().unwrap_or_else(|| {
        let host = text(header::HOST).filter(|host| origin::authority(host).is_some());
        let scheme = text(HeaderName::from_static("x-forwarded-proto")).filter(|scheme| *scheme == "http");
        format!("{}://{}", scheme.unwrap_or("https"), host.unwrap_or("localhost"))
    });
    format!("{root}/{}", config.api_prefix)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn an_ipv6_address_represents_its_network() {
        let cut = |ip: &str| network(ip.parse().unwrap()).to_string();
        assert_eq!(cut("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(cut("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(cut("192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn only_cloudfront_is_trusted_about_the_address_of_a_client() {
        let config = Config::from_vars(|name| match name {
            "SVC_EDGE_SECRET" => Some("edge".to_owned()),
            "TABLE_NAME" | "SVC_JWT_SECRET" | "SVC_VISITOR_SALT" => Some("x".repeat(32)),
            _ => None,
        });
        let asked = |secret: &'static str, address: &'static str| {
            let headers = [("x-edge-secret", secret), ("cloudfront-viewer-address", address)];
            let headers = headers
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .into_iter()
                .collect();
            edge_ip(config.as_ref().unwrap(), &headers).map(|ip| ip.to_string())
        };
        assert_eq!(asked("edge", "192.0.2.7:46532").as_deref(), Some("192.0.2.7"));
        assert_eq!(asked("edge", "2001:db8:1:2:3:4:5:6:443").as_deref(), Some("2001:db8:1:2:3:4:5:6"));
        assert_eq!(asked("edge", "nowhere"), None);
        assert_eq!(asked("", "192.0.2.7:46532"), None);
        assert_eq!(asked("guess", "192.0.2.7:46532"), None);
    }

    #[test]
    fn the_scheme_of_a_bearer_token_is_case_insensitive() {
        let with =
            |value: &'static str| HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))]);
        assert_eq!(bearer(&HeaderMap::new()), None);
        assert_eq!(bearer(&with("bearer  abc ")), Some("abc"));
        assert_eq!(bearer(&with("Basic abc")), Some(""));
    }
}
