//! Targets that hyper would refuse, on their way to PHP: however their bytes arrive, and nothing else changes.

use crate::http::{app, raw};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually};
use serde_json::Value;

const ODD: &[u8] = b"GET /a?\"a\"=<\xff>|`\\^{}#x HTTP/1.1\r\nHost: t\r\nX: \"\xff\r\n\r\n";

fn send(client: &mut Client, bytes: &[u8], cut: usize) {
    client.send(&bytes[..cut]);
    client.send(&bytes[cut..]);
}

#[test]
fn a_raw_quote_is_not_an_encoded_one() {
    let server = app().args(["--access-log", "-"]).start();
    let answer = raw(&server, b"GET /%22\"\xff<b>?{x}#y HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"target /%22\"\xff<b>?{x}#y"[..]));
    eventually("the log", || server.stdout().contains("/%22\\x22\\xFF<b>?{x}#y").then_some(()));
}

/// Requests one behind the other, with bodies that look like requests: each is answered as if it had come alone.
#[test]
fn wherever_the_bytes_are_cut_the_requests_are_the_same() {
    let server = app().define("post_max_size", "8M").start();
    let inner = "GET /\"body\" HTTP/1.1\r\n\r\n";
    let stream = [
        b"\r\nGET /\"1\" HTTP/1.1\r\nHost: t\r\nX-Note: \"<>\"\r\n\r\n".to_vec(),
        format!(
            "PUT /echo?\"2\" HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        )
        .into_bytes(),
        b"GET /<3> HTTP/1.1\nHost: t\n\n".to_vec(),
        format!(
            "PUT /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x};\"e\"\r\n{inner}\r\n2\r\n{{}}\r\n0\r\nX-T: \"t\"\r\n\r\n",
            inner.len()
        )
        .into_bytes(),
        b"GET /{5} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".to_vec(),
    ]
    .concat();
    let expected = [
        "target /\"1\"".to_owned(),
        format!("PUT {0} {0} {inner}", inner.len()),
        "target /<3>".to_owned(),
        format!("PUT {0} {0} {inner}{{}}", inner.len() + 2),
        "target /{5}".to_owned(),
    ];
    for cut in 0..stream.len() {
        let mut client = server.client();
        send(&mut client, &stream, cut);
        for expected in &expected {
            assert_eq!(client.read(false).text(), *expected, "cut at {cut}");
        }
        assert!(client.is_closed(), "cut at {cut}");
    }
    let mut client = server.client();
    for byte in &stream {
        client.send(&[*byte]);
    }
    for expected in &expected {
        assert_eq!(client.read(false).text(), *expected, "byte by byte");
    }
}

#[test]
fn a_connection_goes_on_behind_an_odd_target() {
    let server = app().start();
    let mut client = server.client();
    for _ in 0..3 {
        client.send(ODD);
        let answer = client.read(false);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(client.get("/plain").text(), "target /plain");
    }
    // Hundreds in one packet.
    let many = b"GET /\"a\" HTTP/1.1\r\nHost: t\r\n\r\n".repeat(300);
    client.send(&many);
    for n in 0..300 {
        assert_eq!(client.read(false).text(), "target /\"a\"", "request {n}");
    }
}

#[test]
fn an_odd_line_that_is_too_long_is_refused() {
    let server = app().args(["--head-bytes-max", "8K"]).start();
    let line = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "\"".repeat(n));
    assert_eq!(raw(&server, line(7000)).status, 200);
    for n in [8_170, 8_192, 9_000, 100_000] {
        let answer = raw(&server, line(n));
        assert!(matches!(answer.status, 414 | 431), "{n}: {}", answer.status);
    }
    assert_eq!(server.get("/after").text(), "target /after");
}

/// The target's authority replaces the `Host` header, so it has to be one.
#[test]
fn what_is_no_host_is_refused_wherever_it_stands() {
    let server = app().start();
    for (host, status) in [
        ("shop.example", 200),
        ("shop.example:81", 200),
        ("shop.example.", 200),
        ("[::1]:80", 200),
        ("a_b", 200),
        ("u:p@evil", 400),
        ("u@evil", 400),
        ("@evil", 400),
        ("..", 400),
        ("a..b", 400),
        ("[::1", 400),
        ("[x]", 400),
        ("a:b", 400),
        ("a:99999", 400),
        ("a:80:80", 400),
    ] {
        for request in [
            format!("GET /server HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET http://{host}/server HTTP/1.1\r\nHost: t\r\n\r\n"),
            format!("GET http://{host}/server?\" HTTP/1.1\r\nHost: t\r\n\r\n"),
            format!("GET http://{host}/server HTTP/1.0\r\n\r\n"),
        ] {
            let mut client = server.client();
            client.send(request.as_bytes());
            let answer = client.read(false);
            assert_eq!(answer.status, status, "{request:?}: {}", answer.text());
            if status != 200 {
                assert!(client.is_closed(), "{request:?}");
            } else if !request.contains("/1.0") {
                let seen: Value = serde_json::from_slice(&answer.body).expect("$_SERVER");
                assert_eq!(seen["HTTP_HOST"], host, "{request:?}");
            }
        }
    }
}

/// What a directory's redirect carries along, too.
#[test]
fn a_redirect_keeps_the_query_as_it_came() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("dir")).expect("our own folder");
    let server = Server::at(root.path()).start();
    let answer = raw(&server, "GET /dir?\"a\"=<b> HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((answer.status, answer.header("location")), (301, Some("/dir/?\"a\"=<b>")));
}
