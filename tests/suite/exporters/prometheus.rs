//! A real Prometheus scrapes a running server and computes request latencies.

use super::{ask_admin, metrics, page};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(folder: &Path, target: &str) -> Prometheus {
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: samovar\n    \
             static_configs: [{{targets: ['{target}']}}]\n"
        );
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).expect("our own file");
        let address = samovar_testkit::port();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is there (hint: scripts/setup.sh test)");
        Prometheus { process, address }
    }

    /// The first value in the result of a query.
    fn ask(&self, question: &str) -> Option<f64> {
        std::net::TcpStream::connect(self.address).ok()?;
        let encoded = question.bytes().fold(String::new(), |text, b| format!("{text}%{b:02X}"));
        let request = Request::get(&format!("/api/v1/query?query={encoded}"));
        let response = Client::connect(self.address).request(&request);
        let said: Value = serde_json::from_str(&response.text()).ok()?;
        said["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn target(server: &Server) -> String {
    server.status()["admin"][0].as_str().expect("an address").to_owned()
}

#[test]
fn prometheus_scrapes_and_computes_p99() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = page("").start();
    let prometheus = Prometheus::start(folder.path(), &target(&server));
    let question = "histogram_quantile(0.99, sum by (le) \
                    (rate(samovar_http_request_duration_seconds_bucket{route=~\".*shop.*\"}[1m])))";
    let p99 = eventually("Prometheus knows the 99th percentile", || {
        assert_eq!(server.get("/shop/1?slow").status, 200);
        prometheus.ask(question).filter(|p99| p99.is_finite() && *p99 > 0.0)
    });
    // Each request sleeps for 30 ms, and the machine may be busy, so it is in no lower bucket.
    assert!(p99 > 0.025, "{p99}");
    let workers = prometheus.ask("sum(samovar_workers{state=~\"idle|busy\"})");
    assert!(workers.is_some_and(|n| (n - 2.0).abs() < 0.5), "{workers:?}");
    drop(prometheus);
    server.stop();
}

#[test]
fn promtool_accepts_metrics_page() {
    let server = page("").start();
    assert_eq!(server.get("/shop/1").status, 200);
    // Memory is measured only after a first scrape.
    let page = eventually("the page has all there is", || {
        let page = metrics(&server);
        (page.contains("samovar_memory_private_bytes{of=\"workers\"}") && page.contains("shop"))
            .then_some(page)
    });
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there (hint: scripts/setup.sh test)");
    promtool.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{wrong}");
    for name in ["samovar_server_cpu_seconds_total", "samovar_memory_shared_bytes{of=\"server\"}"] {
        let line = page.lines().find(|line| line.starts_with(name)).expect(name);
        assert!(
            line.rsplit(' ').next().is_some_and(|v| v.parse::<f64>().is_ok_and(|v| v > 0.0)),
            "{line}"
        );
    }
    assert_eq!(ask_admin(&server, &Request::get("/api/status")).status, 200);
    server.stop();
}
