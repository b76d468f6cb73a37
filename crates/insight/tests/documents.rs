//! Tests that the guide, the dashboard and the alert rules match the existing metrics and records.

use samovar_insight::export::exposition::{Exposition, Format};
use samovar_insight::export::{events, metrics, ways};
use samovar_insight::pinba::Packet;
use samovar_insight::slow_log::{Form, SlowLog, SlowLogOptions};
use samovar_insight::store::EventKind;
use samovar_insight::{
    Aggregate, Batch, Fate, Finished, Limits, Numbers, Scene, Seen, Sink as _, Tally,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

fn read(path: &str) -> String {
    let path = samovar_testkit::workspace().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns a page with all families, with samples where that is easy.
fn page() -> String {
    let mut batch = Batch::default();
    let numbers = Numbers { status: 200, worker: 1, ..Numbers::default() };
    batch.put(&Finished { numbers, path: "/", ..Finished::default() });
    let mut figures = Aggregate::new(Limits { routes_max: 10, slow_ns: u64::MAX });
    figures.take(&batch, 1);
    let name =
        |field: u8, text: &str| [&[field << 3 | 2, text.len() as u8], text.as_bytes()].concat();
    let packet = [name(1, "fpm1"), name(2, "shop"), name(3, "/old.php")].concat();
    figures.take_packet(&Packet::decode(&packet).expect("a packet"), 1);
    let tally = Tally::new("pinba_out");
    tally.add(Fate::Passed, 1);
    let mut page = Exposition::new(Format::Text);
    metrics(&figures, 0, &mut page);
    ways(&[tally], &mut page);
    events([(EventKind::Start, 1)].into_iter(), &mut page);
    String::from_utf8(page.finish()).expect("text")
}

/// Families that the server adds to the page.
const OF_SERVER: [&str; 10] = [
    "samovar_healthy",
    "samovar_health_findings",
    "samovar_jobs",
    "samovar_jobs_oldest_ready_seconds",
    "samovar_jobs_oldest_ready_max_seconds",
    "samovar_jobs_pushed_total",
    "samovar_jobs_succeeded_total",
    "samovar_jobs_retried_total",
    "samovar_jobs_died_total",
    "samovar_jobs_failures_total",
];

fn families() -> BTreeSet<String> {
    let page = page();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Returns the names in backticks in the first column of the table below a heading.
fn first_column(heading: &str) -> BTreeSet<String> {
    let guide = read("docs/guide/observability.md");
    let (_, below) = guide.split_once(&format!("\n## {heading}\n")).expect("the heading");
    let section = below.split("\n## ").next().expect("there is a first");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// Returns the metrics in a Prometheus query that do not exist.
fn unknown(text: &str) -> BTreeSet<String> {
    let reference = read("docs/reference/metrics.md");
    let of_server = OF_SERVER.into_iter().filter(|name| reference.contains(&format!("`{name}`")));
    let mut families = families();
    families.extend(of_server.map(str::to_owned));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let asked = text.split(|c| !is_word(c)).filter(|word| word.starts_with("samovar_"));
    let is_known = |name: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        families.contains(name) || base.is_some_and(|base| families.contains(base))
    };
    asked.filter(|name| !is_known(name)).map(str::to_owned).collect()
}

fn promtool(arguments: &[&str], input: &str) {
    let mut promtool = Command::new("promtool")
        .args(arguments)
        .current_dir(samovar_testkit::workspace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there (hint: scripts/setup.sh test)");
    let mut stdin = promtool.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn guide_documents_every_metric() {
    assert_eq!(first_column("Prometheus"), families());
}

#[test]
fn guide_documents_every_slow_log_field() {
    let lines = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&lines);
    let write = Box::new(move |line: &str| {
        line.clone_into(&mut into.lock().expect("nobody panicked"));
    });
    let mut log =
        SlowLog::new(SlowLogOptions { form: Form::Json, ..SlowLogOptions::new(0, write) });
    let finished = Finished::default();
    let scene = Some(&Scene::default());
    log.take(&Seen { finished: &finished, route: "r", entries: &[], now: 1, scene });
    let line = lines.lock().expect("nobody panicked").clone();
    let record: Value = serde_json::from_str(&line).expect("JSON");
    let fields: BTreeSet<_> = record.as_object().expect("an object").keys().cloned().collect();
    assert_eq!(first_column("The slow log"), fields);
}

#[test]
fn dashboard_queries_existing_metrics() {
    let text = read("deploy/grafana/samovar.json");
    assert_eq!(unknown(&text), BTreeSet::new());
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    // Prometheus parses each query as part of a rule; rules are YAML, and JSON is valid YAML.
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let rules: Vec<_> = targets
        .map(|target| target["expr"].as_str().expect("a question"))
        .map(|expr| expr.replace("$__rate_interval", "5m").replace("\"$", "\""))
        .enumerate()
        .map(|(n, expr)| json!({ "record": format!("dashboard:{n}"), "expr": expr }))
        .collect();
    assert!(rules.len() >= panels.len() / 2, "{rules:?}");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let groups = json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    std::fs::write(file.path(), groups.to_string()).expect("our own file");
    promtool(&["check", "rules", &file.path().to_string_lossy()], "");
}

#[test]
fn alert_rules_query_existing_metrics() {
    assert_eq!(unknown(&read("deploy/grafana/alerts.yml")), BTreeSet::new());
    promtool(&["check", "rules", "deploy/grafana/alerts.yml"], "");
}

#[test]
fn metric_names_and_units_pass_promtool() {
    promtool(&["check", "metrics"], &page());
}
