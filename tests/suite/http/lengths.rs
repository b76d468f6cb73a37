//! Declared lengths of bodies, and the time that bodies take.

use crate::http::{app, is_served};
use samovar_testkit::Server;
use std::time::{Duration, Instant};

fn post(framing: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: t\r\n{framing}\r\n\r\n")
}

/// Checks that the status arrives immediately, without reading the body, and that the connection is
/// closed.
fn refuses(server: &Server, name: &str, request: &str, status: u16) {
    let mut client = server.client();
    client.send(request.as_bytes());
    let response = client.read(false);
    assert_eq!((response.status, response.complete), (status, true), "{name}");
    assert!(client.is_closed(), "{name}");
    assert!(is_served(server), "after {name}");
}

#[test]
fn invalid_content_length_is_rejected() {
    let server = app().start();
    for (length, status) in [
        ("134217729", 413),
        ("9223372036854775807", 413),
        ("9223372036854775808", 413),
        ("18446744073709551613", 413),
        ("18446744073709551614", 413),
        ("18446744073709551615", 413),
        ("18446744073709551616", 413),
        ("999999999999999999999999999999", 413),
        ("+5", 400),
        ("-1", 400),
        ("5, 5", 400),
        ("5,5", 400),
        ("5 5", 400),
        ("0x5", 400),
        ("5.0", 400),
        ("5e3", 400),
        ("\"5\"", 400),
        ("99999999999999999999x", 400),
        ("", 400),
    ] {
        refuses(&server, length, &post(&format!("Content-Length: {length}")), status);
    }
    let twice = post("Content-Length: 5\r\nContent-Length: 5") + "abcde";
    refuses(&server, "the same length twice", &twice, 400);
    // Whitespace around a value is ignored, and leading zeros are allowed.
    for length in [" 5", "5 ", "\t5\t", "005", "0000000000000000000000000000005"] {
        let mut client = server.client();
        client.send((post(&format!("Content-Length: {length}")) + "abcde").as_bytes());
        assert_eq!(client.read(false).text(), "POST 5 5 abcde", "{length:?}");
    }
}

#[test]
fn invalid_chunk_size_is_rejected() {
    for buffering in ["true", "false"] {
        let server =
            app().args(["--body-bytes-max", "1000", "--request-buffering", buffering]).start();
        let chunked = |body: &str| post("Transfer-Encoding: chunked") + body;
        for (size, status) in [
            ("ffffffffffffffff", 413),
            ("FFFFFFFFFFFFFFFE", 413),
            ("7fffffffffffffff", 413),
            ("fffffffffffffffffffffff", 413),
            ("3e9", 413),
            ("000003e9;a=b", 413),
            ("-1", 400),
            ("+1", 400),
            ("0x1", 400),
            ("x", 400),
            ("", 400),
        ] {
            refuses(&server, size, &chunked(&format!("{size}\r\n")), status);
        }
        let second = chunked(&format!("3e8\r\n{}\r\n1\r\n", "x".repeat(1000)));
        refuses(&server, "the last one", &second, 413);
    }
}

/// RFC 9112, 6.1 and 6.3: a proxy that forwards such a message may have been deceived.
#[test]
fn content_length_with_transfer_encoding_is_rejected() {
    let server = app().start();
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "transfer-encoding: chunked\r\ncontent-length: 0",
        "Transfer-Encoding: chunked\r\nX: y\r\nCONTENT-LENGTH:5",
    ] {
        for body in ["0\r\n\r\n", ""] {
            refuses(&server, headers, &(post(headers) + body), 400);
        }
    }
}

/// Each piece arrives within its timeout, but the whole body would take days. The connection is
/// closed.
#[test]
fn body_below_minimum_rate_gets_408() {
    for buffering in ["true", "false"] {
        let server = app()
            .args(["--body-timeout", "700ms", "--body-rate-min", "1K"])
            .args(["--request-buffering", buffering])
            .start();
        for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
            let mut client = server.client();
            client.send(post(framing).replace("/echo", "/live").as_bytes());
            let piece: &[u8] = if framing.starts_with('C') { b"x" } else { b"1\r\nx\r\n" };
            let started = Instant::now();
            let mut response = Vec::new();
            while response.is_empty() && started.elapsed() < Duration::from_secs(20) {
                let _ = client.try_send(piece);
                response = client.read_for(Duration::from_millis(50));
            }
            let text = String::from_utf8_lossy(&response);
            assert!(text.starts_with("HTTP/1.1 408 "), "{framing}, {buffering}: {text:?}");
            assert!(is_served(&server));
        }
    }
}

#[test]
fn body_above_average_minimum_rate_is_accepted() {
    let server = app().args(["--body-timeout", "1500ms", "--body-rate-min", "10K"]).start();
    let mut client = server.client();
    // These bytes pay for twenty seconds at the minimum rate.
    client.send((post("Content-Length: 200040") + &"x".repeat(200_000)).as_bytes());
    for _ in 0..40 {
        // Twice the timeout in total.
        assert_eq!(client.read_for(Duration::from_millis(70)), b"");
        client.send(b"x");
    }
    let response = client.read(false).text();
    assert!(response.starts_with("POST 200040 200040 "), "{response}");
}

/// The client has sent everything; only the script is slow.
#[test]
fn slow_script_does_not_count_as_slow_client() {
    let php = r"<?php
        $input = fopen('php://input', 'r');
        for ($bytes = 0; ($piece = fread($input, 65536)) != ''; $bytes += strlen($piece)) {
            usleep(100_000);
        }
        echo $bytes;";
    let server = Server::script(php)
        .args(["--body-timeout", "1s", "--body-rate-min", "1G", "--request-buffering", "false"])
        .define("post_max_size", "8M")
        .start();
    let mut client = server.client();
    let body = "x".repeat(1_000_000);
    let head = "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n";
    client.send((head.to_owned() + &body).as_bytes());
    assert_eq!(client.read(false).text(), "1000000");
}

/// The longest permitted timeouts are one day, and no sum of them breaks the server.
#[test]
fn longest_timeouts_work() {
    let names = ["header", "idle", "body", "write", "queue", "response", "drain", "boot"];
    let of = |span: &str| -> String {
        let lines = names.iter().map(|name| format!("{name} = \"{span}\"\n"));
        format!("[timeouts]\n{}", lines.collect::<String>())
    };
    for beyond in ["18446744073709551615ms", "25h"] {
        let (code, log) = app().config(&of(beyond)).refuse();
        assert_eq!((code, log.matches("is not allowed\nhint: ").count()), (Some(2), 8), "{log}");
    }
    for buffering in ["true", "false"] {
        let server = app().config(&of("24h")).args(["--request-buffering", buffering]).start();
        let mut client = server.client();
        client.send((post("Content-Length: 4") + "ab").as_bytes());
        assert!(is_served(&server));
        assert_eq!(client.read_for(Duration::from_millis(300)), b"");
        client.send(b"cd");
        assert_eq!(client.read(false).text(), "POST 4 4 abcd");
        let mut half = server.client();
        half.send(b"GET / HT");
        assert_eq!(half.read_for(Duration::from_millis(300)), b"");
        half.send(b"TP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(half.read(false).status, 200);
        server.reload().expect("a reload");
        assert!(is_served(&server));
        drop((client, half));
        server.stop();
    }
}
