//! The capacity plan of the admin listener, from a planted history of 16 days.

use super::{admin, ask};
use samovar_insight::store::{Minute, RouteMinute, Store, StoreLimits};
use samovar_insight::{Histogram, now};
use samovar_testkit::http::Response;
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const DAY: u64 = 86_400;

/// Writes one minute in ten: 6,000 requests of 5 ms CPU time from 8 to 20 o'clock, else 600.
fn plant(path: &Path) {
    let limits = StoreLimits { bytes_max: 64 << 20, days_max: 400 };
    let (mut store, _) = Store::open(path, limits).expect("the server's history");
    let end = now() / 600 * 600;
    for at in (end - 16 * DAY..end).step_by(600) {
        let is_day = (8..20).contains(&(at % DAY / 3600));
        let requests: u64 = if is_day { 60 } else { 6 };
        let mut cpu = Histogram::default();
        (0..requests).for_each(|_| cpu.add(5_000_000));
        let figures =
            RouteMinute { requests, cpu, run_ns: 20_000_000 * requests, ..RouteMinute::default() };
        let routes = Arc::new(vec![(Box::from("shop <b>"), figures)]);
        store.put(&Minute { at, routes, ..Minute::default() }).expect("room for it");
    }
}

fn complete(server: &Server) -> Response {
    eventually("the plan", || {
        let response = ask(server, "/api/plan");
        (response.status != 503).then_some(response)
    })
}

#[test]
fn plan_of_history_is_a_page_and_part_of_the_overview() {
    let config = "admin = '127.0.0.1:0'\n[insight]\nstore = 'history.sqlite'\n";
    let server = Server::script("<?php echo 1;").config(config).start();
    admin(&server);
    let file = eventually("the file", || {
        let path = server.status()["history_file"].as_str()?.to_owned();
        Path::new(&path).exists().then_some(path)
    });
    plant(Path::new(&file));
    let response = complete(&server);
    let found: Value = serde_json::from_str(&response.text()).expect("JSON");
    assert_eq!(response.status, 200, "{found}");
    assert_eq!(found["plan"]["machines"][0]["routes"][0]["name"], "shop <b>", "{found}");
    assert!(found["plan"]["today"]["carries"].as_f64().is_some_and(|times| times > 0.0));
    let page = ask(&server, "/plan").text();
    assert!(page.contains("<h1>This machine carries "), "{page}");
    assert!(page.contains("shop &lt;b&gt;") && !page.contains("shop <b>"), "{page}");
    assert!(page.contains("forecast: now"), "the chart has a forecast: {page}");
    let overview = ask(&server, "/").text();
    assert!(overview.contains("<a href=\"/plan\">This machine carries "), "{overview}");
    server.stop();
}

#[test]
fn server_without_history_says_how_to_get_a_plan() {
    let server = Server::script("<?php echo 1;").config("admin = '127.0.0.1:0'\n").start();
    let response = complete(&server);
    assert_eq!(response.status, 409, "{}", response.text());
    assert!(response.text().contains("insight.store"), "{}", response.text());
    let page = ask(&server, "/plan").text();
    assert!(page.contains("No capacity plan") && page.contains("insight.store"), "{page}");
    server.stop();
}
