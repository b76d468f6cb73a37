//! Names of a worker's descriptors: `tcp 10.0.0.5:5432`, `/var/lock/a`.
//!
//! A waiting worker is sampled at the same call many times, so names of sockets are cached by their
//! number in the kernel.

use crate::os;
use std::collections::HashMap;
use std::fs::read_link;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum number of cached sockets. When it is reached, the cache is cleared.
const KNOWN_MAX: usize = 1024;
/// Maximum age of a cached name: a socket may be connected to another peer later.
const AGE_MAX: Duration = Duration::from_secs(5);
/// Maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 120;

/// Cache of socket names.
#[derive(Debug, Default)]
pub(super) struct Peers {
    known: HashMap<String, (Instant, String)>,
}

impl Peers {
    /// Returns the name of a descriptor of that process; empty if it is not open.
    pub(super) fn name(&mut self, pid: i32, process: Option<&OwnedFd>, fd: i32) -> String {
        let Ok(link) = read_link(format!("/proc/{pid}/fd/{fd}")) else { return String::new() };
        let link = link.to_string_lossy().into_owned();
        if link.starts_with("pipe:[") {
            return "pipe".to_owned();
        }
        if let Some(kind) = link.strip_prefix("anon_inode:") {
            return kind.trim_matches(['[', ']']).to_owned();
        }
        if !link.starts_with("socket:[") {
            return printable(&link);
        }
        if let Some((at, name)) = self.known.get(&link)
            && at.elapsed() < AGE_MAX
        {
            return name.clone();
        }
        let name = process.and_then(|process| os::socket_of(process, fd));
        let name = printable(name.as_deref().unwrap_or("socket"));
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(link, (Instant::now(), name.clone()));
        name
    }
}

/// Makes external text safe for a terminal and a page.
fn printable(text: &str) -> String {
    let end = text.char_indices().nth(NAME_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    samovar_log::printable(&text[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_of_own_process_have_names() {
        let pid = std::process::id().cast_signed();
        let process = os::open_process(pid).expect("our own");
        let mut peers = Peers::default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let client = std::net::TcpStream::connect(address).expect("itself");
        let file = tempfile::NamedTempFile::new().expect("a file");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        udp.connect(address).expect("no packet is sent");
        for (fd, expected) in [
            (client.as_raw_fd(), format!("tcp {address}")),
            (udp.as_raw_fd(), format!("udp {address}")),
            (file.as_file().as_raw_fd(), file.path().display().to_string()),
            (-1, String::new()),
        ] {
            for _ in 0..2 {
                assert_eq!(peers.name(pid, Some(&process), fd), expected);
            }
        }
    }
}
