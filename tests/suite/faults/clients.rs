//! Clients that stall, disconnect or do not read, and scripts that outlive their client.

use crate::faults::stage::{
    Load, app, assert_serves, create, file_of, is_hello, read_when_there, wait_for_busy,
    wait_for_in_flight,
};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, http2};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn slow_or_partial_request_times_out_while_others_are_served() {
    const BODY: &str = "POST /input HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhalf";
    const CHUNK: &str =
        "POST /input HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh";
    let start = app().workers(1).args(["--header-timeout", "700ms", "--body-timeout", "700ms"]);
    let server = start.start();
    let load = Load::start(server.address(), 2, &Request::get("/hello"));
    for (name, sent) in [
        ("half a request line", "GET / HT"),
        ("half a head", "GET / HTTP/1.1\r\nHost: t\r\nX-Half: "),
        ("half a body", BODY),
        ("half a chunk", CHUNK),
    ] {
        let mut client = server.client();
        client.send(sent.as_bytes());
        let response = client.read(false);
        assert_eq!((response.status, response.complete), (408, true), "{name}");
        assert!(client.is_closed(), "{name}");
    }
    // A slow stream of bytes does not extend the deadline of a head.
    let mut trickle = server.client();
    trickle.send(b"GET /hello HTTP/1.1\r\nHost: t\r\nX-Slow: ");
    let mut stopped = false;
    for _ in 0..300 {
        if trickle.try_send(b"x").is_err() {
            stopped = true;
            break;
        }
        let got = trickle.read_for(Duration::from_millis(20));
        if !got.is_empty() {
            assert!(got.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&got));
            stopped = true;
            break;
        }
    }
    assert!(stopped, "a head may not trickle for ever");
    for response in load.stop() {
        assert!(response.as_ref().is_ok_and(is_hello), "{response:?}");
    }
    server.stop();
}

#[test]
fn client_leaving_after_half_request_costs_nothing() {
    let server = app().workers(1).start();
    for sent in [
        "GET / HT",
        "POST /input HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\nhalf",
        "POST /input HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nh",
    ] {
        let mut client = server.client();
        client.send(sent.as_bytes());
        client.abort();
        assert_serves(&server, sent);
    }
    wait_for_in_flight(&server, 0);
    eventually("no connection", || (server.status()["connections"] == 0).then_some(()));
}

