//! Console workers (`[[console]]`): supervised command-line scripts next to HTTP.

use samovar_testkit::{Server, Start, eventually, workspace};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn app(front_controller: &str) -> Start {
    Server::at(workspace().join("tests/apps/console/public").join(front_controller)).workers(1)
}

/// Settings of one console worker.
fn worker(command: &str, more: &str) -> String {
    let console = workspace().join("tests/apps/console/bin/console");
    format!("[[console]]\nscript = '{}'\ncommand = '{command}'\n{more}\n", console.display())
}

fn with(command: &str, more: &str) -> Start {
    app("index.php").config(&worker(command, more))
}

fn consoles(server: &Server) -> Vec<Value> {
    server.status()["consoles"].as_array().cloned().unwrap_or_default()
}

/// Waits until the console prints `word`. Returns the text after it.
fn said(server: &Server, word: &str) -> String {
    eventually(word, || {
        let log = server.log();
        let (_, rest) = log.split_once(&format!("samovar::worker: {word}"))?;
        let (text, _) = rest.split_once(" name=")?;
        Some(text.trim().to_owned())
    })
}

fn running(server: &Server) -> Vec<i64> {
    let all = consoles(server);
    all.iter().filter(|c| c["state"] == "running").filter_map(|c| c["pid"].as_i64()).collect()
}

fn restarts(server: &Server) -> u64 {
    consoles(server).iter().filter_map(|c| c["restarts"].as_u64()).sum()
}

