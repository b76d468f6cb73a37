//! Call graphs of traced requests: the choice of requests, the accuracy of the figures, the output
//! formats.

mod memory;
mod page;

use samovar_testkit::http::Request;
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::process::{Command, Output};

/// A function that repeatedly calls an empty one, one that makes no calls, and others with known
/// call counts. The script prints the shortest times that it measured, which are undisturbed.
const PROGRAM: &str = r"<?php
const TIMES = 20;
function trivial($x) { return $x; }
function caller() { $s = 0; for ($i = 0; $i < 20000; $i++) { $s += trivial($i); } return $s; }
function alone() {
    $s = 0; for ($i = 0; $i < 20000; $i++) { $s = ($i * 7) ^ ($i << 3); } return $s; }
function count_down($n) { return $n > 0 ? count_down($n - 1) : 0; }
function numbers() { for ($i = 0; $i < 10; $i++) { yield trivial($i); } }
class Shop { static function sum() { $s = 0; foreach (numbers() as $n) { $s += $n; } return $s; } }
function thrower() { throw new Exception('caught'); }
$best = ['caller' => PHP_INT_MAX, 'alone' => PHP_INT_MAX];
for ($i = 0; $i < TIMES; $i++) {
    foreach ($best as $f => $least) {
        $from = hrtime(true);
        $f();
        $best[$f] = min($least, hrtime(true) - $from);
    }
}
count_down(40);
Shop::sum();
$fiber = new Fiber(function () { Fiber::suspend(count_down(5)); return count_down(6); });
$fiber->start();
$fiber->resume();
try { thrower(); } catch (Exception) {}
echo json_encode($best);
";
const TIMES: u64 = 20;
/// Tracing one of these calls takes about six times as long as the call. If the figures included
/// that, this limit would be exceeded by far.
const FACTOR_MAX: f64 = 1.3;
/// A process that shares our core can make tracing slower than it was at calibration, or can
/// disturb the calibration. At least one of these rounds is undisturbed.
const ROUNDS_OF_SERVER: usize = 4;
const ROUNDS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

fn calls(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("calls").arg("--control").arg(server.control()).args(flags);
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn graph(server: &Server, route: &str) -> Option<Value> {
    let output = calls(server, &["--route", route, "--json"]);
    serde_json::from_slice(&output.stdout).ok()
}

fn function<'a>(graph: &'a Value, name: &str) -> Option<&'a Value> {
    graph["functions"].as_array()?.iter().find(|function| function["name"] == name)
}

fn number(graph: &Value, name: &str, key: &str) -> u64 {
    function(graph, name).and_then(|function| function[key].as_u64()).unwrap_or(0)
}

/// Starts a server that traces all requests to paths below `/traced`.
fn tracing(php: &str) -> Server {
    let config = "[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
    Server::script(php).workers(1).config(config).start()
}

/// Repeats the request until the number of traced requests grows. Before that, the tracing worker
/// is starting or busy.
fn ask_traced(server: &Server, request: &Request) -> String {
    let before = server.status()["requests_traced_total"].as_u64();
    eventually("a traced request", || {
        let response = server.client().request(request).text();
        (server.status()["requests_traced_total"].as_u64() > before).then_some(response)
    })
}

#[test]
fn call_counts_match_program() {
    let server = tracing(PROGRAM);
    for _ in 0..3 {
        ask_traced(&server, &Request::get("/traced"));
    }
    let found = eventually("three graphs", || {
        graph(&server, "index.php /traced").filter(|graph| graph["requests"] == 3)
    });
    for (name, calls) in [
        ("(request)", 1),
        ("caller", TIMES),
        ("alone", TIMES),
        ("trivial", TIMES * 20_000 + 10),
        ("count_down", 41 + 6 + 7),
        ("Shop::sum", 1),
        ("thrower", 1),
        ("Fiber::start", 1),
    ] {
        assert_eq!(number(&found, name, "calls"), 3 * calls, "{name}: {found:#}");
    }
    // Recursive calls are counted once: their time does not exceed that of the request.
    assert!(number(&found, "count_down", "wall") <= number(&found, "(request)", "wall"));
    assert!(graph(&server, "index.php /other").is_none(), "nobody else was traced");
}

#[allow(clippy::cast_precision_loss, reason = "times of a request are far below 2^52 ns")]
/// Cost of `caller` relative to `alone` in one request's graph, as a multiple of the same ratio
/// without tracing.
fn distortion(server: &Server, round: &str) -> f64 {
    let best: Value = serde_json::from_str(&server.get("/other").text()).expect("JSON");
    ask_traced(server, &Request::get(&format!("/traced/{round}")));
    let route = format!("index.php /traced/{round}");
    let found = eventually("a graph", || graph(server, &route));
    let time = |name: &str| best[name].as_f64().expect("a time");
    let seen = number(&found, "caller", "cpu") as f64 / number(&found, "alone", "cpu") as f64;
    seen / (time("caller") / time("alone"))
}

