//! Time ranges of the admin listener with planted truth: two releases with known latencies and
//! errors, and a history with known minutes.

use super::{admin, ask};
use samovar_insight::store::{Minute, RouteMinute, Store, StoreLimits, StoredWait};
use samovar_insight::{Histogram, now};
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const MS: u64 = 1_000_000;
/// Number of requests of each release.
const OF_FIRST: u64 = 40;
const OF_SECOND: u64 = 24;
/// Time that a request sleeps in the second release.
const SLOW_MS: u64 = 150;

fn json(server: &Server, path: &str) -> Value {
    let response = ask(server, path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    serde_json::from_str(&response.text()).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the number of requests of the route `/shop` in a range.
fn requests(server: &Server, range: &str) -> u64 {
    let all = json(server, &format!("/api/routes?{range}"));
    shop(&all)["costs"]["requests"].as_u64().unwrap_or(0)
}

fn shop(all: &Value) -> &Value {
    let routes = all["routes"].as_array().expect("routes");
    let found = routes.iter().find(|of| of["route"].as_str().is_some_and(|r| r.ends_with("/shop")));
    found.unwrap_or(&Value::Null)
}

/// A page whose boot reads how long its requests sleep, and which fails if it is asked to.
fn page(release: &Path, boots: bool) -> Server {
    let checkpoint = if boots { "Samovar\\checkpoint();" } else { "" };
    let text = format!(
        "<?php $ms = (int) file_get_contents('{}'); {checkpoint}
        usleep(1000 * $ms);
        if (isset($_GET['fail'])) {{ http_response_code(500); }}
        echo $ms;",
        release.display()
    );
    Server::script(&text).workers(2).config("admin = '127.0.0.1:0'\n").start()
}

/// Seconds after a deploy, the figures before and after it are separate and complete.
#[test]
fn release_is_compared_with_the_time_before_at_once() {
    for boots in [true, false] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let release = folder.path().join("release");
        std::fs::write(&release, "1").expect("a file");
        let server = page(&release, boots);
        for _ in 0..OF_FIRST {
            assert_eq!(server.get("/shop").text(), "1");
        }
        eventually("the first release's requests", || {
            (requests(&server, "range=1h") == OF_FIRST).then_some(())
        });
        std::fs::write(&release, SLOW_MS.to_string()).expect("a file");
        server.reload().expect("a reload");
        // Nothing has happened since.
        assert_eq!(requests(&server, "range=release"), 0);
        for n in 0..OF_SECOND {
            let path = if n % 2 == 0 { "/shop?fail" } else { "/shop" };
            assert_eq!(server.get(path).text(), SLOW_MS.to_string());
        }
        eventually("the second release's requests", || {
            (requests(&server, "range=release") == OF_SECOND).then_some(())
        });
        let all = json(&server, "/api/routes?range=release");
        let (shop, missing) = (shop(&all), &all["missing"]);
        let (now, before, change) = (&shop["costs"], &shop["before"], &shop["change"]);
        assert_eq!(now["errors"], OF_SECOND / 2, "{all}");
        assert_eq!(
            (&before["requests"], &before["errors"]),
            (&OF_FIRST.into(), &0.into()),
            "{all}"
        );
        let slow = |of: &Value| of["wall"]["p50_ns"].as_u64().expect("a number");
        assert!(slow(now) >= SLOW_MS * MS * 99 / 100, "{now}");
        assert!((MS..SLOW_MS * MS).contains(&slow(before)), "{before}");
        assert!(now["waiting_ns"].as_u64().expect("a number") >= OF_SECOND * SLOW_MS * MS);
        for figure in ["p95", "errors"] {
            assert_eq!(change[figure]["significant"], true, "{figure}: {change}");
            assert!(change[figure]["low"].as_f64().expect("a number") > 0.0, "{change}");
        }
        let words = missing.as_str().expect("an hour before is not in memory");
        assert!(words.contains("insight.store"), "{words}");
        let both = OF_FIRST + OF_SECOND;
        assert_eq!(requests(&server, "range=start&compare=none"), both);
        assert_eq!(requests(&server, "range=15m"), both);
        let total = json(&server, "/api/overview?range=release");
        assert_eq!(total["total"]["costs"]["requests"], OF_SECOND);
        for path in ["/", "/routes", "/history", "/requests", "/errors"] {
            for range in ["range=release", "range=6h&compare=day", "range=start"] {
                let page = ask(&server, &format!("{path}?{range}"));
                assert_eq!(page.status, 200, "{path}?{range}");
                assert!(page.text().contains("UTC"), "{path}?{range}");
            }
        }
        let routes = ask(&server, "/routes?range=release").text();
        assert!(routes.contains("since generation 2"), "{routes}");
        server.stop();
    }
}

/// Writes two hours of one route, a minute in five: 100 requests each, those of the second hour 2.5
/// times as slow and with failures.
fn plant(path: &Path, end: u64) {
    let limits = StoreLimits { bytes_max: 64 << 20, days_max: 30 };
    let (mut store, _) = Store::open(path, limits).expect("a history");
    for n in 0..24 {
        let (factor, errors) = if n < 12 { (2, 0) } else { (5, 4) };
        let mut wall = Histogram::default();
        let mut cpu = Histogram::default();
        for nth in 1..=100 {
            wall.add(nth * factor * MS);
            cpu.add(factor * MS);
        }
        let waits = vec![StoredWait { kind: "tcp".into(), peer: "db".into(), times: 100, ns: MS }];
        let peak_bytes_max = factor << 20;
        let minute = RouteMinute {
            requests: 100,
            errors,
            wall,
            cpu,
            waits,
            peak_bytes_max,
            ..RouteMinute::default()
        };
        let at = end - 7_200 + n * 300;
        let routes = Arc::new(vec![(Box::from("index.php /shop"), minute)]);
        store.put(&Minute { at, routes, ..Minute::default() }).expect("room for it");
    }
}

#[test]
fn stored_minutes_are_merged_to_any_range() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("history.sqlite");
    let end = now() / 3_600 * 3_600;
    plant(&path, end);
    let config = format!("admin = '127.0.0.1:0'\n[insight]\nstore = '{}'\n", path.display());
    let server = Server::script("<?php echo 1;").config(&config).start();
    let of = |query: &str| json(&server, &format!("/api/routes?{query}"));
    let (begin, middle) = (end - 7_200, end - 3_600);
    // The last hour of the two, with the hour before it.
    let all = of(&format!("from={middle}&to={end}"));
    let found = shop(&all);
    let is_near = |of: &Value, ms: u64| {
        let ns = of.as_u64().expect("a number");
        assert!(ns.abs_diff(ms * MS) * 100 <= ms * MS, "{ns} ns, not {ms} ms");
    };
    for (of, factor, errors) in [(&found["costs"], 5, 48), (&found["before"], 2, 0)] {
        assert_eq!((&of["requests"], &of["errors"]), (&1_200.into(), &errors.into()), "{all}");
        is_near(&of["wall"]["p50_ns"], 50 * factor);
        is_near(&of["wall"]["p95_ns"], 95 * factor);
        is_near(&of["cpu"]["p50_ns"], factor);
        assert_eq!(of["peak_bytes_max"], factor << 20);
    }
    assert_eq!(found["change"]["p95"]["significant"], true, "{found}");
    assert_eq!(found["change"]["errors"]["significant"], true, "{found}");
    // Both hours: the percentile of the merged histograms, not a mean of percentiles.
    let both = of(&format!("from={begin}&to={end}&compare=none"));
    let costs = &shop(&both)["costs"];
    assert_eq!(costs["requests"], 2_400);
    is_near(&costs["wall"]["p95_ns"], 450);
    assert_eq!((&both["compared_with"], &both["missing"]), (&Value::Null, &Value::Null));
    // Twenty minutes in the middle of an hour: four of them.
    let part = of(&format!("from={}&to={}", middle + 600, middle + 1_800));
    assert_eq!(shop(&part)["costs"]["requests"], 400);
    let route = format!("/api/routes/index.php%20%2Fshop?from={begin}&to={end}");
    let route = json(&server, &route);
    assert_eq!(
        (&route["costs"]["requests"], &route["waits"][0]["ns"]),
        (&2_400.into(), &(24 * MS).into())
    );
    let long = of("range=7d");
    assert_eq!(shop(&long)["costs"]["requests"], 2_400);
    assert!(long["missing"].as_str().is_some_and(|why| why.contains("begins on")), "{long}");
    let history = ask(&server, "/history?range=1d").text();
    assert!(history.contains("index.php ") && history.contains("by kind"), "{history}");
    server.stop();
}

#[test]
fn invalid_range_is_refused() {
    let server = Server::script("<?php echo 1;").config("admin = '127.0.0.1:0'\n").start();
    assert!(admin(&server).port() > 0);
    for query in ["range=%3Cscript%3E", "from=tomorrow", "to=5", "compare=x", "from=0", "range=%ff"]
    {
        for path in ["/", "/routes", "/history", "/api/routes", "/api/overview"] {
            let response = ask(&server, &format!("{path}?{query}"));
            assert_eq!(response.status, 400, "{path}?{query}");
            let is_page = !path.starts_with("/api");
            assert!(!(is_page && response.text().contains("<script>")), "{path}?{query}");
        }
        let live = ask(&server, &format!("/live?of=%2Froutes%3F{}", query.replace('=', "%3D")));
        assert!(!live.text().contains("data: "), "{query}");
    }
    let error: Value = serde_json::from_str(&ask(&server, "/api/routes?range=2h").text()).unwrap();
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("15m")), "{error}");
    server.stop();
}
