//! Tests of responses, from the worker's output to the bytes that the client receives.

use super::*;

#[test]
fn short_response_has_content_length() {
    let server = Server::new().work(|job| job.respond("hello"));
    let reply = server.get("/");
    assert_eq!((reply.status, reply.text()), (200, "hello"));
    assert_eq!(reply.header("content-length"), Some("5"));
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(reply.header("x-request-id").map(str::len), Some(32));
    assert_eq!(reply.header("server"), None);
}

#[test]
fn php_gets_same_fields_as_from_nginx() {
    let server = Server::new().work(|job| {
        let mut text: Vec<String> =
            job.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers: Vec<_> = job.headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
        headers.sort();
        text.push(format!(
            "length={} port={} flags={}",
            job.content_length, job.server_port, job.flags
        ));
        job.respond(&(text.join("\n") + "\n" + &headers.join("\n") + "\n"))
    });
    let reply = server.ask(
        "GET /other.php/a%20b?x=1&y HTTP/1.1\r\nHost: Shop.example:99\r\nCookie: a=1\r\n\
         Cookie: b=2\r\n\
         Accept: x\r\nAccept: y\r\nX_Bad: 1\r\nProxy: evil\r\nX-Request-Id: my-id\r\n\
         Authorization: Basic eDp5\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n",
    );
    let root = server.root.path().display().to_string();
    let port = server.address.port();
    for line in [
        "method=GET\n",
        "target=/other.php/a%20b?x=1&y\n",
        "query=x=1&y\n",
        "protocol=HTTP/1.1\n",
        &format!("script_filename={root}/other.php\n"),
        "script_name=/other.php\n",
        "document_uri=/other.php\n",
        "path_info=/a b\n",
        &format!("document_root={root}\n"),
        "server_name=Shop.example\n",
        "server_addr=127.0.0.1\n",
        "remote_addr=127.0.0.1\n",
        "request_id=my-id\n",
        "cookie=a=1; b=2\n",
        "authorization=Basic eDp5\n",
        &format!("length=-1 port={port} flags=0\n"),
        "accept: x, y\n",
        "host: Shop.example:99\n",
        "x-forwarded-for: 6.6.6.6\n",
    ] {
        assert!(reply.text().contains(line), "{line:?} in {}", reply.text());
    }
    assert!(!reply.text().contains("x_bad") && !reply.text().contains("evil"));
    assert_eq!(reply.header("x-request-id"), Some("my-id"));
    assert_eq!(server.event(), FrontEvent::LaneNeeded(Lane::Script));
}

#[test]
fn trusted_proxy_headers_are_used() {
    let trust = |o: &mut Settings| o.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Server::with(4, trust).work(|job| {
        let fields = ["remote_addr", "server_name"].map(|f| job.field(f));
        job.respond(&format!("{fields:?} {} {}", job.server_port, job.flags & 1))
    });
    let reply = server.ask(
        "GET / HTTP/1.1\r\nHost: inner\r\nX-Forwarded-For: 6.6.6.6, 203.0.113.9\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(reply.text(), "[\"203.0.113.9\", \"shop.example\"] 443 1");
    // The same through another proxy, which has a trusted address, too.
    let reply = server.ask(
        "GET / HTTP/1.1\r\nHost: inner\r\nX-Forwarded-For: 6.6.6.6, 203.0.113.9, 127.0.0.7\r\n\
         X-Forwarded-Proto: https, http\r\nX-Forwarded-Host: shop.example:8443, outer\r\n\
         Connection: close\r\n\r\n",
    );
    assert_eq!(reply.text(), "[\"203.0.113.9\", \"shop.example\"] 8443 1");
    let reply = server.ask(
        "GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\
         Forwarded: for=203.0.113.9;host=shop.example;proto=https\r\n\
         Forwarded: for=127.0.0.7;proto=http\r\n\r\n",
    );
    assert_eq!(reply.text(), "[\"203.0.113.9\", \"shop.example\"] 443 1");
}

#[test]
fn long_response_is_streamed_completely() {
    let body = pattern(5_000_000);
    let expected = body.clone();
    let server = Server::new().work(move |job| {
        job.head(200, "X-A: 1\n");
        job.write(&body);
        After::Finish
    });
    let reply = server.get("/");
    assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
    assert!(reply.is_complete && reply.body == expected);
}

#[test]
fn flushed_bytes_reach_client_while_script_runs() {
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let server = Server::new().work(move |job| {
        job.head(200, "Content-Type: text/event-stream\n");
        for event in ["one", "two"] {
            job.write(event.as_bytes());
            job.flush();
            gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        }
        After::Finish
    });
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.head().0, 200);
    assert_eq!(client.chunk().unwrap(), b"one");
    go.send(()).unwrap();
    assert_eq!(client.chunk().unwrap(), b"two");
    go.send(()).unwrap();
    assert_eq!(client.chunk().unwrap(), b"");
}

