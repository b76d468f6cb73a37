//! A slow request is explained by its worker's stack at the time when it became slow, even if PHP
//! cannot report it.

use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::fs::File;
use std::net::SocketAddr;

const STUCK: &str = r"<?php
class Report { static function write($file) {
    $f = fopen($file, 'c');
    flock($f, LOCK_EX);
} }
function answer() { Report::write($_GET['lock']); }
answer();
echo 'done';
";

fn explained(hertz: u32) {
    let config = format!(
        "admin = '127.0.0.1:0'\n[insight]\nslow_request = '300ms'\nslow_log = 'slow.log'\n\
         slow_log_format = 'json'\n[profile]\nhertz = {hertz}\n"
    );
    let server = Server::script(STUCK).workers(2).config(&config).start();
    let path = server.folder().join("the.lock");
    let held = File::create(&path).expect("a file");
    held.lock().expect("nobody else has it");
    let target = format!("/index.php?lock={}", path.display());
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.get(&target));
        // The lock is held for longer than the threshold for slow requests, until the worker has
        // been sampled.
        let begin = std::time::Instant::now();
        eventually("it is slow", || (begin.elapsed().as_millis() > 3_000).then_some(()));
        drop(held);
        assert_eq!(asked.join().expect("answered").text(), "done");
    });
    let log = server.folder().join("slow.log");
    let record: Value = eventually("a record", || {
        let text = std::fs::read_to_string(&log).ok()?;
        serde_json::from_str(text.lines().next()?).ok()
    });
    let blocked = record["blocked"].as_str().expect("it was looked at");
    assert!(blocked.starts_with("in flock of descriptor "), "{record:#}");
    assert!(blocked.contains("/the.lock"), "{record:#}");
    let stack: Vec<_> = record["stack"].as_array().into_iter().flatten().collect();
    let expected = ["flock() [internal]", "Report::write() ", "answer() ", "{main} "];
    assert_eq!(stack.len(), expected.len(), "{record:#}");
    for (call, expected) in stack.iter().zip(expected) {
        assert!(call.as_str().is_some_and(|call| call.starts_with(expected)), "{record:#}");
    }
    assert!(!record.to_string().contains("lock="), "no query string");
    // Operators see the same on the request's page.
    let status = server.status();
    let admin: SocketAddr =
        status["admin"][0].as_str().and_then(|a| a.parse().ok()).expect("bound");
    let id = record["request_id"].as_str().expect("an id");
    let page = Client::connect(admin).get(&format!("/request?id={id}")).text();
    assert!(
        page.contains("When the request became slow") && page.contains("Report::write()"),
        "{page}"
    );
    server.stop();
}

#[test]
fn slow_request_is_explained_by_sampled_stack() {
    explained(49);
}

#[test]
fn slow_request_is_explained_without_sampler() {
    explained(0);
}
