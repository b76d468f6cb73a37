//! Trusted proxies: decides which forwarding headers are believed.
//!
//! `X-Forwarded-For`, `-Proto`, `-Host` and `-Port` from a trusted peer replace the client's
//! address, the scheme, the host and the port. From other peers they reach PHP as plain headers, as
//! with nginx, and have no effect. Lists are read from the right, because each proxy appends its
//! entry. Entries further left may be forged. All four values belong to the same hop: the one
//! between the client and the outermost trusted proxy.
//!
//! `Forwarded` (RFC 7239) counts only if there is no `X-Forwarded-` header. A proxy that sets those
//! may pass on a `Forwarded` that the client has sent.

use super::host::is_host;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use samovar_config::Settings;
use std::net::{IpAddr, SocketAddr};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// Maximum number of proxies that are skipped.
const HOPS_MAX: usize = 32;

/// Claims of a trusted proxy. Empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    let (address, hop) = client(proxies, entries(headers, &FOR).map(Some));
    let proto = at(headers, &PROTO, hop);
    let host = at(headers, &HOST, hop);
    let port = at(headers, &PORT, hop);
    let is_any = proto.or(host).or(port).is_some() || headers.contains_key(&FOR);
    if !is_any && headers.contains_key(&FORWARDED) {
        return read_forwarded(proxies, headers).unwrap_or_default();
    }
    of_hop(address, proto, host, port.and_then(|port| port.parse().ok()))
}

/// Reads `Forwarded`. `None`: its quotation marks do not match.
fn read_forwarded(proxies: &[IpNet], headers: &HeaderMap) -> Option<Claims> {
    let mut elements = Vec::new();
    for line in headers.get_all(&FORWARDED) {
        elements.extend(unquoted_parts(line.to_str().ok()?, b',')?);
    }
    let addresses = elements.iter().rev().map(|element| parameter(element, "for"));
    let (address, hop) = client(proxies, addresses);
    let element = elements.len().checked_sub(hop + 1).map(|at| elements[at])?;
    let [proto, host] = ["proto", "host"].map(|name| parameter(element, name));
    Some(of_hop(address, proto, host, None))
}

/// Claims with the values of one hop.
fn of_hop(
    address: Option<IpAddr>,
    proto: Option<&str>,
    host: Option<&str>,
    port: Option<u16>,
) -> Claims {
    let is_https = proto.map(|proto| proto.eq_ignore_ascii_case("https"));
    let host = host.filter(|host| is_plain_host(host.as_bytes()));
    let port = port.or_else(|| port_of(host?));
    Claims { is_trusted: false, address, is_https, host: host.map(str::to_owned), port }
}

/// Returns the right-most address that is not a trusted proxy, or the left-most one if all are,
/// and its position from the right. `entries`: from the right; `None` if one has no address.
fn client<'a>(
    proxies: &[IpNet],
    entries: impl Iterator<Item = Option<&'a str>>,
) -> (Option<IpAddr>, usize) {
    let (mut client, mut hop) = (None, 0);
    for (at, entry) in entries.take(HOPS_MAX).enumerate() {
        let Some(address) = entry.and_then(address) else { break };
        (client, hop) = (Some(address), at);
        if !is_trusted(proxies, address) {
            break;
        }
    }
    (client, hop)
}

/// Entry of the hop in a list. A list with fewer entries was begun by a proxy further outside, and
/// the proxies after it have passed it on: its first entry counts.
fn at<'a>(headers: &'a HeaderMap, name: &HeaderName, hop: usize) -> Option<&'a str> {
    entries(headers, name).take(hop + 1).last()
}

fn port_of(host: &str) -> Option<u16> {
    let (name, port) = host.rsplit_once(':')?;
    let is_literal = name.starts_with('[') && !name.ends_with(']');
    port.parse().ok().filter(|_| !is_literal)
}

/// Value of a parameter of one element of `Forwarded`, without quotation marks. Values in use
/// contain no escaped characters.
fn parameter<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let pairs = unquoted_parts(element, b';')?;
    pairs.into_iter().find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        key.trim().eq_ignore_ascii_case(name).then(|| quoted.unwrap_or(value))
    })
}

