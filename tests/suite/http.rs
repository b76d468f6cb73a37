//! HTTP/1.1 of ordinary clients, proxies and attackers, with PHP scripts.

mod connections;
mod lengths;
mod logs;
mod refusals;
mod statuses;
mod targets;
mod variables;

use samovar_testkit::http::{Request, Response};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn app() -> Start {
    Server::app("http").workers(2)
}

/// Sends bytes on a separate connection and reads one response.
fn raw(server: &Server, bytes: impl AsRef<[u8]>) -> Response {
    let mut client = server.client();
    let _ = client.try_send(bytes.as_ref());
    client.read(false)
}

fn variables(server: &Server, request: &Request) -> Value {
    serde_json::from_slice(&server.client().request(request).body).expect("$_SERVER")
}

fn is_served(server: &Server) -> bool {
    server.get("/after").text() == "target /after"
}

#[test]
fn pipelined_responses_are_in_order() {
    let server = app().start();
    let gate = server.folder().join("gate");
    let mut client = server.client();
    let wait = format!("/wait?file={}", gate.display());
    let mut all = Request::get(&wait).bytes();
    for n in 0..20 {
        all.extend(Request::form("/echo", &format!("n={n}")).bytes());
        all.extend(Request::get(&format!("/{n}")).bytes());
    }
    client.send(&all);
    // The first request does not delay others.
    assert!(is_served(&server));
    std::fs::write(&gate, "").expect("our own folder");
    assert_eq!(client.read(false).text(), "waited");
    for n in 0..20 {
        let form = format!("n={n}");
        assert_eq!(client.read(false).text(), format!("POST {0} {0} {form}", form.len()));
        assert_eq!(client.read(false).text(), format!("target /{n}"));
    }
}

