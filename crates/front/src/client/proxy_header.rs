//! accept: the PROXY protocol, versions 1 and 2, by which a proxy in front sends the client's
//! address before the first byte. Pure functions over bytes; `crates/front/fuzz` has a fuzz target
//! for them.
//!
//! <https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt>

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Start of version 2. No HTTP request and no TLS handshake starts with it.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the fixed part of version 2.
const FIXED_BYTES: usize = 16;
/// Maximum length of addresses and extensions of version 2.
const REST_BYTES_MAX: usize = 4096;
/// Maximum length of a line of version 1, including its end.
const LINE_BYTES_MAX: usize = 107;
/// Maximum number of bytes that are read.
pub const BYTES_MAX: usize = FIXED_BYTES + REST_BYTES_MAX;

/// Type of the extension about TLS between client and proxy, and its bit for TLS.
const TYPE_SSL: u8 = 0x20;
const CLIENT_SSL: u8 = 0x01;

/// Contents of a PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Addresses of the client and of the endpoint that it connected to. `None`: the proxy speaks
    /// for itself, or sends no address.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Whether the client uses TLS to the proxy, if the header contains this.
    pub is_tls: Option<bool>,
}

/// Result for bytes that do not contain a complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// More bytes are needed.
    More,
    /// The bytes are not a header, and more bytes cannot change this. Contains the reason.
    Wrong(&'static str),
}

use Unfinished::{More, Wrong};

/// Reads the header at the start of `bytes`. Also returns its length.
pub fn read(bytes: &[u8]) -> Result<(ProxyHeader, usize), Unfinished> {
    let same = bytes.len().min(SIGNATURE.len());
    if bytes[..same] == SIGNATURE[..same] {
        return if same < SIGNATURE.len() { Err(More) } else { binary(bytes) };
    }
    line(bytes)
}

fn line(bytes: &[u8]) -> Result<(ProxyHeader, usize), Unfinished> {
    const START: &[u8] = b"PROXY ";
    let same = bytes.len().min(START.len());
    if bytes[..same] != START[..same] {
        return Err(Wrong("no PROXY header"));
    }
    let head = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', head) else {
        let is_long = bytes.len() >= LINE_BYTES_MAX;
        return Err(if is_long { Wrong("PROXY line too long") } else { More });
    };
    let text = head[..end].strip_suffix(b"\r").and_then(|line| str::from_utf8(line).ok());
    let text = text.ok_or(Wrong("malformed PROXY line"))?;
    let header = words(text).ok_or(Wrong("malformed PROXY line"))?;
    Ok((header, end + 1))
}

/// Reads `PROXY TCP4 client server port port`, or `PROXY UNKNOWN` with any rest.
fn words(line: &str) -> Option<ProxyHeader> {
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(ProxyHeader { ends: None, is_tls: None });
    }
    let rest: Vec<&str> = words.collect();
    let [client, server, client_port, server_port] = rest[..] else { return None };
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let port = |text: &str| -> Option<u16> {
        let is_plain =
            text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let client = SocketAddr::new(address(client)?, port(client_port)?);
    let server = SocketAddr::new(address(server)?, port(server_port)?);
    Some(ProxyHeader { ends: Some((client, server)), is_tls: None })
}

fn binary(bytes: &[u8]) -> Result<(ProxyHeader, usize), Unfinished> {
    let Some(fixed) = bytes.get(..FIXED_BYTES) else { return Err(More) };
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > REST_BYTES_MAX {
        return Err(Wrong("PROXY header too long"));
    }
    let (version, command) = (fixed[12] >> 4, fixed[12] & 15);
    if version != 2 || command > 1 {
        return Err(Wrong("unsupported version or command in the PROXY header"));
    }
    let end = FIXED_BYTES + length;
    let Some(rest) = bytes.get(FIXED_BYTES..end) else { return Err(More) };
    if command == 0 {
        // A health check by the proxy.
        return Ok((ProxyHeader { ends: None, is_tls: None }, end));
    }
    let (ends, extensions) =
        addresses(fixed[13], rest).ok_or(Wrong("malformed addresses in the PROXY header"))?;
    Ok((ProxyHeader { ends, is_tls: tls(extensions) }, end))
}

type Ends = Option<(SocketAddr, SocketAddr)>;

/// Returns the two addresses, and the bytes after them.
fn addresses(family: u8, rest: &[u8]) -> Option<(Ends, &[u8])> {
    let bytes = match family >> 4 {
        1 => 12,
        2 => 36,
        3 => 216,
        _ => 0,
    };
    let (block, extensions) = rest.split_at_checked(bytes)?;
    let at = |from: usize, len: usize| -> Option<IpAddr> {
        let bytes = &block[from..from + len];
        <[u8; 4]>::try_from(bytes)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
            .ok()
    };
    let port = |from: usize| u16::from_be_bytes([block[from], block[from + 1]]);
    let ends = match family >> 4 {
        1 => Some((SocketAddr::new(at(0, 4)?, port(8)), SocketAddr::new(at(4, 4)?, port(10)))),
        2 => Some((SocketAddr::new(at(0, 16)?, port(32)), SocketAddr::new(at(16, 16)?, port(34)))),
        _ => None,
    };
    Some((ends, extensions))
}

