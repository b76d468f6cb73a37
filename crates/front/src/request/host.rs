//! Validates hosts: in a `Host` header, in a target's authority, and in the headers of a trusted
//! proxy.

use std::net::Ipv6Addr;

/// Whether `host` is RFC 3986's `host [":" port]`, or empty. The check is stricter than the
/// grammar, but accepts all hosts in use: no empty labels (except for one dot at the end), no user
/// name, and a literal in brackets must be an IPv6 address.
pub(super) fn is_host(host: &[u8]) -> bool {
    if host.first() == Some(&b'[') {
        let Some(end) = memchr::memchr(b']', host) else { return false };
        let (literal, rest) = (&host[1..end], &host[end + 1..]);
        let is_address = str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
        return is_address && rest.strip_prefix(b":").map_or(rest.is_empty(), is_port);
    }
    match host.iter().position(|byte| *byte == b':') {
        Some(at) => at > 0 && is_name(&host[..at]) && is_port(&host[at + 1..]),
        None => is_name(host),
    }
}

fn is_port(port: &[u8]) -> bool {
    let number = port.iter().try_fold(0u16, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    });
    number.is_some()
}

/// RFC 3986's `reg-name`, which includes IPv4 addresses.
fn is_name(name: &[u8]) -> bool {
    let labels = name.strip_suffix(b".").unwrap_or(name);
    if labels.is_empty() {
        return name.is_empty();
    }
    let mut before = b'.';
    for (at, byte) in labels.iter().enumerate() {
        let is_right = match byte {
            b'.' => before != b'.',
            b'%' => {
                labels.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
            }
            byte => IS_OF_NAME[usize::from(*byte)],
        };
        if !is_right {
            return false;
        }
        before = *byte;
    }
    before != b'.'
}

/// RFC 3986's `unreserved` and `sub-delims`, without the dot.
const IS_OF_NAME: [bool; 256] = {
    let mut is_of_name = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_of_name[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-_~!$&'()*+,;=";
    let mut at = 0;
    while at < others.len() {
        is_of_name[others[at] as usize] = true;
        at += 1;
    }
    is_of_name
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_accepted_or_refused() {
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
            ("a:00080", true),
            ("a:65535", true),
            ("a%20.b", true),
            ("%2", false),
            ("a.%20", true),
            ("a%.b", false),
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
