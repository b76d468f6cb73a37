//! One request with known costs, in the figures of each exporter: the request accounting,
//! Prometheus, OTLP, Pinba, the slow log, the dashboard.

use crate::request_accounting::bench::{MODELS, ask, figures, serving, started};
use samovar_testkit::collector::Collector;
use samovar_testkit::protoc::{PINBA, TRACES, decode};
use samovar_testkit::{Server, WATCHDOG, eventually};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Duration;

/// Uses CPU time, sleeps, waits for a lock's holder, and times a part with its own timer. Each step
/// measures itself.
const WORK: &str = r"
    Samovar\route('truth' . $_GET['n']);
    $cpu = function (): int {
        $all = getrusage();
        return 1_000 * (1_000_000 * ($all['ru_utime.tv_sec'] + $all['ru_stime.tv_sec'])
            + $all['ru_utime.tv_usec'] + $all['ru_stime.tv_usec']);
    };
    $truth = ['cpu' => $cpu(), 'run' => hrtime(true)];
    $timed = function (string $what, callable $step) use (&$truth) {
        $from = hrtime(true);
        $step();
        $truth[$what] = hrtime(true) - $from;
    };
    $timer = Samovar\timer(['group' => 'render']);
    $timed('timer', function () use ($timer) {
        $timer->start();
        for ($end = hrtime(true) + 40_000_000; hrtime(true) < $end;);
        $timer->stop();
    });
    $timed('sleep', fn () => usleep(30_000));
    $holder = proc_open(
        ['flock', getenv('LOCK'), 'sh', '-c', 'echo; sleep 0.03'],
        [1 => ['pipe', 'w']],
        $pipes,
    );
    fgets($pipes[1]);
    $lock = fopen(getenv('LOCK'), 'c');
    $timed('lock', fn () => flock($lock, LOCK_EX));
    flock($lock, LOCK_UN);
    proc_close($holder);
    $block = str_repeat('x', 9 << 20);
    $truth['peak'] = memory_get_peak_usage();
    $truth['run'] = hrtime(true) - $truth['run'];
    $truth['cpu'] = $cpu() - $truth['cpu'];
    echo json_encode($truth);
";

/// Maximum number of attempts until one is undisturbed. Each figure is compared with one that was
/// taken a moment apart, and on a busy machine other processes run in that moment.
const ATTEMPTS: u32 = 6;

type Counts = BTreeMap<&'static str, u64>;

struct Ways {
    server: Server,
    collector: Collector,
    pinba: UdpSocket,
    folder: tempfile::TempDir,
    is_script: bool,
}

impl Ways {
    fn start(model: &str) -> Ways {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let collector = Collector::start([]);
        let pinba = UdpSocket::bind("127.0.0.1:0").expect("a port");
        pinba.set_read_timeout(Some(WATCHDOG)).expect("a time-out");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let settings = format!(
            "[insight]\notlp = '{}'\notlp_interval = '20ms'\npinba = '{}'\nslow_request = '1ms'\n\
             slow_log = '{}'\nslow_log_format = 'json'\n",
            collector.endpoint,
            pinba.local_addr().expect("an address"),
            at("slow.txt"),
        );
        let start = serving(model, WORK).workers(1).env("LOCK", &at("lock"));
        let server = started(start.config(&settings), model);
        Ways { server, collector, pinba, folder, is_script: model == "script" }
    }

    fn request_accounting(&self, route: &str) -> Counts {
        let told = figures(&self.server, route, 1);
        let wait = |kind| crate::request_accounting::bench::waited(&told, kind, "").1;
        Counts::from([
            ("cpu", told["costs"]["cpu"]["sum_ns"].as_u64().expect("a number")),
            ("run", told["costs"]["run_ns"].as_u64().expect("a number")),
            ("peak", told["costs"]["peak_bytes_max"].as_u64().expect("a number")),
            ("sleep", wait("sleep")),
            ("lock", wait("lock")),
            ("timer", told["timers"][0]["wall_ns"].as_u64().expect("a number")),
        ])
    }

