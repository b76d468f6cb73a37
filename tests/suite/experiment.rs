//! `samovar try`: finds the effect of a change on one route, reports responses that change, sends
//! no request that may change data, and leaves the running server alone.

use samovar_testkit::http::Request;
use samovar_testkit::{Server, binary, eventually, family, is_root};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const NOT_WORSE: i32 = 0;
const WORSE: i32 = 1;
const NO_RESULT: i32 = 2;
/// A short experiment: three rounds at least.
const SHORT: [&str; 2] = ["--time", "6s"];

/// A page that takes long only on one route and with one value of a directive. It notes its
/// requests.
const APP: &str = r#"<?php
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $line = "{$_SERVER['REQUEST_METHOD']} {$_SERVER['REQUEST_URI']}\n";
    file_put_contents(__DIR__ . '/../seen', $line, FILE_APPEND);
    if ($path === '/slow' && ini_get('user_agent') === 'burn') {
        for ($i = 0; $i < 60_000; $i++) { $work = md5((string) $i); }
    }
    header('X-Token: ' . bin2hex(random_bytes(8)));
    echo "page $path ", uniqid();
    if ($path === '/agent') { echo ' <b>', ini_get('user_agent'), '</b>'; }
    if ($path === '/fails' && ini_get('user_agent') === 'burn') { http_response_code(500); }
"#;

