//! Tests of request bodies of all kinds.

use super::*;

fn echo() -> impl Fn(&mut Job<'_>) -> After + Send + Sync {
    |job| {
        let body = job.body();
        let is_right = body.as_ref().is_some_and(|b| *b == pattern(b.len()));
        let len = body.map(|b| b.len());
        job.respond(&format!("{len:?} {is_right} {}", job.content_length))
    }
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[test]
fn bodies_of_any_length_arrive_complete() {
    for is_buffering in [true, false] {
        let server = Server::with(8, |o| o.request_buffering = is_buffering).work(echo());
        let mut client = server.client();
        for len in [0, 1, 65_536, 65_537, 3_000_000] {
            let body = pattern(len);
            client.send(
                format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {len}\r\n\r\n").as_bytes(),
            );
            client.send(&body);
            let reply = client.reply(false);
            assert_eq!(reply.text(), format!("Some({len}) true {len}"), "{is_buffering}");
            client.send(b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
            client.send(&chunked(&body, 10_007));
            let known = if is_buffering { len.cast_signed() } else { -1 };
            let reply = client.reply(false);
            assert_eq!(reply.text(), format!("Some({len}) true {known}"), "{is_buffering}");
        }
    }
}

#[test]
fn continue_is_sent_only_for_accepted_body() {
    let server = Server::with(8, |o| o.limits.body_bytes_max = 100).work(echo());
    let mut client = server.client();
    let head = "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: ";
    client.send(format!("{head}3\r\n\r\n").as_bytes());
    assert_eq!(client.head().0, 100);
    client.send(&pattern(3));
    assert_eq!(client.reply(false).text(), "Some(3) true 3");
    client.send(format!("{head}101\r\n\r\n").as_bytes());
    let reply = client.reply(false);
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
}

#[test]
fn too_large_body_is_413() {
    for is_buffering in [true, false] {
        let server = Server::with(8, |o| {
            o.request_buffering = is_buffering;
            o.limits.body_bytes_max = 100_000;
        })
        .work(echo());
        for request in [
            &b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100001\r\n\r\n"[..],
            b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            let mut client = server.client();
            client.send(request);
            client.send(&chunked(&pattern(200_000), 9_000));
            assert_eq!(client.reply(false).status, 413, "{is_buffering}");
        }
        until("workers are free", || server.handle.counters().pool.in_flight == 0);
        assert_eq!(server.get("/").status, 200);
    }
}

#[test]
fn stalled_body_is_408() {
    for is_buffering in [true, false] {
        let server = Server::with(8, |o| {
            o.request_buffering = is_buffering;
            o.timeouts.body = Duration::from_millis(200);
        })
        .work(echo());
        let mut client = server.client();
        client.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
        assert_eq!(client.reply(false).status, 408, "{is_buffering}");
    }
}

#[test]
fn disconnect_aborts_body_of_script() {
    let (told, heard) = channel();
    let server = Server::with(8, |o| o.request_buffering = false).work(move |job| {
        told.send(None).unwrap();
        told.send(Some(job.body())).unwrap();
        After::Finish
    });
    let mut client = server.client();
    client.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
    // A request that no worker has taken would only be withdrawn.
    heard.recv_timeout(WATCHDOG).unwrap();
    drop(client);
    assert_eq!(heard.recv_timeout(WATCHDOG).unwrap(), Some(None));
}

#[test]
fn unread_body_does_not_block_response() {
    for is_buffering in [true, false] {
        let server = Server::with(8, |o| o.request_buffering = is_buffering)
            .work(|job| job.respond("not interested"));
        let mut client = server.client();
        client.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 300000\r\n\r\n");
        let _ = client.stream.write_all(&pattern(300_000));
        assert_eq!(client.reply(false).text(), "not interested");
        until("the exchange is over", || server.handle.counters().pool.in_flight == 0);
        assert_eq!(server.get("/").status, 200);
    }
}

#[test]
fn missing_temp_dir_is_500() {
    let server = Server::with(8, |o| o.temp_dir = "/nonexistent".into()).work(echo());
    let mut client = server.client();
    client
        .send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n");
    client.send(&pattern(100_000));
    assert_eq!(client.reply(false).status, 500);
}
