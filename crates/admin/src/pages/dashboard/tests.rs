mod queues;
use super::page_of;
use super::view::{NOT_MEASURED, View};
use crate::host::Host;
use crate::query::{Query, link};
use crate::range::Range;
use crate::sources::Sources;
use samovar_insight::export::exposition::Exposition;
use samovar_insight::store::{EventKind, Minute, RouteMinute, Store, StoreLimits};
use samovar_insight::{
    Batch, Entry, ErrorKind, Finished, HistoryOptions, Insight, Limits, Model, Numbers,
    ReportedError, Statement, StatementKind, Wait, WaitKind, intake,
};
use samovar_profile::loads::Explained;
use samovar_profile::{At, Options, Profiles, Sample};
use samovar_spy::profile::Weight;
use samovar_spy::{Activity, Frame, Function};
use samovar_wire::{CanaryStatus, DeadJob, QueueMinute, QueueResponse, Status};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;
const EVIL: &str = "\"'><script>alert(1)</script>";
const LINK: &str = "javascript:alert(1)";

/// A server with this status.
struct Says(Value, Option<Arc<Profiles>>);

impl Host for Says {
    fn status(&self) -> Status {
        serde_json::from_value(self.0.clone()).expect("a status")
    }

    fn ready(&self, _: Option<&str>) -> Result<String, String> {
        let why = self.0["not_ready"].as_str();
        why.map_or_else(|| Ok("ready".to_owned()), |why| Err(why.to_owned()))
    }

    fn metrics(&self, _page: &mut Exposition) {}

    fn dead_jobs(&self, _: &str, _: i64, _: usize) -> QueueResponse {
        let Some(text) = self.0["version"].as_str().map(str::to_owned) else {
            return QueueResponse::default();
        };
        let job = DeadJob {
            id: 7,
            key: Some(text.clone()),
            class: text.clone(),
            place: text.clone(),
            error: text.clone(),
            payload: text,
            ..DeadJob::default()
        };
        QueueResponse { jobs: vec![job], next: 7, ..QueueResponse::default() }
    }

    fn queue_minutes(&self) -> Vec<Arc<QueueMinute>> {
        queues::minutes()
    }

    fn boot(&self, pool: Option<&str>) -> Option<Explained> {
        let of = pool.map_or("explained".to_owned(), |pool| format!("explained {pool}"));
        serde_json::from_value(self.0.get(of)?.clone()).ok()
    }

    fn canary(&self) -> Option<CanaryStatus> {
        serde_json::from_value(self.0.get("canary_details")?.clone()).ok()
    }

    fn profiles(&self) -> Option<Arc<Profiles>> {
        self.1.clone()
    }
}

/// Returns sources with these figures, recorded now.
fn sources(status: Value, batch: &Batch, routes_max: usize) -> Sources {
    let (front, outlet) = intake();
    let limits = Limits { routes_max, slow_ns: 100 * MS };
    let insight = Insight::start(outlet, limits, None).expect("a thread");
    // Figures of the current second are not displayed yet.
    insight.figures().take(batch, samovar_insight::now() - 2);
    insight.event(EventKind::Unknown, EVIL.to_owned());
    drop(front);
    insight.finish();
    Sources::new(Box::new(Says(status, None)), Some(Arc::new(insight)))
}

fn show(sources: &Sources, address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let page = page_of(path).unwrap_or_else(|| panic!("{path}"));
    let query = Query::new(query);
    let now = samovar_insight::now();
    let range = Range::of(&query, now).expect("a range");
    let view = View::new(sources, &query, now, range);
    let shown = (page.show)(&view);
    super::range_links::keep(&page.text(&shown, address, now), &range.pairs(), super::is_page)
}

