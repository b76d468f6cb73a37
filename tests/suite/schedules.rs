//! `[[schedule]]`: commands and jobs at certain times.

use samovar_testkit::{Redis, Server, Start, binary, eventually};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Notes its start, then acts on its first argument.
const RUNS: &str = r#"<?php
$folder = __DIR__ . '/..';
file_put_contents("$folder/ran", json_encode([getmypid(), $argv]) . "\n", FILE_APPEND);
$wait = function () use ($folder) { while (!file_exists("$folder/go")) { usleep(5000); } };
match ($argv[1]) {
    'say' => print("first\nlast of " . PHP_SAPI . "\n"),
    'exit' => (function () { fwrite(STDERR, "it is broken\n"); exit(3); })(),
    'die' => posix_kill(getmypid(), SIGSEGV),
    'bytes' => print("bad \xff\x1b[31m end\n"),
    'flood' => (function () {
        for ($i = 0; $i < 256; $i++) { echo str_repeat('x', 1 << 20); }
        echo "\nthe end\n";
    })(),
    'wait' => (function () use ($wait) { $wait(); echo "waited\n"; })(),
    'stubborn' => (function () use ($folder) {
        pcntl_signal(SIGTERM, SIG_IGN);
        // The child is in the group of its parent.
        if (pcntl_fork() === 0) { file_put_contents("$folder/child", (string) getmypid()); }
        while (true) { sleep(60); }
    })(),
    'daemon' => (function () use ($folder, $wait) {
        if (pcntl_fork() === 0) {
            posix_setsid();
            file_put_contents("$folder/daemon", (string) getmypid());
            $wait();
            file_put_contents("$folder/daemon", 'done');
            exit(0);
        }
        while (!file_exists("$folder/daemon")) { usleep(5000); }
        echo "parent is done\n";
    })(),
};
"#;

