//! Idle connections: memory that each of them uses, and their end by timeout.
//!
//! `bench/scenarios/idle.py` measures twenty thousand connections. This test uses some hundreds.
//! Its limits fail if an idle connection keeps resources that only a request needs.

use super::*;
use samovar_testkit::eventually;
use samovar_testkit::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS};
use samovar_testkit::http2::{Field, block, frame};
use samovar_testkit::{SecureClient, family};
use std::io::{Read, Write};
use std::net::TcpStream;

const COUNT: usize = 300;
/// Memory allocated for other purposes while the connections are opened.
const OTHER_BYTES: u64 = 1024 * 1024;
const IDLE_FOR_EVER: [&str; 2] = ["--idle-timeout", "1h"];

/// Whether a response is complete.
type IsWhole = fn(&[u8]) -> bool;

fn is_whole_http1(response: &[u8]) -> bool {
    // The page is one JSON object.
    response.starts_with(b"HTTP/1.1 200") && response.ends_with(b"}")
}

fn is_whole_http2(response: &[u8]) -> bool {
    let mut rest = response;
    while let [a, b, c, kind, flags, _, _, _, stream, behind @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if *stream == 1 && matches!(*kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return behind.len() >= length;
        }
        let Some(next) = behind.get(length..) else { return false };
        rest = next;
    }
    false
}

fn ask(stream: &mut (impl Read + Write), request: &[u8], is_whole: IsWhole) {
    stream.write_all(request).expect("it takes a request");
    let (mut response, mut piece) = (Vec::new(), [0; 4096]);
    while !is_whole(&response) {
        let read = stream.read(&mut piece).expect("it answers");
        assert!(read > 0, "it closed: {}", response.escape_ascii());
        response.extend_from_slice(&piece[..read]);
    }
}

fn http2_request() -> Vec<u8> {
    let fields: [Field<'_>; 4] = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", b"/"),
    ];
    let head = frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(&fields));
    [PREFACE, &frame(SETTINGS, 0, 0, b""), &head].concat()
}

/// Opens `COUNT` connections, sends a request on each and keeps them open. Returns the server's
/// memory in bytes per connection, and the connections.
fn bytes_each<C>(server: &Server, connect: impl Fn() -> C) -> (u64, Vec<C>) {
    // Memory that the first connections leave allocated is shared by all.
    let first: Vec<C> = (0..8).map(|_| connect()).collect();
    let before = family::own_memory_bytes(server.pid()).expect("it runs");
    let all: Vec<C> = (0..COUNT).map(|_| connect()).collect();
    let after = family::own_memory_bytes(server.pid()).expect("it runs");
    drop(first);
    (after.saturating_sub(before + OTHER_BYTES) / COUNT as u64, all)
}

#[test]
fn idle_connection_uses_little_memory() {
    let folder = folder();
    let authority = Certificate::own(folder.path(), "authority", "DNS:authority");
    let certificate = Certificate::signed(folder.path(), "own", NAMES, &authority);
    let server = start(&certificate).args(IDLE_FOR_EVER).start();
    let (plain, secure) = (server.address(), server.addresses("https://")[0]);
    let http1 = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (bytes, in_the_clear) = bytes_each(&server, || {
        let mut stream = TcpStream::connect(plain).expect("it listens");
        ask(&mut stream, http1, is_whole_http1);
        stream
    });
    assert!(bytes < 32 * 1024, "HTTP/1.1: {bytes} bytes each");
    let client = SecureClient::new(&authority, "http/1.1");
    let (bytes, over_tls) = bytes_each(&server, || {
        let mut stream = client.connect(secure);
        ask(&mut stream, http1, is_whole_http1);
        stream
    });
    assert!(bytes < 48 * 1024, "HTTP/1.1 over TLS: {bytes} bytes each");
    let (client, http2) = (SecureClient::new(&authority, "h2"), http2_request());
    let (bytes, by_http2) = bytes_each(&server, || {
        let mut stream = client.connect(secure);
        ask(&mut stream, &http2, is_whole_http2);
        stream
    });
    assert!(bytes < 72 * 1024, "HTTP/2 over TLS: {bytes} bytes each");
    assert_eq!(server.get("/").status, 200, "beside all of them");
    // The connections are still open; they close together with their clients.
    let connections = || server.status()["connections"].as_u64().expect("a number");
    assert!(connections() >= 3 * COUNT as u64);
    drop((in_the_clear, over_tls, by_http2));
    eventually("they have left", || (connections() < 16).then_some(()));
    server.stop();
}

#[test]
fn shorter_idle_timeout_applies_to_existing_connections() {
    let start = Server::app("edge").workers(1).config("[timeouts]\nidle = '1h'");
    let server = start.start();
    let mut clients: Vec<_> = (0..50).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    let file = server.folder().join("samovar.toml");
    std::fs::write(&file, "[timeouts]\nidle = '1s'").expect("a file");
    server.reload().expect("it reloads");
    for mut client in clients {
        assert!(client.is_closed());
    }
    server.stop();
}
