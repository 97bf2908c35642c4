//! Validates the addresses of webhooks. Moderators choose them, and the service calls them from inside its network, so
//! by default, no address may lead into a private network.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, SyntaxViolation, Url};

/// Maximum characters in a webhook's address.
pub const MAX_URL: usize = 2_048;

/// Whether the address is on the public internet.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = match ip.octets() {
        // This network, private, loopback, link-local, multicast and reserved.
        [0 | 10 | 127 | 224..=255, ..]
        | [169, 254, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        // Carriers' NAT and benchmarks.
        | [100, 64..=127, ..]
        | [198, 18..=19, ..]
        // Protocol assignments, documentation and 6to4 relays.
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // Protocol assignments (Teredo among them), documentation and 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All global unicast addresses. IPv4-mapped, NAT64, private and link-local addresses are outside this range.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

/// Validates and normalizes an address by the URL standard, which turns a host that is a number in any base into an IP address.
/// `private` allows http and any host. An error is a message for the caller.
pub fn parse(text: &str, private: bool) -> Result<String, &'static str> {
    const NOT_WEB: &str = "The url must be an https address.";
    if text.chars().count() > MAX_URL {
        return Err("The url can have at most 2048 characters.");
    }
    let mut url = parse_as_written(text).ok_or(NOT_WEB)?;
    url.set_fragment(None);
    if url.scheme() != "https" && !(private && url.scheme() == "http") {
        return Err(NOT_WEB);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("The url must not contain credentials.");
    }
    let is_public = match url.host() {
        Some(Host::Ipv4(ip)) => is_public_v4(ip),
        Some(Host::Ipv6(ip)) => is_public_v6(ip),
        Some(Host::Domain(name)) => !is_local_name(name),
        None => return Err(NOT_WEB),
    };
    if !is_public && !private {
        return Err("The url must not point to a private address.");
    }
    let text: String = url.into();
    // The HTTP client must accept the address too.
    if text.parse::<http::Uri>().is_err() {
        return Err(NOT_WEB);
    }
    Ok(text)
}

/// Parses an address. The URL standard corrects malformed addresses; `None` if a correction may have changed the host.
pub(crate) fn parse_as_written(text: &str) -> Option<Url> {
    let is_mended = Cell::new(text.chars().any(char::is_control));
    let mend = |violation| {
        use SyntaxViolation::{Backslash, C0SpaceIgnored, ExpectedDoubleSlash, TabOrNewlineIgnored};
        if matches!(violation, Backslash | C0SpaceIgnored | ExpectedDoubleSlash | TabOrNewlineIgnored) {
            is_mended.set(true);
        }
    };
    let url = Url::options().syntax_violation_callback(Some(&mend)).parse(text).ok()?;
    (!is_mended.get()).then_some(url)
}

/// Names of the local host on every machine (RFC 6761).
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_public_internet_are_public() {
        let public = "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                      169.253.0.1 172.15.0.1 172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 \
                      2606:4700::1111 2001:200::1 2400:cb00::1 2a00::1";
        for ip in public.split(' ') {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn addresses_outside_the_public_internet_are_not_public() {
        let private = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 \
                       169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 \
                       198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 \
                       255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::ffff:1.1.1.1 ::10.0.0.1 64:ff9b::a00:1 64:ff9b:1::1 \
                       100::1 2001::1 2001:2::1 2001:10::1 2001:db8::1 2002:a00:1:: 3fff::1 5f00::1 fc00::1 \
                       fd00:ec2::254 fe80::1 fec0::1 ff02::1";
        for ip in private.split(' ') {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn an_address_that_names_a_private_host_in_any_way_is_refused() {
        let hosts = "127.0.0.1 127.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 10.0.0.1. \
                     １２７.０.０.１ 169.254.169.254 [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] \
                     [2002:7f00:1::] 0 localhost LOCALHOST localhost. api.localhost";
        for host in hosts.split(' ') {
            let refused = parse(&format!("https://{host}/hook"), false);
            assert_eq!(refused, Err("The url must not point to a private address."), "{host}");
            assert!(parse(&format!("https://{host}/hook"), true).is_ok(), "{host}");
        }
    }

    #[test]
    fn only_https_without_credentials_is_accepted() {
        for url in [
            "http://example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "//example.org/",
            "example.org",
            "",
            "https://",
            "https://user@example.org/",
            "https://user:pass@example.org/",
            "https://exa mple.org/",
            "https:///example.org/",
            "https:/example.org/",
            "https:example.org/",
            "https:\\\\example.org/",
            "https://example.org\\@example.com/",
            "https://exam\nple.org/",
            "https://example.org/\u{7}",
            " https://example.org/",
            "javascript:alert(1)",
        ] {
            assert!(parse(url, false).is_err(), "{url}");
        }
        assert!(parse("http://example.org/", true).is_ok());
        for url in ["ftp://example.org/", "https://user@example.org/"] {
            assert!(parse(url, true).is_err(), "{url}");
        }
    }

    #[test]
    fn an_address_is_kept_in_its_normal_form() {
        for (given, kept) in [
            ("https://Example.org", "https://example.org/"),
            ("https://example.org:443/a b?x=1#part", "https://example.org/a%20b?x=1"),
            ("https://example.org:8443/hook", "https://example.org:8443/hook"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://1.1.1.1/", "https://1.1.1.1/"),
        ] {
            assert_eq!(parse(given, false).as_deref(), Ok(kept));
        }
    }

    #[test]
    fn an_address_has_at_most_2048_characters() {
        let with = |length: usize| format!("https://example.org/{}", "a".repeat(length - 20));
        assert!(parse(&with(MAX_URL), false).is_ok());
        assert!(parse(&with(MAX_URL + 1), false).is_err());
    }
}