#[test]
fn body_with_length_or_chunks_reaches_php() {
    let server = app().define("post_max_size", "8M").start();
    let chunked = |body: &str| {
        raw(
            &server,
            format!("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
        )
    };
    for (body, expected) in [
        ("0\r\n\r\n", "POST 0 0 "),
        ("3\r\nabc\r\n0\r\n\r\n", "POST 3 3 abc"),
        ("3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", "POST 7 7 abcdefg"),
        ("003;name=value\r\nabc\r\n0\r\n\r\n", "POST 3 3 abc"),
        ("3\r\nabc\r\n0\r\nX-Trailer: ignored\r\n\r\n", "POST 3 3 abc"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "POST 10 10 0123456789"),
    ] {
        let response = chunked(body);
        assert_eq!((response.status, response.text().as_str()), (200, expected), "{body:?}");
    }
    // PHP receives the length of a chunked body, also of one that does not fit into memory.
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let response = chunked(&(piece.repeat(40) + "0\r\n\r\n"));
    assert!(response.text().starts_with("POST 2621440 2621440 "), "{}", response.text());
    let long = Request::new("PUT", "/echo").body("y".repeat(2_000_000));
    let long = server.client().request(&long).text();
    assert!(long.starts_with("PUT 2000000 2000000 "), "{long}");
    let none = server.client().request(&Request::new("DELETE", "/echo"));
    assert!(none.text().contains(" 0 "), "{}", none.text());
}

#[test]
fn continue_is_sent_only_for_wanted_body() {
    let server = app().args(["--body-bytes-max", "1000"]).start();
    let head = |length: usize| {
        format!(
            "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    let mut client = server.client();
    client.send(head(3).as_bytes());
    assert_eq!(client.read_head().expect("an interim answer").status, 100);
    client.send(b"abc");
    assert_eq!(client.read(false).text(), "POST 3 3 abc");
    let mut refused = server.client();
    refused.send(head(1001).as_bytes());
    assert_eq!(refused.read_head().expect("a final answer").status, 413, "and no 100 before");
}

#[test]
fn head_or_body_over_limit_is_rejected() {
    let server = app()
        .args(["--head-bytes-max", "8K", "--headers-max", "20", "--body-bytes-max", "1000"])
        .start();
    let post = |framing: &str| format!("POST /echo HTTP/1.1\r\nHost: t\r\n{framing}");
    let x = |n: usize| "x".repeat(n);
    for (name, request, status) in [
        ("a long header", format!("GET / HTTP/1.1\r\nHost: t\r\nX: {}\r\n\r\n", x(9000)), 431),
        (
            "many headers",
            format!("GET / HTTP/1.1\r\nHost: t\r\n{}\r\n", "X: y\r\n".repeat(21)),
            431,
        ),
        (
            "enough headers",
            format!("GET / HTTP/1.1\r\nHost: t\r\n{}\r\n", "X: y\r\n".repeat(19)),
            200,
        ),
        ("a long body", post(&format!("Content-Length: 1001\r\n\r\n{}", x(1001))), 413),
        ("a body that claims", post("Content-Length: 99999999999999\r\n\r\n"), 413),
        (
            "chunks",
            post(&format!("Transfer-Encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n", x(1001))),
            413,
        ),
        ("just enough", post(&format!("Content-Length: 1000\r\n\r\n{}", x(1000))), 200),
        (
            "just enough",
            post(&format!("Transfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n0\r\n\r\n", x(1000))),
            200,
        ),
    ] {
        assert_eq!(raw(&server, &request).status, status, "{name}");
        assert!(is_served(&server), "after {name}");
    }
    let target = raw(&server, format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", x(9000)));
    assert!(matches!(target.status, 414 | 431), "a long target: {}", target.status);
}

/// Forms of requests that may hide a second request from a proxy in front, or from this server.
#[test]
fn smuggling_attempt_is_rejected_and_hidden_request_is_not_run() {
    let server = app().args(["--access-log", "-"]).start();
    let get = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";
    let post = |headers: &str, body: &str| {
        format!("POST /echo HTTP/1.1\r\nHost: t\r\n{headers}\r\n\r\n{body}{get}").into_bytes()
    };
    let chunked = |body: &str| post("Transfer-Encoding: chunked", body);
    for (name, bytes) in [
        ("two lengths", post("Content-Length: 0\r\nContent-Length: 5", "")),
        ("a list of lengths", post("Content-Length: 0, 5", "")),
        ("a signed length", post("Content-Length: +0", "")),
        ("a negative length", post("Content-Length: -1", "")),
        ("a hexadecimal length", post("Content-Length: 0x0", "")),
        ("an empty length", post("Content-Length: ", "")),
        ("a spaced length", post("Content-Length: 0 0", "")),
        ("a length beyond all", post("Content-Length: 18446744073709551616", "")),
        ("a space before the colon", post("Content-Length : 0", "")),
        ("a space before the colon of TE", post("Transfer-Encoding : chunked", "0\r\n\r\n")),
        ("an unknown coding", post("Transfer-Encoding: xchunked", "0\r\n\r\n")),
        ("a coding behind chunked", post("Transfer-Encoding: chunked, gzip", "0\r\n\r\n")),
        ("identity", post("Transfer-Encoding: identity", "")),
        ("a folded header", post("X-Fold: a\r\n b\r\nContent-Length: 0", "")),
        ("a folded TE", post("Transfer-Encoding:\r\n chunked", "0\r\n\r\n")),
        (
            "a length before a coding",
            post("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        ),
        (
            "a length behind a coding",
            post("Transfer-Encoding: chunked\r\nContent-Length: 6", "0\r\n\r\n"),
        ),
        (
            "two codings",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        ),
        ("a list of codings", post("Transfer-Encoding: chunked, chunked", "0\r\n\r\n")),
        ("NUL in a header", post("X-Nul: a\0b\r\nContent-Length: 0", "")),
        ("NUL in a name", post("X\0Nul: a\r\nContent-Length: 0", "")),
        ("CR in a header", post("X-Cr: a\rb\r\nContent-Length: 0", "")),
        ("a header without colon", post("Content-Length 0", "")),
        ("a header without name", post(": a\r\nContent-Length: 0", "")),
        ("a chunk size that is none", chunked("xyz\r\n")),
        ("a signed chunk size", chunked("-1\r\n")),
        ("a chunk size beyond all", chunked("fffffffffffffffff\r\n")),
        ("a chunk longer than its size", chunked("1\r\nab\r\n0\r\n\r\n")),
        ("a chunk without its end", chunked("1\r\na0\r\n\r\n")),
        ("a hexadecimal prefix", chunked("0x1\r\na\r\n0\r\n\r\n")),
        ("no size", chunked("\r\n0\r\n\r\n")),
        (
            "HTTP/1.0 with TE",
            b"POST /echo HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_vec(),
        ),
        ("two hosts", b"GET / HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n".to_vec()),
        ("two targets", b"GET / /b HTTP/1.1\r\nHost: t\r\n\r\n".to_vec()),
        ("a version that is none", b"GET / HTTP/9.9\r\nHost: t\r\n\r\n".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec()),
    ] {
        let mut client = server.client();
        let _ = client.try_send(&bytes);
        let response = client.try_read(false);
        assert!(
            matches!(response.as_ref().map(|a| a.status), Ok(400 | 413 | 501 | 505)),
            "{name}: {response:?}"
        );
        let rest = client.read_for(Duration::from_millis(300));
        assert_eq!(String::from_utf8_lossy(&rest), "", "{name}: nothing follows");
    }
    assert!(is_served(&server));
    eventually("the log of the last request", || server.stdout().contains("/after").then_some(()));
    assert!(!server.stdout().contains("smuggled"), "{}", server.stdout());
}

/// RFC 9113, 3.3: a client with prior knowledge starts with the preface. The server's first frame
/// has the type SETTINGS.
#[test]
fn http2_preface_starts_http2() {
    const SETTINGS: u8 = 4;
    let server = app().start();
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("the preface");
    let mut head = [0; 9];
    client.read_exact(&mut head).expect("a frame");
    assert_eq!((head[3], &head[5..]), (SETTINGS, &[0; 4][..]), "type and stream of {head:?}");
    assert!(is_served(&server));
}

#[test]
fn single_line_feed_is_line_end_or_rejected() {
    let server = app().start();
    // RFC 9112, 2.2 permits a single LF as the end of a line. It must not have any third meaning.
    let response = raw(&server, "GET /lf HTTP/1.1\nHost: t\nConnection: close\n\n");
    assert!(matches!(response.status, 200 | 400), "{response:?}");
    assert!(is_served(&server));
}

#[test]
fn methods_are_passed_to_php_or_rejected() {
    let server = app().start();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X-UNKNOWN"] {
        let response = server.client().request(&Request::new(method, "/echo"));
        assert_eq!(response.status, 200, "{method}");
        assert!(
            response.text().starts_with(&format!("{method} ")),
            "{method}: {}",
            response.text()
        );
    }
    for (request, status) in [
        ("TRACE / HTTP/1.1\r\nHost: t\r\n\r\n", 405),
        ("CONNECT t:80 HTTP/1.1\r\nHost: t\r\n\r\n", 405),
        ("get@ / HTTP/1.1\r\nHost: t\r\n\r\n", 400),
        ("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", 200),
    ] {
        let response = raw(&server, request);
        assert_eq!(response.status, status, "{request:?}");
        if status == 405 {
            assert!(response.header("allow").is_some_and(|a| a.contains("GET")), "{response:?}");
        }
    }
}

#[test]
fn head_response_is_get_response_without_body() {
    let server = app().start();
    for target in ["/a", "/chunked", "/status?code=404", "/server"] {
        let mut client = server.client();
        let head = client.request(&Request::new("HEAD", target));
        let get = client.get(target);
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{target}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{target}");
        if let Some(length) = head.header("content-length") {
            assert_ne!(length, "0", "{target}: the length is that of the body that was not sent");
        }
    }
}

#[test]
fn status_without_body_sends_no_body() {
    let server = app().start();
    for code in [204, 304] {
        let mut client = server.client();
        let response = client.get(&format!("/status?code={code}"));
        assert_eq!((response.status, response.header("transfer-encoding")), (code, None));
        assert_eq!(client.get("/next").text(), "target /next", "{code}: nothing lies in between");
    }
}

#[test]
fn host_and_absolute_target_are_validated() {
    let server = app().start();
    for (request, status, host, uri) in [
        (
            "GET /server?a HTTP/1.1\r\nHost: shop.example:81\r\n",
            200,
            "shop.example:81",
            "/server?a",
        ),
        (
            "GET http://shop.example/server HTTP/1.1\r\nHost: shop.example\r\n",
            200,
            "shop.example",
            "/server",
        ),
        // RFC 9112, 3.2.2: the target's authority replaces Host.
        (
            "GET http://real.example/server HTTP/1.1\r\nHost: other\r\n",
            200,
            "real.example",
            "/server",
        ),
        ("GET /server HTTP/1.1\r\n", 400, "", ""),
        ("GET /server HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400, "", ""),
        ("GET /server HTTP/1.1\r\nHost: a b\r\n", 400, "", ""),
        ("GET /server HTTP/1.1\r\nHost: a/b\r\n", 400, "", ""),
        ("GET ftp://a/server HTTP/1.1\r\nHost: a\r\n", 400, "", ""),
        ("GET server HTTP/1.1\r\nHost: a\r\n", 400, "", ""),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n", 400, "", ""),
        ("GET /a%00b HTTP/1.1\r\nHost: a\r\n", 400, "", ""),
    ] {
        let response = raw(&server, format!("{request}\r\n"));
        assert_eq!(response.status, status, "{request:?}: {}", response.text());
        if status == 200 {
            let server: Value = serde_json::from_slice(&response.body).expect("$_SERVER");
            assert_eq!(
                (&server["HTTP_HOST"], &server["REQUEST_URI"]),
                (&host.into(), &uri.into()),
                "{request:?}"
            );
        }
    }
}

#[test]
fn forwarded_headers_are_used_from_trusted_proxy_only() {
    let ask = Request::get("/server")
        .header("Host", "inner:80")
        .header("X-Forwarded-For", "6.6.6.6, 203.0.113.7")
        .header("X-Forwarded-Proto", "https")
        .header("X-Forwarded-Host", "shop.example")
        .header("X-Forwarded-Port", "8443");
    let stranger = app().start();
    let seen = variables(&stranger, &ask);
    for (key, value) in [
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REQUEST_SCHEME", "http"),
        ("HTTP_HOST", "inner:80"),
        ("HTTP_X_FORWARDED_FOR", "6.6.6.6, 203.0.113.7"),
    ] {
        assert_eq!(seen[key], value, "untrusted: {key}");
    }
    assert!(seen["HTTPS"].is_null() || seen["HTTPS"] == "", "{}", seen["HTTPS"]);
    let trusting = app().args(["--trusted-proxies", "127.0.0.0/8", "--access-log", "-"]).start();
    let seen = variables(&trusting, &ask);
    for (key, value) in [
        ("REMOTE_ADDR", "203.0.113.7"),
        ("REQUEST_SCHEME", "https"),
        ("HTTPS", "on"),
        ("SERVER_PORT", "8443"),
        ("SERVER_NAME", "shop.example"),
    ] {
        assert_eq!(seen[key], value, "trusted: {key}");
    }
    eventually("the log", || trusting.stdout().starts_with("203.0.113.7 - - [").then_some(()));
    let seen = variables(&trusting, &Request::get("/server"));
    assert_eq!(seen["REMOTE_ADDR"], "127.0.0.1", "no claim, no change");
}

#[test]
fn header_with_underscore_does_not_replace_another() {
    let server = app().start();
    let request = Request::get("/server")
        .header("X_Forwarded_For", "6.6.6.6")
        .header("Proxy", "http://evil")
        .header("X-Two", "a")
        .header("X-Two", "b")
        .header("Cookie", "a=1")
        .header("Cookie", "b=2");
    let seen = variables(&server, &request);
    assert!(seen["HTTP_X_FORWARDED_FOR"].is_null() && seen["HTTP_PROXY"].is_null(), "{seen}");
    assert_eq!((&seen["HTTP_X_TWO"], &seen["HTTP_COOKIE"]), (&"a, b".into(), &"a=1; b=2".into()));
}

#[test]
fn error_page_format_follows_accept_header() {
    let server = app().start();
    let browser = Request::get("/%zz").header("Accept", "text/html,*/*;q=0.8");
    let page = server.client().request(&browser);
    assert_eq!((page.status, page.header("content-type")), (400, Some("text/html; charset=utf-8")));
    let id = page.header("x-request-id").expect("an id").to_owned();
    assert!(page.text().starts_with("<!doctype html>") && page.text().contains(&id));
    let tool = server.get("/%zz");
    assert_eq!(
        (tool.status, tool.header("content-type")),
        (400, Some("text/plain; charset=utf-8"))
    );
    assert_eq!(tool.text().lines().count(), 1);
    for page in [page, tool] {
        assert!(!page.text().to_lowercase().contains("samovar"), "no word about the server");
        assert_eq!(page.header("server"), None);
    }
}

#[test]
fn unbuffered_script_reads_partial_body() {
    let server = app().args(["--request-buffering", "false"]).start();
    let mut client = server.client();
    // PUT, because PHP reads the whole body of a POST before the script starts.
    client.send(b"PUT /live HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n");
    client.send(b"Content-Type: text/plain\r\n\r\n");
    // PHP reads php://input in blocks of 16 KiB (SAPI_POST_BLOCK_SIZE).
    let piece = |byte: &str| format!("5000\r\n{}\r\n", byte.repeat(0x5000));
    client.send(piece("a").as_bytes());
    assert_eq!(client.read_head().expect("a head, before the body has ended").status, 200);
    let mut echoed = Vec::new();
    while echoed.len() < 0x4000 {
        echoed.extend(client.read_chunk().expect("an echo").expect("an echo"));
    }
    client.send(piece("b").as_bytes());
    client.send(b"0\r\n\r\n");
    while let Some(chunk) = client.read_chunk().expect("an echo").filter(|c| !c.is_empty()) {
        echoed.extend(chunk);
    }
    assert_eq!(echoed.len(), 2 * 0x5000);
    let known = Request::post("/live", "text/plain", "z".repeat(300_000));
    assert_eq!(server.client().request(&known).body.len(), 300_000);
}

#[test]
fn buffered_slow_body_occupies_no_worker() {
    let server = app().workers(1).start();
    let mut slow = server.client();
    slow.send(b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\nabc");
    eventually("the slow request", || (server.status()["in_flight"] == 1).then_some(()));
    assert!(is_served(&server), "the one worker is free");
    slow.send(b"def");
    assert_eq!(slow.read(false).text(), "POST 6 6 abcdef");
}
