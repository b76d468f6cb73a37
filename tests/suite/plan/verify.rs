//! `samovar plan verify`: a small load on a second server, with the prediction of the first one's
//! history. The rates are far below any limit, and the goals so wide that a busy machine meets
//! them.

use super::{invent, with_history};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, binary, eventually, kill};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

/// A goal that a busy machine meets, and short steps.
const CALM: [&str; 4] = ["--goal", "p99=30s", "--step-time", "1s"];
const SIGINT: i32 = 2;

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["plan", "verify"]).args(words);
    command
}

fn run(words: &[&str]) -> Output {
    command(words).output().expect("the binary runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

fn refusal(words: &[&str], code: i32) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("hint: ") && !text.contains("panicked"), "{text}");
    text
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

fn record(server: &Server) {
    let mut command = Command::new(binary());
    command.args(["record", "--control"]).arg(server.control()).args(["--count", "3"]);
    assert!(command.status().expect("the binary runs").success());
    server.get("/a?token=secret");
    server.get("/b");
    server.client().request(&Request::post("/buy", "text/plain", "x=1"));
    eventually("the recorded requests", || {
        let mut command = Command::new(binary());
        command.args(["record", "--json", "--control"]).arg(server.control());
        let all = json(&command.output().expect("the binary runs"));
        (all["requests"].as_array()?.len() == 3).then_some(())
    });
}

/// A second server whose pages show the method and the target in its log of requests.
fn second() -> Server {
    let php = r#"<?php
        $line = "{$_SERVER['REQUEST_METHOD']} {$_SERVER['REQUEST_URI']}\n";
        file_put_contents(__DIR__ . '/../seen', $line, FILE_APPEND);
        echo 1;"#;
    Server::script(php).workers(2).start()
}

#[test]
fn recorded_requests_are_measured_and_compared_with_the_plan() {
    let (first, file) = with_history();
    invent(&file, 2);
    record(&first);
    let second = second();
    let (control, other) = (first.control(), second.control());
    let (control, other) = (control.display().to_string(), other.display().to_string());
    let against = url(&second);
    let words = [
        "--control",
        &control,
        "--against",
        &against,
        "--against-control",
        &other,
        "--start",
        "8",
        "--max-rate",
        "10",
        "--others",
        "0",
        "--json",
    ];
    let output = run(&[&words[..], &CALM].concat());
    let found = json(&output);
    // The search stopped at --max-rate, far below the prediction.
    assert_eq!(output.status.code(), Some(1), "{found:#}");
    assert_eq!(found["outcome"], "not_measured", "{found:#}");
    assert_eq!(found["measured"]["good"], 10.0, "{found:#}");
    assert!(found["predicted"]["rate"].as_f64().is_some_and(|rate| rate > 20.0), "{found:#}");
    assert_eq!(found["left_out"][0][0], 1, "the POST request: {found:#}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("1 requests have replaced secret values"), "{notes}");
    for step in found["steps"].as_array().expect("steps") {
        assert_eq!(step["verdict"], "met", "{found:#}");
        assert!(step["server_cores"].as_f64().is_some(), "{found:#}");
        assert!(step["responses"].as_u64().is_some_and(|count| count > 0), "{found:#}");
        assert!(step["rate"].as_f64().is_some_and(|rate| rate <= 10.0), "{found:#}");
    }
    let seen = std::fs::read_to_string(second.folder().join("seen")).expect("requests came");
    let others: Vec<_> =
        seen.lines().filter(|line| !["GET /a?token=(redacted)", "GET /b"].contains(line)).collect();
    assert!(others.is_empty(), "{others:?}");
    // With POST, and as text.
    let words = [
        "--control",
        &control,
        "--against",
        &against,
        "--allow",
        "POST",
        "--max-rate",
        "10",
        "--start",
        "10",
        "--others",
        "0",
    ];
    let output = run(&[&words[..], &CALM].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("carries at least 10.0 requests/s; predicted are"), "{output:?}");
    assert!(text.contains("3 recorded"), "{text}");
    let seen = std::fs::read_to_string(second.folder().join("seen")).expect("requests came");
    assert!(seen.contains("POST /buy\n"), "{seen}");
    second.stop();
    first.stop();
}

#[test]
fn dead_target_and_missing_history_are_no_ceiling() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let against = format!("http://{}", listener.local_addr().expect("its address"));
    drop(listener);
    let folder = tempfile::tempdir().expect("a folder");
    let targets = folder.path().join("targets.txt");
    std::fs::write(&targets, "/\n").expect("our own file");
    let (targets, store) = (targets.display().to_string(), folder.path().join("none.sqlite"));
    let store = store.display().to_string();
    let words =
        ["--against", &against, "--requests", &targets, "--store", &store, "--start", "100"];
    let text = refusal(&words, 1);
    assert!(text.contains("check that the server runs"), "{text}");
    let output = run(&[&words[..], &["--json"]].concat());
    let found = json(&output);
    assert_eq!(found["measured"]["end"]["end"], "dead", "{found:#}");
    assert!(found["not_predicted"].as_str().is_some_and(|why| why.contains("hint: ")), "{found:#}");
}

#[test]
fn dangerous_and_useless_loads_are_refused() {
    let (first, _) = with_history();
    let control = first.control().display().to_string();
    let own = url(&first);
    let with =
        |words: &[&str], code: i32| refusal(&[&["--control", &control][..], words].concat(), code);
    let text = with(&["--against", &own], 1);
    assert!(text.contains("serves the visitors"), "{text}");
    let text = with(&["--against", "http://192.0.2.1:80"], 1);
    assert!(text.contains("public address"), "{text}");
    let text = with(&["--against", "http://192.0.2.1:80", "--yes-load", "192.0.2.2"], 1);
    assert!(text.contains("--yes-load 192.0.2.1"), "{text}");
    let text = with(&["--against", "http://127.0.0.1:1"], 1);
    assert!(text.contains("samovar record"), "nothing is recorded: {text}");
    let file = first.folder().join("targets.txt");
    std::fs::write(&file, "POST /buy\n").expect("our own file");
    let file = file.display().to_string();
    let text = with(&["--against", "http://127.0.0.1:1", "--requests", &file], 1);
    assert!(text.contains("1: the method POST may change data"), "{text}");
    with(&["--against", "https://127.0.0.1:1"], 2);
    with(&["--against", "http://127.0.0.1:1", "--goal", "fast"], 2);
    first.stop();
}

/// With a control socket that does not respond, no other server is asked and no load is sent.
#[test]
fn named_servers_must_respond() {
    let second = second();
    let file = second.folder().join("targets.txt");
    std::fs::write(&file, "\u{feff}/\n").expect("our own file");
    let (file, against) = (file.display().to_string(), url(&second));
    let store = second.folder().join("none.sqlite").display().to_string();
    let first = ["--against", &against, "--requests", &file];
    for more in [
        &["--control", "/nonexist.sock"][..],
        &["--store", &store, "--against-control", "/nonexist.sock"],
    ] {
        let text = refusal(&[&first[..], more].concat(), 1);
        assert!(text.contains("/nonexist.sock"), "{text}");
    }
    assert!(!second.folder().join("seen").exists(), "load was sent");
    second.stop();
}

/// All spellings of the address of the first server.
#[test]
fn planned_server_is_protected_by_any_address() {
    let (first, _) = with_history();
    let control = first.control().display().to_string();
    let port = first.address().to_string();
    let port = port.rsplit_once(':').expect("an address").1;
    for host in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost"] {
        let against = format!("http://{host}:{port}");
        let words = ["--control", &control, "--against-control", &control, "--against", &against];
        let text = refusal(&words, 1);
        assert!(text.contains("serves the visitors"), "{text}");
    }
    let text = refusal(&["--control", &control, "--against", "http://169.254.169.254"], 1);
    assert!(text.contains("link-local"), "{text}");
    first.stop();
}

