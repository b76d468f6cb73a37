//! samovar-load against a server of the test: the requests that it sends, its counts, and its time
//! measurement.

#![allow(clippy::unwrap_used)] // A test that cannot continue panics.

mod server;

use serde_json::{Value, json};
use server::{HELLO, LATE, SLOW, Server};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

fn command(words: &str, url: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samovar-load"));
    command.args(words.split_whitespace()).arg(url).output().unwrap()
}

/// The printed result. Each request that was due must be counted exactly once.
fn load(words: &str, url: &str) -> Value {
    let output = command(words, url);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn errors(report: &Value) -> u64 {
    report["errors"].as_object().unwrap().values().map(count).sum()
}

/// Requests that were due.
fn due(report: &Value) -> u64 {
    count(&report["requests"]) + errors(report) + count(&report["hung"])
}

fn microseconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn closed_loop_counts_every_request_once() {
    let server = Server::start();
    let report = load("--connections 4 --seconds 0.3", &server.url("/"));
    let requests = count(&report["requests"]);
    assert!(requests > 4, "{report}");
    assert_eq!(due(&report), requests);
    assert_eq!(report["statuses"], json!({"200": requests}));
    assert_eq!(count(&report["bytes"]), requests * HELLO.len() as u64);
    assert_eq!(report["classes"]["all"]["latency_us"], report["latency_us"]);
    assert_eq!(report["seconds"], json!(0.3));
    let log = server.log();
    assert_eq!((log.connections, log.requests.len() as u64), (4, requests));
}

/// A server that takes 20 ms each gets requests every 10 ms. Request n is due after 10 n ms and
/// gets its response after 20 (n + 1) ms, for any number of connections. A client that counted from
/// sending would report 40 ms.
#[test]
fn latency_counts_from_due_time() {
    let server = Server::start();
    let words = "--connections 2 --rate 100 --seconds 1 --grace-seconds 60 --timeout-seconds 60";
    let report = load(words, &server.url("/slow"));
    assert_eq!((count(&report["requests"]), due(&report)), (100, 100), "{report}");
    let step_us = SLOW.as_secs_f64() * 1e6 / 2.0;
    let latency = &report["latency_us"];
    assert!(microseconds(&latency["p50"]) >= 50.0 * step_us, "{report}");
    assert!(microseconds(&latency["max"]) >= 100.0 * step_us, "{report}");
    // At most 50 had a response in the window, and at its end two were in flight.
    assert!(report["rate"].as_f64().unwrap() <= 52.0, "{report}");
}

#[test]
fn constant_rate_sends_the_scheduled_requests() {
    let server = Server::start();
    let words = "--connections 4 --rate 200 --seconds 0.5 --grace-seconds 60";
    let report = load(words, &server.url("/"));
    assert_eq!((count(&report["requests"]), due(&report)), (100, 100), "{report}");
    assert_eq!(server.log().requests.len(), 100);
}

#[test]
fn each_kind_of_response_is_counted_by_its_cause() {
    for (path, ending) in [
        ("/", "good"),
        ("/pieces", "good"),
        ("/chunked", "good"),
        ("/interim", "good"),
        ("/empty", "good"),
        ("/moved", "good"),
        ("/close", "good"),
        ("/old", "good"),
        ("/busy", "status"),
        ("/drop", "io"),
        ("/cut-head", "incomplete"),
        ("/cut", "incomplete"),
        ("/cut-chunk", "incomplete"),
        ("/cut-chunks", "incomplete"),
        ("/excess", "incomplete"),
        ("/no-http", "incomplete"),
    ] {
        let server = Server::start();
        let words = "--connections 2 --rate 50 --seconds 0.1 --grace-seconds 60";
        let report = load(words, &server.url(path));
        let good = count(&report["requests"]);
        let found = if ending == "good" { good } else { count(&report["errors"][ending]) };
        assert_eq!((found, due(&report)), (5, 5), "{path}: {report}");
        assert_eq!(report["latency_us"]["p50"].is_null(), ending != "good", "{path}: {report}");
    }
}

#[test]
fn response_to_head_has_no_body() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let targets = folder.path().join("targets");
    fs::write(&targets, r#"{"method":"HEAD","path":"/head"}"#).unwrap();
    let words = format!("--rate 50 --seconds 0.1 --targets {}", targets.display());
    let report = load(&words, &server.url("/"));
    assert_eq!((count(&report["requests"]), due(&report)), (5, 5), "{report}");
}

#[test]
fn late_response_is_timeout_and_closes_connection() {
    let server = Server::start();
    let timeout = LATE.as_secs_f64() / 3.0;
    let words = format!("--connections 1 --seconds 0.3 --timeout-seconds {timeout}");
    let report = load(&words, &server.url("/late"));
    let timeouts = count(&report["errors"]["timeout"]);
    assert!(timeouts > 0, "{report}");
    assert_eq!(due(&report), timeouts);
    assert_eq!(server.log().connections as u64, timeouts);
}

#[test]
fn long_wait_for_a_connection_is_a_timeout() {
    let server = Server::start();
    let words = "--connections 1 --rate 5000 --seconds 0.2 --timeout-seconds 0.1";
    let report = load(words, &server.url("/never"));
    assert_eq!((count(&report["errors"]["timeout"]), due(&report)), (1000, 1000), "{report}");
    // Requests that timed out before the connection was free were not sent.
    assert!(server.log().requests.len() < 500, "{report}");
}

#[test]
fn requests_without_response_at_the_end_are_hung() {
    let server = Server::start();
    let report = load("--connections 3 --seconds 0.1 --grace-seconds 0.1", &server.url("/never"));
    assert_eq!((count(&report["hung"]), due(&report)), (3, 3), "{report}");
    assert_eq!(count(&report["unsent"]), 0);
    let words = "--connections 1 --rate 100 --seconds 0.2 --grace-seconds 0";
    let report = load(words, &server.url("/never"));
    assert_eq!((count(&report["hung"]), due(&report)), (20, 20), "{report}");
    assert_eq!(count(&report["unsent"]), 19);
}

#[test]
fn response_in_grace_time_counts_in_part_for_rate() {
    let server = Server::start();
    let words = "--connections 2 --seconds 0.1 --grace-seconds 60";
    let report = load(words, &server.url("/late"));
    assert_eq!((count(&report["requests"]), due(&report)), (2, 2), "{report}");
    // Two responses of 300 ms, of which at most 100 ms were in the window of 100 ms.
    let rate = report["rate"].as_f64().unwrap();
    assert!(0.0 < rate && rate <= 2.0 / 3.0 / 0.1 + 0.1, "{report}");
}

#[test]
fn refused_connections_are_counted_as_errors() {
    // A port on which only root could listen, and that no service uses.
    let report = load("--connections 2 --seconds 0.1", "http://127.0.0.1:1/");
    let refused = count(&report["errors"]["connect"]);
    assert!(refused > 0, "{report}");
    assert_eq!(due(&report), refused);
}

#[test]
fn new_connections_option_opens_one_per_request() {
    let server = Server::start();
    let words = "--connections 2 --seconds 0.2 --new-connections";
    let report = load(words, &server.url("/"));
    let log = server.log();
    assert!(count(&report["requests"]) > 2, "{report}");
    assert_eq!(due(&report), count(&report["requests"]), "{report}");
    assert_eq!(log.connections, log.requests.len());
    let close = "Connection: close".to_owned();
    assert!(log.requests.iter().all(|request| request.headers.contains(&close)));
}

/// A server may close an idle connection at any time: the next request opens a new one, and no
/// request is lost.
#[test]
fn connection_closed_while_idle_is_no_error() {
    let server = Server::start();
    let words = "--connections 1 --rate 10 --seconds 0.5";
    let report = load(words, &server.url("/hello-and-close"));
    assert_eq!((count(&report["requests"]), due(&report)), (5, 5), "{report}");
    assert_eq!(server.log().connections, 5);
}

#[test]
fn numbered_path_differs_in_each_request() {
    let server = Server::start();
    load("--connections 3 --rate 100 --seconds 0.2 --grace-seconds 60", &server.url("/?n={n}"));
    let log = server.log();
    let lines: BTreeSet<_> = log.requests.iter().map(|request| request.line.as_str()).collect();
    assert_eq!(lines.len(), 20, "{lines:?}");
    assert!(lines.contains("GET /?n=7 HTTP/1.1\r\n"), "{lines:?}");
}

#[test]
fn targets_send_their_headers_and_bodies_by_class() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("targets.jsonl");
    let text = r#"{"class":"page","weight":0.5,"path":"/1","headers":{"Cookie":"a=1"}}
                  {"class":"page","weight":0.5,"path":"/2","headers":{"Cookie":"a=2"}}
                  {"class":"form","weight":1,"method":"POST","path":"/form","body":"x=y"}
                  {"class":"error","weight":1,"path":"/busy"}"#;
    fs::write(&file, text).unwrap();
    let server = Server::start();
    let words = "--rate 300 --seconds 0.5 --grace-seconds 60 --seed 7 --targets";
    let report = load(&format!("{words} {}", file.display()), &server.url("/"));
    assert_eq!(due(&report), 150, "{report}");
    let class = |name: &str| count(&report["classes"][name]["requests"]);
    assert_eq!(class("page") + class("form"), count(&report["requests"]));
    assert_eq!(
        (class("error"), &report["classes"]["error"]["latency_us"]["max"]),
        (0, &Value::Null)
    );
    let log = server.log();
    let asked = |line: &str| log.requests.iter().filter(|seen| seen.line.starts_with(line)).count();
    assert_eq!(class("page") as usize, asked("GET /1") + asked("GET /2"));
    assert_eq!(count(&report["errors"]["status"]) as usize, asked("GET /busy"));
    for seen in &log.requests {
        let cookie = seen.headers.iter().find_map(|header| header.strip_prefix("Cookie: "));
        match seen.line.split(' ').nth(1).unwrap() {
            "/1" => assert_eq!(cookie, Some("a=1")),
            "/2" => assert_eq!(cookie, Some("a=2")),
            "/form" => assert_eq!(seen.body, b"x=y"),
            _ => assert_eq!(cookie, None),
        }
    }
}