fn status(text: &str) -> Value {
    let finding =
        json!({"kind": text, "action": text, "what": text, "where": text, "advice": text});
    json!({
        "version": text, "listen": [text], "not_ready": text,
        "workers": [{"pid": 1, "state": text, "model": text}],
        "consoles": [{"name": text, "state": text}],
        "schedules": [{
            "name": text, "times": text, "timezone": text, "work": text, "state": text,
            "next": text, "result": text, "detail": text, "output": text,
        }],
        "queues": [{"name": text, "ready": 2, "dead": 1, "failures": {text: 3}}],
        "upstreams": [{
            "address": text, "last_trouble": {"reason": text, "words": text},
            "addresses": [{"address": text, "last_trouble": {"reason": text, "words": text}}],
        }],
        "canary_details": {
            "reason": text, "release": text, "pool": text, "evidence_figure": text,
            "evidence_route": text, "routes": [{"route": text, "requests": [1, 2]}],
            "new_errors": [{"trace": text, "route": text, "count": [0, 3]}],
        },
        "growth": [{"name": text, "unit": text, "place": text, "grown": 3, "requests": 12}],
        "explained": {
            "boot": {
                "parts": [{"name": text}], "folders": [{"folder": text}],
                "files": [{"file": text, "class": text}, {"file": text, "place": text}],
            },
            "functions": [{"function": text, "file": text}],
            "lazy": {
                "requests": 1, "files": [{"file": text, "class": text, "path": text}],
                "advice": {"setting": text, "classes": text, "files": [text], "uncached": [text]},
            },
        },
        "image": {"mode": text, "refork_reasons": {text: 1}, "findings": [finding]},
    })
}

fn report(entries: &[Entry]) -> Vec<u8> {
    entries.iter().flat_map(Entry::encode).collect()
}

fn hostile(text: &str) -> Batch {
    let report = report(&[
        Entry::Route(text),
        Entry::Wait(Wait { kind: WaitKind::Tcp, peer: text, times: 2, ns: 5 * MS }),
        Entry::Timer { hits: 1, wall_ns: MS, user_ns: 1, system_ns: 1, tags: vec![(text, text)] },
        Entry::Tag(text, text),
        Entry::Place(text),
        Entry::Error(ReportedError {
            kind: ErrorKind::Uncaught,
            class: text,
            file: text,
            line: 3,
            message: text.into(),
            stack: text,
        }),
        Entry::Error(ReportedError {
            kind: ErrorKind::Previous,
            class: text,
            file: text,
            line: 4,
            message: text.into(),
            stack: "",
        }),
        Entry::Statement(Statement {
            kind: StatementKind::Sql,
            text,
            calls: 20,
            ns: 5 * MS,
            rows: 3,
            place_calls: 20,
            file: text,
            line: 7,
        }),
    ]);
    let numbers =
        Numbers { status: 500, worker: 7, model: Model::Script, wall_ns: MS, ..Numbers::default() };
    let mut batch = Batch::default();
    let finished = Finished {
        numbers,
        method: text,
        path: text,
        script: text,
        id: text,
        pool: text,
        report: &report,
    };
    batch.put(&finished);
    batch
}

#[test]
fn text_from_outside_is_escaped_on_every_page() {
    for text in [EVIL, LINK] {
        let sources = sources(status(text), &hostile(text), 10);
        let of_route = link("/route", &[("name", text)]);
        let of_request = link("/request", &[("id", text)]);
        let found = link("/routes", &[("find", text), ("sort", text)]);
        let of_history = link("/history", &[("route", text)]);
        let of_queue = link("/queue", &[("name", text)]);
        let group = sources.insight.as_ref().unwrap().figures().errors().latest()[0].id;
        let of_group = format!("/errors?group={group:016x}");
        let addresses = [
            "/",
            "/errors",
            &of_group,
            "/routes",
            "/requests",
            "/workers",
            "/releases",
            "/image",
            "/boot",
            "/consoles",
            "/queues",
            "/schedules",
            &of_queue,
            "/history",
            &of_route,
            &of_request,
            &found,
            &of_history,
        ];
        for address in addresses {
            let page = show(&sources, address);
            for forbidden in ["<script>alert", "href=\"javascript:", "src=\"javascript:", "\"'>"] {
                assert!(!page.contains(forbidden), "{address} has {forbidden}:\n{page}");
            }
            // There is exactly one script: ours, from a file.
            assert_eq!(page.matches("<script").count(), 1, "{address}");
            assert!(!page.contains(" style=") && !page.contains(" onclick="), "{address}");
        }
        let request = show(&sources, &of_request);
        assert!(request.contains("500") && request.contains("alert(1)"), "{request}");
        assert!(request.contains("Caused by"), "{request}");
        assert!(show(&sources, "/").contains(&of_route), "links lead to the route");
    }
}

