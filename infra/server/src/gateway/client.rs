//! Determines the client: the connection's peer, or the address that a trusted proxy forwards.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The networks whose `X-Forwarded-For` is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<Network>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// The number of leading bits that all addresses of the network share.
    prefix: u32,
}

impl Proxies {
    /// Trusts only proxies on this machine.
    #[must_use]
    pub fn loopback() -> Self {
        "127.0.0.0/8,::1".parse().unwrap_or_default()
    }

    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address.to_canonical()))
    }

    /// The client of a request with these headers. Each proxy appends the address of its peer to `X-Forwarded-For`, so
    /// the client is the last address that isn't a trusted proxy. Addresses before it could be forged.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.contain(peer) {
            return peer;
        }
        let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().map(|line| line.to_str().unwrap_or("?")).collect();
        let mut hops = lines.iter().rev().flat_map(|line| line.rsplit(',')).map(address);
        // A malformed hop ends the search, like an untrusted address.
        hops.find(|hop| !hop.is_some_and(|hop| self.contain(hop))).flatten().unwrap_or(peer)
    }
}

/// Parses a comma-separated list of ranges, such as `10.0.0.0/8`, and single addresses.
impl FromStr for Proxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let networks = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
        let parse = |range| match Network::parse(range) {
            // Clients could claim any address. The widest private networks are 10.0.0.0/8 and fc00::/7.
            Some(Network { address: IpAddr::V4(_), prefix: ..8 } | Network { address: IpAddr::V6(_), prefix: ..7 }) => {
                Err(format!("{range:?} is wider than any private network; list the proxies' own addresses"))
            }
            Some(network) => Ok(network),
            None => Err(format!("{range:?} is neither an address nor a range such as 172.16.0.0/12 or fd00::/8")),
        };
        networks.map(parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let written: IpAddr = address.parse().ok()?;
        let bits = if written.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        let address = written.to_canonical();
        // The prefix length of an IPv4-mapped IPv6 address includes the 96 bits before the IPv4 address.
        let before = if address.is_ipv4() && written.is_ipv6() { 96 } else { 0 };
        (before..=bits).contains(&prefix).then(|| Self { address, prefix: prefix - before })
    }

    fn contains(&self, other: IpAddr) -> bool {
        let differing = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= self.prefix
    }
}

