//! Allocation profile of traced requests, with planted allocations.

use super::{ask_traced, calls, graph, number, text};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::process::{Command, Output};

/// `large` allocates 80 % of the memory in strings of 1,000 bytes, `small` 20 % in strings of 100
/// bytes. The strings are freed at once. `deep` allocates through itself. With constant arguments,
/// opcache would replace the calls by their results.
const WORK: &str = r"
    $work = new Work();
    $work->large(1000);
    $work->small(100);
    echo strlen(deep(200));
";
const FUNCTIONS: &str = r"
final class Work {
    public function large(int $bytes): void {
        for ($i = 0; $i < 8000; $i++) { $text = str_repeat('x', $bytes); }
    }
    public function small(int $bytes): void {
        for ($i = 0; $i < 20000; $i++) { $text = str_repeat('y', $bytes); }
    }
}
function deep(int $n): string { return $n > 0 ? deep($n - 1) : str_repeat('z', 4_000_000); }
";
const LARGE_BYTES: f64 = 8_000.0 * 1_024.0;
const SMALL_BYTES: f64 = 20_000.0 * 128.0;
const REQUESTS: u64 = 4;
/// `small` has some 300 samples per request, thus a deviation of 3 % in all requests.
const DEVIATION_MAX: f64 = 0.15;

#[allow(clippy::cast_precision_loss, reason = "bytes of a request are far below 2^52")]
/// Memory allocated in all stacks whose last functions are these, per request.
fn allocated(graph: &Value, calls: &[&str]) -> f64 {
    let stacks = graph["allocations"]["stacks"].as_array().expect("stacks");
    let name = |stack: &Value| {
        let function = stack["function"].as_u64().expect("a number") as usize;
        graph["functions"][function]["name"].as_str().expect("a name").to_owned()
    };
    let mut sum = 0;
    for stack in stacks {
        let mut at = stack;
        let matches = calls.iter().rev().all(|call| {
            let is_it = name(at) == *call;
            at = &stacks[at["caller"].as_u64().expect("a number") as usize];
            is_it
        });
        sum += if matches { stack["bytes"].as_u64().expect("a number") } else { 0 };
    }
    sum as f64 / REQUESTS as f64
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < DEVIATION_MAX
}

#[test]
fn allocations_have_planted_shares_in_each_model() {
    for whole in [
        format!("<?php {FUNCTIONS} {WORK}"),
        format!("<?php {FUNCTIONS} Samovar\\checkpoint(); {WORK}"),
        format!("<?php {FUNCTIONS} Samovar\\serve(function () {{ {WORK} }});"),
    ] {
        let config = "[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
        let server = Server::script(&whole).workers(1).config(config).start();
        for _ in 0..REQUESTS {
            assert_eq!(ask_traced(&server, &Request::get("/traced")), "4000000", "{whole}");
        }
        let found = eventually("all graphs", || {
            graph(&server, "index.php /traced").filter(|graph| graph["requests"] == REQUESTS)
        });
        assert_eq!(number(&found, "deep", "calls"), REQUESTS * 201, "{whole}");
        for (stack, expected) in [
            (["Work::large", "str_repeat"], LARGE_BYTES),
            (["Work::small", "str_repeat"], SMALL_BYTES),
            // A sampled block is larger than the interval, so its size is exact.
            (["deep", "str_repeat"], 4_000_000.0),
        ] {
            let bytes = allocated(&found, &stack);
            assert!(near(bytes, expected), "{stack:?}: {bytes} for {expected}: {whole}");
        }
        let table = text(&calls(&server, &["--memory"]).stdout);
        let row = |name: &str| {
            let line = table.lines().find(|line| line.contains(&format!("  {name}")));
            line.unwrap_or_else(|| panic!("{name} is in {table}"))
        };
        let share = row("str_repeat").split('%').next().and_then(|of| of.trim().parse().ok());
        assert!(share.is_some_and(|share: f64| share > 90.0), "{table}");
        assert!(row("Work::large").contains("index.php:"), "{table}");
        let stacks = text(&calls(&server, &["--memory", "--format", "collapsed"]).stdout);
        assert!(stacks.contains(";Work::small;str_repeat "), "{stacks}");
        let file = server.folder().join("memory.svg");
        let written = calls(&server, &["--memory", "-o", &file.to_string_lossy()]);
        assert!(written.status.success(), "{}", text(&written.stderr));
        let picture = std::fs::read_to_string(&file).expect("a picture");
        assert!(picture.contains("KiB of allocated memory"), "{picture}");
        assert!(picture.contains("Work::large — "), "{picture}");
        // The heap of an untraced worker, and that of a traced one between requests, is PHP's own.
        assert_eq!(server.client().request(&Request::get("/other")).text(), "4000000");
    }
}

/// Keeps some 10 MB in small arrays, takes a string of 2 MB and frees it, allocates nothing. Prints
/// the bytes of the arrays.
const SHARES: &str = r"
    $before = memory_get_usage();
    $kept = arrays(46_000);
    $bytes = memory_get_usage() - $before;
    text(2_000_000);
    nothing(100_000);
    echo $bytes;