const CONSUMES: &str = "<?php
Samovar\\consume(function (Samovar\\Job ...$jobs) {
    foreach ($jobs as $job) {
        file_put_contents(__DIR__ . '/../ran', json_encode($job->payload()) . \"\\n\", FILE_APPEND);
    }
});
";

struct Site(TempDir);

impl Site {
    fn new() -> Site {
        let site = Site(TempDir::with_prefix("samovar-schedules-").expect("a folder"));
        for folder in ["public", "bin", "jobs"] {
            std::fs::create_dir(site.at(folder)).expect("a folder");
        }
        std::fs::write(site.at("public/index.php"), "<?php echo 'hello';").expect("a script");
        std::fs::write(site.at("bin/console"), RUNS).expect("a script");
        std::fs::write(site.at("jobs/work.php"), CONSUMES).expect("a script");
        site
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Settings of a schedule with that command.
    fn schedule(&self, command: &str, keys: &str) -> String {
        format!(
            "[[schedule]]\nname = '{command}'\nscript = '{}'\ncommand = '{command}'\n{keys}\n",
            self.at("bin/console").display()
        )
    }

    fn prepare(&self, tables: &str) -> Start {
        let store = self.at("state/jobs.sqlite");
        let config = format!("[jobs]\nstore = '{}'\n{tables}", store.display());
        Server::at(self.at("public")).workers(1).config(&config)
    }

    fn start(&self, tables: &str) -> Server {
        self.prepare(tables).start()
    }

    /// Lines that runs have written.
    fn ran(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.at("ran")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn go(&self) {
        std::fs::write(self.at("go"), "").expect("a file");
    }

    fn number(&self, file: &str) -> i32 {
        eventually(file, || std::fs::read_to_string(self.at(file)).ok()?.parse().ok())
    }
}

const DAILY: &str = "cron = '@daily'";

/// `samovar schedule`.
fn schedule(server: &Server, words: &[&str]) -> String {
    let output = Command::new(binary())
        .arg("schedule")
        .args(words)
        .arg("--control")
        .arg(server.control())
        .output()
        .expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn run(server: &Server, name: &str) {
    // The lock of a server that has just ended may be free a moment later.
    eventually("a run", || {
        let text = schedule(server, &["run", name]);
        text.contains("is started").then_some(())
    });
}

fn figures(server: &Server, name: &str) -> Value {
    let status = server.status();
    let all = status["schedules"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["name"] == name).unwrap_or(Value::Null)
}

fn wait_for_result(server: &Server, name: &str, result: &str) -> Value {
    eventually(&format!("{name} {result}"), || {
        Some(figures(server, name)).filter(|one| one["result"] == result)
    })
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn command_runs_at_its_interval_with_result_and_output() {
    let site = Site::new();
    let tables = site.schedule("say", "every = '1s'") + &site.schedule("exit", "every = '1s'");
    let server = site.start(&tables);
    eventually("runs", || {
        let done = |name, result: &str| figures(&server, name)["runs"][result].as_u64() >= Some(2);
        (done("say", "succeeded") && done("exit", "failed")).then_some(())
    });
    let said = wait_for_result(&server, "say", "succeeded");
    assert_eq!((&said["output"], &said["detail"]), (&json!("first\nlast of cli"), &json!("")));
    assert!(
        said["succeeded_ms"].as_u64() > Some(0) && said["next_ms"].as_u64() > Some(0),
        "{said}"
    );
    assert_eq!((&said["times"], &said["work"]), (&json!("every 1s"), &json!("console say")));
    let broken = wait_for_result(&server, "exit", "failed");
    assert_eq!((&broken["detail"], &broken["succeeded_ms"]), (&json!("exit code 3"), &json!(0)));
    let shown = schedule(&server, &["show", "exit"]);
    assert!(shown.contains("failed: exit code 3"), "{shown}");
    assert!(shown.ends_with("last output:\n  it is broken\n"), "{shown}");
    server.wait_for_log("a run of a schedule has failed: it is broken");
    let health = server.status()["health"].clone();
    let found = health["findings"].as_array().expect("a list").clone();
    let text = "the last run of schedule exit: failed (exit code 3)";
    assert!(found.iter().any(|one| one["text"] == text), "{health}");
    assert_eq!(health["healthy"], true);
    assert!(schedule(&server, &["ls"]).contains("succeeded"));
    let unknown = schedule(&server, &["run", "other"]);
    assert!(unknown.contains("there is no schedule `other`\nhint: the schedules are"), "{unknown}");
    server.stop();
}

#[test]
fn death_flood_and_invalid_bytes_of_a_command_are_harmless() {
    let site = Site::new();
    let tables = ["die", "bytes", "flood"].map(|command| site.schedule(command, DAILY)).concat();
    let server = site.start(&tables);
    for command in ["die", "bytes", "flood"] {
        run(&server, command);
    }
    assert_eq!(wait_for_result(&server, "die", "failed")["detail"], "killed by signal 11");
    let bytes = wait_for_result(&server, "bytes", "succeeded");
    assert_eq!(bytes["output"], "bad \u{fffd}\u{fffd}[31m end");
    wait_for_result(&server, "flood", "succeeded");
    let shown = schedule(&server, &["show", "flood"]);
    assert!(shown.ends_with("\n  the end\n") && shown.len() < 20_000, "{}", shown.len());
    assert_eq!(server.get("/").text(), "hello");
    let log = server.stop();
    assert!(log.len() < 100_000, "the output is not in the log: {}", log.len());
}

#[test]
fn timeout_ends_a_command_and_the_programs_that_it_started() {
    let site = Site::new();
    let keys = format!("{DAILY}\ntimeout = '300ms'\nstop_timeout = '200ms'");
    let server = site.start(&site.schedule("stubborn", &keys));
    run(&server, "stubborn");
    let child = site.number("child");
    let ended = wait_for_result(&server, "stubborn", "timed_out");
    assert!(ended["duration_ms"].as_u64() >= Some(500), "{ended}");
    eventually("the child ends", || (!is_alive(child)).then_some(()));
    server.wait_for_log("a scheduled command ignores SIGTERM, killing it");
    server.stop();
}

#[test]
fn daemon_that_keeps_the_output_open_does_not_prolong_the_run() {
    let site = Site::new();
    let server = site.start(&site.schedule("daemon", DAILY));
    run(&server, "daemon");
    let ended = wait_for_result(&server, "daemon", "succeeded");
    assert_eq!(ended["output"], "parent is done");
    let daemon = site.number("daemon");
    assert!(is_alive(daemon));
    site.go();
    eventually("the daemon ends", || {
        (std::fs::read_to_string(site.at("daemon")).ok()? == "done").then_some(())
    });
    server.stop();
}

#[test]
fn overlap_kill_replaces_the_run_and_skip_counts() {
    let site = Site::new();
    let killed = site.schedule("wait", "every = '1s'\noverlap = 'kill'");
    let skipped = site.schedule("stubborn", "every = '1s'\nstop_timeout = '100ms'");
    let server = site.start(&format!("{killed}{skipped}[timeouts]\ndrain = '500ms'\n"));
    eventually("runs are replaced", || {
        (figures(&server, "wait")["runs"]["stopped"].as_u64() >= Some(2)).then_some(())
    });
    eventually("runs are skipped", || {
        (figures(&server, "stubborn")["runs"]["skipped"].as_u64() >= Some(2)).then_some(())
    });
    let ran = site.ran();
    let count = |name: &str| ran.iter().filter(|run| run[1][1] == name).count();
    assert_eq!(count("stubborn"), 1);
    assert!(count("wait") >= 3);
    // The stop of the server ends both after `timeouts.drain`.
    let log = server.stop();
    assert!(log.contains("a scheduled command ignores SIGTERM, killing it"), "{log}");
    assert!(!log.contains("a run of a schedule has failed"), "{log}");
}

#[test]
fn reload_lets_a_run_finish_and_applies_new_times() {
    let site = Site::new();
    let server = site.start(&site.schedule("wait", DAILY));
    run(&server, "wait");
    let pid =
        eventually("a process", || figures(&server, "wait")["pid"].as_i64().filter(|p| *p > 0));
    server.reload().expect("a reload");
    server.reload().expect("another reload");
    let running = figures(&server, "wait");
    assert_eq!((&running["state"], &running["pid"]), (&json!("running"), &json!(pid)));
    let again = schedule(&server, &["run", "wait"]);
    assert!(again.contains("runs already"), "{again}");
    site.go();
    let ended = wait_for_result(&server, "wait", "succeeded");
    assert_eq!(ended["output"], "waited");
    assert_eq!(site.ran().len(), 1);
    run(&server, "wait");
    eventually("it runs in the new generation", || (site.ran().len() == 2).then_some(()));
    wait_for_result(&server, "wait", "succeeded");
    server.stop();
}

#[test]
fn upgrade_lets_a_run_finish_and_starts_none_twice() {
    let site = Site::new();
    let server = site.start(&site.schedule("wait", "every = '1s'\ncatch_up = 'once'"));
    eventually("a run", || (site.ran().len() == 1).then_some(()));
    let asked = std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| server.upgrade([]));
        // The new server serves while the old one waits for its run.
        let standby = eventually("the new server", || {
            Some(figures(&server, "wait")).filter(|one| one["state"] == "standby")
        });
        assert_eq!(site.ran().len(), 1, "{standby}");
        site.go();
        upgrade.join().expect("no panic")
    });
    asked.expect("an upgrade");
    server.wait_for_predecessor();
    eventually("the new server runs it", || {
        (figures(&server, "wait")["runs"]["succeeded"].as_u64() >= Some(2)).then_some(())
    });
    let status = figures(&server, "wait");
    assert_eq!(status["runs"]["interrupted"], 0, "the old server has stored the end");
    server.stop();
}

#[test]
fn only_one_of_two_servers_runs_and_the_other_takes_over() {
    let site = Site::new();
    let table = site.schedule("say", "every = '1s'");
    let first = site.start(&table);
    eventually("a run", || (site.ran().len() >= 2).then_some(()));
    let second = site.start(&table);
    assert_eq!(figures(&second, "say")["state"], "standby");
    let refused = schedule(&second, &["run", "say"]);
    assert!(refused.contains("another server runs the schedules"), "{refused}");
    let before = site.ran().len();
    eventually("further runs", || (site.ran().len() >= before + 2).then_some(()));
    assert_eq!(figures(&second, "say")["runs"]["succeeded"], 0);
    let of_first = figures(&first, "say")["runs"]["succeeded"].as_u64().expect("a number");
    drop(first.perish());
    assert!(of_first >= 2);
    eventually("the second takes over", || {
        (figures(&second, "say")["runs"]["succeeded"].as_u64() >= Some(2)).then_some(())
    });
    second.stop();
}

#[test]
fn killed_server_does_not_repeat_the_run_of_its_last_time() {
    let site = Site::new();
    let table = site.schedule("wait", "cron = '* * * * *'\ncatch_up = 'once'");
    let server = site.start(&table);
    run(&server, "wait");
    eventually("a run", || (site.ran().len() == 1).then_some(()));
    let pid = site.ran()[0][0].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    drop(server.perish());
    eventually("its command ends with it", || (!is_alive(pid)).then_some(()));
    let server = site.start(&table);
    let one = eventually("the lock", || {
        Some(figures(&server, "wait")).filter(|one| one["runs"]["interrupted"] == 1)
    });
    assert!(one["next_ms"].as_u64() > Some(0), "{one}");
    site.go();
    server.stop();
}

#[test]
fn schedule_pushes_a_job_with_its_payload() {
    let site = Site::new();
    let server = site.start(&format!(
        "[[queue]]\nname = 'work'\nhandler = '{}'\n\
         [[schedule]]\nname = 'push'\nevery = '1s'\nqueue = 'work'\n\
         payload = {{ kind = 'ä', list = [1, 2.5, true] }}\n",
        site.at("jobs/work.php").display()
    ));
    let ran = eventually("jobs", || Some(site.ran()).filter(|ran| ran.len() >= 2));
    assert_eq!(ran[0], json!({ "kind": "ä", "list": [1, 2.5, true] }));
    let one = wait_for_result(&server, "push", "succeeded");
    assert!(one["detail"].as_str().is_some_and(|text| text.starts_with("job ")), "{one}");
    assert_eq!(one["work"], "queue work");
    server.stop();
}

/// Servers of several machines: one of them runs the schedules, and another one takes over.
#[test]
fn one_of_the_servers_with_the_same_redis_runs_schedules() {
    let (site, redis) = (Site::new(), Redis::durable());
    let start = || {
        let redis = format!("[jobs]\nredis = 'unix://{}'\nlease = '2s'", redis.socket().display());
        let schedule = site.schedule("say", "every = '1s'");
        Server::at(site.at("public")).workers(1).config(&format!("{redis}\n{schedule}")).start()
    };
    let state = |server: &Server| figures(server, "say")["state"].as_str().map(str::to_owned);
    let stands_by = |server: &Server| state(server).as_deref() == Some("standby");
    let first = start();
    eventually("runs", || (site.ran().len() >= 2).then_some(()));
    let second = start();
    eventually("a server that waits", || stands_by(&second).then_some(()));
    assert!(!stands_by(&first));
    assert!(schedule(&second, &["run", "say"]).contains("another server runs the schedules"));
    first.perish();
    eventually("the other server takes over", || (!stands_by(&second)).then_some(()));
    let before = site.ran().len();
    eventually("it runs", || (site.ran().len() > before).then_some(()));

    let third = start();
    eventually("a server that waits", || stands_by(&third).then_some(()));
    // A server that stops gives the lease up.
    second.stop();
    eventually("the last server", || (!stands_by(&third)).then_some(()));
    third.stop();
}
