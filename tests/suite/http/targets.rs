//! Targets that hyper would reject reach PHP unchanged. Their segmentation does not matter, and
//! other requests are not affected.

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
fn raw_quote_in_target_is_kept() {
    let server = app().args(["--access-log", "-"]).start();
    let response = raw(&server, b"GET /%22\"\xff<b>?{x}#y HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((response.status, &response.body[..]), (200, &b"target /%22\"\xff<b>?{x}#y"[..]));
    eventually("the log", || server.stdout().contains("/%22\\x22\\xFF<b>?{x}#y").then_some(()));
}

/// A sequence of requests with bodies that look like requests: each gets the same response as on
/// its own.
#[test]
fn requests_are_equal_for_any_segmentation() {
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
fn connection_continues_after_unusual_target() {
    let server = app().start();
    let mut client = server.client();
    for _ in 0..3 {
        client.send(ODD);
        let response = client.read(false);
        assert_eq!(response.status, 200, "{}", response.text());
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
fn overlong_unusual_target_is_rejected() {
    let server = app().args(["--head-bytes-max", "8K"]).start();
    let line = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "\"".repeat(n));
    assert_eq!(raw(&server, line(7000)).status, 200);
    for n in [8_170, 8_192, 9_000, 100_000] {
        let response = raw(&server, line(n));
        assert!(matches!(response.status, 414 | 431), "{n}: {}", response.status);
    }
    assert_eq!(server.get("/after").text(), "target /after");
}

/// The target's authority replaces the `Host` header, so it must be a valid host.
#[test]
fn invalid_host_in_header_or_target_is_rejected() {
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
            let response = client.read(false);
            assert_eq!(response.status, status, "{request:?}: {}", response.text());
            if status != 200 {
                assert!(client.is_closed(), "{request:?}");
            } else if !request.contains("/1.0") {
                let seen: Value = serde_json::from_slice(&response.body).expect("$_SERVER");
                assert_eq!(seen["HTTP_HOST"], host, "{request:?}");
            }
        }
    }
}

/// Also in the redirect of a directory.
#[test]
fn directory_redirect_keeps_raw_query() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(root.path().join("dir")).expect("our own folder");
    let server = Server::at(root.path()).start();
    let response = raw(&server, "GET /dir?\"a\"=<b> HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((response.status, response.header("location")), (301, Some("/dir/?\"a\"=<b>")));
}
