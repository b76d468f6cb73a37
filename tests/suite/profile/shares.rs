//! Programs with a known distribution of time.

use crate::profile::stage::{cpu_ns, profile, sampled, samples, table, text, under_load};
use samovar_testkit::{Server, binary, eventually, go_tool_pprof};
use serde_json::Value;
use std::os::unix::fs::chown;

/// Work with six, three and one unit of CPU time, and a page that only waits.
///
/// The work takes many time slices of the scheduler. If other processes need the CPU, the sampler
/// runs at the end of a worker's time slice. That must fall on random points of the work.
const PROGRAM: &str = r"<?php
class Work {
    static function unit() { for ($i = 0; $i < 1200000; $i++) { $x = $i * 3; } }
}
function six() { for ($i = 0; $i < 7200000; $i++) { $x = $i * 3; } }
function three() { for ($i = 0; $i < 3600000; $i++) { $x = $i * 3; } }
function rest() { usleep(20000); }
function page() { six(); three(); Work::unit(); }
if (str_contains($_SERVER['REQUEST_URI'], 'wait')) { rest(); } else { page(); }
";
const PERCENT: [(&str, f64); 3] = [("six", 60.0), ("three", 30.0), ("Work::unit", 10.0)];

/// With this number of samples, a share of 60 % rarely deviates by more. If samples have unequal
/// weights, because the machine is busy, more are needed. Correct shares are close enough at some
/// time, wrong ones never are.
const SAMPLES: f64 = 1_600.0;
const TOLERANCE_POINTS: f64 = 5.0;

/// The function with a wrong share of CPU time; empty if there is none.
fn wrong_share(found: &Value) -> String {
    let all = cpu_ns(found, "page").1;
    for (function, expected) in PERCENT {
        let share = cpu_ns(found, function).0 * 100.0 / all;
        if (share - expected).abs() >= TOLERANCE_POINTS {
            return format!("{function} has {share} %, and should have {expected} %");
        }
    }
    let own = cpu_ns(found, "page").0;
    if own < all / 50.0 {
        String::new()
    } else {
        format!("page only calls, and has {own} of {all}")
    }
}

#[test]
fn sampled_shares_match_program() {
    let server = sampled(PROGRAM, "").start();
    let route = ["--route", "index.php /work/{n}"];
    let mut said = String::new();
    let enough = || {
        let table = table(&server, &route).filter(|table| samples(table, "page").1 >= SAMPLES)?;
        let wrong = wrong_share(&table);
        if wrong != said {
            println!("{wrong}");
            said = wrong;
        }
        said.is_empty().then_some(table)
    };
    let found = under_load(&server, &["/work/1", "/work/2"], "right shares", enough);
    assert!(samples(&found, "rest").1 < 1.0, "another route's");
    // The time of all samples is at most that of the two workers.
    let wall_ns = found["now"]["wall_ns"].as_f64().expect("a number");
    let up = server.status()["uptime_seconds"].as_f64().expect("a number");
    assert!(wall_ns <= 2.0 * up * 1e9, "{wall_ns} ns of {up} s");
    let requests = found["now"]["requests"].as_u64().expect("a number");
    assert!(requests > 10, "{requests}");
    server.stop();
}

#[test]
fn waiting_is_distinguished_from_computing() {
    let server = sampled(PROGRAM, "").start();
    let both = ["/work/1", "/wait"];
    let flags = ["--waiting"];
    let found = under_load(&server, &both, "waits", || {
        table(&server, &flags).filter(|table| samples(table, "usleep").0 >= 200.0)
    });
    assert!(samples(&found, "rest").1 >= 200.0, "{found:#}");
    let waiting = samples(&found, "").2;
    let computing = samples(&found, "page").1;
    assert!(computing < waiting / 5.0, "a program that computes waits seldom: {found:#}");
    let table = profile(&server, &["--waiting", "--format", "collapsed"]);
    let lines = text(&table.stdout);
    assert!(lines.lines().any(|line| line.contains("rest;usleep;[sleep")), "{lines}");
    // Samples on the CPU do not contain it.
    let on_cpu = text(&profile(&server, &["--on-cpu", "--format", "collapsed"]).stdout);
    assert!(on_cpu.contains("page;six") && !on_cpu.contains("[sleep"), "{on_cpu}");
    server.stop();
}

#[test]
fn profile_files_are_readable_by_other_tools() {
    let server = sampled(PROGRAM, "").start();
    under_load(&server, &["/work/1"], "samples", || {
        table(&server, &[]).filter(|table| samples(table, "six").0 >= 50.0)
    });
    let write = |name: &str, flags: &[&str]| {
        let path = server.folder().join(name);
        let out =
            profile(&server, &[&["-o", path.to_str().expect("a plain path")], flags].concat());
        assert!(out.status.success(), "{out:?}");
        path
    };
    let lines = text(&profile(&server, &["--lines", "--format", "collapsed"]).stdout);
    assert!(lines.contains(";page:8;six:5 "), "{lines}");
    let pprof = write("a.pb.gz", &[]);
    let top = go_tool_pprof().arg("-top").arg(&pprof).output();
    let top = text(&top.expect("scripts/setup.sh test installs golang-go").stdout);
    assert!(top.lines().any(|line| line.ends_with(" six")), "{top}");
    let speedscope = std::fs::read(write("a.speedscope.json", &[])).expect("written");
    let speedscope: Value = serde_json::from_slice(&speedscope).expect("JSON");
    let of = &speedscope["profiles"][0];
    let (stacks, weights) = (of["samples"].as_array(), of["weights"].as_array());
    assert_eq!(stacks.map(Vec::len), weights.map(Vec::len));
    let frames = speedscope["shared"]["frames"].as_array().map_or(0, Vec::len) as u64;
    let numbers = stacks.into_iter().flatten().flat_map(|stack| stack.as_array().expect("a list"));
    assert!(numbers.into_iter().all(|n| n.as_u64().is_some_and(|n| n < frames)), "{speedscope}");
    let svg = std::fs::read_to_string(write("a.svg", &["--on-cpu"])).expect("written");
    assert!(svg.contains("<title>six — ") && svg.ends_with("</svg>\n"), "{svg}");
    server.stop();
}

