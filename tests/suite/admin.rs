//! The admin listener of a running server: its pages report the actual requests, and are served to
//! no other clients.

mod plan;
mod ranges;

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, eventually};
use std::net::SocketAddr;

const REQUESTS: u64 = 40;

fn page(text: &str) -> Start {
    Server::script(text).workers(2).config("admin = '127.0.0.1:0'\n")
}

fn admin(server: &Server) -> SocketAddr {
    let status = server.status();
    status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address")
}

fn ask(server: &Server, path: &str) -> Response {
    Client::connect(admin(server)).request(&Request::get(path))
}

/// Waits until the value of `sample` is `expected`.
fn comes_to(server: &Server, sample: &str, expected: u64) {
    let is_there = || {
        let metrics = ask(server, "/metrics").text();
        metrics.lines().any(|line| line == format!("{sample} {expected}")).then_some(())
    };
    eventually(&format!("{sample} {expected}"), is_there);
}

#[test]
fn each_request_is_counted_in_metrics_of_its_route() {
    let server = page(
        r"<?php
        if (isset($_GET['fail'])) { http_response_code(500); }
        // Of the processor's time, which others take none of.
        $used = function () {
            $all = getrusage();
            return 1_000_000 * ($all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'])
                + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec'];
        };
        for ($end = $used() + 2_000; $used() < $end;) {}
        echo str_repeat('x', 1000);",
    )
    .start();
    for n in 0..REQUESTS {
        assert_eq!(server.get(&format!("/shop/{n}?secret={n}")).status, 200);
    }
    assert_eq!(server.get("/shop/1?fail").status, 500);
    let route = "route=\"index.php /shop/{n}\"";
    comes_to(&server, &format!("samovar_http_requests_total{{{route},class=\"2xx\"}}"), REQUESTS);
    comes_to(&server, &format!("samovar_http_requests_total{{{route},class=\"5xx\"}}"), 1);
    let sent = 1_000 * (REQUESTS + 1);
    comes_to(&server, &format!("samovar_response_body_bytes_total{{{route}}}"), sent);
    comes_to(&server, "samovar_model_requests_total{model=\"script\"}", REQUESTS + 1);
    comes_to(&server, "samovar_insight_requests_dropped_total", 0);
    let of_route: serde_json::Value =
        serde_json::from_str(&ask(&server, "/api/routes/index.php%20%2Fshop%2F%7Bn%7D").text())
            .expect("JSON");
    let cpu_ns = of_route["costs"]["cpu"]["sum_ns"].as_u64().expect("a number");
    let burnt_ns = 2_000_000 * (REQUESTS + 1);
    assert!(10 * cpu_ns > 8 * burnt_ns, "{cpu_ns} ns of {burnt_ns}");
    assert!(!ask(&server, "/api/requests").text().contains("secret"), "no query strings");
    assert_eq!(ask(&server, "/api/requests").text().matches("\"status\":500").count(), 1);
    server.stop();
}

#[test]
fn readiness_follows_worker_boot() {
    let server = page("<?php usleep(300_000); Samovar\\checkpoint(); echo 'up';").start();
    eventually("readiness", || (ask(&server, "/ready").status == 200).then_some(()));
    assert_eq!(ask(&server, "/health").text(), "alive\n");
    assert_eq!(server.get("/").text(), "up");
    server.stop();
}

#[test]
fn admin_paths_are_separate_from_site() {
    let server = page("<?php echo 'the site';").start();
    assert_eq!(server.get("/metrics").text(), "the site");
    assert_eq!(server.get("/api/status").text(), "the site");
    assert_eq!(ask(&server, "/").text().matches("the site").count(), 0);
    let elsewhere = Request::get("/metrics").header("Host", "rebound.example");
    assert_eq!(Client::connect(admin(&server)).request(&elsewhere).status, 421);
    server.stop();
}

#[test]
fn public_admin_address_requires_token() {
    let (code, said) = Server::script("<?php echo 1;").args(["--admin", "0.0.0.0:0"]).refuse();
    assert_eq!(code, Some(1));
    assert!(said.contains("hint: set `admin_token`"), "{said}");
    let server = Server::script("<?php echo 1;")
        .args(["--admin", "0.0.0.0:0", "--admin-token", "sixteen-letters-or-more"])
        .start();
    let port = admin(&server).port();
    let ask = |authorization: &str| {
        let request = Request::get("/metrics").header("Authorization", authorization);
        Client::connect(SocketAddr::from(([127, 0, 0, 1], port))).request(&request).status
    };
    assert_eq!(ask("Bearer sixteen-letters-or-more"), 200);
    assert_eq!(ask("Bearer sixteen-letters-or-les"), 401);
    server.stop();
}

#[test]
fn history_survives_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("history.sqlite");
    for round in 1..=2 {
        let config = format!("[insight]\nstore = '{}'\n", path.display());
        let server = Server::script("<?php echo 1;").config(&config).start();
        assert_eq!(server.get("/page").status, 200);
        server.stop();
        let store = samovar_insight::store::Store::reader(&path).expect("a history");
        let minutes = store.minutes(0, u64::from(u32::MAX)).expect("minutes");
        let kept: u64 = minutes.iter().map(|(.., minute)| minute.requests).sum();
        assert_eq!(kept, round);
        let events = store.events(0, u64::from(u32::MAX)).expect("events");
        let starts = events.iter().filter(|event| event.kind.name() == "start").count() as u64;
        assert_eq!(starts, round, "{events:?}");
    }
}