/// Parses an address as written by proxies, with or without a port. An IPv6 address with a port is in brackets.
fn address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim_matches([' ', '\t']);
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']'));
    let address = match bare {
        Some(inner) => inner.parse().map(IpAddr::V6).ok()?,
        None => hop.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?,
    };
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(proxies: &str, peer: &str, lines: &[&str]) -> String {
        let proxies: Proxies = proxies.parse().unwrap();
        let lines = lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        const PEER: &str = "127.0.0.1";
        let cases: &[(&[&str], &str)] = &[
            (&["203.0.113.9"], "203.0.113.9"),
            // Addresses forged by the client.
            (&["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
            (&["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
            (&["nonsense, 203.0.113.9"], "203.0.113.9"),
            (&["198.51.100.1", "nonsense,203.0.113.9"], "203.0.113.9"),
            // Several proxies, several lines.
            (&["203.0.113.9, 10.0.0.1, 127.0.0.5"], "203.0.113.9"),
            (&["203.0.113.9", "10.0.0.1", "127.0.0.5"], "203.0.113.9"),
            (&["203.0.113.9, 198.51.100.1", "10.0.0.1"], "198.51.100.1"),
            // Ports, brackets, spaces.
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["[2001:db8::9]:4711"], "2001:db8::9"),
            (&["[2001:db8::9]"], "2001:db8::9"),
            (&["2001:DB8:0::9"], "2001:db8::9"),
            (&["203.0.113.9 ,\t10.0.0.1:80 "], "203.0.113.9"),
            // IPv4 within IPv6.
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            (&["[::ffff:203.0.113.9]:80"], "203.0.113.9"),
            (&["203.0.113.9, ::ffff:10.0.0.1"], "203.0.113.9"),
            // No untrusted address, or a malformed hop after it.
            (&[], PEER),
            (&[""], PEER),
            (&["10.0.0.1, 127.0.0.1"], PEER),
            (&["203.0.113.9,"], PEER),
            (&["203.0.113.9, , 10.0.0.1"], PEER),
            (&["203.0.113.9, unknown"], PEER),
            (&["203.0.113.9", "_hidden, 10.0.0.1"], PEER),
            (&["203.0.113.9", ""], PEER),
            (&["203.0.113.9, \u{fc}"], PEER),
            (&["203.0.113.9:"], PEER),
            (&["203.0.113.9:x"], PEER),
            (&["203.0.113.9:65536"], PEER),
            (&["203.0.113.256"], PEER),
            (&["203.0.113.09"], PEER),
            (&["\"203.0.113.9\""], PEER),
            (&["for=203.0.113.9"], PEER),
            (&["2001:db8::9]:80"], PEER),
            (&["[2001:db8::9"], PEER),
            (&["[203.0.113.9]:80"], PEER),
            (&["2001:db8::9%eth0"], PEER),
            (&["203.0.113.9 198.51.100.1"], PEER),
        ];
        for (lines, expected) in cases {
            for peer in [PEER, "::ffff:127.0.0.1"] {
                assert_eq!(client("127.0.0.0/8,::1,10.0.0.0/8", peer, lines), *expected, "{lines:?}");
            }
        }
    }

    #[test]
    fn a_peer_that_is_not_a_proxy_is_the_client_whatever_it_sends() {
        for peer in ["203.0.113.9", "::ffff:203.0.113.9"] {
            assert_eq!(client("127.0.0.1", peer, &["198.51.100.1"]), "203.0.113.9");
        }
        assert_eq!(client("", "127.0.0.1", &["198.51.100.1"]), "127.0.0.1");
        assert_eq!(client("10.0.0.0/8", "2001:db8::1", &["198.51.100.1"]), "2001:db8::1");
    }

    #[test]
    fn proxy_ranges_can_be_ipv4_or_ipv6() {
        for (range, inside, outside) in [
            ("172.16.0.0/12", "172.31.255.255", "172.32.0.0"),
            ("172.17.3.4/12", "172.16.0.1", "172.15.255.255"),
            ("fc00::/7", "fd12::1", "fe00::1"),
            ("::1", "::1", "::2"),
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("::ffff:10.0.0.0/104", "10.200.0.1", "11.0.0.1"),
            ("203.0.0.0/8", "203.0.113.9", "2001:db8::1"),
            (" 10.0.0.0/8 , ::1 ", "::1", "::"),
        ] {
            let proxies: Proxies = range.parse().unwrap();
            assert!(proxies.contain(inside.parse().unwrap()), "{inside} in {range}");
            assert!(!proxies.contain(outside.parse().unwrap()), "{outside} in {range}");
        }
        assert_eq!("".parse(), Ok(Proxies::default()));
        for wrong in [
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "caddy",
            "::1,",
            "::ffff:10.0.0.0/8",
        ] {
            assert!(wrong.parse::<Proxies>().unwrap_err().contains("172.16.0.0/12"), "{wrong}");
        }
        for wide in [
            "0.0.0.0/0",
            "192.0.2.1/0",
            "::/0",
            "::ffff:0.0.0.0/96",
            "10.0.0.0/8, ::/0",
            "0.0.0.0/1,128.0.0.0/1",
            "10.0.0.0/7",
            "::ffff:10.0.0.0/103",
            "::/1,8000::/1",
            "fc00::/6",
        ] {
            assert!(wide.parse::<Proxies>().unwrap_err().contains("wider than any private network"), "{wide}");
        }
    }
}