#[test]
fn profile_after_reload_shows_more_expensive_function() {
    let program = |times: u32| {
        format!(
            "<?php function same() {{ for ($i = 0; $i < 40000; $i++) {{ $x = $i * 3; }} }}
            function changed() {{ for ($n = 0; $n < {times}; $n++) {{
                for ($i = 0; $i < 20000; $i++) {{ $x = $i * 3; }} }} }}
            same(); changed(); echo 'done';"
        )
    };
    let server = sampled(&program(1), "").define("opcache.enable", "0").start();
    let seen = |least: f64| {
        let server = &server;
        under_load(server, &["/"], "samples", move || {
            table(server, &[]).filter(|table| samples(table, "changed").0 >= least)
        });
    };
    seen(150.0);
    let without = profile(&server, &["--against", "last-reload"]);
    assert_eq!(without.status.code(), Some(1));
    assert!(text(&without.stderr).contains("no previous generation"), "{without:?}");
    std::fs::write(server.folder().join("root/index.php"), program(8))
        .expect("the server's folder");
    server.reload().expect("it boots");
    // CPU time: on a busy machine, the wall time of both sides depends on the neighbours.
    let flags = ["--against", "last-reload", "--on-cpu"];
    // Eight times the work.
    let found = under_load(&server, &["/"], "about eight times of before", || {
        let now = table(&server, &["--generation", "2"])?;
        let found =
            (samples(&now, "changed").0 >= 300.0).then(|| table(&server, &flags)).flatten()?;
        let of = |key: &str| found["functions"][0][key].as_f64();
        let ratio = of("self_now")? / of("self_before")?;
        (4.0..16.0).contains(&ratio).then_some(found)
    });
    assert_eq!(found["unit"], "ns per request", "{found:#}");
    assert_eq!(found["functions"][0]["function"], "changed", "{found:#}");
    assert_eq!(found["functions"][0]["significant"], true, "{found:#}");
    let table = text(&profile(&server, &flags).stdout);
    assert!(table.contains("time per request") && table.contains("  changed"), "{table}");
    let svg = profile(&server, &[&flags[..], &["--format", "svg"]].concat());
    let svg = text(&svg.stdout);
    let line = svg.lines().find(|line| line.contains("<title>changed — ")).expect("its box");
    assert!(line.contains(" % against before") && line.contains("fill=\"hsl(5,"), "{line}");
    server.stop();
}

#[test]
fn samples_of_boot_and_requests_are_separate() {
    let server = sampled(
        "<?php function boot() { for ($i = 0; $i < 40000; $i++) { $x = str_repeat('a', 9); } }
        boot(); $state = str_repeat('x', 4000000); Samovar\\checkpoint();
        function below() { for ($i = 0; $i < 60000; $i++) { $x = $i * 3; } }
        below(); $state .= 'y'; echo 'done';",
        "",
    )
    .start();
    eventually("the checkpoint", || (server.status()["image"]["shared"] == true).then_some(()));
    let found = under_load(&server, &["/"], "samples", || {
        table(&server, &["--route", "index.php /"])
            .filter(|table| samples(table, "below").0 >= 100.0)
    });
    assert!(samples(&found, "boot").1 < 1.0, "the boot is no request's: {found:#}");
    server.stop();
}

/// Debian's user for web servers.
const USER: (&str, u32) = ("www-data", 33);

#[test]
fn server_without_root_privileges_samples_its_workers() {
    let start = sampled(PROGRAM, "").without_root();
    let folder = start.folder();
    for path in [folder.to_owned(), folder.join("sessions"), folder.join("uploads")] {
        chown(path, Some(USER.1), Some(USER.1)).expect("tests run as root");
    }
    // That user may have no access to the workspace.
    let worker = folder.join("samovar-php");
    std::fs::copy(binary().with_file_name("samovar-php"), &worker).expect("a copy");
    let worker = worker.to_string_lossy().into_owned();
    let server = start.args(["--user", USER.0, "--php-binary", &worker]).start();
    let found = under_load(&server, &["/work/1"], "samples", || {
        table(&server, &[]).filter(|table| samples(table, "six").0 >= 20.0)
    });
    assert!(samples(&found, "page").1 >= 20.0);
    assert_eq!(server.status()["profile"]["trouble"], "");
    server.stop();
}

#[test]
fn disabled_profiler_starts_no_thread() {
    let server = Server::script("<?php echo 'done';").config("[profile]\nhertz = 0\n").start();
    server.get("/");
    assert!(server.status()["profile"].is_null());
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
    let names =
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    assert!(names.into_iter().all(|name| name.trim() != "sampler"), "no thread looks");
    let asked = profile(&server, &[]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(text(&asked.stderr).contains("set profile.hertz"), "{asked:?}");
    server.stop();
}
