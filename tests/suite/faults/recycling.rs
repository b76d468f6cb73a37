//! Recycled workers: they are replaced at their limits while the others serve requests. Also limits
//! that no request can exceed.

use crate::faults::stage::{Load, is_alive, wait_for_ends, workers_in};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};
use std::collections::BTreeSet;

const MODELS: [(&str, &str); 3] = [
    ("script", "<?php echo getmypid();"),
    ("resident", "<?php Samovar\\serve(function () { echo getmypid(); });"),
    ("checkpoint", "<?php Samovar\\checkpoint(); echo getmypid();"),
];

fn recycled(server: &Server) -> u64 {
    server.status()["workers_recycled_total"].as_u64().expect("a number")
}

#[test]
fn worker_is_recycled_at_request_limit_without_failed_request() {
    for (model, script) in MODELS {
        let server = Server::script(script).workers(2).args(["--requests-max", "50"]).start();
        eventually("idle workers", || (workers_in(&server, "idle").len() == 2).then_some(()));
        let load = Load::start(server.address(), 4, &Request::get("/"));
        eventually(&format!("{model}: replacements"), || {
            let status = server.status();
            let workers = status["workers"].as_array().expect("a list");
            let ready = workers.iter().filter(|w| w["state"] == "idle" || w["state"] == "busy");
            assert!(ready.count() >= 2, "{model}: never fewer: {status}");
            (status["workers_recycled_total"].as_u64()? >= 3).then_some(())
        });
        let mut pids = BTreeSet::new();
        for response in load.stop() {
            let response = response.expect("an answer");
            assert_eq!((response.status, response.complete), (200, true), "{model}: {response:?}");
            pids.insert(response.text());
        }
        assert!(pids.len() >= 5, "{model}: {pids:?}");
        let status = server.status();
        assert_eq!(status["worker_restarts_total"], 0, "{model}: {status}\n{}", server.log());
        server.stop();
    }
}

#[test]
fn worker_is_recycled_at_age_and_memory_limit() {
    let keeps = "<?php Samovar\\serve(function () {
        static $kept = [];
        $kept[] = str_repeat('x', (int) ($_GET['bytes'] ?? 0));
        echo getmypid();
    });";
    for (limit, value, target) in
        [("--age-max", "2s", "/"), ("--memory-max", "40M", "/?bytes=60000000")]
    {
        let server = Server::script(keeps).workers(1).args([limit, value]).start();
        let first: i32 = server.get("/").text().parse().expect("a number");
        assert_eq!(server.get(target).status, 200);
        eventually(&format!("{limit}: another one"), || (recycled(&server) >= 1).then_some(()));
        wait_for_ends(&[first]);
        let second: i32 = server.get("/").text().parse().expect("a number");
        assert!(second != first && is_alive(second));
        server.stop();
    }
}

/// With more clients than workers, no worker is idle for long.
#[test]
fn busy_worker_is_recycled_at_memory_limit() {
    let leaks = "<?php ini_set('memory_limit', '-1'); Samovar\\serve(function () {
        static $kept = [];
        if (count($kept) < 150) {
            $kept[] = str_repeat('x', 1 << 20);
        }
        usleep(20_000);
        echo getmypid();
    });";
    let server = Server::script(leaks).workers(1).args(["--memory-max", "60M"]).start();
    let load = Load::start(server.address(), 8, &Request::get("/"));
    eventually("another one", || (recycled(&server) >= 1).then_some(()));
    for response in load.stop() {
        let response = response.expect("an answer");
        assert_eq!((response.status, response.complete), (200, true), "{response:?}");
    }
    server.stop();
}

#[test]
fn recycled_worker_finishes_its_request() {
    let script = "<?php while (isset($_GET['file']) && !file_exists($_GET['file'])) {
        usleep(2000); clearstatcache(); } echo getmypid();";
    let server = Server::script(script).workers(1).args(["--requests-max", "1"]).start();
    let first = server.get("/").text();
    let go = server.folder().join("go");
    let mut slow = server.client();
    slow.send(&Request::get(&format!("/?file={}", go.display())).bytes());
    eventually("a successor", || (server.get("/").text() != first).then_some(()));
    std::fs::write(&go, "").expect("our own folder");
    let response = slow.read(false);
    assert_eq!((response.status, response.complete), (200, true));
    server.stop();
}

#[test]
fn memory_ceiling_ends_request_only() {
    let script = "<?php ini_set('memory_limit', '-1');
        if (isset($_GET['take'])) { $all = []; for (;;) { $all[] = str_repeat('x', 10 << 20); } }
        echo 'fine';";
    for call in ["", "Samovar\\checkpoint();"] {
        let script = script.replace("<?php", &format!("<?php {call}"));
        let server = Server::script(&script).workers(2).args(["--memory-ceiling", "400M"]).start();
        assert_eq!(server.get("/").text(), "fine");
        let response = server.get("/?take=1");
        assert!(matches!(response.status, 500 | 502), "{response:?}");
        server.wait_for_log("Out of memory");
        for _ in 0..4 {
            assert_eq!(server.get("/").text(), "fine");
        }
        server.stop();
    }
}

#[test]
fn no_new_privileges_applies_to_child_programs() {
    let script = "<?php echo shell_exec('grep NoNewPrivs /proc/self/status');";
    for (flag, expected) in [
        ("--workers=1", "1"),
        ("--no-new-privileges=true", "1"),
        ("--no-new-privileges=false", "0"),
    ] {
        let server = Server::script(script).workers(1).args([flag]).start();
        let text = server.get("/").text();
        assert_eq!(text.split_whitespace().last(), Some(expected), "{flag}");
        server.stop();
    }
}
