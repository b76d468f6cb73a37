//! How long a connection lives, and how many there are.

use crate::http::{app, raw};
use samovar_testkit::eventually;
use samovar_testkit::http::{Client, Request};
use std::time::Duration;

#[test]
fn connection_persistence_follows_http_version() {
    let server = app().start();
    for (head, is_kept) in [
        ("GET /a HTTP/1.1\r\nHost: t\r\n\r\n", true),
        ("GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", false),
        ("GET /a HTTP/1.0\r\n\r\n", false),
        ("GET /a HTTP/1.0\r\nHost: t\r\nConnection: keep-alive\r\n\r\n", true),
    ] {
        let mut client = server.client();
        for _ in 0..if is_kept { 3 } else { 1 } {
            client.send(head.as_bytes());
            assert_eq!(client.read(false).text(), "target /a", "{head:?}");
        }
        if !is_kept {
            assert!(client.is_closed(), "{head:?}");
        }
    }
    // HTTP/1.0 has no chunks: the end of the connection is the end of the response.
    let old = raw(&server, "GET /chunked HTTP/1.0\r\n\r\n");
    assert_eq!((old.header("transfer-encoding"), old.body.len()), (None, 300_000));
    let new = server.get("/chunked");
    assert_eq!(
        (new.header("transfer-encoding"), new.header("content-length")),
        (Some("chunked"), None)
    );
    assert_eq!((new.body == old.body, new.complete), (true, true));
    let known = server.get("/a");
    assert_eq!(
        (known.header("transfer-encoding"), known.header("content-length")),
        (None, Some("9"))
    );
}

/// hyper could miss the end of such a response and not close. One of some hundred connections hung.
#[test]
fn http_1_0_connection_is_always_closed() {
    let server = app().start();
    for n in 0..1500 {
        let response = raw(&server, "GET /pieces HTTP/1.0\r\n\r\n");
        assert_eq!(response.text(), "one two three", "request {n}");
    }
}

#[test]
fn connection_over_limit_waits_in_backlog() {
    let server = app().args(["--connections-max", "3"]).start();
    let gate = server.folder().join("gate");
    let wait = Request::get(&format!("/wait?file={}", gate.display()));
    let mut busy: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut busy {
        client.send(&wait.bytes());
    }
    eventually("three connections", || (server.status()["in_flight"] == 3).then_some(()));
    let mut late = server.client();
    late.send(&Request::get("/late").bytes());
    assert_eq!(late.read_for(Duration::from_millis(300)), b"", "it waits in the backlog");
    assert_eq!(server.status()["connections"], 3);
    std::fs::write(&gate, "").expect("our own folder");
    for client in &mut busy {
        assert_eq!(client.read(false).text(), "waited");
    }
    // An idle connection makes room.
    assert_eq!(late.read(false).text(), "target /late");
}

#[test]
fn idle_connection_is_closed_without_response() {
    let server = app().args(["--idle-timeout", "1s"]).start();
    assert!(server.client().is_closed(), "one that never asked");
    let mut client = server.client();
    assert_eq!(client.get("/a").status, 200);
    assert!(client.is_closed(), "one that asked once");
    eventually("no connection", || (server.status()["connections"] == 0).then_some(()));
}