#[test]
fn tracing_overhead_is_excluded_from_times() {
    let is_near = |factor: &f64| (1.0 / FACTOR_MAX..FACTOR_MAX).contains(factor);
    let mut seen = Vec::new();
    // Each server calibrates separately.
    for rounds in ROUNDS.chunks(ROUNDS_OF_SERVER) {
        let server = tracing(PROGRAM);
        for round in rounds {
            seen.push(distortion(&server, round));
            if seen.last().is_some_and(is_near) {
                return;
            }
        }
    }
    panic!("a parent that calls what does nothing is not what it is without tracing: {seen:?}");
}

#[test]
fn call_graph_is_exported_as_callgrind_and_xhprof() {
    let server = tracing(
        "<?php function a($x) { return b($x); } function b($x) { return $x . 'b'; } a(1); \
         a($_SERVER['REQUEST_METHOD']); echo 'ok';",
    );
    ask_traced(&server, &Request::get("/traced"));
    eventually("a graph", || graph(&server, "index.php /traced"));
    let table = text(&calls(&server, &[]).stdout);
    assert!(
        table.starts_with("index.php /traced: 1 requests traced") && table.contains("  b"),
        "{table}"
    );
    let one = text(&calls(&server, &["--function", "b"]).stdout);
    assert!(one.contains("called by") && one.contains("  a\n"), "{one}");
    let callgrind = text(&calls(&server, &["--format", "callgrind"]).stdout);
    assert!(
        callgrind.contains("\nfn=a\n") && callgrind.contains("\ncfn=b\ncalls=2 1\n"),
        "{callgrind}"
    );
    let file = server.folder().join("run.xhprof");
    let written = calls(&server, &["-o", &file.to_string_lossy()]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    // The same reading code as in XHProf's pages.
    let read = "$a = unserialize(file_get_contents($argv[1])); \
        echo $a['a==>b']['ct'], ' ', isset($a['main()']['wt']);";
    let php = Command::new("php").args(["-n", "-r", read, "--"]).arg(&file).output().expect("php");
    assert_eq!(text(&php.stdout), "2 1");
    let wrong = calls(&server, &["--function", "nobody"]);
    assert!(text(&wrong.stderr).contains("no traced request called `nobody`"));
}

#[test]
fn signed_requests_alone_are_traced_also_after_reload() {
    let config = "[profile]\ntrace_key = 'a key of a good length'\n";
    // A call with a constant result is not counted: opcache replaces it by the result.
    let app = "<?php Samovar\\checkpoint(); function below($x) { return $x + 4; } \
        echo below(strlen($_SERVER['REQUEST_METHOD']));";
    let server = Server::script(app).workers(1).config(config).start();
    let signature = text(&calls(&server, &["--sign", "10m"]).stdout).trim().to_owned();
    let signed = Request::get("/a").header("X-Samovar-Trace", &signature);
    assert_eq!(ask_traced(&server, &signed), "7");
    let cookie = Request::get("/a").header("Cookie", &format!("x=y; samovar_trace={signature}"));
    assert_eq!(ask_traced(&server, &cookie), "7");
    let before = server.status();
    let (last, rest) = (signature.len() - 1, if signature.ends_with('0') { "1" } else { "0" });
    let forged = format!("{}{rest}", &signature[..last]);
    for request in [Request::get("/a"), Request::get("/a").header("X-Samovar-Trace", &forged)] {
        assert_eq!(server.client().request(&request).text(), "7");
    }
    let after = server.status();
    assert_eq!(before["requests_traced_total"], after["requests_traced_total"]);
    assert_eq!(before["trace_requests_dropped_total"], after["trace_requests_dropped_total"]);
    server.reload().expect("a reload");
    assert_eq!(ask_traced(&server, &signed), "7");
    let found = eventually("three graphs", || {
        graph(&server, "index.php /a").filter(|graph| graph["requests"].as_u64() >= Some(3))
    });
    // Each of the requests ran below the checkpoint, and each tracing worker returned to it.
    assert_eq!(function(&found, "below").map(|f| &f["calls"]), Some(&found["requests"]));
}

/// The trace cookie that the response sets.
fn token(response: &samovar_testkit::http::Response) -> Option<String> {
    let cookie = response.all("set-cookie").into_iter().find_map(|value| {
        value.strip_prefix("samovar_trace=").map(|rest| rest.split(';').next().map(str::to_owned))
    });
    cookie.flatten()
}

#[test]
fn trace_next_traces_next_request_of_visitor_in_each_model() {
    let asks = "$_SERVER['REQUEST_URI'] === '/ask' ? (Samovar\\trace_next() ? 'it is' : 'no') : \
        strtoupper($_SERVER['REQUEST_URI'])";
    for php in [
        format!("<?php echo {asks};"),
        format!("<?php Samovar\\checkpoint(); echo {asks};"),
        format!("<?php Samovar\\serve(function () {{ echo {asks}; }});"),
        format!("<?php Samovar\\serve(fn () => new Samovar\\Response({asks}));"),
    ] {
        let config = "[profile]\ntrace_key = 'a key of a good length'\n";
        let server = Server::script(&php).workers(1).config(config).start();
        let response = server.get("/ask");
        assert_eq!(response.text(), "it is", "{php}");
        assert!(response.header("x-samovar-trace-next").is_none(), "{response:?}");
        let token = token(&response).unwrap_or_else(|| panic!("{php}: {response:?}"));
        let mine = Request::get("/mine").header("Cookie", &format!("a=b; samovar_trace={token}"));
        let forged =
            Request::get("/mine").header("Cookie", &format!("samovar_trace={}", "0".repeat(32)));
        assert_eq!(server.client().request(&forged).text(), "/MINE");
        assert_eq!(ask_traced(&server, &mine), "/MINE", "{php}");
        // The token is valid once.
        let traced = server.status()["requests_traced_total"].clone();
        for _ in 0..3 {
            assert_eq!(server.client().request(&mine).text(), "/MINE");
        }
        let status = server.status();
        assert_eq!((&status["requests_traced_total"], &traced), (&1.into(), &1.into()), "{php}");
        let found = eventually("its graph", || graph(&server, "index.php /mine"));
        assert_eq!(number(&found, "strtoupper", "calls"), 1, "{found:#}");
    }
}

#[test]
fn trace_next_without_tracing_or_after_headers_returns_false() {
    let php = "<?php echo Samovar\\trace_next() ? 'yes' : 'no'; ob_end_flush(); flush(); \
        echo Samovar\\trace_next() ? 'yes' : 'no';";
    let server = Server::script(php).workers(1).start();
    let response = server.get("/");
    assert_eq!((response.text().as_str(), token(&response)), ("nono", None));
    let config = "[profile]\ntrace_key = 'a key of a good length'\n";
    let server = Server::script(php).workers(1).config(config).start();
    let response = server.get("/");
    assert_eq!(response.text(), "yesno", "headers were sent then");
    assert!(token(&response).is_some());
}

#[test]
fn tracing_workers_are_listed_and_not_counted() {
    let config = "admin = '127.0.0.1:0'\n[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
    let server = Server::script("<?php echo 'ok';").workers(2).config(config).start();
    let status = eventually("all workers", || {
        let status = server.status();
        let workers = status["workers"].as_array()?;
        let is_idle = workers.iter().all(|worker| worker["state"] == "idle");
        (workers.len() == 3 && is_idle).then_some(status)
    });
    let tracing = |worker: &&Value| worker["tracing"] == true;
    let workers = status["workers"].as_array().expect("a list");
    assert_eq!(workers.iter().filter(tracing).count(), 1, "{status:#}");
    let admin = status["admin"][0].as_str().and_then(|at| at.parse().ok()).expect("an address");
    let ask = |path| samovar_testkit::http::Client::connect(admin).get(path).text();
    let metrics = ask("/metrics");
    for sample in ["samovar_workers{state=\"idle\"} 2\n", "samovar_tracing_workers 1\n"] {
        assert!(metrics.contains(sample), "{sample} {metrics}");
    }
    assert!(ask("/").contains("and 1 tracing worker"), "{}", ask("/"));
    assert!(ask("/workers").contains("script, tracing"), "{}", ask("/workers"));
    let mut command = std::process::Command::new(samovar_testkit::binary());
    let text = command.args(["status", "--control"]).arg(server.control()).output();
    let text = String::from_utf8_lossy(&text.expect("the binary runs").stdout).into_owned();
    assert_eq!(text.matches(" script, tracing ").count(), 1, "{text}");
}

#[test]
fn traced_requests_are_counted_in_metrics() {
    let config = "admin = '127.0.0.1:0'\n[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
    let server = Server::script("<?php echo 'ok';").workers(1).config(config).start();
    for _ in 0..3 {
        ask_traced(&server, &Request::get("/traced"));
    }
    server.get("/other");
    let status = server.status();
    let admin = status["admin"][0].as_str().and_then(|at| at.parse().ok()).expect("an address");
    let metrics = samovar_testkit::http::Client::connect(admin).get("/metrics").text();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse::<u64>().ok())
    };
    assert_eq!(value("samovar_requests_traced_total"), Some(3), "{metrics}");
    assert_eq!(
        value("samovar_trace_requests_dropped_total"),
        status["trace_requests_dropped_total"].as_u64(),
        "{metrics}"
    );
}