/// Whether the client uses TLS, according to an extension. `None` without a valid extension.
fn tls(mut rest: &[u8]) -> Option<bool> {
    while let [kind, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, tail) = tail.split_at_checked(length)?;
        if *kind == TYPE_SSL {
            return value.first().map(|bits| bits & CLIENT_SSL != 0);
        }
        rest = tail;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(client: &str, server: &str) -> (SocketAddr, SocketAddr) {
        (client.parse().unwrap(), server.parse().unwrap())
    }

    fn check_line(line: &str, expected: Result<Ends, Unfinished>) {
        let found = read(line.as_bytes());
        let used = line.find('\n').map_or(0, |at| at + 1);
        let expected = expected.map(|ends| (ProxyHeader { ends, is_tls: None }, used));
        assert_eq!(found, expected, "{line:?}");
    }

    #[test]
    fn version_1_lines_are_read_or_refused() {
        let four = Some(ends("192.0.2.1:4711", "198.51.100.2:443"));
        check_line("PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\nGET /", Ok(four));
        check_line(
            "PROXY TCP6 ::1 2001:db8::2 1 2\r\n",
            Ok(Some(ends("[::1]:1", "[2001:db8::2]:2"))),
        );
        check_line("PROXY UNKNOWN\r\n", Ok(None));
        check_line("PROXY UNKNOWN any thing\r\n", Ok(None));
        for line in ["", "P", "PROXY ", "PROXY TCP4 192.0.2.1", "\r\n\r\n"] {
            check_line(line, Err(More));
        }
        let broken = Err(Wrong("malformed PROXY line"));
        for line in [
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 443 1\r\n",
            "PROXY TCP4 ::1 ::2 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 65536\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 +43\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 4711 043\r\n",
            "PROXY TCP4 192.0.2.1  198.51.100.2 4711 43\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.2 4711 43\r\n",
            "PROXY \r\n",
        ] {
            check_line(line, broken);
        }
        check_line("GET / HTTP/1.1\r\n", Err(Wrong("no PROXY header")));
        let long = format!("PROXY UNKNOWN {}", "x".repeat(LINE_BYTES_MAX));
        check_line(&long, Err(Wrong("PROXY line too long")));
    }

    fn block(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [SIGNATURE, &[0x20 | command, family][..], &length, rest].concat()
    }

    #[test]
    fn version_2_blocks_are_read_or_refused() {
        let four = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 1, 0xbb];
        let expected = Some(ends("192.0.2.1:4711", "198.51.100.2:443"));
        let check = |bytes: Vec<u8>, ends, is_tls| {
            let expected = Ok((ProxyHeader { ends, is_tls }, bytes.len()));
            assert_eq!(read(&bytes), expected);
            let more = [&bytes[..], b"GET /"].concat();
            assert_eq!(read(&more), expected);
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), Err(More), "{cut} bytes");
            }
        };
        check(block(1, 0x11, &four), expected, None);
        let with = |rest: &[u8]| block(1, 0x11, &[&four[..], rest].concat());
        check(with(&[0x20, 0, 5, 1, 0, 0, 0, 0]), expected, Some(true));
        check(with(&[1, 0, 2, b'h', b'2', 0x20, 0, 5, 0, 0, 0, 0, 0]), expected, Some(false));
        check(with(&[0x20, 0xff, 0xff, 1]), expected, None);
        check(with(&[0x20, 0, 0]), expected, None);
        check(block(0, 0x11, &four), None, None);
        check(block(1, 0, &[]), None, None);
        check(block(1, 0x31, &[0; 216]), None, None);
        let six = [[0; 15].as_slice(), &[1], &[0; 15], &[2], &[0, 1, 0, 2]].concat();
        check(block(1, 0x21, &six), Some(ends("[::1]:1", "[::2]:2")), None);
        assert!(matches!(read(&block(1, 0x11, &four[..11])), Err(Wrong(_))));
        assert!(matches!(read(&block(2, 0x11, &four)), Err(Wrong(_))));
        assert!(matches!(read(&block(1, 0x11, &[0; REST_BYTES_MAX + 1])), Err(Wrong(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_use_more_than_given(mut bytes: Vec<u8>, is_signed: bool) {
            if is_signed {
                bytes.splice(0..0, SIGNATURE.iter().copied());
            }
            if let Ok((_, used)) = read(&bytes) {
                prop_assert!(used <= bytes.len().min(BYTES_MAX));
            }
        }
    }
}