#[test]
fn large_body_is_sent_completely_or_rejected() {
    const BODY_BYTES: usize = 20 * 1024 * 1024; // More than the buffers of a socket hold.
    let folder = tempfile::tempdir().unwrap();
    let body: Vec<u8> = (0..BODY_BYTES).map(|index| (index % 251) as u8).collect();
    fs::write(folder.path().join("body"), &body).unwrap();
    let file = folder.path().join("targets");
    for (path, ending) in [("/", "requests"), ("/refuse", "errors")] {
        let line = json!({"method": "POST", "path": path, "body_file": "body"});
        fs::write(&file, line.to_string()).unwrap();
        let server = Server::start();
        let words = "--connections 1 --rate 20 --seconds 0.1 --grace-seconds 60 --targets";
        let report = load(&format!("{words} {}", file.display()), &server.url("/"));
        assert_eq!(due(&report), 2, "{path}: {report}");
        if ending == "requests" {
            assert_eq!(count(&report["requests"]), 2, "{path}: {report}");
            assert!(server.log().requests.iter().all(|seen| seen.body == body));
        } else {
            // The server may close so early that its response is lost: a reset overtakes it.
            let lost = count(&report["errors"]["io"]);
            assert_eq!(count(&report["errors"]["status"]) + lost, 2, "{path}: {report}");
        }
    }
}

#[test]
fn show_option_prints_one_response() {
    let server = Server::start();
    let output = command("--connections 1 --seconds 0.1 --show", &server.url("/"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("HTTP/1.1 200 OK") && text.contains("\n\r\nhello"), "{text}");
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
}

#[test]
fn invalid_arguments_exit_with_2() {
    let url = "http://127.0.0.1:9/";
    for (words, url) in [
        ("--connections 0", url),
        ("--rate none", url),
        ("--targets /no/such/file", url),
        ("--targets /dev/null", url),
        ("", "https://127.0.0.1/"),
        ("", "http://no such host/"),
    ] {
        let output = command(words, url);
        assert_eq!(output.status.code(), Some(2), "{words} {url}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words} {url}");
    }
}