#[test]
fn console_behaves_as_php_cli_and_requests_share_its_opcache() {
    let server = with("facts \"two words\" -v", "").start();
    let facts: Value = serde_json::from_str(&said(&server, "FACTS")).expect("JSON");
    assert_eq!(facts["sapi"], json!(["cli", "cli"]));
    assert_eq!(facts["argv"], json!(["facts", "two words", "-v"]));
    assert_eq!(facts["argc"], 4);
    assert_eq!(facts["who"], json!(["facts", "1"]));
    assert_eq!(facts["cwd"], json!(server.folder().canonicalize().unwrap()));
    assert_eq!(facts["self"], "console");
    assert_eq!(facts["limits"], json!(["0", "-1", "0"]));
    assert_eq!(facts["streams"], json!([true, true, true, false]));
    assert_eq!(facts["path"], true);
    assert_eq!(facts["headers"], json!([true, []]));
    assert_eq!(facts["buffers"], 0);
    assert_eq!(said(&server, "SECOND"), r#"["cli","cli",true,"cli"]"#);
    assert!(said(&server, "SERVE").contains("there are none on the console"));
    server.wait_for_log("samovar::worker: to the error stream");
    server.wait_for_log("a notice of the script");
    assert!(!server.log().contains("NEVER"));
    // The console compiled this file under another SAPI name.
    assert_eq!(server.get("/?file=second").text(), r#"["fpm-fcgi","fpm-fcgi",false,"fpm-fcgi"]"#);
    server.stop();
}

#[test]
fn script_compiled_by_request_is_correct_on_console() {
    // The second console starts after the first has failed twice, long after the request.
    let server = app("index.php").config(&worker("first", "time_max = '900ms'")).start();
    assert_eq!(said(&server, "FIRST"), r#"["cli","cli",true,"cli"]"#);
    assert_eq!(server.get("/?file=first").text(), r#"["fpm-fcgi","fpm-fcgi",false,"fpm-fcgi"]"#);
    let again = eventually("the second console", || {
        let log = server.log();
        let lines: Vec<_> = log.lines().filter(|l| l.contains("worker: FIRST")).collect();
        lines.get(1).map(|line| (*line).to_owned())
    });
    assert!(again.contains(r#"["cli","cli",true,"cli"]"#), "{again}");
}

#[test]
fn stop_lets_console_workers_finish_current_job() {
    let server = with("consume", "count = 3").start();
    let pids = eventually("three consoles", || Some(running(&server)).filter(|p| p.len() == 3));
    for pid in &pids {
        server.wait_for_log(&format!("CONSUMES {pid}"));
    }
    assert_eq!(server.get("/").status, 200);
    let log = server.stop();
    for pid in pids {
        assert!(log.contains(&format!("FINISHED {pid}")), "{log}");
    }
}

#[test]
fn stubborn_console_worker_is_killed_after_stop_timeout() {
    let server = with("stubborn", "stop_timeout = '300ms'").start();
    server.wait_for_log("STUBBORN");
    let begun = Instant::now();
    let log = server.stop();
    assert!(log.contains("did not exit within its stop_timeout"), "{log}");
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(300), "{took:?}");
}

#[test]
fn failing_console_worker_is_restarted_with_backoff() {
    for (command, trace) in [
        ("fails", "status 7"),
        ("throws", "nobody catches this"),
        ("crashes", "segmentation fault"),
    ] {
        let begun = Instant::now();
        let server = with(command, "").start();
        server.wait_for_log(trace);
        eventually("restarts", || (restarts(&server) >= 4).then_some(()));
        // The first two restarts are immediate, the next ones after 250 and 500 ms.
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(750), "{command}, {took:?}: {}", server.log());
        assert_eq!(server.get("/").status, 200, "requests do not notice");
        assert_eq!(server.status()["worker_restarts_total"], 0);
        server.stop();
    }
}

#[test]
fn console_worker_restarts_at_memory_and_time_limit() {
    let server = with("grows", "memory_max = '100M'").start();
    eventually("a restart", || (restarts(&server) >= 1).then_some(()));
    server.stop();
    let server = with("consume", "time_max = '500ms'").start();
    let first = said(&server, "CONSUMES");
    eventually("a restart", || (restarts(&server) >= 1).then_some(()));
    // The output arrives by the worker's pipe, the exit by another channel. Their order is
    // undefined.
    server.wait_for_log(&format!("FINISHED {first}"));
    server.stop();
}

#[test]
fn console_output_is_logged_in_pieces_without_blocking() {
    let server = with("chatters", "").start();
    server.wait_for_log("QUIET");
    let log = server.log();
    let longest = log.lines().map(str::len).max().unwrap_or(0);
    assert!((8192..9000).contains(&longest), "{longest}");
    assert_eq!(log.matches('y').count() / 1000, 100, "all of it");
    server.stop();
}

#[test]
fn console_worker_finishes_current_job_after_template_death() {
    let server = with("consume", "").start();
    let [pid] = eventually("a console", || Some(running(&server)).filter(|p| p.len() == 1))[..]
    else {
        panic!()
    };
    server.wait_for_log(&format!("CONSUMES {pid}"));
    let template = eventually("the template", || parent_of(server.worker_pid()));
    server.kill_worker(template);
    server.wait_for_log(&format!("FINISHED {pid}"));
    eventually("a successor", || running(&server).iter().any(|p| *p != pid).then_some(()));
    assert_eq!(server.get("/").status, 200);
    server.stop();
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[test]
fn console_workers_next_to_checkpoint_behave_as_php_cli() {
    let server = app("checkpoint.php").config(&worker("facts", "count = 2")).start();
    let facts: Value = serde_json::from_str(&said(&server, "FACTS")).expect("JSON");
    assert_eq!(facts["sapi"], json!(["cli", "cli"]));
    assert_eq!(server.get("/?file=second").text(), r#"["fpm-fcgi","fpm-fcgi",false,"fpm-fcgi"]"#);
    assert_eq!(server.status()["workers"][0]["model"], "checkpoint");
    eventually("both consoles", || (running(&server).len() == 2).then_some(()));
    server.stop();
}

#[test]
fn second_signal_stops_server_at_once() {
    let mut server = with("stubborn", "stop_timeout = '1h'").start();
    server.wait_for_log("STUBBORN");
    let address = server.address();
    server.terminate();
    eventually("the first signal is heard", || TcpStream::connect(address).is_err().then_some(()));
    server.terminate();
    server.wait();
}

#[test]
fn status_lists_console_workers() {
    let server = with("consume", "name = 'mail'\ncount = 2").start();
    eventually("two consoles", || (running(&server).len() == 2).then_some(()));
    let output = std::process::Command::new(samovar_testkit::binary())
        .args(["status", "--control"])
        .arg(server.control())
        .output()
        .expect("the status");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("CONSOLE") && text.matches("running   mail").count() == 2, "{text}");
    server.stop();
}
