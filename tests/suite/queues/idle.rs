//! Queues whose jobs start only while HTTP is quiet, or at certain times.

use super::{PUSHES, Site, eventually, push, queue};
use samovar_testkit::{Server, binary};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A queue with these keys, and an ordinary one.
fn start(site: &Site, keys: &str) -> Server {
    let handler = site.at("jobs/work.php");
    let config = format!(
        "[jobs]\nstore = '{}'\n[[queue]]\nname = 'later'\nhandler = '{handler}'\n{keys}\n\
         [[queue]]\nname = 'work'\nhandler = '{handler}'\n",
        site.at("state/jobs.sqlite").display(),
        handler = handler.display(),
    );
    Server::at(site.at("public")).workers(2).config(&config).start()
}

fn site() -> Site {
    let wait = "if (isset($_GET['wait'])) {
        echo 'it waits'; flush();
        while (!file_exists(__DIR__ . '/../go')) { usleep(5000); }
        exit('.');
    }";
    Site::new(&format!("<?php {wait} {PUSHES}"))
}

fn runs_of(site: &Site, name: &str) -> usize {
    site.ran().iter().filter(|job| job[1] == name).count()
}

/// Pushes to both queues. Returns when some jobs of the ordinary one have run.
fn push_to_both(site: &Site, server: &Server) {
    push(server, "/?queue=later", &json!({ "payload": 1 }));
    for run in 1..=5 {
        push(server, "/?queue=work", &json!({ "payload": 1 }));
        eventually("ordinary jobs run", || (runs_of(site, "work") == run).then_some(()));
    }
}

#[test]
fn idle_jobs_wait_while_a_request_runs() {
    let site = site();
    let server = start(&site, "priority = 'idle'\ncpu_max = 100");
    let mut client = server.client();
    client.send(b"GET /?wait=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    eventually("it runs", || (server.status()["in_flight"] == 1).then_some(()));
    push_to_both(&site, &server);
    assert_eq!(runs_of(&site, "later"), 0, "a request is in flight");
    site.go();
    eventually("the idle job runs", || (runs_of(&site, "later") == 1).then_some(()));
    server.stop();
}

#[test]
fn workers_of_idle_jobs_use_only_idle_cpus() {
    const IDLE: u64 = 5;
    let site = site();
    let server = start(&site, "priority = 'idle'\ncpu_max = 100");
    push(&server, "/?queue=later", &json!({ "payload": 1 }));
    eventually("the idle job runs", || (runs_of(&site, "later") == 1).then_some(()));
    let status = server.status();
    let workers = status["workers"].as_array().cloned().unwrap_or_default();
    let mut seen = 0;
    for worker in workers {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker["pid"]));
        let stat = stat.expect("a process");
        let mut fields = stat.rsplit(") ").next().expect("fields").split(' ');
        // Field 41 of proc(5); the first two are before the parenthesis.
        let policy: u64 = fields.nth(38).and_then(|field| field.parse().ok()).expect("one");
        assert_eq!(policy, if worker["pool"] == "later" { IDLE } else { 0 }, "{worker}");
        seen += 1;
    }
    assert!(seen >= 3, "workers of three pools, not {seen}");
    server.stop();
}

/// A window from this hour from now until the next one, in UTC.
fn window(hours: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let hour = |after: u64| (now / 3_600 + after) % 24;
    format!("timezone = 'UTC'\nwindow = '{:02}:00-{:02}:00'", hour(hours), hour(hours + 2))
}

#[test]
fn jobs_start_only_within_the_window() {
    for (keys, runs) in [(window(3), 0), (window(0), 1)] {
        let site = site();
        let server = start(&site, &keys);
        push_to_both(&site, &server);
        if runs > 0 {
            eventually("the job runs", || (runs_of(&site, "later") == runs).then_some(()));
        }
        assert_eq!(runs_of(&site, "later"), runs, "{keys}");
        let shown: Value = serde_json::from_str(&queue(&server, &["ls", "--json"])).expect("JSON");
        assert_eq!(shown["queues"][0]["ready"], 1 - runs, "{keys}");
        server.stop();
    }
}

#[test]
fn wrong_windows_are_reported() {
    let site = site();
    for keys in ["window = '2-6'", "window = '02:00-02:00'", "priority = 'low'", "cpu_max = 0"] {
        let file = site.at("samovar.toml");
        let handler = site.at("jobs/work.php");
        let text = format!("[[queue]]\nname = 'work'\nhandler = '{}'\n{keys}\n", handler.display());
        std::fs::write(&file, text).expect("a file");
        let output = std::process::Command::new(binary())
            .args(["check", "--config"])
            .arg(&file)
            .arg(site.at("public"))
            .output()
            .expect("the command runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let key = keys.split(' ').next().expect("a key");
        assert!(said.contains(&format!("`{key}` of a `[[queue]]` is not allowed")), "{said}");
    }
}
