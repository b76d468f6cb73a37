//! `samovar plan` against a running server: an answer from its history, or the reason for none.

mod verify;

use samovar_insight::store::{Minute, RouteMinute, Store, StoreLimits};
use samovar_insight::{Histogram, now};
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

const DAY: u64 = 86_400;
/// CPU time of a request in the invented history.
const CPU_NS: u64 = 5_000_000;
/// First line of a CSV file.
const HEADER: &str = "time,requests,cpu_seconds\n";
const WITH_STORE: &str = "[insight]\nstore = 'history.sqlite'\n";

fn plan(server: &Server, more: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(["plan", "--control"]).arg(server.control()).args(more);
    command.output().expect("the binary runs")
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes `days` of history up to now: one minute in ten, with more requests by day.
fn invent(path: &Path, days: u64) {
    let limits = StoreLimits { bytes_max: 64 << 20, days_max: 400 };
    let (mut store, _) = Store::open(path, limits).expect("the server's history");
    let end = now() / 600 * 600;
    for at in (end - days * DAY..end).step_by(600) {
        let hour = at % DAY / 3600;
        let requests = if (8..20).contains(&hour) { 60 } else { 12 };
        let mut cpu = Histogram::default();
        (0..requests).for_each(|_| cpu.add(CPU_NS));
        let run_ns = 20_000_000 * requests;
        let figures = RouteMinute { requests, cpu, run_ns, ..RouteMinute::default() };
        let routes = Arc::new(vec![(Box::from("shop"), figures)]);
        store.put(&Minute { at, routes, ..Minute::default() }).expect("room for it");
    }
}

fn with_history() -> (Server, PathBuf) {
    let server = Server::script("<?php echo 1;").config(WITH_STORE).start();
    let file = eventually("the file", || {
        let path = PathBuf::from(server.status()["history_file"].as_str()?);
        path.exists().then_some(path)
    });
    (server, file)
}

#[test]
fn server_with_history_has_a_capacity_and_a_trend() {
    let (server, file) = with_history();
    invent(&file, 16);
    // The plan subtracts the cores that other processes of the machine use now: here, other tests.
    let output = plan(&server, &["--json", "--others", "0", "--route", "shop=x2"]);
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["today"]["carries"].as_f64().is_some_and(|times| times > 1.0), "{found:#}");
    let output = plan(&server, &["--json", "--others", "0.5", "--route", "shop=x2"]);
    let less: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let carries = |found: &Value| found["today"]["carries"].as_f64().expect("a number");
    assert!(carries(&less) < carries(&found) - 0.1, "{less:#}");
    let cost = found["machines"][0]["cost"]["seconds"].as_f64().expect("a cost");
    assert!((0.004..0.02).contains(&cost), "{found:#}");
    assert!(found["trend"]["days"].as_u64().is_some_and(|days| days >= 14), "{found:#}");
    assert_eq!(found["machines"][0]["routes"][0]["name"], "shop");
    let day = found["peaks"][0]["day"].as_str().expect("a date");
    assert!(day.len() == 10 && day.starts_with("20"), "{found:#}");
    let output = plan(&server, &["--html", "/no/such/folder/plan.html"]);
    assert!(error(&output).contains("hint: name a file"), "{output:?}");
    let output = plan(&server, &["--others", "0"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("This machine carries "), "{text}");
    server.stop();
}

#[test]
fn missing_history_is_an_error_that_says_how_much_is_needed() {
    let (server, file) = with_history();
    assert!(error(&plan(&server, &[])).contains("the history is empty"));
    invent(&file, 1);
    let output = plan(&server, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("of data: a trend needs 14"), "{output:?}");
    server.stop();
    let server = Server::script("<?php echo 1;").start();
    let text = error(&plan(&server, &[]));
    assert!(text.contains("in memory only") && text.contains("`insight.store`"), "{text}");
    server.stop();
}

#[test]
fn files_of_other_machines_are_planned_without_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let run = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).arg("plan").args(more).output().expect("it runs")
    };
    let (mut csv, mut requests) = (String::new(), "time,requests\n".to_owned());
    let mut sar = "# hostname;interval;timestamp;CPU;%user;%steal;%idle\n".to_owned();
    csv.push_str("time,requests,cpu_percent\n");
    let first = (now() / DAY - 20) * DAY;
    for n in 0..6 * 24 * 20 {
        let (begin, load) = (first + n * 600, 10 + n % 144 / 4);
        // Writing to a string cannot fail.
        let _ = writeln!(csv, "{begin},{},{load}", load * 600);
        let _ = writeln!(requests, "{begin},{}", load * 600);
        let _ = writeln!(sar, "web;600;{};-1;{load};0;{}", begin + 600, 100 - load);
    }
    for (name, text) in [("a.csv", &csv), ("a.sar", &sar), ("requests.csv", &requests)] {
        std::fs::write(at(name), text).expect("our own file");
    }
    let fleet = "[[machine]]\nname = 'a'\ncores = 4\ngroup = 'x'\ncsv = 'a.csv'\n\
                 [[machine]]\nname = 'b'\ncores = 4\nsar = 'a.sar'\nrequests = 'requests.csv'\n";
    std::fs::write(at("fleet.toml"), fleet).expect("our own file");
    let cores = ["--cores", "4"];
    let alone = run(&[&["--csv", "a.csv"][..], &cores].concat());
    let both = run(&[&["--sar", "a.sar", "--requests", "requests.csv"][..], &cores].concat());
    assert!(alone.status.success(), "{alone:?}");
    assert_eq!(alone.stdout, both.stdout, "{alone:?} {both:?}");
    let output = run(&["--fleet", "fleet.toml", "--lose", "x", "--html", "plan.html"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("This fleet carries ") && text.contains("without x: "), "{output:?}");
    let page = std::fs::read_to_string(at("plan.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("This fleet carries"), "{page}");
    for (arguments, expected) in [
        (&["--csv", "a.csv"][..], "the number of cores of that machine is unknown"),
        (&["--csv", "none.csv", "--cores", "4"], "cannot read `none.csv`"),
        (&["--csv", "fleet.toml", "--cores", "4"], "fleet.toml:1: the first line names no column"),
        (&["--fleet", "fleet.toml", "--lose", "y"], "the groups are: x"),
        (&["--prometheus", "http://127.0.0.1:1", "--cores", "4"], "cannot query Prometheus"),
    ] {
        let text = error(&run(arguments));
        assert!(text.contains(expected) && text.contains("hint: "), "{arguments:?}: {text}");
    }
}

/// One machine with a load, and one of twice its cores with a hundredth of it.
#[test]
fn fleet_gives_weights_for_load_balancers_and_names_idle_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).args(["plan", "--fleet", "fleet.toml"]).args(more);
        command.output().expect("it runs")
    };
    let first = (now() / DAY - 2) * DAY;
    for (name, scale) in [("a", 1.0), ("b", 0.01)] {
        let mut csv = HEADER.to_owned();
        for n in 0..6 * 24 * 2_u32 {
            let requests = f64::from(10 + n % 144 / 4) * 600.0 * scale;
            // Writing to a string cannot fail.
            let at = first + u64::from(n) * 600;
            let _ = writeln!(csv, "{at},{requests},{}", requests * 0.01);
        }
        std::fs::write(folder.path().join(format!("{name}.csv")), csv).expect("our own file");
    }
    let write = |address: &str| {
        let fleet = format!(
            "[[machine]]\nname = 'a'\naddress = '10.0.0.1:80'\ncores = 4\ncsv = 'a.csv'\n\
             [[machine]]\nname = 'b'\n{address}cores = 8\ncsv = 'b.csv'\n"
        );
        std::fs::write(folder.path().join("fleet.toml"), fleet).expect("our own file");
    };
    write("");
    let output = run(&[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\nidle       b: below 10 % of the capacity"), "{output:?}");
    let text = error(&run(&["--weights", "nginx"]));
    assert!(text.contains("`b` has no address\nhint: "), "{text}");
    write("address = '[fd00::2]:8080'\n");
    for (balancer, lines) in [
        ("nginx", ["server 10.0.0.1:80 weight=50;", "server [fd00::2]:8080 weight=100;"]),
        ("haproxy", ["server a 10.0.0.1:80 weight 50 ", "server b [fd00::2]:8080 weight 100 "]),
        ("envoy", ["load_balancing_weight: 50\n", "address: \"fd00::2\"\n"]),
    ] {
        let output = run(&["--weights", balancer]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(lines.iter().all(|line| text.contains(line)), "{balancer}: {output:?}");
    }
    let output = run(&["--weights", "apache"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn unusable_inputs_are_errors_with_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("our own file");
    };
    let run = |more: &[&str]| {
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).arg("plan").args(more).output().expect("it runs")
    };
    let minutes = |from: u64, count: u64| {
        let lines: Vec<_> = (0..count).map(|n| format!("{},600,3\n", from + 60 * n)).collect();
        lines.concat()
    };
    let begin = now() - 20 * DAY;
    let garbage: Vec<u8> =
        (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (content, expected) in [
        (String::new(), "the file is empty"),
        ("\u{feff}\r\n".to_owned(), "names no column `time`"),
        (HEADER.to_owned(), "the history is empty"),
        (format!("{HEADER}{begin},600,NaN\n"), "`NaN` in column 3 is not a number"),
        (format!("{HEADER}{begin},-600,3\n"), "`-600` in column 2 is not a number"),
        (format!("{HEADER}{begin},1e300,3\n"), "`1e300` in column 2 is too large"),
        (format!("{HEADER}{begin},600\n"), "2 fields instead of 3"),
        (format!("{HEADER}{begin},600,3\n{begin},600,3\n"), "not after that of the line before"),
        (format!("{HEADER}{}", minutes(begin, 30)), "30 minutes of history with requests"),
        (
            format!("{HEADER}{begin},600,3\n{},600,3\n9999-01-01,600,3\n", begin + 300),
            "ends in the future, on 1 January 9999",
        ),
        (format!("{HEADER}{},600,3\n", "9".repeat(100_000)), "longer than 65536 bytes"),
    ] {
        write("a.csv", content.as_bytes());
        let text = error(&run(&["--csv", "a.csv", "--cores", "4"]));
        assert!(text.contains(expected) && text.contains("hint: "), "{text}");
    }
    let days: String =
        (0..20).map(|n| format!("{},600,3\n", begin + n * DAY)).collect::<Vec<_>>().concat();
    let all =
        (0..40).map(|n| format!("{},600,9000\n", begin + n * 300)).collect::<Vec<_>>().concat();
    for (lines, expected) in
        [(days, "20 intervals are left out"), (all, "CPU use is above 4.0 CPUs")]
    {
        write("a.csv", format!("{HEADER}{lines}").as_bytes());
        let text = error(&run(&["--csv", "a.csv", "--cores", "4"]));
        assert!(text.contains(expected) && text.contains("hint: "), "{text}");
    }
    write("garbage", &garbage);
    write("keys.toml", b"[[machine]]\nname = 'a'\ncores = 4\ncsv = 'a.csv'\nprice = 3\n");
    for arguments in [
        &["--csv", "garbage", "--cores", "4"][..],
        &["--csv", ".", "--cores", "4"],
        &["--sar", "garbage", "--requests", "a.csv", "--cores", "4"],
        &["--store", "garbage"],
        &["--store", "none.sqlite"],
        &["--fleet", "garbage"],
        &["--fleet", "/dev/zero"],
        &["--fleet", "keys.toml"],
    ] {
        let text = error(&run(arguments));
        assert!(text.contains("hint: ") && !text.contains("panicked"), "{arguments:?}: {text}");
    }
    // The days are a part of the command line.
    let output = run(&["--csv", "a.csv", "--cores", "4", "--holidays", "garbage"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("is not a text in UTF-8\nhint: "), "{text}");
}

#[test]
fn damaged_history_is_an_error_with_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history.sqlite");
    invent(&file, 3);
    let plan = |file: &Path| {
        let mut command = Command::new(binary());
        command.args(["plan", "--store"]).arg(file).output().expect("it runs")
    };
    let whole = plan(&file);
    assert!(whole.status.success(), "{whole:?}");
    let mut bytes = std::fs::read(&file).expect("the history");
    // Pages after the first one, which has the schema.
    bytes[4096..].fill(0xA5);
    let damaged = folder.path().join("damaged.sqlite");
    std::fs::write(&damaged, &bytes).expect("our own file");
    let text = error(&plan(&damaged));
    assert!(text.contains("hint: ") && !text.contains("panicked"), "{text}");
    let other = folder.path().join("other.sqlite");
    let create = "(new PDO('sqlite:' . $argv[1]))->exec('CREATE TABLE notes (id INT)');";
    let status = Command::new("php").args(["-r", create]).arg(&other).status();
    assert!(status.expect("php is installed").success());
    std::fs::write(folder.path().join("empty"), "").expect("our own file");
    std::fs::write(folder.path().join("text"), "some text").expect("our own file");
    for (name, why) in [
        ("empty", "it is empty"),
        ("text", "it is not a database of SQLite"),
        ("none", "there is no such file"),
        ("", "it is a folder"),
        ("other.sqlite", "it is another database"),
    ] {
        let text = error(&plan(&folder.path().join(name)));
        let hint = format!("`: {why}\nhint: name the file of the setting `insight.store`");
        assert!(text.contains(&hint), "{text}");
    }
}

#[test]
fn calibration_is_stored_for_later_plans() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(binary());
    command.args(["plan", "calibrate", "--seconds", "2"]).env("XDG_STATE_HOME", folder.path());
    let output = command.output().expect("the binary runs");
    let file = folder.path().join("samovar/smt.json");
    // On a machine with hyper-threading, other tests can disturb the measurement.
    if output.status.success() {
        let text = std::fs::read_to_string(file).expect("the result");
        let found: Value = serde_json::from_str(&text).expect("JSON");
        assert!(found["speedup"].as_f64().is_some_and(|speedup| speedup >= 1.0), "{found}");
    } else {
        assert!(error(&output).contains("idle machine"), "{output:?}");
    }
}