fn app() -> TempDir {
    let folder = TempDir::with_prefix("samovar-try-test-").expect("a temporary folder");
    let public = folder.path().join("public");
    std::fs::create_dir(&public).expect("our folder");
    std::fs::write(public.join("index.php"), APP).expect("our folder");
    folder
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("try").args(words).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("XDG_RUNTIME_DIR", folder);
    if is_root() {
        command.arg("--allow-root");
    }
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn report(folder: &Path, words: &[&str]) -> (Option<i32>, Value) {
    let output = run(folder, &[words, &SHORT, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

fn subject<'a>(report: &'a Value, route: &str) -> &'a Value {
    let all = report["subjects"].as_array().expect("subjects");
    let is_it = |one: &&Value| one["route"].as_str().is_some_and(|name| name.ends_with(route));
    all.iter().find(is_it).unwrap_or_else(|| panic!("{route}: {report:#}"))
}

#[test]
fn cost_of_a_directive_is_found_on_its_route() {
    let app = app();
    let urls = ["--urls", "/slow", "/fast"];
    let (code, found) = report(app.path(), &[&["user_agent=burn", "public"], &urls[..]].concat());
    assert_eq!((code, &found["outcome"]), (Some(WORSE), &"worse".into()), "{found:#}");
    let cpu = &subject(&found, "/slow")["cpu_us"];
    assert_eq!(cpu["difference"]["change"], "more", "{found:#}");
    assert!(cpu["difference"]["low"].as_f64() > Some(1.0), "{found:#}");
    assert!(cpu["after"].as_f64() > cpu["before"].as_f64(), "{found:#}");
    let fast = &subject(&found, "/fast")["cpu_us"]["difference"];
    assert!(fast["fraction"].as_f64() < Some(1.0), "{found:#}");
    assert_eq!(found["answers"]["different"], 0, "random text may vary: {found:#}");
    assert!(found["rounds"].as_u64() >= Some(3) && found["subjects"][0]["route"] == "");
    assert!(found["worker_bytes"]["after"].as_f64() > Some(0.0), "{found:#}");
    assert!(found["boot_ms"]["before"].as_f64() > Some(0.0), "{found:#}");

    // The other way round, as text.
    let words = ["user_agent=calm", "public", "-d", "user_agent=burn", "--urls", "/slow", "/fast"];
    let output = run(app.path(), &[&words[..], &SHORT].concat());
    let text = text(&output);
    let first = text.lines().find(|line| line.starts_with("user_agent=calm: "));
    let first = first.unwrap_or_else(|| panic!("{text}"));
    assert!(first.contains("CPU time -") && first.contains("/slow"), "{text}");
    assert!(
        text.contains(" faster") && text.contains("responses  the same, compared for 2"),
        "{text}"
    );
}

#[test]
fn changed_responses_are_reported_with_their_route() {
    let app = app();
    let words = ["user_agent=burn", "public/index.php", "--urls", "/agent", "/fails", "/other"];
    let (code, found) = report(app.path(), &words);
    assert_eq!((code, &found["answers"]["different"]), (Some(WORSE), &2.into()), "{found:#}");
    let all = found["answers"]["differences"].as_array().expect("differences");
    let of = |path: &str| {
        let target = format!("GET {path}");
        let found: Vec<_> = all.iter().filter(|one| one["target"] == target.as_str()).collect();
        assert!(!found.is_empty(), "{path}: {all:#?}");
        found
    };
    let agent = of("/agent")[0];
    assert_eq!(agent["part"], "body");
    assert!(agent["route"].as_str().is_some_and(|route| route.ends_with("/agent")), "{agent}");
    assert!(agent["after"].as_str().is_some_and(|text| text.contains("[burn]")), "{agent}");
    assert!(of("/fails").iter().any(|one| one["after"].to_string().contains("500")), "{all:#?}");
    let words = ["user_agent=x", "public", "--urls", "/agent", "--mask", "<b>*</b>"];
    let (_, masked) = report(app.path(), &words);
    assert_eq!(masked["answers"]["different"], 0, "{masked:#}");
}

#[test]
fn same_settings_and_unsafe_requests_are_noted() {
    let app = app();
    let file = app.path().join("requests.txt");
    std::fs::write(&file, "/a\nHEAD /b?c=d\nPOST /buy\n").expect("our folder");
    let words = ["relink=true", "public", "--requests", "requests.txt"];
    let (_, found) = report(app.path(), &words);
    assert_eq!(found["left_out"][0][0], 1, "{found:#}");
    assert_eq!(found["answers"]["failed"], serde_json::json!([0, 0]), "{found:#}");
    assert_eq!(found["answers"]["different"], 0, "{found:#}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("the settings are the same with the change"), "{notes}");
    let seen = || std::fs::read_to_string(app.path().join("seen")).expect("requests came");
    assert!(seen().contains("HEAD /b?c=d\n") && !seen().contains("POST"), "{}", seen());
    let (_, found) = report(app.path(), &[&words[..], &["--allow", "POST"]].concat());
    assert_eq!(found["left_out"], serde_json::json!([]), "{found:#}");
    assert!(seen().contains("POST /buy\n"));
}

#[test]
fn impossible_changes_have_a_hint() {
    let app = app();
    for (words, expected) in [
        (&[][..], "hint: "),
        (&["public"], "there is no change to try"),
        (&["opcahce.jit=tracing", "public"], "did you mean `opcache.jit`?"),
        (&["workers=9", "public"], "`workers` cannot be tried"),
        (&["relink=perhaps", "public"], "perhaps` is not allowed"),
        (&["root=missing", "public"], "missing"),
        (&["relink=false", "public", "--urls", "no slash"], "hint: "),
        (&["relink=false", "public", "--requests", "none.txt"], "none.txt"),
        (&["relink=false", "public", "--time", "0"], "hint: it takes a time"),
    ] {
        let output = run(app.path(), words);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(NO_RESULT), "{words:?}: {text}");
        assert!(text.contains(expected) && text.contains("hint: "), "{words:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn recorded_requests_are_tried_and_the_running_server_is_not_touched() {
    let app = app();
    let server = Server::at(app.path().join("public/index.php")).workers(1).start();
    let record = |words: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["record", "--control"]).arg(server.control()).args(words);
        command.output().expect("the binary runs")
    };
    assert!(record(&["--count", "2"]).status.success());
    server.get("/one?token=secret");
    server.client().request(&Request::post("/buy", "text/plain", "x=1"));
    eventually("the recorded requests", || {
        let all: Value = serde_json::from_slice(&record(&["--json"]).stdout).ok()?;
        (all["requests"].as_array()?.len() == 2).then_some(())
    });
    let state = || {
        let status = server.status();
        let workers = status["workers"].as_array().expect("workers").iter();
        let pids: Vec<_> = workers.map(|worker| worker["pid"].clone()).collect();
        (pids, status["requests_total"].as_u64())
    };
    let before = state();
    assert_eq!(before.1, Some(2));
    let control = server.control().display().to_string();
    let words = ["precision=15", "public", "--control", &control];
    let (code, found) = report(app.path(), &words);
    assert!([Some(NOT_WORSE), Some(WORSE)].contains(&code), "{found:#}");
    assert_eq!(found["source"], "2 recorded", "{found:#}");
    assert_eq!(found["left_out"][0][0], 1, "the POST request: {found:#}");
    assert_eq!(state(), before, "no request reached the running server");
    let seen = std::fs::read_to_string(app.path().join("seen")).expect("requests came");
    assert_eq!(seen.matches("POST /buy\n").count(), 1, "{seen}");
    assert!(seen.contains("GET /one?token=(redacted)\n"), "{seen}");
    assert_eq!(server.get("/still").status, 200);
    server.stop();
}
