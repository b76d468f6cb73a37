//! A slow DNS server at a separate loopback address, and mounts that make libc query only this
//! server.

use samovar_testkit::{Start, may_mount};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// libc queries no other port.
const PORT: u16 = 53;
/// Delay of a response.
const LATE: Duration = Duration::from_millis(50);
const PACKET_MAX: usize = 4096;
const MANY: u8 = 40;

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;

/// A shell that starts the server with our files in `/etc`. The folder is passed in a variable.
const MOUNTED: &str = r#"exec unshare --mount --propagation private sh -c '
mount --bind "$NAMES_FOLDER/resolv.conf" /etc/resolv.conf &&
mount --bind "$NAMES_FOLDER/nsswitch.conf" /etc/nsswitch.conf &&
exec "$@"' sh "$@""#;

/// Runs until the test ends.
pub(crate) struct Dns {
    folder: TempDir,
    most: Arc<AtomicUsize>,
}

struct Question {
    due: Instant,
    from: SocketAddr,
    packet: Vec<u8>,
    name: String,
}

impl Dns {
    /// Returns `None` without the privilege to mount or to use port 53: libc reads only
    /// `/etc/resolv.conf`, and queries no other port.
    pub(crate) fn start() -> Option<Dns> {
        may_mount().ok()?;
        let (socket, address) = (1..=250).find_map(bind)?;
        let folder = TempDir::with_prefix("samovar-dns-").expect("a temporary folder");
        // There is no TCP, and each address is queried once.
        let resolv = format!("nameserver {address}\nsearch .\noptions timeout:25 attempts:1\n");
        std::fs::write(folder.path().join("resolv.conf"), resolv).expect("our own folder");
        std::fs::write(folder.path().join("nsswitch.conf"), "hosts: files dns\n")
            .expect("our own folder");
        let most = Arc::new(AtomicUsize::new(0));
        serve(Arc::new(socket), Arc::clone(&most));
        Some(Dns { folder, most })
    }

    pub(crate) fn asked_by(&self, start: Start) -> Start {
        let folder = self.folder.path().to_str().expect("our own name");
        start.env("NAMES_FOLDER", folder).through(MOUNTED)
    }

    /// Maximum number of concurrent unanswered queries since the last call.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most.swap(0, Ordering::Relaxed)
    }
}

fn bind(last: u8) -> Option<(UdpSocket, Ipv4Addr)> {
    let address = Ipv4Addr::new(127, 83, 53, last);
    UdpSocket::bind((address, PORT)).ok().map(|socket| (socket, address))
}

fn serve(socket: Arc<UdpSocket>, most: Arc<AtomicUsize>) {
    let (asked, questions) = channel::<Question>();
    let waiting = Arc::new(Mutex::new(Vec::<String>::new()));
    let (answering, listed) = (Arc::clone(&socket), Arc::clone(&waiting));
    // All responses have the same delay, so they keep their order.
    std::thread::spawn(move || {
        let (_never, nothing) = channel::<()>();
        for question in questions {
            let left = question.due.saturating_duration_since(Instant::now());
            let late = nothing.recv_timeout(left);
            assert_eq!(late, Err(RecvTimeoutError::Timeout));
            listed.lock().expect("no panic").retain(|name| *name != question.name);
            if let Some(answer) = answer(&question.packet, &question.name) {
                let _ = answering.send_to(&answer, question.from);
            }
        }
    });
    std::thread::spawn(move || listen(&socket, &asked, &waiting, &most));
}

fn listen(
    socket: &UdpSocket,
    asked: &Sender<Question>,
    waiting: &Mutex<Vec<String>>,
    most: &AtomicUsize,
) {
    let mut packet = [0; PACKET_MAX];
    while let Ok((len, from)) = socket.recv_from(&mut packet) {
        let packet = packet[..len].to_vec();
        let Some(name) = name_of(&packet) else { continue };
        let mut waiting = waiting.lock().expect("no panic");
        waiting.push(name.clone());
        let names: HashSet<&String> = waiting.iter().collect();
        most.fetch_max(names.len(), Ordering::Relaxed);
        drop(waiting);
        if asked.send(Question { due: Instant::now() + LATE, from, packet, name }).is_err() {
            break;
        }
    }
}

/// The queried name (RFC 1035, 4.1.2).
fn name_of(packet: &[u8]) -> Option<String> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let len = usize::from(*packet.get(at)?);
        if len == 0 {
            return Some(labels.join("."));
        }
        labels.push(String::from_utf8_lossy(packet.get(at + 1..at + 1 + len)?).to_lowercase());
        at += len + 1;
    }
}

/// The response to a query; `None` for no response.
fn answer(packet: &[u8], name: &str) -> Option<Vec<u8>> {
    if name == "deaf.test" {
        return None;
    }
    let end = 12 + name.len() + 2;
    let kind = u16::from_be_bytes([*packet.get(end)?, *packet.get(end + 1)?]);
    let known = records(name);
    let said: Vec<&Vec<u8>> =
        known.iter().flatten().filter(|(of, _)| *of == kind).map(|(_, data)| data).collect();
    let mut answer = packet.get(..2)?.to_vec();
    answer.extend([0x81, if known.is_some() { 0x80 } else { 0x83 }, 0, 1]);
    answer.extend(u16::try_from(said.len()).expect("few").to_be_bytes());
    answer.extend([0, 0, 0, 0]);
    answer.extend(packet.get(12..end + 4)?);
    for data in said {
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

/// Records of a name, as type and data; `None` if the name does not exist.
fn records(name: &str) -> Option<Vec<(u16, Vec<u8>)>> {
    if name == "many.test" {
        return Some((1..=MANY).map(|last| (A, vec![10, 0, 2, last])).collect());
    }
    if let Some(address) = name.strip_suffix(".0.0.10.in-addr.arpa") {
        let host = format!("n{address}");
        let mut data = vec![u8::try_from(host.len()).expect("short")];
        data.extend(host.bytes());
        data.extend(*b"\x04test\0");
        return Some(vec![(PTR, data)]);
    }
    let number: u8 = name.strip_prefix('n')?.strip_suffix(".test")?.parse().ok()?;
    let text = format!("/{number}");
    let mut data = vec![u8::try_from(text.len()).expect("short")];
    data.extend(text.bytes());
    Some(vec![(A, vec![10, 0, 0, number]), (TXT, data)])
}
