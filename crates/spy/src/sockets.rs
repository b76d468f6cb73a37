//! A descriptor of a process: its kind and its other end.

use samovar_log::printable;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum bytes read of a table of sockets: 100,000 sockets and more.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns, for example, `tcp 10.0.0.5:5432`, `pipe` or `/var/lock/a`; empty if the process has no
/// such descriptor.
pub(crate) fn name(pid: u32, descriptor: i32) -> String {
    let Ok(link) = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else {
        return String::new();
    };
    let link = printable(&link.to_string_lossy()).into_owned();
    let inode = |kind: &str| link.strip_prefix(kind)?.strip_suffix(']')?.parse::<u64>().ok();
    if let Some(inode) = inode("socket:[") {
        return socket(pid, inode);
    }
    if inode("pipe:[").is_some() {
        return "pipe".to_owned();
    }
    link.strip_prefix("anon_inode:")
        .map_or(link.clone(), |kind| kind.trim_matches(['[', ']']).to_owned())
}

fn socket(pid: u32, inode: u64) -> String {
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        if let Some(found) = lines(pid, table, |line| internet(line, inode)) {
            return format!("{} {found}", &table[..3]);
        }
    }
    let unix = lines(pid, "unix", |line| unix(line, inode));
    unix.map_or_else(
        || "socket".to_owned(),
        |path| format!("unix {}", printable(&path)).trim_end().to_owned(),
    )
}

/// The first value that `response` returns for a line of a table.
fn lines<T>(pid: u32, table: &str, mut response: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let file = std::fs::File::open(format!("/proc/{pid}/net/{table}")).ok()?;
    let lines = BufReader::new(file.take(TABLE_BYTES_MAX)).split(b'\n').skip(1);
    lines.map_while(Result::ok).find_map(|line| response(&String::from_utf8_lossy(&line)))
}

/// `0: 0100007F:1F90 0500000A:1538 01 … inode`
fn internet(line: &str, inode: u64) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.get(9)?.parse::<u64>().ok()? != inode {
        return None;
    }
    let (own, peer, state) = (address(words[1])?, address(words[2])?, words[3]);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match (state, peer.port()) {
        (LISTENS, _) => write!(text, "listening on {own}"),
        (_, 0) => write!(text, "from {own}"),
        _ => write!(text, "{peer}"),
    };
    Some(text)
}

/// Parses eight or 32 hexadecimal digits, four bytes each in the machine's byte order, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for part in digits.as_bytes().chunks(8) {
        let four = u32::from_str_radix(std::str::from_utf8(part).ok()?, 16).ok()?;
        bytes.extend(four.to_ne_bytes());
    }
    let ip = match *bytes {
        [a, b, c, d] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

/// `0000: 00000003 00000000 00000000 0001 03 12345 /run/a.sock`. Returns the socket's own name: the
/// table does not contain the peer of an unnamed one.
fn unix(line: &str, inode: u64) -> Option<String> {
    let mut words = line.split_whitespace().skip(6);
    (words.next()?.parse::<u64>().ok()? == inode)
        .then(|| words.next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn socket_table_lines_yield_peers() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(internet(line, 7).as_deref(), expected, "{line}");
        };
        check("0: 0100007F:1F90 0500000A:1538 01 0:0 0:0 0 33 0 7 1", Some("10.0.0.5:5432"));
        check(
            "0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 33 0 7 1",
            Some("listening on 127.0.0.1:8080"),
        );
        check("0: 0100007F:1F90 0500000A:1538 01 0:0 0:0 0 33 0 8 1", None);
        check("0: 0100007F 0500000A:1538 01 0:0 0:0 0 33 0 7 1", None);
        check("", None);
        let mapped = "0000000000000000FFFF00000500000A:1538";
        assert_eq!(address(mapped).map(|a| a.to_string()).as_deref(), Some("10.0.0.5:5432"));
    }

    #[test]
    fn own_descriptors_are_named() {
        let pid = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(peer).expect("it listens");
        assert_eq!(name(pid, listener.as_raw_fd()), format!("tcp listening on {peer}"));
        assert_eq!(name(pid, stream.as_raw_fd()), format!("tcp {peer}"));
        let file = std::fs::File::open("/etc/passwd").expect("readable");
        assert_eq!(name(pid, file.as_raw_fd()), "/etc/passwd");
        assert_eq!(name(pid, -1), "");
    }
}