    fn prometheus(&self, route: &str) -> Counts {
        let page = ask(&self.server, "/metrics");
        let of_route = format!("route=\"{route}\"");
        let seconds = |name: &str, label: &str| {
            let is_it = |line: &&str| {
                line.starts_with(name) && line.contains(&of_route) && line.contains(label)
            };
            let line =
                page.lines().find(is_it).unwrap_or_else(|| panic!("{name} of {route}\n{page}"));
            ns(line.rsplit(' ').next().expect("a value"))
        };
        Counts::from([
            ("cpu", seconds("samovar_request_cpu_seconds_total", "")),
            ("run", seconds("samovar_request_run_seconds_total", "")),
            ("sleep", seconds("samovar_wait_seconds_total", "kind=\"sleep\"")),
            ("lock", seconds("samovar_wait_seconds_total", "kind=\"lock\"")),
            ("timer", seconds("samovar_timer_seconds_total", "group=render")),
        ])
    }

    fn otlp(&self, route: &str) -> Counts {
        let name = format!("name: \"GET {route}\"");
        let spans = eventually("its spans are sent", || {
            let all = self.collector.posted().into_iter();
            let spans = all.filter(|posted| posted.head.starts_with("post /v1/traces "));
            spans.map(|posted| decode(TRACES, &posted.body)).find(|text| text.contains(&name))
        });
        // A batch may contain spans of other requests. The spans of one trace follow its first one.
        let own = &spans[spans.find(&name).expect("it is there")..];
        let took = |name: &str| {
            let span = &own[own.find(&format!("name: \"{name}")).expect(name)..];
            let at = |key: &str| number(span, &format!("{key}_time_unix_nano: "));
            at("end") - at("start")
        };
        let value = |key: &str| number(&own[own.find(key).expect(key)..], "int_value: ");
        Counts::from([
            ("cpu", value("samovar.cpu_ns")),
            ("run", took("php")),
            ("peak", value("samovar.memory_peak_bytes")),
            ("sleep", took("wait sleep")),
            ("lock", took("wait lock")),
            ("timer", took("render")),
        ])
    }

    fn pinba(&self, route: &str) -> Counts {
        let mut buffer = vec![0; 65_536];
        let name = format!("script_name: \"{route}\"");
        let packet = loop {
            let (length, _) = self.pinba.recv_from(&mut buffer).expect("a packet");
            let packet = decode(PINBA, &buffer[..length]);
            if packet.contains(&name) {
                break packet;
            }
        };
        let value = |key: &str| {
            let text = packet.lines().find_map(|line| line.strip_prefix(key)).expect(key);
            text.trim().to_owned()
        };
        Counts::from([
            ("cpu", ns(&value("ru_utime:")) + ns(&value("ru_stime:"))),
            ("peak", value("memory_peak:").parse().expect("bytes")),
            ("timer", ns(&value("timer_value:"))),
        ])
    }

    fn slow_log(&self, route: &str) -> Counts {
        let line = eventually("its line in the slow log", || {
            let text = std::fs::read_to_string(self.folder.path().join("slow.txt")).ok()?;
            let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            all.into_iter().find(|line| line["route"] == route)
        });
        let ms = |of: &Value| span(of.as_f64().expect("ms") / 1e3);
        let wait = |kind: &str| {
            let all = line["waits"].as_array().expect("a list");
            ms(&all.iter().find(|wait| wait["kind"] == kind).expect(kind)["ms"])
        };
        // A worker of another model may be replaced by a fork in another cell.
        if self.is_script {
            assert_eq!(line["worker"], self.server.worker_pids()[0], "{line}");
            assert_eq!(line["cell"], 0, "{line}");
        }
        assert_eq!(line["generation"], 1, "{line}");
        Counts::from([
            ("cpu", ms(&line["cpu_ms"])),
            ("run", ms(&line["run_ms"])),
            ("peak", line["memory_peak_bytes"].as_u64().expect("bytes")),
            ("sleep", wait("sleep")),
            ("lock", wait("lock")),
            ("timer", ms(&line["timers"][0]["ms"])),
        ])
    }

