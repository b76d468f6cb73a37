//! Tests of the whole front over TCP, with fake workers: threads that use the ring's worker side.
//!
//! `Server::new().work(|job| …)` starts a server; `server.get("/")` and `Client` write HTTP by
//! hand.
#![allow(unsafe_code)] // The encoded request is read in place, as the worker does.

mod accounts;
mod bodies;
mod budgets;
mod failures;
mod fairness;
mod fastcgi;
mod files;
mod http;
mod http2;
mod life;
mod responses;
mod slow;
mod threads;
mod unfinished;

use crate::{Bound, Front, FrontEvent, FrontHandle};
use samovar_config::{Protocol, Settings};
use samovar_insight::{Intake, Outlet, intake};
use samovar_ring::{
    Death, Incarnation, Lane, REQUEST_BYTES, Ring, SlotIndex, Supervision, Take, Usage, WorkerEnd,
    request,
};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum wait of a test. It only determines how long a broken test hangs.
const WATCHDOG: Duration = Duration::from_mins(2);

/// Action of a fake worker after its closure.
enum After {
    Finish,
    /// As if killed: the slot is left unchanged, then repaired.
    Die,
    /// Wait until the front requests the worker's death.
    Hang,
}

/// One request that a fake worker runs.
struct Job<'a> {
    worker: &'a mut WorkerEnd,
    slot: SlotIndex,
    ring: &'a Ring,
    me: Incarnation,
    fields: Vec<(&'static str, String)>,
    headers: HashMap<String, String>,
    content_length: i64,
    server_port: u16,
    flags: u32,
    /// Additional `$_SERVER` variables.
    variables: HashMap<String, String>,
}

impl<'a> Job<'a> {
    fn new(worker: &'a mut WorkerEnd, slot: SlotIndex, ring: &'a Ring, me: Incarnation) -> Job<'a> {
        // SAFETY: the request area has REQUEST_BYTES bytes and is the worker's until it finishes.
        let area = unsafe { std::slice::from_raw_parts(worker.request(slot), REQUEST_BYTES) };
        let (head, headers) = request::decode(area).expect("what the front has encoded");
        let variables = request::decode_variables(area).expect("what the front has encoded");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = [
            ("method", head.method),
            ("target", head.target),
            ("query", head.query),
            ("protocol", head.protocol),
            ("script_filename", head.script_filename),
            ("script_name", head.script_name),
            ("document_uri", head.document_uri),
            ("path_info", head.path_info),
            ("document_root", head.document_root),
            ("server_name", head.server_name),
            ("server_addr", head.server_addr),
            ("remote_addr", head.remote_addr),
            ("request_id", head.request_id),
            ("content_type", head.content_type.unwrap_or_default()),
            ("cookie", head.cookie.unwrap_or_default()),
            ("authorization", head.authorization.unwrap_or_default()),
        ];
        Job {
            fields: fields.map(|(name, value)| (name, text(value))).into(),
            headers: headers.iter().map(|(name, value)| (text(name), text(value))).collect(),
            content_length: head.content_length.map_or(-1, u64::cast_signed),
            server_port: head.server_port,
            flags: head.flags,
            variables: variables.iter().map(|(name, value)| (text(name), text(value))).collect(),
            worker,
            slot,
            ring,
            me,
        }
    }

    fn field(&self, name: &str) -> String {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        found.expect("a field of the head").1.clone()
    }

    fn head(&mut self, status: u16, lines: &str) {
        assert!(self.worker.put_head(self.slot, status, lines.as_bytes()));
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        self.worker.write_body(self.slot, bytes).is_ok()
    }

    fn flush(&mut self) -> bool {
        self.worker.flush(self.slot).is_ok()
    }

    fn respond(&mut self, body: &str) -> After {
        self.head(200, "Content-Type: text/plain\n");
        self.write(body.as_bytes());
        After::Finish
    }

    /// Reads the whole body; `None` if it was aborted by the client.
    fn body(&mut self) -> Option<Vec<u8>> {
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        loop {
            self.worker.read_body(self.slot, 10_000, &mut piece).ok()?;
            if piece.is_empty() {
                return Some(all);
            }
            all.extend_from_slice(&piece);
        }
    }
}

