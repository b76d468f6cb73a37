//! Spans and metrics sent to OpenTelemetry's own collector, which is built from its Go modules
//! (scripts/collector.sh) without code of this project.

use super::{Request, page};
use samovar_testkit::eventually;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Collector {
    process: Child,
    folder: tempfile::TempDir,
    endpoint: String,
}

impl Collector {
    /// Starts the collector that `COLLECTOR_BIN` names.
    fn start() -> Collector {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = samovar_testkit::port().port();
        let file = |name: &str| folder.path().join(name);
        let pipeline =
            |name: &str| format!("    {name}: {{receivers: [otlp], exporters: [file/{name}]}}\n");
        let exporter = |name: &str| {
            format!("  file/{name}: {{path: '{}', flush_interval: 50ms}}\n", file(name).display())
        };
        let settings = format!(
            "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: '127.0.0.1:{port}'}}\n\
             exporters:\n{}{}service:\n  \
             telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  \
             pipelines:\n{}{}",
            exporter("traces"),
            exporter("metrics"),
            pipeline("traces"),
            pipeline("metrics"),
        );
        std::fs::write(file("settings.yaml"), settings).expect("a file");
        let process = Collector::run(folder.path());
        Collector { process, folder, endpoint: format!("http://127.0.0.1:{port}") }
    }