#[test]
fn measurement_of_missing_pages_has_a_note() {
    let second = Server::script("<?php http_response_code(404);").start();
    let file = second.folder().join("targets.txt");
    std::fs::write(&file, "/none\n").expect("our own file");
    let (file, against) = (file.display().to_string(), url(&second));
    let store = second.folder().join("none.sqlite").display().to_string();
    let words = ["--against", &against, "--requests", &file, "--store", &store];
    let output = run(&[&words[..], &CALM, &["--start", "10", "--max-rate", "10"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" with 404\n"), "{output:?}");
    assert!(text.contains("100 % of the responses are redirects or client errors"), "{text}");
    second.stop();
}

#[test]
fn interrupted_measurement_shows_the_known_part() {
    let second = second();
    let targets = second.folder().join("targets.txt");
    std::fs::write(&targets, "/\n").expect("our own file");
    let (targets, against) = (targets.display().to_string(), url(&second));
    let store = second.folder().join("none.sqlite").display().to_string();
    let words = ["--against", &against, "--requests", &targets, "--store", &store];
    let more = ["--start", "5", "--max-rate", "6", "--step-time", "10m", "--json"];
    let child = command(&[&words[..], &more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    eventually("a request", || second.folder().join("seen").exists().then_some(()));
    kill(i32::try_from(child.id()).expect("a process id"), SIGINT);
    let output = child.wait_with_output().expect("it ends");
    let found = json(&output);
    assert_eq!(output.status.code(), Some(130), "{found:#}");
    assert_eq!(found["outcome"], "interrupted", "{found:#}");
    assert_eq!(found["steps"][0]["verdict"], "interrupted", "{found:#}");
    second.stop();
}