/// Splits a text at separators outside of quoted strings. `None`: a quoted string does not end.
fn unquoted_parts(text: &str, separator: u8) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            byte if byte == separator && !is_quoted => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    (!is_quoted).then_some(parts)
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
            let name = match *name {
                "forwarded" => FORWARDED,
                name => format!("x-forwarded-{name}").parse().unwrap(),
            };
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
        check(
            &[("host", "shop.example:8443"), ("proto", "https")],
            &Claims {
                is_https: Some(true),
                host: Some("shop.example:8443".into()),
                port: Some(8443),
                ..Claims::default()
            },
        );
        check(
            &[("host", "[2001:db8::1]")],
            &Claims { host: Some("[2001:db8::1]".into()), ..Claims::default() },
        );
        for host in ["a/b", "a..b", "..", "[::1", "a'b", "u@a"] {
            check(&[("host", host), ("port", "x")], &Claims::default());
        }
    }

    /// Entries of two trusted proxies, with forged entries of a client.
    #[test]
    fn lists_are_read_at_the_hop_of_the_client() {
        let expected = |is_https, host: &str, port| Claims {
            address: Some("203.0.113.7".parse().unwrap()),
            is_https: Some(is_https),
            host: Some(host.into()),
            port: Some(port),
            ..Claims::default()
        };
        for ([addresses, proto, host, port], expected) in [
            (
                ["203.0.113.7, 10.0.0.1", "https, http", "shop.example, inner", "443, 80"],
                expected(true, "shop.example", 443),
            ),
            (
                ["6.6.6.6, 203.0.113.7, 10.0.0.1", "https, http, http", "evil, a, b", "1, 2, 3"],
                expected(false, "a", 2),
            ),
            (
                ["203.0.113.7, 10.0.0.1", "https", "shop.example", "443"],
                expected(true, "shop.example", 443),
            ),
            (["203.0.113.7", "http, https", "evil, a", "1, 2"], expected(true, "a", 2)),
        ] {
            let lines = [("for", addresses), ("proto", proto), ("host", host), ("port", port)];
            check(&lines, &expected);
            // Proxies may also add lines.
            let parts =
                lines.iter().flat_map(|(name, list)| list.split(',').map(|one| (*name, one)));
            check(&parts.collect::<Vec<_>>(), &expected);
        }
    }

    #[test]
    fn forwarded_is_read_at_the_hop_of_the_client() {
        let client =
            |address: &str| Claims { address: Some(address.parse().unwrap()), ..Claims::default() };
        let shop = Claims {
            is_https: Some(true),
            host: Some("shop.example:8443".into()),
            port: Some(8443),
            ..client("203.0.113.7")
        };
        for (line, expected) in [
            ("for=203.0.113.7", client("203.0.113.7")),
            ("For=\"203.0.113.7:4711\"", client("203.0.113.7")),
            ("for=\"[2001:db8::1]:80\"", client("2001:db8::1")),
            ("for=203.0.113.7;proto=https;host=\"shop.example:8443\"", shop.clone()),
            (
                "for=6.6.6.6;proto=http;host=evil, for=203.0.113.7 ; Proto=HTTPS; \
                 host=\"shop.example:8443\";by=10.0.0.1, for=10.0.0.1;proto=http;host=inner",
                shop.clone(),
            ),
            ("for=\"6.6.6.6, for=1.1.1.1\", for=203.0.113.7", client("203.0.113.7")),
            ("for=_hidden;proto=http, for=10.0.0.1", client("10.0.0.1")),
            ("for=unknown", Claims::default()),
            ("for=\"203.0.113.7", Claims::default()),
            ("proto=https", Claims { is_https: Some(true), ..Claims::default() }),
            ("", Claims::default()),
        ] {
            check(&[("forwarded", line)], &expected);
        }
        let of_client = ("forwarded", "for=6.6.6.6;host=evil");
        check(&[of_client, ("for", "203.0.113.7")], &client("203.0.113.7"));
        let proto = Claims { is_https: Some(true), ..Claims::default() };
        check(&[of_client, ("proto", "https")], &proto);
    }
}
