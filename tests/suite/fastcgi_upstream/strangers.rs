//! A program at php-fpm's address that is not php-fpm, or sends invalid data.

use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const END: u8 = 3;
pub(super) const STDOUT: u8 = 6;
const STDERR: u8 = 7;

pub(super) fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("a record's length").to_be_bytes();
    let [id_high, id_low] = id.to_be_bytes();
    [&[1, kind, id_high, id_low, high, low, 0, 0][..], content].concat()
}

pub(super) fn end(status: u8) -> Vec<u8> {
    record(END, 1, &[0, 0, 0, 0, status, 0, 0, 0])
}

pub(super) fn ok(body: &str) -> Vec<u8> {
    record(STDOUT, 1, format!("Content-Type: text/plain\r\n\r\n{body}").as_bytes())
}

/// Reads a request to its end (an empty STDIN). Returns whether its connection is to be kept.
pub(super) fn request(stream: &mut TcpStream) -> Option<bool> {
    let mut keeps = None;
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).ok()?;
        let [_, kind, _, _, high, low, padding, _] = header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let mut content = vec![0; length + usize::from(padding)];
        stream.read_exact(&mut content).ok()?;
        match kind {
            1 => keeps = Some(content[2] & 1 != 0),
            5 if length == 0 => return keeps,
            _ => {}
        }
    }
}

/// Starts a listener. `response` receives each connection with its number.
fn stranger(response: impl Fn(usize, TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            response(number, stream);
        }
    });
    address
}

#[test]
fn invalid_upstream_response_is_rejected() {
    let long = vec![b'x'; 60_000];
    let huge_stderr = record(STDERR, 1, &long);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "garbage"),
        ("nothing", vec![], "closed"),
        ("half a header", vec![1, STDOUT, 0], "closed"),
        ("half a record", ok("a")[..12].to_vec(), "closed"),
        ("another version", vec![2; 64], "garbage"),
        ("another request", record(STDOUT, 7, b"A: b\r\n\r\n"), "garbage"),
        ("a web server's record", record(5, 1, b"a"), "garbage"),
        ("an end without answer", end(0), "closed"),
        ("an end that is none", record(END, 1, b"a"), "garbage"),
        ("overloaded", end(2), "refused"),
        ("no such role", end(3), "refused"),
        ("a status that is none", record(STDOUT, 1, b"Status: abc\r\n\r\n"), "garbage"),
        ("an interim status", record(STDOUT, 1, b"Status: 101 Switch\r\n\r\n"), "garbage"),
        ("records of nothing", record(STDERR, 1, b"").repeat(2000), "garbage"),
        ("a head without end", record(STDOUT, 1, &long).repeat(3), "head"),
        ("words and no answer", huge_stderr.repeat(20), "closed"),
    ];
    let responses: Vec<Vec<u8>> = cases.iter().map(|(_, bytes, _)| bytes.clone()).collect();
    let address = stranger(move |number, mut stream| {
        request(&mut stream);
        // The server may have closed the connection.
        let _ = stream.write_all(responses.get(number).map_or(&[], |bytes| bytes));
    });
    let root = site();
    let server = server(root.path(), &address.to_string()).start();
    for (name, _, expected) in cases {
        let before = trouble(&server, expected);
        let response = server.get("/old/");
        assert_eq!(response.status, 502, "{name}: {}", response.text());
        assert_eq!(trouble(&server, expected), before + 1, "{name}");
    }
    assert_eq!(server.get("/").text(), "new /");
}

#[test]
fn invalid_data_after_head_truncates_response() {
    let after_the_end = [ok("whole"), record(STDOUT, 1, b""), end(0), ok("more")].concat();
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("garbage behind the head", [ok("a"), b"garbage".repeat(9)].concat(), false),
        ("no end", ok("a"), false),
        ("more behind the last record", [ok("a"), record(STDOUT, 1, b""), ok("b")].concat(), false),
        ("refused behind the head", [ok("a"), end(2)].concat(), false),
        ("more behind the end", after_the_end, true),
        ("no last record", [ok("a"), end(0)].concat(), true),
    ];
    let responses: Vec<Vec<u8>> = cases.iter().map(|(_, bytes, _)| bytes.clone()).collect();
    let address = stranger(move |number, mut stream| {
        request(&mut stream);
        let _ = stream.write_all(responses.get(number).map_or(&[], |bytes| bytes));
    });
    let root = site();
    let start = server(root.path(), &address.to_string());
    let server = start.args(["--fastcgi-idle-connections-max", "4"]).start();
    for (name, _, is_whole) in cases {
        let response = server.get("/old/");
        assert_eq!((response.status, response.complete), (200, is_whole), "{name}: {response:?}");
    }
}

/// A response that arrives byte by byte is forwarded completely.
#[test]
fn slow_upstream_response_is_forwarded() {
    let address = stranger(|_, mut stream| {
        request(&mut stream);
        let _ = stream.set_nodelay(true);
        for byte in [ok("slow"), record(STDERR, 1, b"a word"), end(0)].concat() {
            let _ = stream.write_all(&[byte]);
        }
    });
    let root = site();
    let server = server(root.path(), &address.to_string()).start();
    assert_eq!(server.get("/old/").text(), "slow");
    server.wait_for_log("message from php-fpm: a word");
}

#[test]
fn kept_connection_is_reused_for_repeatable_requests_only() {
    // Each connection serves two requests, and is closed in the middle of the third.
    let address = stranger(|number, mut stream| {
        std::thread::spawn(move || {
            for turn in 0.. {
                let Some(keeps) = request(&mut stream) else { return };
                if turn == 2 {
                    return;
                }
                let body = format!("{number}.{turn} {keeps}");
                let _ = stream.write_all(&[ok(&body), end(0)].concat());
            }
        });
    });
    let root = site();
    let start = server(root.path(), &address.to_string());
    let server = start.args(["--fastcgi-idle-connections-max", "1"]).start();
    let get = || server.get("/old/").text();
    assert_eq!((get(), get()), ("0.0 true".into(), "0.1 true".into()));
    // The kept connection was closed during the request. The request is repeated on a new
    // connection.
    assert_eq!(get(), "1.0 true");
    // A POST may have been seen by the script, so it is not sent on a kept connection.
    let form = server.client().request(&Request::form("/old/", "a=b"));
    assert_eq!(form.text(), "2.0 true");
    assert_eq!(get(), "2.1 true");
    assert_eq!(trouble(&server, "closed"), 0);
}