    /// Figures on the request's page, as displayed: three digits and a unit.
    fn page(&self, id: &str) -> Counts {
        let page = ask(&self.server, &format!("/request?id={id}"));
        let shown = |name: &str| {
            let row = &page[page.find(name).unwrap_or_else(|| panic!("{name} in\n{page}"))..];
            let cell = row.split("class=\"number\">").nth(1).expect("a figure");
            person_s(cell.split('<').next().expect("a figure"))
        };
        Counts::from([
            ("run", shown(">in a worker<")),
            ("cpu", shown(">CPU in PHP<")),
            ("sleep", shown(">sleep ")),
            ("lock", shown(">lock ")),
            ("timer", shown(">timer ")),
        ])
    }
}

/// Parses seconds; returns ns.
fn ns(seconds: &str) -> u64 {
    span(seconds.parse().expect("seconds"))
}

fn span(seconds: f64) -> u64 {
    let ns = Duration::try_from_secs_f64(seconds).expect("no time is negative").as_nanos();
    u64::try_from(ns).expect("years")
}

/// Parses a text such as `12.3 ms`.
fn person_s(text: &str) -> u64 {
    let (value, unit) = text.split_once(' ').expect("a value and its unit");
    let of_a_second = match unit {
        "µs" => 1e6,
        "ms" => 1e3,
        "s" => 1.0,
        other => panic!("{other} of {text}"),
    };
    span(value.parse::<f64>().expect("a number") / of_a_second)
}

/// The first number after the text `behind`.
fn number(text: &str, behind: &str) -> u64 {
    let from = &text[text.find(behind).expect(behind) + behind.len()..];
    let digits: String = from.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// Figures that differ by more than 5 % and a millisecond.
fn wrong(way: &str, told: &Counts, truth: &Counts) -> Vec<String> {
    let is_wrong = |what: &str, told: u64| {
        let truth = truth[what];
        let slack = match what {
            "peak" => 64 << 10,
            // A script cannot measure PHP's activation and the request's end.
            "cpu" | "run" => 5_000_000,
            _ => 1_000_000,
        };
        told.abs_diff(truth) > slack.max(truth / 20)
    };
    told.iter()
        .filter(|(what, told)| is_wrong(what, **told))
        .map(|(what, told)| format!("{way}: {what}: {told} is told of {}", truth[what]))
        .collect()
}

#[test]
fn each_exporter_reports_same_figures() {
    for model in MODELS {
        let found = compare(model);
        assert!(found.is_empty(), "{model}: {found:#?}");
    }
}

/// Returns the differences of the last attempt.
fn compare(model: &str) -> Vec<String> {
    let ways = Ways::start(model);
    let mut found = Vec::new();
    for n in 0..ATTEMPTS {
        let response = ways.server.get(&format!("/?n={n}"));
        let truth: BTreeMap<String, u64> = serde_json::from_str(&response.text()).expect("numbers");
        let names = ["cpu", "run", "peak", "sleep", "lock", "timer"];
        let truth = Counts::from(names.map(|name| (name, truth[name])));
        let id = response.header("x-request-id").expect("an id");
        let route = format!("truth{n}");
        found = [
            wrong("ledger", &ways.request_accounting(&route), &truth),
            wrong("Prometheus", &ways.prometheus(&route), &truth),
            wrong("OTLP", &ways.otlp(&route), &truth),
            wrong("Pinba", &ways.pinba(&route), &truth),
            wrong("slow log", &ways.slow_log(&route), &truth),
            wrong("dashboard", &ways.page(id), &truth),
        ]
        .concat();
        if found.is_empty() {
            break;
        }
    }
    ways.server.stop();
    found
}