#[test]
fn pages_without_figures_explain_why() {
    let nobody = sources(json!({}), &Batch::default(), 10);
    for (address, expected) in [
        ("/", "No requests in this range."),
        ("/routes", "No requests in this range."),
        ("/requests", "No slow or failed requests yet."),
        ("/errors", "No errors in this range."),
        ("/errors?group=1f", "No such error"),
        ("/route?name=x", "No such route"),
        ("/request?id=x", "No such request"),
        ("/workers", "No workers."),
        ("/releases", "No canary since the start"),
        ("/plan", "Reading the history."),
        ("/image", "No checkpoint: each request runs"),
        ("/consoles", "No console workers."),
        ("/queues", "No queues."),
        ("/schedules", "No schedules."),
        ("/queue?name=x", "No such queue"),
        ("/history", "No requests in this range."),
        ("/history?from=2026-01-01", "Set insight.store to keep older ones."),
        ("/profile", "profile.hertz is 0"),
        ("/calls", "No requests are traced"),
        ("/boot", "No boot to show"),
    ] {
        let page = show(&nobody, address);
        assert!(page.contains(expected), "{address}:\n{page}");
    }
    let unmeasured = Sources::new(Box::new(Says(json!({}), None)), None);
    for address in ["/", "/routes", "/requests", "/history", "/route?name=x", "/request?id=x"] {
        assert!(show(&unmeasured, address).contains(NOT_MEASURED), "{address}");
    }
}

#[test]
fn schedules_have_times_and_results() {
    let now_ms = samovar_insight::now() * 1_000;
    let report = json!({ "schedules": [
        {
            "name": "report", "times": "30 2 * * *", "timezone": "UTC",
            "work": "console app:report",
            "state": "waiting", "next_ms": now_ms + 7_205_000, "started_ms": now_ms - 65_000,
            "duration_ms": 1_500, "result": "timed_out", "detail": "its timeout is over",
            "output": "half of it", "runs": { "succeeded": 3, "timed_out": 1, "skipped": 2 },
        },
        { "name": "feeds", "times": "every 30s", "work": "queue feeds", "state": "running",
          "running_ms": 20 },
    ] });
    let page = show(&sources(report, &Batch::default(), 10), "/schedules");
    for expected in [
        "report",
        "30 2 * * *",
        "console app:report",
        "in 2 h",
        "1.5 s",
        "timed out: its timeout is over",
        "half of it",
        "/queue?name=feeds",
        "20 ms so far",
    ] {
        assert!(page.contains(expected), "{expected}:\n{page}");
    }
}

#[test]
fn overview_heading_reports_health() {
    let batch = Batch::default();
    let idle = json!({"workers": [{"state": "idle"}]});
    let page = show(&sources(idle, &batch, 1), "/");
    assert!(page.contains("<h1 class=\"well\">Healthy</h1>"), "{page}");
    let page = show(&sources(json!({"not_ready": "no worker is up"}), &batch, 1), "/");
    assert!(page.contains(">Not ready for requests: no worker is up</a></h1>"), "{page}");
    let failing = json!({
        "workers": [{"state": "idle"}], "recent": {"requests": 7, "errors": 7},
        "slow_log_lines_dropped_total": 3,
    });
    let page = show(&sources(failing, &batch, 1), "/");
    assert!(page.contains(">100 % of the last minute's requests failed</a></h1>"), "{page}");
    assert!(page.contains("3 log lines were dropped"), "{page}");
    let warned = json!({"workers": [{"state": "idle"}], "slow_log_lines_dropped_total": 3});
    let page = show(&sources(warned, &batch, 1), "/");
    assert!(page.contains("<h1 class=\"well\">Healthy</h1>"), "{page}");
    assert!(page.contains("3 log lines were dropped"), "{page}");
}

