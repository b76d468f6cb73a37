//! What may name a host: in a `Host` header, in a target's authority, and in a trusted proxy's word.

use std::net::Ipv6Addr;

/// Whether `host` is RFC 3986's `host [":" port]`, or empty. Stricter than its grammar where nothing in use is lost:
/// no empty labels (but for one dot at the end), no user in front, a literal in brackets is an IPv6 address.
pub(super) fn is_host(host: &[u8]) -> bool {
    if host.first() == Some(&b'[') {
        let Some(end) = memchr::memchr(b']', host) else { return false };
        let (literal, rest) = (&host[1..end], &host[end + 1..]);
        let is_address = str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
        return is_address && rest.strip_prefix(b":").map_or(rest.is_empty(), is_port);
    }
    match memchr::memchr(b':', host) {
        Some(at) => at > 0 && is_name(&host[..at]) && is_port(&host[at + 1..]),
        None => is_name(host),
    }
}

fn is_port(port: &[u8]) -> bool {
    let digits = port.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(port).ok().and_then(|text| text.parse::<u16>().ok());
    digits && (port.is_empty() || number.is_some())
}

/// RFC 3986's `reg-name`, which an IPv4 address is too.
fn is_name(name: &[u8]) -> bool {
    if name.is_empty() {
        return true;
    }
    let labels = name.strip_suffix(b".").unwrap_or(name);
    let is_byte = |b: &u8| b.is_ascii_alphanumeric() || b"-_~!$&'()*+,;=%".contains(b);
    let are_escapes = memchr::memchr_iter(b'%', labels).all(|at| {
        labels[at + 1..].iter().take_while(|b| b.is_ascii_hexdigit()).take(2).count() == 2
    });
    are_escapes && labels.split(|b| *b == b'.').all(|l| !l.is_empty() && l.iter().all(is_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (host, is_valid) in [
            ("example.com", true),
            ("example.com:8080", true),
            ("example.com.", true),
            ("example.com:", true),
            ("192.0.2.7:80", true),
            ("[::1]:80", true),
            ("[::1]", true),
            ("[2001:db8::1]:", true),
            ("[::ffff:192.0.2.7]", true),
            ("a_b", true),
            ("xn--bcher-kva.example", true),
            ("a%20b", true),
            ("", true),
            (":80", false),
            ("..", false),
            (".", false),
            (".a", false),
            ("a..b", false),
            ("a..", false),
            ("a%2", false),
            ("a%zz", false),
            ("[::1", false),
            ("::1", false),
            ("::1]", false),
            ("[]", false),
            ("[::1]x", false),
            ("[::1]:x", false),
            ("[fe80::1%25eth0]", false),
            ("[v1.a]", false),
            ("a:b", false),
            ("a:80:80", false),
            ("a:65536", false),
            ("a:+80", false),
            ("a:-1", false),
            ("a b", false),
            ("a/b", false),
            ("a\\b", false),
            ("a\"b", false),
            ("a<b", false),
            ("a#b", false),
            ("a?b", false),
            ("\u{e4}", false),
            ("user@host", false),
            ("user:password@host", false),
        ] {
            assert_eq!(is_host(host.as_bytes()), is_valid, "{host:?}");
        }
    }
}