";
const OF_SHARES: &str = r"
function arrays(int $n): array {
    $all = [];
    for ($i = 0; $i < $n; $i++) { $all[] = [$i, $i + 1]; }
    return $all;
}
function text(int $bytes): int { $text = str_repeat('x', $bytes); return strlen($text); }
function nothing(int $n): int { for ($i = 0, $sum = 0; $i < $n; $i++) { $sum ^= $i; } return $sum; }
";
const TEXT_BYTES: f64 = 2_000_000.0;

fn profile(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(["profile", "--memory", "--control"]).arg(server.control()).args(flags);
    command.output().expect("the binary runs")
}

#[test]
fn profile_of_memory_has_planted_shares_in_each_model() {
    for whole in [
        format!("<?php {OF_SHARES} {SHARES}"),
        format!("<?php {OF_SHARES} Samovar\\checkpoint(); {SHARES}"),
        format!("<?php {OF_SHARES} Samovar\\serve(function () {{ {SHARES} }});"),
    ] {
        let config =
            "admin = '127.0.0.1:0'\n[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
        let server = Server::script(&whole).workers(1).config(config).start();
        let nothing = profile(&server, &["--route", "index.php /traced/a"]);
        assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
        let mut arrays = 0.0;
        for path in ["/traced/a", "/traced/b"].repeat(2) {
            let printed = ask_traced(&server, &Request::get(path));
            arrays = printed.parse().expect("a number of bytes");
        }
        let found = eventually("all graphs", || {
            let document: Value =
                serde_json::from_slice(&profile(&server, &["--json"]).stdout).ok()?;
            (document["requests"] == REQUESTS).then_some(document)
        });
        let share = |name: &str| {
            let all = found["functions"].as_array().expect("a list");
            let bytes = all.iter().find(|one| one["function"] == name);
            let bytes = bytes.map_or(0.0, |one| one["total_bytes"].as_f64().expect("a number"));
            bytes / found["allocated_bytes"].as_f64().expect("a number")
        };
        let expected = arrays / (arrays + TEXT_BYTES);
        for (name, expected) in [("arrays", expected), ("text", 1.0 - expected), ("nothing", 0.0)] {
            let share = share(name);
            assert!((share - expected).abs() < 0.05, "{name}: {share} for {expected}: {whole}");
        }
        let of_one = profile(&server, &["--route", "index.php /traced/b"]);
        let table = text(&of_one.stdout);
        assert!(
            table.starts_with("index.php /traced/b: ") && table.contains("  arrays"),
            "{table}"
        );
        let lines = text(&profile(&server, &["--format", "collapsed"]).stdout);
        assert!(lines.lines().any(|line| line.contains(";text;str_repeat ")), "{lines}");
        for (format, part) in [
            ("svg", "KiB of allocated memory"),
            ("callgrind", "\nevents: Samples Bytes\n"),
            ("speedscope", "\"unit\":\"bytes\""),
        ] {
            let out = text(&profile(&server, &["--format", format]).stdout);
            assert!(out.contains(part), "{format}: {out}");
        }
        let pprof = profile(&server, &["--format", "pprof"]);
        assert!(pprof.stdout.starts_with(&[0x1f, 0x8b]), "gzipped");
        let admin = server.status()["admin"][0].as_str().and_then(|at| at.parse().ok());
        let page = Request::get("/calls?show=memory&route=index.php+/traced/b");
        let page = Client::connect(admin.expect("an address")).request(&page).text();
        for part in ["Functions by allocated memory", ">arrays<", "allocated per request"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let typed = profile(&server, &["--route", "index.php /traced/c"]);
        assert!(text(&typed.stderr).contains("no such route"), "{typed:?}");
    }
}

#[test]
fn any_end_of_traced_request_leaves_heap_whole() {
    let work = r"
        switch ($_SERVER['REQUEST_URI']) {
            case '/traced/limit': ini_set('memory_limit', '8M'); str_repeat('x', 20_000_000); break;
            case '/traced/fatal': (function (int $n) {})('x'); break;
            case '/traced/exit': exit(str_repeat('e', 9));
            case '/traced/fork':
                if (pcntl_fork() === 0) { str_repeat('x', 100_000); posix_kill(posix_getpid(), 9); }
                pcntl_wait($status);
                break;
        }
        echo strlen(implode(array_map(fn () => str_repeat('x', 500), range(1, 1000))));
    ";
    for whole in [
        format!("<?php {work}"),
        format!("<?php Samovar\\checkpoint(); {work}"),
        format!("<?php Samovar\\serve(function () {{ {work} }});"),
    ] {
        let config = "[profile]\ntrace = '1/1'\ntrace_paths = ['/traced*']\n";
        let server = Server::script(&whole).workers(1).config(config).start();
        for end in ["limit", "fatal", "exit", "fork", "limit", "fatal", "exit"] {
            ask_traced(&server, &Request::get(&format!("/traced/{end}")));
            assert_eq!(ask_traced(&server, &Request::get("/traced")), "500000", "{whole}, {end}");
        }
        assert_eq!(server.status()["crashes_total"].as_u64().unwrap_or(0), 0, "{whole}");
    }
}

#[test]
fn formats_of_memory_and_of_calls_are_distinguished() {
    let server = Server::script("<?php").start();
    for (flags, expected) in [
        (&["--format", "svg"][..], "pass --memory"),
        (&["--memory", "-o", "a.callgrind"], "use svg or collapsed"),
    ] {
        let output = calls(&server, flags);
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}
