//! Figures of queues, and the commands that an operator uses on them.

use super::{PUSHES, Site, figures, one, push, queue, scripts, wait_for_figure};
use crate::request_accounting::bench::ask;
use samovar_testkit::{Server, binary, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A text that would change a terminal, or the order of the text around it.
const HOSTILE: &str = "a\u{1b}[2J\u{202e}<script>alert(1)</script>\u{9b}b";

fn two_queues(site: &Site) -> String {
    let handler = site.at("jobs/work.php");
    format!("[[queue]]\nname = 'other'\nhandler = '{}'\n", handler.display())
}

fn figures_of(server: &Server, name: &str) -> Value {
    let list: Value = serde_json::from_str(&queue(server, &["ls", "--json"])).expect("JSON");
    let queues = list["queues"].as_array().expect("queues");
    queues.iter().find(|queue| queue["name"] == name).expect("the queue").clone()
}

fn command(server: &Server, words: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("queue").args(words).arg("--control").arg(server.control());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(server: &Server, words: &[&str]) -> Output {
    command(server, words).output().expect("the command runs")
}

fn start(server: &Server, words: &[&str]) -> Child {
    command(server, words).spawn().expect("the command runs")
}

fn status_text(server: &Server) -> String {
    let output = Command::new(binary())
        .args(["status", "--control"])
        .arg(server.control())
        .output()
        .expect("the command runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn figures_are_the_same_in_status_metrics_and_dashboard() {
    let site = scripts();
    let server = site.prepare("attempts = 2").args(["--admin", "127.0.0.1:0"]).start();
    one(&server, &json!("well"));
    one(&server, &json!({ "do": "throw" }));
    push(&server, "/", &json!({ "payload": 1, "delay": 3_000 }));
    wait_for_figure(&server, "dead", 1);
    wait_for_figure(&server, "done_total", 1);
    queue(&server, &["pause", "work"]);
    one(&server, &json!("waits"));
    let status = server.status();
    let found = &status["queues"][0];
    for (key, value) in [
        ("ready", 1),
        ("delayed", 1),
        ("running", 0),
        ("dead", 1),
        ("pushed_total", 4),
        ("done_total", 1),
        ("failed_total", 2),
        ("retried_total", 1),
        ("dead_total", 1),
        ("oldest_max_ms", 900_000),
    ] {
        assert_eq!(found[key], value, "{key} in {found}");
    }
    assert_eq!(
        (&found["paused"], &found["failures"]),
        (&json!(true), &json!({"RuntimeException": 2}))
    );
    let text = status_text(&server);
    let line = text.lines().find(|line| line.starts_with("work ")).expect("a line");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!((words[1], words[5], words.last()), ("1", "1", Some(&"paused")), "{line}");
    let metrics = ask(&server, "/metrics");
    for line in [
        "samovar_jobs{queue=\"work\",state=\"ready\"} 1",
        "samovar_jobs{queue=\"work\",state=\"dead\"} 1",
        "samovar_jobs_paused{queue=\"work\"} 1",
        "samovar_jobs_pushed_total{queue=\"work\"} 4",
        "samovar_jobs_retried_total{queue=\"work\"} 1",
        "samovar_jobs_died_total{queue=\"work\"} 1",
        "samovar_jobs_failures_total{queue=\"work\",class=\"RuntimeException\"} 2",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line} in\n{metrics}");
    }
    let page = ask(&server, "/queues");
    assert!(page.contains("/queue?name=work") && page.contains("paused"), "{page}");
    let page = ask(&server, "/queue?name=work");
    assert!(page.contains("RuntimeException: this job is poison"), "{page}");
    assert!(page.contains("work.php:"), "{page}");
    server.stop();
}

#[test]
fn old_job_is_a_warning() {
    let site = scripts();
    let server = site.start("oldest_max = '1s'");
    queue(&server, &["pause", "work"]);
    one(&server, &json!(1));
    let found = eventually("a warning", || {
        let health = server.status()["health"].clone();
        health["findings"].as_array()?.iter().find(|found| found["about"] == "jobs").cloned()
    });
    assert_eq!((&found["severity"], &found["limit"]), (&json!("warning"), &json!("1 s")));
    assert!(found["text"].as_str().is_some_and(|text| text.contains("work is paused")), "{found}");
    queue(&server, &["resume", "work"]);
    eventually("no warning", || {
        let findings = server.status()["health"]["findings"].to_string();
        (!findings.contains("\"jobs\"")).then_some(())
    });
    server.stop();
}

#[test]
fn hostile_texts_of_jobs_are_harmless_in_terminal_and_page() {
    let site = scripts();
    let throws = "<?php Samovar\\consume(function (Samovar\\Job ...$jobs) {
        throw new RuntimeException($jobs[0]->payload()); });";
    std::fs::write(site.at("jobs/work.php"), throws).expect("a script");
    let server = site.prepare("attempts = 1").args(["--admin", "127.0.0.1:0"]).start();
    push(&server, "/", &json!({ "payload": HOSTILE, "key": HOSTILE }));
    wait_for_figure(&server, "dead", 1);
    let (text, page) = (queue(&server, &["show", "work"]), ask(&server, "/queue?name=work"));
    for shown in [&text, &page, &queue(&server, &["show", "work", "--json"])] {
        assert!(shown.contains("alert(1)"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{shown}");
    }
    assert!(!page.contains("<script>alert"), "{page}");
    for name in [HOSTILE, "", "../work", "work\nother"] {
        let refused = queue(&server, &["show", name]);
        assert!(refused.contains("there is no queue `"), "{refused}");
        assert!(!refused.contains(['\u{1b}', '\u{202e}']), "{refused}");
    }
    server.stop();
}

#[test]
fn show_has_pages() {
    let site = scripts();
    let server = site.start("attempts = 1\nbatch = 10");
    let fails = vec![json!({ "do": "fail", "text": "x".repeat(20_000) }); 80];
    for part in fails.chunks(10) {
        push(&server, "/?many=1", &json!(part));
    }
    wait_for_figure(&server, "dead", 80);
    let first = queue(&server, &["show", "work"]);
    assert_eq!(first.matches("\n  payload ").count(), 20);
    let (_, next) = first.trim_end().rsplit_once("--after ").expect("a hint");
    let second = queue(&server, &["show", "work", "--limit", "1000", "--after", next]);
    let count = second.matches("\n  payload ").count();
    assert!((45..60).contains(&count), "{count} of 60: the response is limited by bytes");
    assert!(second.len() < 1_200_000, "{}", second.len());
    assert!(second.contains("--after "));
    server.stop();
}

#[test]
fn drain_waits_until_the_queue_is_empty() {
    let site = scripts();
    let server = site.start("workers = 1");
    one(&server, &json!({ "do": "wait" }));
    one(&server, &json!(2));
    let late = run(&server, &["drain", "work", "--timeout", "300ms"]);
    assert_eq!(late.status.code(), Some(3));
    let text = String::from_utf8_lossy(&late.stdout).into_owned();
    assert!(text.starts_with("work is not empty: ") && text.contains("1 running"), "{text}");
    let mut waits = start(&server, &["drain", "work"]);
    let mut progress = String::new();
    let stderr = waits.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut progress).expect("a line");
    assert!(progress.contains("1 ready, 0 delayed, 1 running"), "{progress}");
    one(&server, &json!(3));
    site.go();
    let output = waits.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"work is empty\n"[..]));
    assert_eq!(site.ran().len(), 3);
    push(&server, "/", &json!({ "payload": 1, "delay": 3_000 }));
    queue(&server, &["pause", "work"]);
    let paused = run(&server, &["drain", "work"]);
    let text = String::from_utf8_lossy(&paused.stderr).into_owned();
    assert_eq!(paused.status.code(), Some(1), "{text}");
    assert!(text.contains("work is paused") && text.contains("queue resume work"), "{text}");
    assert!(queue(&server, &["drain", "other"]).contains("there is no queue `other`"));
    server.stop();
}

