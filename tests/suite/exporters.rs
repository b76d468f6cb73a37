//! Exporters of request data: a collector, a Pinba server, the slow log, and other services by
//! trace headers. Also data received from other hosts.

use samovar_testkit::collector::{Collector, CollectorReply};
use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::protoc::{self, METRICS, PINBA, TRACES};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

mod boots;
mod events;
mod floods;
mod prometheus;
mod real;
mod traces;

/// Prints the trace headers and variables that it received.
const PAGE: &str = r#"<?php
    if (isset($_GET['slow'])) { usleep(30_000); }
    if (isset($_GET['status'])) { http_response_code((int) $_GET['status']); }
    $handed = fn ($name) =>
        [$_SERVER["HTTP_$name"] ?? null, $_SERVER[$name] ?? null, getenv($name) ?: null];
    echo json_encode(array_merge($handed('TRACEPARENT'), $handed('TRACESTATE')));"#;

fn page(settings: &str) -> Start {
    Server::script(PAGE).workers(2).config(&format!("admin = '127.0.0.1:0'\n{settings}"))
}

fn ask_admin(server: &Server, request: &Request) -> Response {
    let status = server.status();
    let admin: SocketAddr =
        status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    Client::connect(admin).request(request)
}

fn metrics(server: &Server) -> String {
    ask_admin(server, &Request::get("/metrics")).text()
}

/// Count of a sample; 0 if it does not exist.
fn sample(server: &Server, name: &str) -> u64 {
    let metrics = metrics(server);
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// A UDP port that was free a moment ago.
fn udp_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

/// The first body sent to `path` that contains `wanted`, as text.
fn posted(collector: &Collector, path: &str, message: (&str, &str), wanted: &str) -> String {
    eventually(&format!("{wanted} is sent to {path}"), || {
        let to_path = |head: &str| head.starts_with(&format!("post {path} "));
        let all = collector.posted();
        let bodies = all.iter().filter(|posted| to_path(&posted.head));
        let texts = bodies.map(|posted| protoc::decode(message, &posted.body));
        texts.into_iter().find(|text| text.contains(wanted))
    })
}

#[test]
fn collector_receives_spans_and_metrics() {
    let collector = Collector::start([]);
    let settings = format!(
        "[insight]\nservice = 'shop'\notlp = '{}'\notlp_interval = '50ms'\notlp_metrics_interval = \
         '100ms'\n[insight.otlp_headers]\nauthorization = 'Bearer abc'\n",
        collector.endpoint
    );
    let server = page(&settings).start();
    assert_eq!(server.get("/p/7?secret=1").status, 200);
    let spans = posted(&collector, "/v1/traces", TRACES, "GET index.php /p/{n}");
    for expected in ["\"shop\"", "name: \"queue\"", "name: \"php\"", "\"samovar.request_id\""] {
        assert!(spans.contains(expected), "{expected} is not in\n{spans}");
    }
    assert!(!spans.contains("secret"), "no query strings: {spans}");
    let figures = posted(&collector, "/v1/metrics", METRICS, "samovar_http_requests");
    assert!(figures.contains("index.php /p/{n}"), "{figures}");
    assert!(collector.posted().iter().all(|p| p.head.contains("authorization: bearer abc")));
    server.stop();
}

#[test]
fn collector_receives_exponential_histograms() {
    let collector = Collector::start([]);
    let settings = format!(
        "[insight]\nbuckets = '10ms,100ms'\notlp = '{}'\notlp_metrics_interval = \
         '100ms'\notlp_histograms = 'exponential'\n",
        collector.endpoint
    );
    let server = page(&settings).start();
    assert_eq!(server.get("/p/7?slow").status, 200);
    let figures = posted(&collector, "/v1/metrics", METRICS, "index.php /p/{n}");
    assert!(figures.contains("exponential_histogram {"), "{figures}");
    assert!(!figures.contains("explicit_bounds"), "{figures}");
    let (_, duration) =
        figures.split_once("samovar_http_request_duration_seconds").expect("durations");
    let point = duration.split("  name: ").next().expect("a family");
    let number = |key: &str| -> i32 {
        let found = point.lines().find_map(|line| line.trim().strip_prefix(key));
        found.and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| panic!("{key}: {point}"))
    };
    // The request sleeps for 30 ms.
    let lower = 2_f64.powf(f64::from(number("offset:")) / 2_f64.powi(number("scale:")));
    assert!((0.025..60.0).contains(&lower), "{lower}: {point}");
    // The bounds of /metrics are those of the settings.
    let page = metrics(&server);
    let buckets = page.lines().filter(|l| l.starts_with("samovar_queue_duration_seconds_bucket"));
    let bounds: Vec<_> = buckets.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(bounds, ["0.01", "0.1", "+Inf"]);
    server.stop();
}

#[test]
fn hanging_collector_loses_spans_only() {
    let collector = Collector::start(vec![CollectorReply::Hang; 1_000]);
    let settings = format!(
        "[insight]\notlp = '{}'\notlp_interval = '50ms'\notlp_bytes_max = '64K'\n",
        collector.endpoint
    );
    let server = page(&settings).start();
    let mut client = server.client();
    for n in 0..2_000 {
        assert_eq!(client.request(&Request::get(&format!("/{n}"))).status, 200);
    }
    eventually("the oldest spans make room", || {
        let lost =
            sample(&server, "samovar_insight_records_total{way=\"otlp_spans\",fate=\"lost\"}");
        (lost > 0).then_some(())
    });
    assert_eq!(sample(&server, "samovar_insight_requests_dropped_total"), 0);
    // The stop must end within the watchdog's time.
    server.stop();
}

