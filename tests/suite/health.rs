//! Health of a server: planted problems, and the same judgment in `status`, `top`, the admin
//! listener and the metrics.

use crate::request_accounting::bench::{MODELS, ask, serving, started};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, binary, eventually, may_mount};
use serde_json::Value;
use std::process::{Command, Output};

const WORK: &str = r"
    switch ($_GET['do'] ?? '') {
    case 'fail': http_response_code(500); throw new RuntimeException('planted');
    case 'crash': posix_kill(getmypid(), SIGSEGV);
    case 'wait':
        for ($n = 0; $n < 600 && !file_exists($_GET['until']); $n++) { usleep(50_000); }
    }
    echo 'done';
";

fn samovar(server: &Server, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).arg("--control").arg(server.control());
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until all readers report this problem.
fn is_reported(server: &Server, what: &str, problem: &str) {
    eventually(&format!("{what}: `{problem}`"), || {
        let status = samovar(server, &["status"]);
        let first = text(&status).lines().next()?.to_owned();
        (first.contains(": unhealthy: ") && first.contains(problem)).then_some(())?;
        (status.status.code() == Some(3)).then_some(())
    });
    let status = text(&samovar(server, &["status"]));
    assert!(status.contains("  problem ") && status.contains("\n    hint: "), "{what}: {status}");
    let json = samovar(server, &["status", "--json"]);
    let judged: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(judged["health"]["healthy"], false, "{what}: {judged}");
    assert_eq!(json.status.code(), Some(3), "{what}");
    let top = text(&samovar(server, &["top"]));
    let first = top.lines().next().expect("a line");
    assert!(first.contains(": unhealthy: ") && first.contains(problem), "{what}: {top}");
    let health: Value = serde_json::from_str(&ask(server, "/api/health")).expect("JSON");
    let findings = health["findings"].as_array().expect("a list");
    let is_it = |found: &&Value| found["text"].as_str().is_some_and(|text| text.contains(problem));
    let found = findings.iter().find(is_it).unwrap_or_else(|| panic!("{what}: {health}"));
    assert_eq!(found["severity"], "problem", "{what}: {health}");
    let metrics = ask(server, "/metrics");
    let line = format!("samovar_health_findings{{what={},severity=\"problem\"}} 1", found["about"]);
    assert!(metrics.contains("\nsamovar_healthy 0\n") && metrics.contains(&line), "{what}: {line}");
    let page = ask(server, "/");
    assert!(page.contains("<h1 class=\"unwell\">"), "{what}: {page}");
}

fn is_healthy_again(server: &Server) {
    eventually("healthy", || {
        let status = samovar(server, &["status"]);
        text(&status).contains(": healthy").then_some(())?;
        (status.status.code() == Some(0)).then_some(())
    });
}

#[test]
fn healthy_server_is_healthy_everywhere() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(2), model);
        server.get("/");
        let status = samovar(&server, &["status"]);
        assert!(text(&status).contains(": healthy  (pid"), "{model}: {}", text(&status));
        assert_eq!(status.status.code(), Some(0), "{model}");
        let health: Value = serde_json::from_str(&ask(&server, "/api/health")).expect("JSON");
        assert_eq!(health, serde_json::json!({"healthy": true, "findings": []}), "{model}");
        assert!(ask(&server, "/metrics").contains("\nsamovar_healthy 1\n"), "{model}");
        server.stop();
    }
}

#[test]
fn failing_requests_make_server_unhealthy() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(2), model);
        for _ in 0..5 {
            assert_eq!(server.get("/?do=fail").status, 500, "{model}");
        }
        is_reported(&server, model, "100 % of the last minute's requests failed");
        server.stop();
    }
}

#[test]
fn server_without_request_accounting_reports_failing_requests() {
    let server = Server::script("<?php http_response_code(500);").workers(1).start();
    server.get("/");
    let status = samovar(&server, &["status"]);
    let first = text(&status).lines().next().map(str::to_owned).unwrap_or_default();
    assert!(first.contains(": healthy, to be looked at: 100 % of the last minute's"), "{first}");
    assert_eq!(status.status.code(), Some(0), "{}", text(&status));
    server.get("/");
    server.get("/");
    let status = samovar(&server, &["status"]);
    assert!(text(&status).contains("100 % of the last minute's requests failed"));
    assert_eq!(status.status.code(), Some(3), "{}", text(&status));
    server.stop();
}

#[test]
fn crashed_workers_make_server_unhealthy() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(2), model);
        for _ in 0..3 {
            server.get("/?do=crash");
        }
        is_reported(&server, model, "crashed in the last five minutes");
        server.stop();
    }
}

#[test]
fn full_disk_makes_server_unhealthy() {
    if let Err(why) = may_mount() {
        eprintln!("skipped: {why}");
        return;
    }
    let start = serving("script", WORK).workers(1).disk("small", 1 << 20);
    let log = start.folder().join("small/access.log");
    let start = start.args(["--access-log", &log.display().to_string()]);
    let server = started(start, "script");
    let is_listed = |status: &Value| {
        let all = status["storage"].as_array().expect("a list");
        all.iter().any(|one| one["setting"] == "access_log")
    };
    eventually("its free space", || is_listed(&server.status()).then_some(()));
    let disk = server.disk("small");
    disk.fill();
    is_reported(&server, "script", "small) has little space left");
    disk.give_back(512 * 1024);
    is_healthy_again(&server);
    server.stop();
}

#[test]
fn queued_requests_make_server_unhealthy() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        let until = server.folder().join("until");
        let target = format!("/?do=wait&until={}", until.display());
        let clients: Vec<_> = (0..23)
            .map(|_| {
                let mut client = Client::connect(server.address());
                client.send(&Request::get(&target).bytes());
                client
            })
            .collect();
        is_reported(&server, model, "22 requests wait for a worker");
        std::fs::write(&until, "").expect("the folder is writable");
        for mut client in clients {
            assert_eq!(client.read(false).status, 200, "{model}");
        }
        server.stop();
    }
}
