//! Trusted proxies: decides which forwarding headers are believed.
//!
//! `X-Forwarded-For`, `-Proto`, `-Host` and `-Port` from a trusted peer replace the client's
//! address, the scheme, the host and the port. From other peers they reach PHP as plain headers, as
//! with nginx, and have no effect. Lists are read from the right, because each proxy appends its
//! entry. Entries further left may be forged.

use super::host::is_host;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use samovar_config::Settings;
use std::net::{IpAddr, SocketAddr};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// Maximum number of proxies that are skipped.
const HOPS_MAX: usize = 32;

/// Claims of a trusted proxy. Empty if there is none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    /// The peer is a trusted proxy.
    pub(super) is_trusted: bool,
    pub(super) address: Option<IpAddr>,
    pub(super) is_https: Option<bool>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
}

fn is_trusted(proxies: &[IpNet], peer: IpAddr) -> bool {
    proxies.iter().any(|net| net.contains(&peer))
}

/// Returns the claims of `peer` if it is a trusted proxy. `None` is a client on a Unix socket.
pub(super) fn claims(settings: &Settings, peer: Option<SocketAddr>, headers: &HeaderMap) -> Claims {
    let proxies = &settings.trusted_proxies;
    if peer.map_or(settings.trusts_unix, |peer| is_trusted(proxies, peer.ip())) {
        Claims { is_trusted: true, ..read(proxies, headers) }
    } else {
        Claims::default()
    }
}

fn read(proxies: &[IpNet], headers: &HeaderMap) -> Claims {
    let is_https = last(headers, &PROTO).map(|p| p.eq_ignore_ascii_case("https"));
    let host = last(headers, &HOST).filter(|h| is_plain_host(h.as_bytes()));
    let port = last(headers, &PORT).and_then(|p| p.parse().ok());
    let (address, host) = (client(proxies, headers), host.map(str::to_owned));
    Claims { is_trusted: false, address, is_https, host, port }
}

/// Returns the right-most address that is not a trusted proxy, or the left-most one if all are.
fn client(proxies: &[IpNet], headers: &HeaderMap) -> Option<IpAddr> {
    let mut client = None;
    for entry in entries(headers, &FOR).take(HOPS_MAX) {
        let Some(address) = address(entry) else { break };
        client = Some(address);
        if !is_trusted(proxies, address) {
            break;
        }
    }
    client
}

/// Reads an address with or without a port, IPv6 with or without brackets.
fn address(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|e| e.strip_suffix(']')).unwrap_or(entry);
    let address: Option<IpAddr> = bare.parse().ok();
    address.or_else(|| entry.parse::<SocketAddr>().ok().map(|a| a.ip())).map(|a| a.to_canonical())
}

/// Entries of a list header, from the right.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect();
    lines.into_iter().rev().flat_map(|line| line.rsplit(',')).map(str::trim)
}

fn last<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    entries(headers, name).next()
}

/// Stricter than the check of a client's `Host` header, because a proxy may forward a value that a
/// client sent.
fn is_plain_host(host: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b".-_:[]".contains(b);
    !host.is_empty() && host.iter().all(is_plain) && is_host(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(lines: &[(&str, &str)], expected: &Claims) {
        let proxies = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = format!("x-forwarded-{name}").parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(&read(&proxies, &headers), expected, "{lines:?}");
    }

    #[test]
    fn client_is_the_right_most_untrusted_address() {
        for (lines, expected) in [
            (&["203.0.113.7"][..], Some("203.0.113.7")),
            (&["6.6.6.6, 203.0.113.7"], Some("203.0.113.7")),
            (&["6.6.6.6, 203.0.113.7, 10.1.1.1"], Some("203.0.113.7")),
            (&["6.6.6.6", "203.0.113.7,10.1.1.1"], Some("203.0.113.7")),
            (&["10.0.0.1, 10.0.0.2"], Some("10.0.0.1")),
            (&["203.0.113.7:4711"], Some("203.0.113.7")),
            (&["[2001:db8::1]:80"], Some("2001:db8::1")),
            (&["[2001:db8::1]"], Some("2001:db8::1")),
            (&["::ffff:203.0.113.7"], Some("203.0.113.7")),
            (&["203.0.113.7, nonsense"], None),
            (&["203.0.113.7, nonsense, 10.0.0.1"], Some("10.0.0.1")),
            (&[""], None),
            (&[], None),
        ] {
            let lines: Vec<_> = lines.iter().map(|line| ("for", *line)).collect();
            let address = expected.map(|e| e.parse().unwrap());
            check(&lines, &Claims { address, ..Claims::default() });
        }
    }

    #[test]
    fn scheme_host_and_port_are_read_or_ignored() {
        check(&[("proto", "https")], &Claims { is_https: Some(true), ..Claims::default() });
        check(&[("proto", "https, http")], &Claims { is_https: Some(false), ..Claims::default() });
        check(
            &[("host", "shop.example:8443"), ("port", "8443")],
            &Claims {
                host: Some("shop.example:8443".into()),
                port: Some(8443),
                ..Claims::default()
            },
        );
        for host in ["a/b", "a..b", "..", "[::1", "a'b", "u@a"] {
            check(&[("host", host), ("port", "x")], &Claims::default());
        }
    }
}