type Closure = dyn Fn(&mut Job<'_>) -> After + Send + Sync;

/// A running front, its workers, and its events for the supervisor.
struct Server {
    address: SocketAddr,
    handle: FrontHandle,
    root: TempDir,
    ring: Ring,
    events: Receiver<FrontEvent>,
    kills: Arc<Mutex<Receiver<Incarnation>>>,
    front: Option<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// A server with the default settings and without workers.
    fn new() -> Server {
        Server::with(64, |_| {})
    }

    fn with(slots: usize, change: impl FnOnce(&mut Settings)) -> Server {
        Server::start(slots, change, None, Protocol::Http)
    }

    /// A server for the FastCGI requests of web servers.
    fn fastcgi(change: impl FnOnce(&mut Settings)) -> Server {
        Server::start(64, change, None, Protocol::FastCgi)
    }

    /// A server whose clients send a PROXY header first.
    fn proxied(change: impl FnOnce(&mut Settings)) -> Server {
        let with_header = |bound| Bound { has_proxy_header: true, ..bound };
        Server::start_on(64, change, None, with_header)
    }

    /// A server that reports its requests to the returned outlet.
    fn measured() -> (Server, Outlet) {
        let (intake, outlet) = intake();
        (Server::start(64, |_| {}, Some(intake), Protocol::Http), outlet)
    }

    fn start(
        slots: usize,
        change: impl FnOnce(&mut Settings),
        intake: Option<Intake>,
        protocol: Protocol,
    ) -> Server {
        Server::start_on(slots, change, intake, |bound| Bound { protocol, ..bound })
    }

    fn start_on(
        slots: usize,
        change: impl FnOnce(&mut Settings),
        intake: Option<Intake>,
        shape: impl FnOnce(Bound) -> Bound,
    ) -> Server {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("index.php"), "<?php").unwrap();
        std::fs::write(root.path().join("other.php"), "<?php").unwrap();
        let mut settings = Settings::defaults(root.path()).unwrap();
        settings.temp_dir = root.path().to_owned();
        change(&mut settings);
        let ring = Ring::shared_by(settings.front_threads, slots).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (said, events) = channel();
        let (kill, kills): (Sender<Incarnation>, _) = channel();
        let link = Box::new(move |event| {
            if let FrontEvent::KillWorker { incarnation, .. } = event {
                let _ = kill.send(incarnation);
            }
            let _ = said.send(event);
        });
        let bound = shape(listener.into());
        let (front, handle) =
            Front::new(vec![bound], None, ring.clone(), settings, link, intake).unwrap();
        let front = std::thread::spawn(move || front.run().unwrap());
        let kills = Arc::new(Mutex::new(kills));
        Server { address, handle, root, ring, events, kills, front: Some(front), workers: vec![] }
    }

    /// Adds a worker.
    fn work(mut self, act: impl Fn(&mut Job<'_>) -> After + Send + Sync + 'static) -> Server {
        let (ring, kills) = (self.ring.clone(), Arc::clone(&self.kills));
        let (index, act): (_, Box<Closure>) = (self.workers.len(), Box::new(act));
        self.workers.push(std::thread::spawn(move || work(&ring, index, &kills, &*act)));
        self
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Sends one request on its own connection and returns status line, headers and body.
    fn get(&self, target: &str) -> Reply {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"))
    }

    fn ask(&self, request: &str) -> Reply {
        let mut client = self.client();
        client.send(request.as_bytes());
        client.reply(request.starts_with("HEAD"))
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn event(&self) -> FrontEvent {
        self.events.recv_timeout(WATCHDOG).unwrap()
    }

    /// Drains the front, and waits until it has returned.
    fn stop(&mut self) {
        self.handle.drain();
        if let Some(front) = self.front.take() {
            front.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.drain();
        Supervision::new(self.ring.clone()).stop();
        if let Some(front) = self.front.take() {
            let result = front.join();
            assert!(std::thread::panicking() || result.is_ok(), "the front panicked");
        }
    }
}

fn work(ring: &Ring, index: usize, kills: &Mutex<Receiver<Incarnation>>, act: &Closure) {
    let supervision = Supervision::new(ring.clone());
    let mut me = Incarnation::new(0xa_b000 + index as u32).unwrap();
    loop {
        let mut worker = WorkerEnd::new(ring.clone(), index, me);
        loop {
            let Take::Request(slot, _) = worker.take(&[Lane::App, Lane::Script], || true) else {
                return;
            };
            match act(&mut Job::new(&mut worker, slot, ring, me)) {
                After::Finish => {
                    let usage = Usage { cpu_ns: 1_500_000, peak_bytes: 4096, ..Usage::default() };
                    worker.finish(slot, &usage);
                    continue;
                }
                After::Die => {}
                After::Hang => {
                    let killed = kills.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
                    assert_eq!(killed, me);
                }
            }
            supervision.repair(index, me, Death::UNKNOWN);
            me = Incarnation::new(me.get() + 100).unwrap();
            break;
        }
    }
}

/// Waits until `is_so` returns true.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WATCHDOG, "never: {what}");
        std::thread::yield_now();
    }
}

/// A response as the client receives it.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// The body has the length that its head declares.
    is_complete: bool,
}

impl Reply {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A connection on which HTTP is written by hand.
struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Client {
        Client::of(TcpStream::connect(address).unwrap())
    }

    /// Connects from this address of the host.
    fn connect_from(from: [u8; 4], address: SocketAddr) -> Client {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Client::of(socket.into())
    }

    fn of(stream: TcpStream) -> Client {
        // Without this, each of several small writes would wait for an acknowledgement that is
        // delayed by 40 ms.
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        Client { stream, unread: Vec::new() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads more bytes; false at the end of the connection.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(read @ 1..) => {
                self.unread.extend_from_slice(&buffer[..read]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the server is silent; so far: {}", String::from_utf8_lossy(&self.unread))
            }
            _ => false,
        }
    }

    /// Reads all bytes until the server closes the connection.
    fn rest(&mut self) -> String {
        while self.more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }

    fn line_end(&mut self, end: &[u8]) -> Option<usize> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.unread, end) {
                return Some(at);
            }
            if !self.more() {
                return None;
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Vec<u8> {
        while self.unread.len() < bytes && self.more() {}
        let taken = bytes.min(self.unread.len());
        self.unread.drain(..taken).collect()
    }

    fn head(&mut self) -> (u16, String) {
        let end = self.line_end(b"\r\n\r\n").expect("a complete head") + 4;
        let head = String::from_utf8(self.take(end)).unwrap();
        (head[9..12].parse().unwrap(), head)
    }

    fn reply(&mut self, is_head: bool) -> Reply {
        let (status, head) = self.head();
        let mut reply = Reply { status, head, body: vec![], is_complete: true };
        if is_head || matches!(status, 204 | 304) {
            return reply;
        }
        if reply.header("transfer-encoding").is_some() {
            reply.is_complete = self.chunks(&mut reply.body);
        } else if let Some(length) = reply.header("content-length") {
            let length = length.parse().unwrap();
            reply.body = self.take(length);
            reply.is_complete = reply.body.len() == length;
        } else {
            while self.more() {}
            reply.body = std::mem::take(&mut self.unread);
        }
        reply
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = self.line_end(b"\r\n")?;
        let size = self.take(end + 2);
        let size = std::str::from_utf8(&size[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let bytes = self.take(size + 2);
        (bytes.len() == size + 2).then(|| bytes[..size].to_vec())
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        while let Some(chunk) = self.chunk() {
            if chunk.is_empty() {
                return true;
            }
            body.extend_from_slice(&chunk);
        }
        false
    }
}

/// Bytes in which a missing or repeated piece is detected.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + i / 65_521) as u8).collect()
}