#[test]
fn invalid_exporter_settings_are_refused_at_start() {
    for (settings, expected) in [
        ("[insight]\notlp = '127.0.0.1:4318'\n", "insight.otlp"),
        (
            "[insight]\notlp = 'https://127.0.0.1:1'\notlp_ca_file = '/dev/null'\n",
            "no trusted certificates",
        ),
        ("[insight]\ntrace_share = '101%'\n", "insight.trace_share"),
        ("[insight]\npinba = 'nobody'\n", "insight.pinba"),
    ] {
        let (code, said) = page(settings).refuse();
        assert!(code.is_some_and(|code| code != 0) && said.contains(expected), "{said}");
    }
}

#[test]
fn pinba_server_receives_each_php_request() {
    let pinba = UdpSocket::bind("127.0.0.1:0").expect("a port");
    pinba.set_read_timeout(Some(samovar_testkit::WATCHDOG)).expect("a time-out");
    let address = pinba.local_addr().expect("an address");
    let server = page(&format!("[insight]\nservice = 'shop'\npinba = '{address}'\n")).start();
    assert_eq!(server.get("/p/7?secret=1").status, 200);
    let mut buffer = vec![0; 65_536];
    let (length, _) = pinba.recv_from(&mut buffer).expect("a packet");
    let packet = protoc::decode(PINBA, &buffer[..length]);
    for expected in ["server_name: \"shop\"", "script_name: \"index.php /p/{n}\"", "status: 200"] {
        assert!(packet.contains(expected), "{expected} is not in\n{packet}");
    }
    server.stop();
}

#[test]
fn pinba_packets_of_other_hosts_are_recorded_with_secrets_redacted() {
    let port = udp_port();
    let settings = format!("[insight]\npinba_listen = '127.0.0.1:{port}'\nredact = ['iban']\n");
    let server = page(&settings).start();
    let packet = protoc::encode(
        PINBA,
        r#"hostname: "fpm1" server_name: "shop" script_name: "/old.php" request_count: 1
           document_size: 10 memory_peak: 1000 request_time: 0.5 ru_utime: 0.1 ru_stime: 0.1
           status: 200 timer_hit_count: 1 timer_value: 0.2 timer_tag_count: 1
           timer_tag_name: 0 timer_tag_value: 1 dictionary: "their_IBAN" dictionary: "DE00""#,
    );
    let fpm = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let route = eventually("their route is here", || {
        // A packet may be lost.
        fpm.send_to(&packet, ("127.0.0.1", port)).expect("a socket that sends");
        let response = ask_admin(&server, &Request::get("/api/routes/%2Fold.php"));
        (response.status == 200).then(|| response.text())
    });
    assert!(route.contains("(redacted)") && !route.contains("DE00"), "{route}");
    assert!(
        metrics(&server).contains("samovar_source_requests_total{host=\"fpm1\",server=\"shop\"}")
    );
    server.stop();
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn slow_request_is_logged_and_log_reopens_after_rotation() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("slow.log");
    let settings = format!(
        "[insight]\nslow_request = '25ms'\nslow_log = '{}'\nslow_log_format = 'json'\n",
        log.display()
    );
    let server = page(&settings).start();
    assert_eq!(server.get("/quick").status, 200);
    assert_eq!(server.get("/p/1?slow=secret").status, 200);
    let is_slow = |line: &Value| line["path"] == "/p/1";
    let found = |path: &Path| lines(path).into_iter().find(is_slow);
    let line = eventually("the slow request", || found(&log));
    assert_eq!((&line["route"], &line["status"]), (&"index.php /p/{n}".into(), &200.into()));
    assert!(line["wall_ms"].as_f64().is_some_and(|ms| ms >= 25.0), "{line}");
    assert!(!line.to_string().contains("secret"), "no query strings: {line}");
    let moved = folder.path().join("slow.log.1");
    std::fs::rename(&log, &moved).expect("a file that can be moved");
    server.ask_to_reopen();
    eventually("the log has followed", || {
        assert_eq!(server.get("/p/1?slow").status, 200);
        found(&log).map(drop)
    });
    server.stop();
}

#[test]
fn slow_log_is_written_as_text_to_stdout() {
    let server = page("[insight]\nslow_request = '25ms'\nslow_log = '-'\n").start();
    assert_eq!(server.get("/p/1?slow").status, 200);
    eventually("the slow request", || {
        let said = server.stdout();
        let line = said.lines().find(|line| line.contains("GET /p/1"))?;
        (line.starts_with("slow request: ") && line.contains("route=\"index.php /p/{n}\""))
            .then_some(())
    });
    server.stop();
}

#[test]
fn slow_log_and_history_files_are_not_served() {
    let site = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| site.path().join(name);
    std::fs::write(at("index.php"), "<?php echo 'the script';").expect("a file");
    std::fs::write(at("seen.txt"), "a file").expect("a file");
    let (log, store) = (at("slow.txt"), at("history.sqlite"));
    let settings = format!("slow_log = '{}'\nstore = '{}'\n", log.display(), store.display());
    let settings = format!("[insight]\nslow_request = '1ms'\n{settings}");
    let server = Server::at(site.path()).config(&settings).start();
    eventually("the history is there", || store.exists().then_some(()));
    assert_eq!(server.get("/seen.txt").text(), "a file");
    for name in [
        "slow.txt",
        "history.sqlite",
        "history.sqlite-wal",
        "history.sqlite-shm",
        "history.sqlite.profiles",
    ] {
        if !at(name).exists() {
            std::fs::write(at(name), "ours").expect("a file");
        }
        assert_eq!(server.get(&format!("/{name}")).text(), "the script", "{name}");
    }
    server.stop();
}