/// Requests to routes `r0` …; routes with higher numbers are slower and have fewer requests.
fn many(routes: u64) -> Batch {
    let mut batch = Batch::default();
    for n in 0..routes {
        let name = format!("r{n}");
        let report = report(&[Entry::Route(&name)]);
        let numbers = Numbers {
            status: 200,
            worker: 7,
            // The last one is in another bucket than those before it.
            wall_ns: (n + 1 + routes * u64::from(n + 1 == routes)) * 10_000,
            cpu_ns: 1_000,
            ..Numbers::default()
        };
        for _ in 0..=(routes - n) / 400 {
            batch.put(&Finished { numbers, id: "x", report: &report, ..Finished::default() });
        }
    }
    batch
}

fn rows(page: &str) -> Vec<String> {
    let each = page.split("<a class=\"name\" href=\"/route?name=").skip(1);
    each.map(|rest| rest.split(['"', '&']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn routes_page_shows_hundred_routes_per_page() {
    let sources = sources(json!({}), &many(1_000), 1_000);
    let page = show(&sources, "/routes");
    assert_eq!(rows(&page).len(), 100);
    assert!(page.contains("1 to 100 of 1000. ") && page.contains(">Next</a>"), "{page}");
    let last = show(&sources, "/routes?skip=900");
    assert_eq!(rows(&last).len(), 100);
    assert!(last.contains("901 to 1000 of 1000. ") && !last.contains(">Next</a>"));
    for (address, bytes_max) in [("/routes", 120_000), ("/", 260_000)] {
        let bytes = show(&sources, address).len();
        assert!(bytes < bytes_max, "{address} has {bytes} bytes");
    }
}

#[test]
fn routes_page_sorts_by_selected_column() {
    let sources = sources(json!({}), &many(900), 1_000);
    for (query, expected) in [
        ("", "r0"),
        ("?sort=p99", "r899"),
        ("?sort=p50", "r899"),
        ("?sort=p99&order=up", "r0"),
        ("?sort=calls", "r0"),
        ("?sort=calls&order=up", "r899"),
        ("?sort=route&find=r77", "r77"),
        ("?sort=p95&find=r89", "r899"),
        ("?sort=p95change", "r0"),
        ("?sort=nonsense&skip=x", "r0"),
        ("?sort=errorschange&range=15m", "r0"),
        ("?sort=memory&range=start&compare=none", "r0"),
    ] {
        let page = show(&sources, &format!("/routes{query}"));
        assert_eq!(rows(&page).first().map(String::as_str), Some(expected), "{query}");
        assert_eq!(page.matches("aria-sort=").count(), 1, "{query}");
    }
    let page = show(&sources, "/routes?sort=p99&range=6h&compare=day");
    let reversed = "href=\"/routes?sort=p99&amp;order=up&amp;range=6h&amp;compare=day\"";
    assert!(page.contains(reversed), "{page}");
}

#[test]
fn range_is_kept_by_all_links_and_forms() {
    let sources = sources(json!({}), &many(3), 10);
    for address in ["/", "/routes", "/route?name=r1", "/requests", "/errors", "/history"] {
        let sign = if address.contains('?') { "&" } else { "?" };
        let page = show(&sources, &format!("{address}{sign}range=6h&compare=none"));
        let links = page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next());
        let links: Vec<_> = links.filter(|link| !link.starts_with("assets/")).collect();
        assert!(links.len() > 15, "{address}: {links:?}");
        for link in links {
            assert!(link.contains("range=") || link.contains("from="), "{address}: {link}");
            assert!(link.contains("compare="), "{address}: {link}");
        }
        let marked = page.matches("aria-current=\"true\">6 h</a>").count();
        assert_eq!(marked, 1, "{address}");
        let hidden = "name=\"range\" value=\"6h\"";
        assert!(page.contains(hidden) || !page.contains("class=\"filter\""), "{address}");
        // The search for a request keeps it, too.
        assert!(page.contains(hidden), "{address}");
    }
    let plain = show(&sources, "/");
    assert!(plain.contains("href=\"/routes\"") && plain.contains("UTC"), "{plain}");
    let custom = show(&sources, "/routes?from=2026-11-01T10:00&to=2026-11-01T11:00&sort=p99");
    assert!(custom.contains("value=\"2026-11-01T10:00:00\""), "{custom}");
    assert!(custom.contains("name=\"sort\" value=\"p99\""), "{custom}");
    assert!(custom.contains("2026-11-01 10:00:00 to 11:00:00 UTC"), "{custom}");
}

#[test]
fn invalid_range_is_explained() {
    let sources = sources(json!({}), &many(3), 10);
    let respond = |query: &str| super::respond("/routes", &Query::new(query), &sources);
    for query in ["range=%3Cscript%3Ealert(1)", "from=x", "compare=%22%27%3E", "to=5", "range=%ff"]
    {
        let response = respond(query);
        assert_eq!(response.status(), 400, "{query}");
    }
    assert_eq!(respond("range=1d").status(), 200);
    let query = Query::new("range=%3Cscript%3Ealert(1)&sort=p99");
    let invalid = Range::of(&query, 5).expect_err("no range");
    let page = super::refused("/routes", &query, &invalid).main.into_string();
    assert!(page.contains("`&lt;script&gt;alert(1)`") && !page.contains("<script>"), "{page}");
    assert!(page.contains("/routes?sort=p99&amp;range=1h"), "a way back: {page}");
    assert_eq!(super::main("/routes", &query, &sources), None, "no stream");
}

/// Requests of ten minutes ago, as the history has them, and of now.
#[test]
fn routes_page_compares_with_history() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("history.sqlite");
    let now = samovar_insight::now();
    let minute = |of: u64, wall_ms: u64, errors: u64, requests: u64| {
        let mut figures = RouteMinute { requests, errors, ..RouteMinute::default() };
        (0..requests).for_each(|n| figures.wall.add((wall_ms * 1_000 + n) * 1_000));
        (0..requests).for_each(|_| figures.cpu.add(MS));
        (Box::from(format!("r{of}")), figures)
    };
    let limits = StoreLimits { bytes_max: 16 << 20, days_max: 30 };
    {
        let (mut store, _) = Store::open(&path, limits).expect("a store");
        for (ago, wall_ms, errors) in [(90 * 60, 10, 0), (30 * 60, 25, 50)] {
            let at = (now - ago) / 60 * 60;
            let routes = Arc::new(vec![minute(1, wall_ms, errors, 1_000), minute(2, 10, 0, 1_000)]);
            store.put(&Minute { at, routes, ..Minute::default() }).expect("room");
        }
    }
    let (front, outlet) = intake();
    let history = HistoryOptions { path, limits, trouble: Box::new(|why| panic!("{why}")) };
    let insight = Insight::start(outlet, Limits { routes_max: 9, slow_ns: 1 }, Some(history));
    let insight = insight.expect("a thread");
    drop(front);
    insight.finish();
    let sources = Sources::new(Box::new(Says(json!({}), None)), Some(Arc::new(insight)));
    let page = show(&sources, "/routes?range=1h&sort=route&order=up");
    let row = |name: &str| {
        let begin = page.find(&format!("/route?name={name}")).expect(name);
        page[begin..].split("</tr>").next().unwrap_or_default().to_owned()
    };
    let (slower, same) = (row("r1"), row("r2"));
    assert!(slower.contains(">1,000<") && slower.contains(">50<"), "{slower}");
    assert!(slower.contains("number bad\" title=\"with a probability of 95 %"), "{slower}");
    assert!(slower.contains("+5.0 points"), "{slower}");
    assert!(!same.contains("number bad") && !same.contains("number good"), "{same}");
    let json = crate::pages::made("/api/routes/r1", &Query::new("range=1h"), &sources);
    assert_eq!(json.status(), 200);
    let before = show(&sources, "/route?name=r1&range=1h");
    assert!(before.contains("Compared with the other period"), "{before}");
    let history = show(&sources, "/history?range=6h");
    for chart in ["Latency", "CPU of workers", "PHP memory", "by kind", "Failed requests"] {
        assert!(history.contains(chart), "{chart}");
    }
    assert!(history.contains("The history begins on"), "{history}");
}

#[test]
fn request_page_shows_all_sections_of_its_time() {
    let wait = |kind, peer, times, ns| Entry::Wait(Wait { kind, peer, times, ns });
    let report = report(&[
        Entry::Route("shop"),
        wait(WaitKind::Lock, "sess_1", 1, 10 * MS),
        wait(WaitKind::Tcp, "db:5432", 3, 40 * MS),
        Entry::Place("App\\Shop::show() src/Shop.php:12"),
    ]);
    let numbers = Numbers {
        status: 200,
        worker: 42,
        wall_ns: 200 * MS,
        queue_ns: 20 * MS,
        run_ns: 160 * MS,
        cpu_ns: 30 * MS,
        trace_id: [0xab; 16],
        is_sampled: true,
        ..Numbers::default()
    };
    let mut batch = Batch::default();
    batch.put(&Finished {
        numbers,
        id: "req-1",
        path: "/p/1",
        report: &report,
        method: "GET",
        script: "",
        pool: "",
    });
    let page = show(&sources(json!({}), &batch, 1), "/request?id=req-1");
    let bar = |class: &str, x: &str, width: &str| {
        format!("<rect class=\"{class}\" x=\"{x}\" y=\"0\" height=\"10\" width=\"{width}\">")
    };
    for expected in [
        bar("c-queue", "0.0", "100.0"),
        bar("c-wall", "100.0", "800.0"),
        bar("c-php", "100.0", "150.0"),
        // The longest wait is first.
        bar("c-wait", "250.0", "200.0"),
        bar("c-wait", "450.0", "50.0"),
        bar("c-rest", "900.0", "100.0"),
    ] {
        assert!(page.contains(&expected), "{expected}:\n{page}");
    }
    for expected in ["tcp db:5432, 3 times", "src/Shop.php:12", "abababab", "/route?name=shop"] {
        assert!(page.contains(expected), "{expected}:\n{page}");
    }
}

/// Samples of workers: each stack (outermost call first) with its number of samples.
fn seen(stacks: &[(&[&str], u64)]) -> Sources {
    let profiles = Profiles::start(Options {
        default_pool: "default",
        path: None,
        bytes_max: 1 << 20,
        keep: Duration::from_hours(1),
        hertz: 49,
        is_told: false,
        trouble: Box::new(|trouble| panic!("{trouble}")),
        handover_gate: samovar_insight::HandoverGate::now(),
        push: None,
    });
    let profiles = Arc::new(profiles.expect("a thread"));
    for (names, samples) in stacks {
        let frame = |name: &&str| {
            let (class, file) = (String::new(), format!("/srv/{name}.php"));
            Frame {
                function: Arc::new(Function { class, name: (*name).to_owned(), file, line: 3 }),
                line: 4,
            }
        };
        let frames: Vec<_> = names.iter().rev().map(frame).collect();
        let weight = Weight { samples: *samples, wall_ns: samples * 20 * MS, cpu_ns: samples * MS };
        profiles.add(&Sample {
            pool: "",
            generation: 1,
            model: Model::Script,
            is_boot: false,
            request: Some(("id", "/index.php", names[0])),
            at: At::Php(&frames, &Activity::Running),
            weight,
        });
    }
    Sources::new(Box::new(Says(json!({}), Some(profiles))), None)
}

#[test]
fn profile_page_has_flame_graph_and_table() {
    let sources = seen(&[(&["/a", "render", "burn"], 60), (&["/a", "load"], 40), (&["/b"], 100)]);
    let page = show(&sources, "/profile");
    let shown = |text: &str| assert!(page.contains(text), "{text}:\n{page}");
    shown("<option value=\"index.php /a\">");
    shown("<title>burn — 1.2 s, 30.00 %, 60 samples</title>");
    shown("data-name=\"load\"");
    shown("<th class=\"name\" scope=\"row\">burn</th><td class=\"number\">30 %</td>");
    let of_route = show(&sources, &link("/profile", &[("route", "index.php /b"), ("part", "cpu")]));
    assert!(of_route.contains("100 ms of CPU time") && !of_route.contains("burn"), "{of_route}");
    let waiting = show(&sources, "/profile?part=waiting");
    assert!(waiting.contains("No samples for this selection"), "{waiting}");
    let nowhere = show(&sources, "/profile?route=nowhere&than=nonsense&minutes=x&generation=x");
    assert!(nowhere.contains("the sampled routes are: `index.php /a`"), "{nowhere}");
    let reload = show(&sources, "/profile?than=reload");
    assert!(reload.contains("no previous generation"), "{reload}");
}

#[test]
fn function_names_are_escaped() {
    let long = "x".repeat(5_000);
    let sources = seen(&[(&[EVIL, "a\u{1b}[2J\u{202e}", &long], 10)]);
    for address in ["/profile", &link("/profile", &[("route", EVIL), ("part", EVIL)])] {
        let page = show(&sources, address);
        assert!(
            !page.contains("<script>alert") && !page.contains(['\u{1b}', '\u{202e}']),
            "{page}"
        );
        assert!(!page.contains(" style=") && !page.contains("\"'>"), "{page}");
        let ours = page.matches("<script src=").count();
        assert_eq!(ours, page.matches("<script").count(), "ours only, from files: {page}");
    }
}

#[test]
fn wide_profile_is_limited_to_widest_boxes() {
    let names: Vec<_> = (0..3_000).map(|n| format!("function_{n}")).collect();
    let stacks: Vec<_> = names.iter().map(|name| [&**name, "inner"]).collect();
    let stacks: Vec<_> = stacks.iter().map(|stack| (&stack[..], 1)).collect();
    let page = show(&seen(&stacks), "/profile");
    assert!(page.matches("data-name=").count() <= 4_000, "boxes");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn pages_show_the_selected_pool() {
    let image = |mode: &str| json!({"mode": mode});
    let boot = |file: &str| json!({"boot": {"files": [{"file": file}]}});
    let mut says = json!({
        "image": image("shared"), "explained": boot("/shop.php"),
        "explained default": boot("/shop.php"),
        "pools": [
            {"name": "default", "booted": image("shared")},
            {"name": EVIL, "booted": image("resident")},
        ],
    });
    says[format!("explained {EVIL}")] = boot("/other.php");
    let several = sources(says, &Batch::default(), 8);
    let other = |path: &str| show(&several, &link(path, &[("pool", EVIL)]));
    let first = show(&several, "/boot");
    assert!(first.contains("/shop.php") && first.contains("<select name=\"pool\">"), "{first}");
    assert!(first.contains("<option value=\"default\" selected>"), "{first}");
    assert!(other("/boot").contains("/other.php") && !other("/boot").contains("/shop.php"));
    assert!(show(&several, "/image").contains("return to it after each request"));
    assert!(other("/image").contains("never rolled back"));
    for path in ["/boot", "/image", "/calls", "/profile"] {
        assert!(!other(path).contains(EVIL), "{path}: a name is text");
        let unknown = show(&several, &format!("{path}?pool=nobody"));
        assert!(
            unknown.contains("Unknown pool nobody") && unknown.contains("default, "),
            "{unknown}"
        );
    }
    // With one pool there is no control.
    let one = sources(json!({"explained": boot("/shop.php")}), &Batch::default(), 8);
    assert!(!show(&one, "/boot").contains("pool"), "{}", show(&one, "/boot"));
    assert!(show(&one, "/boot?pool=nobody").contains("only the default pool"));
}
