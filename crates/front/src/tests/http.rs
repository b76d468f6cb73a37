//! Tests of valid and invalid HTTP/1 requests.

use super::*;

fn echo() -> Server {
    let limits = |o: &mut Settings| {
        o.limits.head_bytes_max = 16 * 1024;
        o.timeouts.header = Duration::from_millis(300);
        o.timeouts.idle = Duration::from_millis(600);
    };
    Server::with(16, limits).work(|job| {
        let len = job.body().map_or(-1, |b| b.len().cast_signed());
        job.respond(&format!("{} {} {len}", job.field("method"), job.field("target")))
    })
}

#[test]
fn request_gets_expected_status() {
    let server = echo();
    let long = "x".repeat(20_000);
    let [many, too_many] = [399, 400].map(|n| "X-A: b\r\n".repeat(n));
    for (request, status, text) in [
        ("GET / HTTP/1.1\r\nHost: t\r\n", 200, "GET / 0"),
        ("GET / HTTP/1.0\r\n", 200, "GET / 0"),
        ("PURGE /x HTTP/1.1\r\nHost: t\r\n", 200, "PURGE /x 0"),
        ("GET http://other/y?z HTTP/1.1\r\nHost: t\r\n", 200, "GET /y?z 0"),
        ("GET ftp://other/y HTTP/1.1\r\nHost: t\r\n", 400, ""),
        ("GET / HTTP/1.1\r\n", 400, ""),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400, ""),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", 400, ""),
        ("GET /%zz HTTP/1.1\r\nHost: t\r\n", 400, ""),
        ("GET /%00 HTTP/1.1\r\nHost: t\r\n", 400, ""),
        ("TRACE / HTTP/1.1\r\nHost: t\r\n", 405, ""),
        ("CONNECT t:80 HTTP/1.1\r\nHost: t\r\n", 405, ""),
        ("OPTIONS * HTTP/1.1\r\nHost: t\r\n", 200, ""),
        ("GET * HTTP/1.1\r\nHost: t\r\n", 400, ""),
        ("OPTIONS / HTTP/1.1\r\nHost: t\r\n", 200, "OPTIONS / 0"),
        ("G@T / HTTP/1.1\r\nHost: t\r\n", 400, ""),
        ("GET / HTTP/3.0\r\nHost: t\r\n", 400, ""),
        ("GET / HTTP/1.1\r\nHost: t\r\nBad Header: x\r\n", 400, ""),
        ("GET / HTTP/1.1\r\nHost : t\r\n", 400, ""),
        ("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400, ""),
        ("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n", 400, ""),
        ("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n", 400, ""),
        ("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n", 400, ""),
        ("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, x\r\n", 400, ""),
        ("POST / HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n", 400, ""),
        (&format!("GET / HTTP/1.1\r\nHost: t\r\nX: {long}\r\n"), 431, "(limits.head_bytes_max)"),
        (&format!("GET / HTTP/1.1\r\nHost: t\r\n{many}"), 200, "GET / 0"),
        (&format!("GET / HTTP/1.1\r\nHost: t\r\n{too_many}"), 431, "(limits.headers_max)"),
        (&format!("GET /{long}{long}{long}{long} HTTP/1.1\r\nHost: t\r\n"), 431, ""),
    ] {
        let mut client = server.client();
        let _ = client.stream.write_all(format!("{request}\r\n").as_bytes());
        let reply = client.reply(false);
        let shown = &request[..request.len().min(80)];
        assert_eq!(reply.status, status, "{shown:?}: {}", reply.text());
        assert!(reply.is_complete && reply.text().contains(text), "{shown:?}: {}", reply.text());
        if status != 200 && !request.starts_with("OPTIONS") {
            assert!(reply.text().starts_with(&status.to_string()), "{shown:?}: {}", reply.text());
            assert!(reply.header("x-request-id").is_some(), "{shown:?}: {}", reply.head);
        }
    }
}