#[test]
fn wrong_arguments_are_refused() {
    let site = scripts();
    let server = site.start("");
    for (words, expected) in [
        (&["move", "work"][..], "`move` needs two queues"),
        (&["pause", "work", "7"], "`pause` takes no numbers of jobs"),
        (&["retry", "work", "seven"], "`seven` is not the number of a job"),
        (&["retry", "work", "--dead"], "`retry` does not take --dead"),
        (&["show", "work", "--limit", "0"], "limit"),
    ] {
        let output = run(&server, words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(expected), "{words:?}: {text}");
    }
    let same = queue(&server, &["move", "work", "work"]);
    assert!(same.contains("are in this queue already"), "{same}");
    let unknown = queue(&server, &["move", "work", "nowhere"]);
    assert!(unknown.contains("there is no queue `nowhere`"), "{unknown}");
    server.stop();
}

#[test]
fn move_takes_jobs_and_dead_jobs_to_another_queue() {
    let site = scripts();
    let server = site.start(&format!("attempts = 1\n{}", two_queues(&site)));
    one(&server, &json!({ "do": "fail" }));
    wait_for_figure(&server, "dead", 1);
    queue(&server, &["pause", "work"]);
    queue(&server, &["pause", "other"]);
    let ids = push(&server, "/?many=1", &json!([1, 2, 3]));
    let one_of_them = ids[1].to_string();
    assert_eq!(queue(&server, &["move", "work", "other", &one_of_them]), "1 job\n");
    assert_eq!(queue(&server, &["move", "work", "other"]), "2 jobs\n");
    assert_eq!(queue(&server, &["move", "work", "other", "--dead"]), "1 job\n");
    let (from, to) = (figures_of(&server, "work"), figures_of(&server, "other"));
    assert_eq!((&from["ready"], &from["dead"]), (&json!(0), &json!(0)));
    assert_eq!((&to["ready"], &to["dead"]), (&json!(3), &json!(1)));
    queue(&server, &["resume", "other"]);
    let ran = site.wait_for(4);
    let order: Vec<_> = ran[1..].iter().map(|job| (&job[1], &job[4])).collect();
    let other = json!("other");
    assert_eq!(order, [(&other, &json!(1)), (&other, &json!(2)), (&other, &json!(3))]);
    server.stop();
}

