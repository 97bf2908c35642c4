//! Origins of web pages, as browsers send them, lists of allowed origins, and loopback hosts. Hosts are always parsed, because
//! a matching prefix or suffix doesn't identify the owner of a host.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::uri::Authority;
use url::Url;

/// A list of origins in API Gateway's syntax: origins, `*` for any origin, and `https://*` or `http://*` for any origin with
/// that scheme. In loopback origins, `*` may represent any port.
#[derive(Clone, Debug)]
pub struct Origins(Vec<String>);

/// The suffix of an origin that represents any port.
const ANY_PORT: &str = ":*";

pub const LOOPBACK: [&str; 3] = ["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"];

impl Origins {
    /// Reads a comma-separated list. `None` if it is empty or an entry isn't an origin.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let origins = text.split(',').map(|origin| origin.trim().to_ascii_lowercase());
        let origins: Vec<String> = origins.filter(|origin| !origin.is_empty()).collect();
        let valid = |origin: &String| {
            let is_pattern = matches!(origin.as_str(), "*" | "https://*" | "http://*");
            is_pattern
                || LOOPBACK.contains(&origin.as_str())
                || (of(origin).as_ref() == Some(origin) && is_sent(origin))
        };
        (!origins.is_empty() && origins.iter().all(valid)).then_some(Self(origins))
    }

    /// Whether the list contains `origin`, which is in the form that browsers send.
    #[must_use]
    pub fn contains(&self, origin: &str) -> bool {
        self.has(origin, |_| true)
    }

    /// Whether an entry other than a pattern for any host contains this origin.
    #[must_use]
    pub fn names(&self, origin: &str) -> bool {
        self.has(origin, |listed| !is_any_host(listed))
    }

    fn has(&self, origin: &str, counts: impl Fn(&str) -> bool) -> bool {
        let asking = origin.split_once("://").and_then(|(scheme, rest)| Some((scheme, authority(rest)?)));
        self.0.iter().filter(|listed| counts(listed)).any(|listed| match (listed.split_once("://"), &asking) {
            (None, _) => true,
            (Some((scheme, host)), Some((of_scheme, asking))) => {
                let is_host = match host.strip_suffix(ANY_PORT) {
                    Some(host) => asking.host().eq_ignore_ascii_case(host),
                    None => host == "*" || asking.as_str().eq_ignore_ascii_case(host),
                };
                is_host && of_scheme.eq_ignore_ascii_case(scheme)
            }
            (Some(_), None) => false,
        })
    }

    /// The value of `Access-Control-Allow-Origin` for a page of this origin; `None` if the list doesn't contain it.
    #[must_use]
    pub fn allow<'a>(&self, origin: &'a str) -> Option<&'a str> {
        if self.is_any() { Some("*") } else { self.contains(origin).then_some(origin) }
    }

    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.iter().any(|listed| listed == "*")
    }

    /// Whether pages of any host are allowed. Loopback origins don't count, because they allow one host on any port.
    #[must_use]
    pub fn has_any_host(&self) -> bool {
        self.0.iter().any(|listed| is_any_host(listed))
    }
}

/// Whether `host` has the form of a DNS name, which may end in a dot, or begins with a bracket, like an IPv6 address.
#[must_use]
pub fn is_host(host: &str) -> bool {
    let is_label = |label: &str| label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let mut labels = host.strip_suffix('.').unwrap_or(host).split('.');
    host.starts_with('[') || labels.all(|label| !label.is_empty() && is_label(label))
}

/// Whether browsers would send a web origin in this form. For `127.1`, they send `127.0.0.1`.
fn is_sent(origin: &str) -> bool {
    Url::parse(origin).is_ok_and(|url| {
        let is_web = matches!(url.scheme(), "http" | "https");
        !is_web || (url.origin().ascii_serialization() == origin && url.host_str().is_some_and(is_host))
    })
}

fn is_any_host(listed: &str) -> bool {
    listed.ends_with('*') && !LOOPBACK.contains(&listed)
}

impl fmt::Display for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// The origin of an absolute address: scheme, host, and the port unless it is the scheme's default.
#[must_use]
pub fn of(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    let scheme = uri.scheme_str()?;
    let authority = authority(uri.authority()?.as_str()).filter(|authority| !authority.as_str().contains('*'))?;
    let authority = match (scheme, authority.port_u16()) {
        ("https", Some(443)) | ("http", Some(80)) => authority.host(),
        _ => authority.as_str(),
    };
    Some(format!("{scheme}://{authority}").to_ascii_lowercase())
}

/// Parses a host with an optional port, as in an origin or the header `Host`. `None` if the text contains anything else, such
/// as a user, or if no URL can contain the host.
#[must_use]
pub fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let host = authority.host();
    // A user would precede the host.
    let port = text.strip_prefix(host)?;
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    let is_host = url::Host::parse(host).is_ok() && (!host.starts_with('[') || ipv6(host).is_some());
    (has_port && is_host).then_some(authority)
}

fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// An IPv6 address may be in brackets.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let ip = ipv6(host).map(IpAddr::V6).or_else(|| host.parse().ok());
    host.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for good in ["*", "https://*", "https://a.example", "HTTP://A.example:8080", "http://[::1]:3000", "app://x, *"]
        {
            assert!(Origins::parse(good).is_some(), "{good}");
        }
        for bad in ["", ",", "a.example", "https://a.example/", "https://a.example/x", "https://*.example", "null"] {
            assert!(Origins::parse(bad).is_none(), "{bad}");
        }
        assert!(Origins::parse("https://a@b.example").is_none() && Origins::parse("http://a.example:*").is_none());
    }

    #[test]
    fn an_origin_that_no_browser_sends_is_refused() {
        for bad in ["https://a.example:443", "http://a.example:80", "https://a.example:", "https://a.example:99999"] {
            assert!(Origins::parse(bad).is_none(), "{bad}");
        }
        for bad in
            ["https://127.1", "https://0x7f000001", "http://[0:0::1]", "https://a.example:0444", "https://10.0.0.256"]
        {
            assert!(Origins::parse(bad).is_none(), "{bad}");
        }
        assert!(Origins::parse("https://a.example:80, http://a.example:443").is_some());
    }

    #[test]
    fn a_list_of_origins_contains_only_the_origins_that_it_names() {
        let listed = Origins::parse("https://a.example, http://B.example:8080").unwrap();
        assert!(listed.contains("https://a.example") && listed.contains("http://b.example:8080"));
        for other in ["http://a.example", "https://a.example:444", "https://a.example.evil", "http://b.example", "null"]
        {
            assert!(!listed.contains(other), "{other}");
        }
        assert!(Origins::parse("*").unwrap().contains("null"));
        let local = Origins::parse(&LOOPBACK.join(",")).unwrap();
        assert!(local.contains("http://127.0.0.1:8080") && local.contains("http://[::1]:1") && !local.is_any());
        assert!(
            !local.contains("http://127.0.0.1.evil.example") && !local.contains("http://localhost.evil.example:80")
        );
        for other in [
            "http://127.0.0.1:99@evil.example",
            "http://127.0.0.1:@evil.example",
            "http://localhost:80@evil.example:80",
            "http://localhost:80.evil.example",
            "http://localhost:99999",
            "http://localhost:+80",
            "http://localhost:80/",
            "http://[::1]:80]",
            "http://[::1].evil.example:80",
            "https://localhost:80",
        ] {
            assert!(!local.contains(other), "{other}");
        }
        assert!(local.contains("http://LOCALHOST:8080") && local.contains("http://127.0.0.1"));
        let secure = Origins::parse("https://*").unwrap();
        for other in ["https://", "https://a b", "https://a.example@b.example", "https://a.example/x", "https:\\\\a"] {
            assert!(!secure.contains(other), "{other}");
        }
        assert!(secure.contains("https://a.example") && !secure.contains("http://a.example"));
        assert_eq!(Origins::parse("*").unwrap().allow("https://a.example"), Some("*"));
        assert_eq!(secure.allow("https://a.example"), Some("https://a.example"));
        assert_eq!(secure.allow("http://a.example"), None);
    }

    #[test]
    fn the_origin_of_an_address_leaves_out_its_path() {
        assert_eq!(of("https://API.example:8443/svc/api/v1").as_deref(), Some("https://api.example:8443"));
        assert_eq!(of("https://api.example:443/svc").as_deref(), Some("https://api.example"));
        assert_eq!(of("https://ada:443@api.example/svc"), None);
        for none in ["/svc/api/v1", "http://127.0.0.1:99@evil.example", "http://a.example:x/", "http://a.example:65536"]
        {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn an_authority_is_a_host_and_perhaps_a_port_and_nothing_else() {
        for good in ["a.example", "localhost:0", "127.0.0.1:65535", "[::1]", "[2001:db8::1]:443", "a_b-c.example"] {
            assert!(authority(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a b",
            "x\"><script>",
            "127.0.0.1:1@evil",
            "evil@evil",
            "a:80:80",
            "a:",
            "a:x",
            "a:+1",
            "a:65536",
            "a/b",
            "a?b",
            "a#b",
            "[::1",
            "::1",
            "[a]",
            "[::1]x",
            "[::1]:x",
        ] {
            assert!(authority(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn only_loopback_names_mean_this_machine() {
        for own in ["localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "[::1]"] {
            assert!(is_loopback(own), "{own}");
        }
        for other in ["", "localhost.example", "evil-localhost", "127.0.0.1.example", "10.0.0.1", "[::2]", "::1x"] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