/// hyper has room for 100 headers, unless a connection needs more.
#[test]
fn many_headers_are_accepted_between_other_requests() {
    let server = echo();
    let with = |n: usize, path: &str| {
        let headers = (1..n).map(|at| format!("X-{at}: b\r\n")).collect::<Vec<_>>().concat();
        format!("GET /{path} HTTP/1.1\r\nHost: t\r\n{headers}\r\n")
    };
    let requests = [with(1, "a"), with(101, "b"), with(1, "c"), with(400, "d"), with(100, "e")];
    let mut at_once = server.client();
    at_once.send(requests.concat().as_bytes());
    let mut in_pieces = server.client();
    for (request, path) in requests.iter().zip(["a", "b", "c", "d", "e"]) {
        assert_eq!(at_once.reply(false).text(), format!("GET /{path} 0"));
        for piece in request.as_bytes().chunks(1000) {
            in_pieces.send(piece);
        }
        assert_eq!(in_pieces.reply(false).text(), format!("GET /{path} 0"));
    }
    at_once.send(with(401, "f").as_bytes());
    assert_eq!(at_once.reply(false).status, 431);
    let few = Server::with(4, |o| o.limits.headers_max = 5).work(|job| job.respond("few"));
    for (headers, status) in [(5, 200), (6, 431)] {
        let mut client = few.client();
        client.send(with(headers, "").as_bytes());
        assert_eq!(client.reply(false).status, status, "{headers}");
    }
}

#[test]
fn refused_head_after_a_response_gets_its_own_response() {
    let server = echo();
    let mut client = server.client();
    client.send(b"GET /a HTTP/1.1\r\nHost: t\r\n\r\nG@T / HTTP/1.1\r\n\r\n");
    assert_eq!(client.reply(false).text(), "GET /a 0");
    let refused = client.reply(false);
    assert_eq!((refused.status, refused.is_complete), (400, true));
    assert_eq!(client.rest(), "");
    assert_eq!(server.handle.counters().server.heads_refused_total, 1);
}

#[test]
fn content_length_with_chunked_closes_connection() {
    // RFC 9112, 6.1: the chunks take precedence, and bytes after them must not be parsed as a
    // request.
    let server = echo();
    let mut client = server.client();
    client.send(
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
          0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n",
    );
    let responses = client.rest();
    assert!(!responses.contains("smuggled"), "{responses}");
    assert_eq!(responses.matches("HTTP/1.1 ").count(), 1, "{responses}");
}

#[test]
fn invalid_chunk_is_400() {
    let server = echo();
    let mut client = server.client();
    client.send(b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_eq!(client.reply(false).status, 400);
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let server = echo();
    let mut client = server.client();
    let request = |n| format!("GET /{n} HTTP/1.1\r\nHost: t\r\n\r\n");
    client.send((0..40).map(request).collect::<Vec<_>>().concat().as_bytes());
    for number in 0..40 {
        assert_eq!(client.reply(false).text(), format!("GET /{number} 0"));
    }
}

#[test]
fn response_does_not_wait_for_next_request() {
    let server = echo();
    let mut client = server.client();
    client.send(b"GET /a HTTP/1.1\r\nHost: t\r\n\r\nGET /b HTTP/1.1\r\nHo");
    assert_eq!(client.reply(false).text(), "GET /a 0");
    client.send(b"st: t\r\n\r\n");
    assert_eq!(client.reply(false).text(), "GET /b 0");
}

#[test]
fn http_1_0_connection_is_kept_alive_only_on_request() {
    let server = echo();
    let mut client = server.client();
    client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.reply(false).text(), "GET / 0");
    client.send(b"GET / HTTP/1.0\r\n\r\n");
    assert!(client.rest().ends_with("GET / 0"));
}

#[test]
fn slow_head_is_408() {
    let server = echo();
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHo");
    let reply = client.reply(false);
    assert_eq!((reply.status, reply.is_complete), (408, true));
    assert_eq!(client.rest(), "");
}

#[test]
fn idle_connection_is_closed_without_response() {
    let server = echo();
    assert_eq!(server.client().rest(), "");
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(client.reply(false).status, 200);
    assert_eq!(client.rest(), "");
}

#[test]
fn error_page_format_follows_accept_header() {
    let server = Server::with(4, |o| o.timeouts.queue = Duration::from_millis(100));
    let text = server.get("/");
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    let html = server.ask(
        "GET / HTTP/1.1\r\nHost: t\r\nAccept: text/html,*/*\r\nX-Request-Id: my-id\r\n\
         Connection: close\r\n\r\n",
    );
    assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(html.text().contains("my-id"));
}
