//! Capacity: the use of cores, and the estimate of further requests, of a server whose requests use
//! a known CPU time.

use crate::request_accounting::bench::{MODELS, ask, serving, started};
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::process::Command;

/// Uses 4 ms of CPU time.
const WORK: &str = r"
    $used = function () {
        $all = getrusage();
        return 1_000_000 * ($all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'])
            + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec'];
    };
    for ($end = $used() + 4_000; $used() < $end;) {}
    echo 'done';
";
const WORK_US: f64 = 4_000.0;
/// Requests that are enough for an estimate.
const ENOUGH: u32 = 120;

fn capacity(server: &Server) -> Value {
    server.status()["capacity"].clone()
}

fn text(server: &Server) -> String {
    let mut command = Command::new(binary());
    let output = command.args(["status", "--control"]).arg(server.control()).output();
    String::from_utf8_lossy(&output.expect("the binary runs").stdout).into_owned()
}

#[test]
fn estimate_follows_cpu_time_of_requests() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(2), model);
        for _ in 0..ENOUGH {
            assert_eq!(server.get("/").status, 200, "{model}");
        }
        let found = eventually("the estimate", || {
            let found = capacity(&server);
            found["requests_more_per_second"].is_number().then_some(found)
        });
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found:#}"));
        let cost = number("cpu_us_per_request");
        assert!((WORK_US..5.0 * WORK_US).contains(&cost), "{model}: {found:#}");
        let (cores, free) = (number("cores"), number("cores_free"));
        assert!(cores > 0.0 && free <= cores, "{model}: {found:#}");
        assert!(number("requests_more_per_second") <= cores * 1e6 / cost, "{model}: {found:#}");
        assert!(number("worker_bytes") > 0.0, "{model}: {found:#}");
        let status = text(&server);
        assert!(status.contains(" more requests/s of this mix; "), "{model}: {status}");
        let metrics = ask(&server, "/metrics");
        for family in ["samovar_cores ", "samovar_capacity_requests_per_second{"] {
            let is_there = metrics.lines().any(|line| line.starts_with(family));
            assert!(is_there, "{model}: {family}");
        }
        let page = ask(&server, "/");
        assert!(page.contains(" more requests/s of this mix; "), "{model}: {page}");
        server.stop();
    }
}

#[test]
fn own_use_of_cores_is_measured() {
    let server = started(serving("script", WORK).workers(1), "script");
    // About half a second of CPU time.
    for _ in 0..ENOUGH {
        assert_eq!(server.get("/").status, 200);
    }
    eventually("its share", || {
        let found = capacity(&server);
        let used = found["cores_used"].as_f64()? * found["seconds"].as_f64()?;
        (used >= 0.9 * WORK_US * f64::from(ENOUGH) / 1e6).then_some(())
    });
    server.stop();
}

#[test]
fn server_with_little_traffic_has_unknown_capacity() {
    let server = started(serving("script", "echo 1;").workers(1), "script");
    server.get("/");
    eventually("the reason", || {
        let found = capacity(&server);
        assert!(found["requests_more_per_second"].is_null(), "{found:#}");
        found["unknown"].as_str()?.contains("fewer than 100 requests").then_some(())
    });
    let status = text(&server);
    assert!(status.contains("\ncapacity unknown: fewer than 100 requests"), "{status}");
    server.stop();
}