    fn run(folder: &Path) -> Child {
        let binary = std::env::var_os("COLLECTOR_BIN");
        Command::new(binary.expect("COLLECTOR_BIN names what scripts/collector.sh has built"))
            .arg(format!("--config=file:{}", folder.join("settings.yaml").display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a collector")
    }

    /// All data that it has received so far, one value per batch.
    fn taken(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn each<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten()
}

fn spans(taken: &[Value]) -> Vec<Value> {
    let resources = taken.iter().flat_map(|batch| each(batch, "resourceSpans"));
    let scopes = resources.flat_map(|resource| each(resource, "scopeSpans"));
    scopes.flat_map(|scope| each(scope, "spans")).cloned().collect()
}

fn attribute(span: &Value, key: &str) -> Option<String> {
    let value = &each(span, "attributes").find(|a| a["key"] == key)?["value"];
    let text = value["stringValue"].as_str().or_else(|| value["intValue"].as_str());
    text.map(str::to_owned)
}

const PAGE_OF_THREE: &str = r"<?php
    $timer = Samovar\timer(['group' => 'render']);
    $timer->start();
    usleep(20_000);
    $timer->stop();
    echo 'done';";

#[test]
#[ignore = "needs OpenTelemetry's collector: make collector"]
fn opentelemetry_collector_accepts_spans_and_metrics() {
    let collector = Collector::start();
    let server = samovar_testkit::Server::script(PAGE_OF_THREE).workers(2).config(&format!(
        "admin = '127.0.0.1:0'\n[insight]\nservice = 'shop'\notlp = '{}'\notlp_interval = '50ms'\n\
         otlp_metrics_interval = '200ms'\n\
         trace_from = 'all'\n",
        collector.endpoint
    ));
    let server = server.start();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request =
        Request::get("/p/7?secret=1").header("traceparent", &format!("00-{trace}-{parent}-01"));
    assert_eq!(server.client().request(&request).status, 200);
    let of_trace = || -> Vec<Value> {
        spans(&collector.taken("traces")).into_iter().filter(|s| s["traceId"] == trace).collect()
    };
    let all = eventually("the collector has the request's spans", || {
        Some(of_trace()).filter(|all| all.len() >= 6)
    });
    let named = |name: &str| {
        all.iter()
            .find(|span| span["name"] == name)
            .unwrap_or_else(|| panic!("no {name} in {all:#?}"))
    };
    let (request, php) = (named("GET index.php /p/{n}"), named("php"));
    assert_eq!(
        (request["parentSpanId"].as_str(), request["kind"].as_i64()),
        (Some(parent), Some(2))
    );
    assert_eq!(attribute(request, "http.response.status_code").as_deref(), Some("200"));
    assert_eq!(attribute(request, "url.path").as_deref(), Some("/p/7"));
    let below = |span: &Value, above: &Value| {
        assert_eq!(span["parentSpanId"], above["spanId"], "{span:#?}");
    };
    below(named("queue"), request);
    below(php, request);
    for name in ["boot", "wait sleep", "render"] {
        let is_of_php =
            |span: &&Value| span["name"] == name && span["parentSpanId"] == php["spanId"];
        assert!(all.iter().any(|span| is_of_php(&span)), "{name}: {all:#?}");
    }
    let ns = |span: &Value, key: &str| {
        span[key].as_str().and_then(|n| n.parse::<u64>().ok()).expect("a time")
    };
    let slept = named("wait sleep");
    assert!(
        ns(slept, "endTimeUnixNano") - ns(slept, "startTimeUnixNano") >= 20_000_000,
        "{slept:#?}"
    );
    assert!(!format!("{all:?}").contains("secret"), "no query strings");
    // Metrics: a counter with the route, a histogram with the same number of requests, the
    // resource.
    let figures = eventually("the collector has figures", || {
        let taken = collector.taken("metrics");
        taken.into_iter().rev().find(|batch| batch.to_string().contains("index.php /p/{n}"))
    });
    let resource = &figures["resourceMetrics"][0];
    assert!(resource["resource"].to_string().contains("\"shop\""), "{resource:#}");
    let metrics: Vec<_> =
        each(resource, "scopeMetrics").flat_map(|scope| each(scope, "metrics")).collect();
    let metric = |name: &str| *metrics.iter().find(|m| m["name"] == name).expect("a family");
    let requests = &metric("samovar_http_requests")["sum"];
    assert_eq!(requests["isMonotonic"], true);
    assert_eq!(requests["aggregationTemporality"].as_i64(), Some(2), "cumulative");
    let duration = &metric("samovar_http_request_duration_seconds")["histogram"]["dataPoints"][0];
    assert_eq!(duration["count"].as_str(), Some("1"), "{duration:#}");
    server.stop();
}

/// Number of requests whose durations are compared.
const REQUESTS: u32 = 20;

#[test]
#[ignore = "needs OpenTelemetry's collector: make collector"]
fn opentelemetry_collector_accepts_exponential_histograms() {
    let collector = Collector::start();
    let server = samovar_testkit::Server::script("<?php usleep(20_000); echo 'done';");
    let server = server.config(&format!(
        "admin = '127.0.0.1:0'\n[insight]\notlp = '{}'\notlp_metrics_interval = '200ms'\n\
         otlp_histograms = 'exponential'\n",
        collector.endpoint
    ));
    let server = server.start();
    (0..REQUESTS).for_each(|_| assert_eq!(server.get("/sleep").status, 200));
    let count = REQUESTS.to_string();
    let point = eventually("the collector has all requests", || {
        let taken = collector.taken("metrics");
        let resources = taken.iter().rev().flat_map(|batch| each(batch, "resourceMetrics"));
        let metrics = resources
            .flat_map(|resource| each(resource, "scopeMetrics"))
            .flat_map(|scope| each(scope, "metrics"));
        let name = "samovar_http_request_duration_seconds";
        let mut points = metrics
            .filter(|metric| metric["name"] == name)
            .flat_map(|metric| each(&metric["exponentialHistogram"], "dataPoints"));
        points.find(|point| point["count"] == count).cloned()
    });
    // Buckets as the protocol defines them: number i begins at base ^ (offset + i).
    let scale = point["scale"].as_i64().expect("a scale");
    let base = 2_f64.powf(2_f64.powi(-i32::try_from(scale).expect("small")));
    let positive = &point["positive"];
    let offset = positive["offset"].as_i64().expect("an offset");
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let counts: Vec<u64> = each(positive, "bucketCounts").filter_map(number).collect();
    assert_eq!(counts.iter().sum::<u64>(), u64::from(REQUESTS), "{point:#}");
    let first = counts.iter().position(|count| *count > 0).expect("requests");
    let exponent = offset + i64::try_from(first).expect("small");
    let begin_s = base.powi(i32::try_from(exponent).expect("small"));
    assert!(base < 1.1 && begin_s * base >= 0.02, "{begin_s} × {base}: {point:#}");
    assert!(point["sum"].as_f64() >= Some(0.02 * f64::from(REQUESTS)), "{point:#}");
    server.stop();
}

#[test]
#[ignore = "needs OpenTelemetry's collector: make collector"]
fn restarted_opentelemetry_collector_receives_buffered_spans() {
    let mut collector = Collector::start();
    let endpoint = collector.endpoint.clone();
    let server = page(&format!("[insight]\notlp = '{endpoint}'\notlp_interval = '50ms'\n")).start();
    let has = |collector: &Collector, name: &str| {
        spans(&collector.taken("traces")).iter().any(|span| span["name"] == name).then_some(())
    };
    assert_eq!(server.get("/before").status, 200);
    eventually("it has the first", || has(&collector, "GET index.php /before"));
    collector.process.kill().expect("it ran");
    collector.process.wait().expect("it ends");
    assert_eq!(server.get("/meanwhile").status, 200);
    server.wait_for_log("is unavailable");
    collector.process = Collector::run(collector.folder.path());
    eventually("what waited has come", || has(&collector, "GET index.php /meanwhile"));
    server.stop();
}
