//! Origins of web pages, as browsers send them, and lists of allowed origins.

use std::fmt;

/// A list in the syntax of API Gateway: origins, `*` for any, `https://*` for any of that scheme. On this machine `*` may stand
/// for any port.
#[derive(Clone, Debug)]
pub struct Origins(Vec<String>);

/// Pages of this machine, on any port.
pub const LOOPBACK: [&str; 3] = ["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"];

impl Origins {
    /// Reads a comma-separated list. `None` when it is empty or has an entry that is not an origin.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let origins = text.split(',').map(|origin| origin.trim().to_ascii_lowercase());
        let origins: Vec<String> = origins.filter(|origin| !origin.is_empty()).collect();
        let valid = |origin: &String| {
            let is_pattern = matches!(origin.as_str(), "*" | "https://*" | "http://*");
            is_pattern || LOOPBACK.contains(&origin.as_str()) || of(origin).as_ref() == Some(origin)
        };
        (!origins.is_empty() && origins.iter().all(valid)).then_some(Self(origins))
    }

    /// `origin` as a browser sends it.
    #[must_use]
    pub fn contains(&self, origin: &str) -> bool {
        self.0.iter().any(|listed| match listed.strip_suffix('*') {
            Some(beginning) => origin.starts_with(beginning),
            None => origin.eq_ignore_ascii_case(listed),
        })
    }

    /// What `Access-Control-Allow-Origin` is for a page of this origin; `None` when the list has it not.
    #[must_use]
    pub fn allow<'a>(&self, origin: &'a str) -> Option<&'a str> {
        if self.is_any() { Some("*") } else { self.contains(origin).then_some(origin) }
    }

    /// Whether every origin is allowed.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.iter().any(|listed| listed == "*")
    }

    /// Whether pages of any host are allowed. On this machine they are of one host, whatever their port.
    #[must_use]
    pub fn has_any_host(&self) -> bool {
        self.0.iter().any(|listed| listed.ends_with('*') && !LOOPBACK.contains(&listed.as_str()))
    }
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
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let authority = match (scheme, authority.port_u16()) {
        ("https", Some(443)) | ("http", Some(80)) => authority.host(),
        (_, port) if port.is_some() == (authority.as_str() != authority.host()) => authority.as_str(),
        // A user, or a port that is none.
        _ => return None,
    };
    (!authority.contains(['@', '*'])).then(|| format!("{scheme}://{authority}").to_ascii_lowercase())
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
        assert!(Origins::parse("https://a.example:80, http://a.example:443").is_some());
    }

    #[test]
    fn a_list_has_what_it_names_and_no_more() {
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
        let secure = Origins::parse("https://*").unwrap();
        assert!(secure.contains("https://a.example") && !secure.contains("http://a.example"));
        assert_eq!(Origins::parse("*").unwrap().allow("https://a.example"), Some("*"));
        assert_eq!(secure.allow("https://a.example"), Some("https://a.example"));
        assert_eq!(secure.allow("http://a.example"), None);
    }

    #[test]
    fn the_origin_of_an_address_leaves_out_its_path() {
        assert_eq!(of("https://API.example:8443/svc/api/v1").as_deref(), Some("https://api.example:8443"));
        assert_eq!(of("/svc/api/v1"), None);
        assert_eq!(of("https://api.example:443/svc").as_deref(), Some("https://api.example"));
        assert_eq!(of("https://ada:443@api.example/svc"), None);
    }
}