/// Starts `/stream` and disconnects after the first bytes. Returns the texts that the script wrote
/// to its files.
fn abort_stream(ignore: &str) -> (String, Option<String>) {
    let server = app().workers(1).start();
    let file = file_of(&server, "ended");
    let mut client = server.client();
    client.send(&Request::get(&format!("/stream?file={}{ignore}", file.display())).bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    client.read_chunk().expect("a chunk");
    client.abort();
    let ended = read_when_there(&file);
    assert_serves(&server, "after an abort");
    assert_eq!(server.status()["worker_restarts_total"], 0, "a client cannot kill a worker");
    (ended, std::fs::read_to_string(file.with_extension("on")).ok())
}

#[test]
fn script_ends_when_client_disconnects() {
    assert_eq!(abort_stream(""), ("status 1".to_owned(), None));
}

#[test]
fn script_ignoring_user_abort_continues_after_disconnect() {
    assert_eq!(abort_stream("&ignore=1"), ("status 1".to_owned(), Some("1".to_owned())));
}

/// Requests a script that flushes without end, after a response that `complete` says is complete.
/// Returns the client, and the file that the script writes at its end.
fn serve_on(server: &Server, method: &str, query: &str) -> (Client, PathBuf) {
    let file = file_of(server, "served");
    let _ = std::fs::remove_file(&file);
    let target = format!("/serve-on?file={}{query}", file.display());
    let mut client = server.client();
    client.send(&Request::new(method, &target).bytes());
    let response = client.read(method == "HEAD");
    assert!(response.complete, "{method} {query}: {response:?}");
    (client, file)
}

#[test]
fn script_ends_when_its_response_needs_no_more_body() {
    let server = app().workers(1).start();
    for (method, query) in
        [("HEAD", ""), ("GET", "&status=204"), ("GET", "&status=304"), ("GET", "&length=10&more")]
    {
        let (client, file) = serve_on(&server, method, query);
        assert_eq!(read_when_there(&file), "status 1", "{method} {query}");
        assert!(!file.with_extension("on").exists(), "{method} {query}");
        drop(client);
        assert_serves(&server, query);
    }
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn script_after_declared_length_ends_when_client_disconnects() {
    let server = app().workers(2).start();
    let (client, file) = serve_on(&server, "GET", "&length=10");
    wait_for_busy(&server);
    assert_serves(&server, "while it runs");
    assert!(!file.exists(), "the client is still there");
    client.abort();
    assert_eq!(read_when_there(&file), "status 1");
    let mut client = http2::Connection::open(server.address()).expect("a connection");
    let (again, target) = (file_of(&server, "http2"), "/serve-on?length=10&file=");
    client.get(1, &format!("{target}{}", again.display())).expect("a request");
    let data = client.wait_for(http2::DATA).expect("a body");
    assert_eq!((data.payload.as_slice(), data.flags), (&b"ten bytes\n"[..], http2::END_STREAM));
    wait_for_busy(&server);
    assert!(!again.exists(), "the client is still there");
    drop(client);
    assert_eq!(read_when_there(&again), "status 1");
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn script_ends_when_its_http2_stream_is_cancelled() {
    let server = app().workers(1).start();
    let file = file_of(&server, "cancelled");
    let mut client = http2::Connection::open(server.address()).expect("a connection");
    client.get(1, &format!("/stream?file={}", file.display())).expect("a request");
    client.wait_for(http2::DATA).expect("a part of the body");
    assert!(!file.exists(), "the client still waits");
    client.cancel(1).expect("a connection");
    assert_eq!(read_when_there(&file), "status 1");
    client.get(3, "/hello").expect("a request on the same connection");
    client.wait_for(http2::HEADERS).expect("a response");
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn script_ignoring_user_abort_continues_after_response_without_body() {
    let server = app().workers(1).start();
    for (method, query) in [("HEAD", "&ignore=1"), ("GET", "&ignore=1&status=204")] {
        let (_client, file) = serve_on(&server, method, query);
        assert_eq!(read_when_there(&file), "status 1", "{method} {query}");
        let on = std::fs::read_to_string(file.with_extension("on"));
        assert_eq!(on.ok().as_deref(), Some("1"), "{method} {query}");
        std::fs::remove_file(file.with_extension("on")).expect("a file");
    }
}

#[test]
fn client_that_reads_nothing_is_closed_after_write_timeout() {
    let server = app().workers(1).args(["--write-timeout", "500ms"]).start();
    let mut client = server.client();
    client.send(&Request::get("/flood?bytes=100000000").bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    assert_serves(&server, "its worker is free again");
    assert_eq!(server.status()["worker_restarts_total"], 0);
}

#[test]
fn flushed_events_arrive_at_once() {
    let server = app().workers(1).start();
    let file = file_of(&server, "event");
    let mut client = server.client();
    client.send(&Request::get(&format!("/events?file={}", file.display())).bytes());
    for n in 0..5 {
        // The script creates event n only now, so no buffer can have held it back.
        create(&file.with_extension(n.to_string()));
        if n == 0 {
            let head = client.read_head().expect("a head");
            assert!(
                head.header("content-type").is_some_and(|t| t.starts_with("text/event-stream"))
            );
        }
        let chunk = client.read_chunk().expect("an event").expect("an event");
        assert_eq!(String::from_utf8_lossy(&chunk), format!("data: {n}\n\n"));
    }
    assert_eq!(client.read_chunk().expect("the end"), Some(Vec::new()));
    assert!(is_hello(&client.get("/hello")));
}

#[test]
fn finished_request_ends_response_while_script_continues() {
    let server = app().workers(1).start();
    let file = file_of(&server, "go");
    let done = file_of(&server, "go.done");
    let mut client = server.client();
    let response = client.get(&format!("/finish?file={}", file.display()));
    assert_eq!((response.text().as_str(), response.complete), ("the client has this", true));
    assert!(!done.exists(), "the script waits");
    wait_for_busy(&server);
    create(&file);
    assert_eq!(read_when_there(&done), "and the script went on");
    assert!(is_hello(&client.get("/hello")));
    // A client that disconnects after the response does not stop the script either.
    let (file, done) = (file_of(&server, "go2"), file_of(&server, "go2.done"));
    let mut client = server.client();
    let response = client.get(&format!("/finish?file={}", file.display()));
    assert_eq!(response.text(), "the client has this");
    client.abort();
    create(&file);
    assert_eq!(read_when_there(&done), "and the script went on");
    assert_eq!(server.status()["worker_restarts_total"], 0);
    server.stop();
}