#[test]
fn no_job_is_lost_if_the_server_is_killed_during_a_move() {
    const JOBS: usize = 30_000;
    let site = scripts();
    let other = two_queues(&site);
    let keys = format!("batch = 1000\nworkers = 2\n{other}batch = 1000\n");
    let server = site.start(&keys);
    queue(&server, &["pause", "work"]);
    queue(&server, &["pause", "other"]);
    let mut expected = BTreeSet::new();
    for from in (0..JOBS).step_by(1_000) {
        let payloads: Vec<usize> = (from..from + 1_000).collect();
        let ids = push(&server, "/?many=1", &json!(payloads));
        expected.extend(ids.as_array().expect("ids").iter().filter_map(Value::as_i64));
    }
    let command = start(&server, &["move", "work", "other"]);
    eventually("a part of the move", || (figures_of(&server, "other")["ready"] != 0).then_some(()));
    drop(server.perish());
    let output = command.wait_with_output().expect("it ends");
    let server = site.start(&keys);
    let count = |name: &str| figures_of(&server, name)["ready"].as_u64().expect("a number");
    let (left, moved) = (count("work"), count("other"));
    assert_eq!(left + moved, JOBS as u64, "each job is in one queue");
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("stopped after") || text.contains("nothing was changed"), "{text}");
    }
    assert_eq!(moved % 1_000, 0, "parts of the move are stored as a whole");
    let rest = queue(&server, &["move", "work", "other"]);
    assert!(rest.trim_end().ends_with(" jobs") || rest == "1 job\n", "{rest}");
    queue(&server, &["resume", "other"]);
    let ids = || -> BTreeSet<i64> { site.ran().iter().filter_map(|job| job[0].as_i64()).collect() };
    eventually("all jobs", || (ids() == expected).then_some(()));
    server.stop();
}

#[test]
fn jobs_of_a_renamed_queue_are_moved_to_the_new_one() {
    let site = scripts();
    let server = site.start("");
    queue(&server, &["pause", "work"]);
    let id = one(&server, &json!("old"));
    server.stop();
    let config = format!(
        "[jobs]\nstore = '{}'\n[[queue]]\nname = 'mails'\nhandler = '{}'\n",
        site.at("state/jobs.sqlite").display(),
        site.at("jobs/work.php").display()
    );
    let server = Server::at(site.at("public")).workers(2).config(&config).start();
    assert_eq!(queue(&server, &["move", "work", "mails"]), "1 job\n");
    let ran = site.wait_for(1);
    assert_eq!((&ran[0][0], &ran[0][1]), (&json!(id), &json!("mails")));
    let wrong = queue(&server, &["move", "wrok", "mails"]);
    assert!(wrong.contains("there is no queue `wrok`"), "{wrong}");
    server.stop();
}

#[test]
fn rate_limits_all_workers_together() {
    let site = scripts();
    let server = site.start("workers = 2\nrate = '20/s'");
    let begun = Instant::now();
    push(&server, "/?many=1", &json!((0..15).collect::<Vec<i32>>()));
    site.wait_for(15);
    // The first one starts at once, each of the others 50 ms later.
    assert!(begun.elapsed() >= Duration::from_millis(14 * 50 - 20), "{:?}", begun.elapsed());
    wait_for_figure(&server, "done_total", 15);
    server.stop();
}

#[test]
fn retried_job_keeps_its_turn_among_those_with_its_key() {
    let site = Site::new(&format!("<?php {PUSHES}"));
    let server = site.start("workers = 2\nconcurrency_per_key = 1");
    queue(&server, &["pause", "work"]);
    let first = push(&server, "/", &json!({ "payload": { "do": "retry" }, "key": "a" }));
    let second = push(&server, "/", &json!({ "payload": 2, "key": "a" }));
    let other = push(&server, "/", &json!({ "payload": 3, "key": "b" }));
    queue(&server, &["resume", "work"]);
    let ran = site.wait_for(5);
    let of_key: Vec<_> = ran.iter().filter(|job| job[3] == "a").map(|job| &job[0]).collect();
    assert_eq!(of_key, [&first, &first, &first, &second]);
    assert!(ran.iter().any(|job| job[0] == other));
    assert_eq!(figures(&server)["retried_total"], 2);
    server.stop();
}