#[test]
fn response_shorter_than_declared_closes_connection() {
    for (body, is_streamed) in [(100_usize, false), (100, true), (400_000, false)] {
        for (more, is_complete) in [(0_isize, true), (-10, true), (10, false)] {
            let length = (body.cast_signed() + more).cast_unsigned();
            let server = Server::new().work(move |job| {
                job.head(200, &format!("Content-Length: {length}\n"));
                if is_streamed {
                    job.flush();
                }
                job.write(&pattern(body));
                After::Finish
            });
            let mut client = server.client();
            client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            let reply = client.reply(false);
            assert_eq!(reply.header("content-length"), Some(&*length.to_string()));
            assert_eq!(reply.is_complete, is_complete, "{body} {is_streamed} {more}");
            assert_eq!(reply.body, pattern(body)[..length.min(body)]);
            if more == 0 {
                client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
                assert!(client.reply(false).is_complete, "the connection is kept");
            }
        }
    }
}

#[test]
fn head_response_has_length_and_no_body() {
    let server = Server::new().work(|job| {
        job.head(200, "Content-Length: 42\n");
        job.write(b"never seen");
        job.flush();
        After::Finish
    });
    let mut client = server.client();
    for _ in 0..3 {
        client.send(b"HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
        let reply = client.reply(true);
        assert_eq!((reply.status, reply.header("content-length")), (200, Some("42")));
    }
}

#[test]
fn status_204_and_304_have_no_body() {
    for status in [204, 304] {
        let server = Server::new().work(move |job| {
            job.head(status, "Content-Length: 5\nX-A: b\n");
            job.write(b"hello");
            After::Finish
        });
        let mut client = server.client();
        for _ in 0..2 {
            client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            let reply = client.reply(false);
            assert_eq!((reply.status, reply.header("content-length")), (status, None));
        }
    }
}

#[test]
fn finished_response_is_complete_while_script_runs() {
    let (go, gate) = channel::<()>();
    let (done, finished) = channel();
    let gate = Mutex::new(gate);
    let server = Server::new().work(move |job| {
        job.head(200, "");
        job.write(b"bye");
        job.worker.end_response(job.slot).unwrap();
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        done.send(job.worker.is_cancelled(job.slot)).unwrap();
        After::Finish
    });
    assert_eq!(server.get("/").text(), "bye");
    go.send(()).unwrap();
    assert!(!finished.recv_timeout(WATCHDOG).unwrap(), "a finished client is no abort");
    until("the slot is free", || server.handle.counters().pool.in_flight == 0);
}

#[test]
fn script_continues_after_declared_length_is_sent() {
    let (done, finished) = channel();
    let server = Server::new().work(move |job| {
        job.head(200, "Content-Length: 3\n");
        job.write(b"bye");
        job.flush();
        // More than the slot can hold, so the front must read it.
        let is_read = job.write(&pattern(300_000));
        done.send(is_read).unwrap();
        After::Finish
    });
    assert_eq!(server.get("/").text(), "bye");
    assert!(finished.recv_timeout(WATCHDOG).unwrap());
}
