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
    // Generated from the code, and compared with a running server.
    let reference = read("docs/reference/metrics.md");
    let names = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut families = families();
    families.extend(names.map(str::to_owned));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let asked = text.split(|c| !is_word(c)).filter(|word| word.starts_with("samovar_"));
    let is_known = |name: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        families.contains(name) || base.is_some_and(|base| families.contains(base))
    };
    asked.filter(|name| !is_known(name)).map(str::to_owned).collect()
}

/// Values that the query compares the label `kind` of `samovar_events_total` with.
fn kinds_of_events(text: &str) -> BTreeSet<String> {
    let selectors = text.split("samovar_events_total{").skip(1);
    let selectors = selectors.filter_map(|rest| rest.split('}').next());
    let kinds = selectors.filter_map(|inner| inner.split("kind=").nth(1)).map(|kind| {
        let kind = kind.trim_start_matches(['~', '\\', '"']);
        kind.split(['\\', '"']).next().unwrap_or_default().to_owned()
    });
    kinds.flat_map(|kinds| kinds.split('|').map(str::to_owned).collect::<Vec<_>>()).collect()
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
    let notes = dashboard["annotations"]["list"].as_array().expect("annotations");
    let targets = targets.chain(notes);
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
fn alerts_and_annotations_name_existing_kinds_of_events() {
    let all: BTreeSet<_> = EventKind::all().map(|kind| kind.name().to_owned()).collect();
    for (file, least) in [("deploy/grafana/samovar.json", 5), ("deploy/grafana/alerts.yml", 1)] {
        let kinds = kinds_of_events(&read(file));
        assert!(kinds.len() >= least && kinds.is_subset(&all), "{file}: {kinds:?}");
    }
}

/// Panels must not cover each other.
#[test]
fn dashboard_panels_do_not_overlap() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana/samovar.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a number"));
        for cell in (y..y + h).flat_map(|y| (x..x + w).map(move |x| (x, y))) {
            assert!(cell.0 < 24 && taken.insert(cell), "{} at {cell:?}", panel["title"]);
        }
    }
}

/// Evaluates an alert over a series, one value per minute, and returns whether it fires.
fn fires(alert: &str, series: &[(&str, &str)], minute: u32) -> bool {
    let input: Vec<_> = series
        .iter()
        .map(|(series, values)| json!({ "series": series, "values": values }))
        .collect();
    let rules = samovar_testkit::workspace().join("deploy/grafana/alerts.yml");
    let expr = format!("count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})");
    let test = json!({
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "tests": [{ "interval": "1m", "input_series": input, "promql_expr_test": [
            { "expr": expr, "eval_time": format!("{minute}m"), "exp_samples": [
                { "labels": "{}", "value": 1 }
            ] }
        ] }]
    });
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), test.to_string()).expect("our own file");
    let output = Command::new("promtool")
        .args(["test", "rules"])
        .arg(file.path())
        .output()
        .expect("promtool is there (hint: scripts/setup.sh test)");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // Any other failure is a mistake of this test.
    assert!(
        output.status.success() || said.contains("got: nil") || said.contains("got:nil"),
        "{said}"
    );
    output.status.success()
}

/// A series with its values, one per minute.
type Series = (&'static str, &'static str);

/// Alert, minute of its evaluation, series, and whether it fires.
const ALERTS: &[(&str, u32, &[Series], bool)] = &[
    (
        "SamovarMemory",
        10,
        &[("samovar_health_findings{what=\"memory\",severity=\"problem\"}", "1x20")],
        true,
    ),
    (
        "SamovarMemory",
        10,
        &[("samovar_health_findings{what=\"disk\",severity=\"problem\"}", "1x20")],
        false,
    ),
    ("SamovarLeak", 40, &[("samovar_growing_values", "2x60")], true),
    ("SamovarLeak", 40, &[("samovar_growing_values", "0x60")], false),
    (
        "SamovarRecycles",
        100,
        &[
            ("samovar_workers_recycled_total", "0+2x200"),
            ("samovar_workers{state=\"idle\"}", "4x200"),
        ],
        true,
    ),
    (
        "SamovarRecycles",
        100,
        &[
            ("samovar_workers_recycled_total", "0+0.1x200"),
            ("samovar_workers{state=\"idle\"}", "4x200"),
        ],
        false,
    ),
    (
        "SamovarReloadFailed",
        8,
        &[("samovar_events_total{kind=\"reload_failed\"}", "0 0 0 1x9")],
        true,
    ),
    ("SamovarReloadFailed", 8, &[("samovar_events_total{kind=\"reload\"}", "0 0 0 1x9")], false),
    ("SamovarPoolFailed", 5, &[("samovar_pool_failed{pool=\"blog\"}", "1x10")], true),
    ("SamovarPoolFailed", 5, &[("samovar_pool_failed{pool=\"blog\"}", "0x10")], false),
    ("SamovarCertificateExpires", 70, &[("samovar_certificate_days{domain=\"a\"}", "13x80")], true),
    (
        "SamovarCertificateExpires",
        70,
        &[("samovar_certificate_days{domain=\"a\"}", "30x80")],
        false,
    ),
    (
        "SamovarCertificateAlmostExpired",
        5,
        &[("samovar_certificate_days{domain=\"a\"}", "-1x10")],
        true,
    ),
    (
        "SamovarCertificateAlmostExpired",
        5,
        &[("samovar_certificate_days{domain=\"a\"}", "13x10")],
        false,
    ),
    (
        "SamovarCertificateNotIssued",
        70,
        &[("samovar_certificate_failures{domain=\"a\"}", "5x80")],
        true,
    ),
    (
        "SamovarCertificateNotIssued",
        70,
        &[("samovar_certificate_failures{domain=\"a\"}", "1x80")],
        false,
    ),
    ("SamovarOpcacheFull", 10, &[("samovar_opcache_full", "1x20")], true),
    (
        "SamovarOpcacheFull",
        12,
        &[("samovar_opcache_keys", "96x20"), ("samovar_opcache_keys_max", "100x20")],
        true,
    ),
    (
        "SamovarOpcacheFull",
        12,
        &[("samovar_opcache_restarts_total{reason=\"memory\"}", "0 0 0 1x20")],
        true,
    ),
    (
        "SamovarOpcacheFull",
        10,
        &[("samovar_opcache_restarts_total{reason=\"manual\"}", "0+1x20")],
        false,
    ),
    (
        "SamovarOpcacheStringsFull",
        20,
        &[("samovar_opcache_strings_bytes{state=\"free\"}", "100x30")],
        true,
    ),
    (
        "SamovarOpcacheStringsFull",
        20,
        &[("samovar_opcache_strings_bytes{state=\"used\"}", "100x30")],
        false,
    ),
    ("SamovarThrottled", 15, &[("samovar_cpu_throttled_ratio", "0.5x30")], true),
    ("SamovarThrottled", 15, &[("samovar_cpu_throttled_ratio", "0.1x30")], false),
];

#[test]
fn alerts_fire_for_their_condition_only() {
    for (alert, minute, series, is_bad) in ALERTS {
        assert_eq!(fires(alert, series, *minute), *is_bad, "{alert}: {series:?}");
    }
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
