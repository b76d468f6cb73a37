//! `[[queue]]`: jobs that requests push, and that workers of their own run.

mod hard;
mod idle;
mod kills;
mod operate;
mod options;
mod shared;
mod stopped;
mod traces;

use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, binary, eventually};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Pushes jobs, as the query says.
const PUSHES: &str = "
    $queue = Samovar\\queue($_GET['queue'] ?? 'work');
    $jobs = json_decode(file_get_contents('php://input') ?: '[]', true);
    try {
        if (isset($_GET['many'])) {
            echo json_encode($queue->pushMany($jobs));
        } else {
            echo json_encode($queue->push(...$jobs));
        }
    } catch (Throwable $e) {
        echo json_encode([get_class($e), $e->getMessage()]);
    }
";

/// Writes a line per job, then does the action that the payload names.
const RUNS: &str = r#"<?php
final class Count { public static int $batches = 0; }
echo 'output of the boot';
$booted = getmypid();
Samovar\consume(function (Samovar\Job ...$jobs) use ($booted) {
    Count::$batches++;
    foreach ($jobs as $job) {
        $payload = $job->payload();
        $line = [$job->id(), $job->queue(), $job->attempt(), $job->key(), $payload, count($jobs),
            Count::$batches, getmypid() === $booted];
        file_put_contents(__DIR__ . '/../ran', json_encode($line) . "\n", FILE_APPEND);
        $do = is_array($payload) ? ($payload['do'] ?? '') : '';
        match ($do) {
            'throw' => throw new RuntimeException('this job is poison'),
            'exit' => exit('bye'),
            'die' => posix_kill(getmypid(), SIGKILL),
            'eat' => str_repeat('x', 1 << 30),
            'loop' => (function () { while (true); })(),
            'fail' => $job->fail('not today'),
            'retry' => $job->attempt() < 3 ? $job->retry(0) : null,
            'release' => file_exists(__DIR__ . '/../go') ?: $job->release(0.05),
            'wait' => (function () {
                while (!file_exists(__DIR__ . '/../go')) { usleep(5000); }
            })(),
            default => null,
        };
    }
});
"#;

struct Site(TempDir);

impl Site {
    fn new(front_controller: &str) -> Site {
        let site = Site(TempDir::with_prefix("samovar-queues-").expect("a folder"));
        for folder in ["public", "jobs"] {
            std::fs::create_dir(site.0.path().join(folder)).expect("a folder");
        }
        std::fs::write(site.at("public/index.php"), front_controller).expect("a script");
        std::fs::write(site.at("jobs/work.php"), RUNS).expect("a script");
        site
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self, keys: &str) -> Server {
        self.prepare(keys).start()
    }

    fn prepare(&self, keys: &str) -> Start {
        let config = format!(
            "[jobs]\nstore = '{}'\n\
             [[queue]]\nname = 'work'\nhandler = '{}'\nbackoff = '10ms'\n{keys}\n",
            self.at("state/jobs.sqlite").display(),
            self.at("jobs/work.php").display(),
        );
        Server::at(self.at("public")).workers(2).config(&config)
    }

    /// Lines that jobs have written.
    fn ran(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.at("ran")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn wait_for(&self, count: usize) -> Vec<Value> {
        eventually(&format!("{count} runs of jobs"), || {
            Some(self.ran()).filter(|ran| ran.len() >= count)
        })
    }

    fn go(&self) {
        std::fs::write(self.at("go"), "").expect("a file");
    }
}

fn scripts() -> Site {
    Site::new(&format!("<?php {PUSHES}"))
}

/// Pushes with the arguments of `push()` or `pushMany()`.
fn push(server: &Server, target: &str, arguments: &Value) -> Value {
    let text = server
        .client()
        .request(&Request::post(target, "application/json", arguments.to_string()))
        .text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

fn one(server: &Server, payload: &Value) -> i64 {
    push(server, "/", &json!({ "payload": payload })).as_i64().expect("an id")
}

/// `samovar queue`.
fn queue(server: &Server, words: &[&str]) -> String {
    let output = Command::new(binary())
        .arg("queue")
        .args(words)
        .arg("--control")
        .arg(server.control())
        .output()
        .expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn figures(server: &Server) -> Value {
    let list: Value = serde_json::from_str(&queue(server, &["ls", "--json"])).expect("JSON");
    list["queues"][0].clone()
}

fn wait_for_figure(server: &Server, name: &str, value: u64) {
    eventually(&format!("{name} = {value}"), || {
        (figures(server)[name].as_u64() == Some(value)).then_some(())
    });
}

#[test]
fn jobs_pushed_from_each_model_run_with_their_payload() {
    for begin in [
        PUSHES.to_owned(),
        format!("Samovar\\checkpoint(); {PUSHES}"),
        format!("Samovar\\serve(function () {{ {PUSHES} }});"),
    ] {
        let site = Site::new(&format!("<?php {begin}"));
        let server = site.start("");
        let payload = json!({ "to": "ä€", "n": [1, 2.5, null, true, { "deep": "x\u{0}\"" }] });
        let id = one(&server, &payload);
        let second = push(&server, "/", &json!({ "payload": 7, "key": "k" }));
        let ran = site.wait_for(2);
        assert_eq!(ran[0], json!([id, "work", 1, null, payload, 1, 1, ran[0][7]]));
        assert_eq!(ran[1], json!([second, "work", 1, "k", 7, 1, 1, ran[1][7]]), "rolled back");
        wait_for_figure(&server, "done_total", 2);
        server.stop();
    }
}

#[test]
fn batch_contains_many_jobs() {
    let site = scripts();
    let server = site.start("batch = 100");
    queue(&server, &["pause", "work"]);
    let ids = push(&server, "/?many=1", &json!((0..150).collect::<Vec<i32>>()));
    assert_eq!(ids.as_array().map(Vec::len), Some(150));
    queue(&server, &["resume", "work"]);
    let sizes: BTreeMap<i64, usize> =
        site.wait_for(150).iter().fold(BTreeMap::new(), |mut all, job| {
            *all.entry(job[5].as_i64().expect("a number")).or_default() += 1;
            all
        });
    assert_eq!(sizes, BTreeMap::from([(50, 50), (100, 100)]));
    server.stop();
}

#[test]
fn failing_jobs_are_retried_then_dead_with_their_error() {
    let site = scripts();
    let server = site.start("attempts = 2\ntimeout = '500ms'\n[queue.timeouts]\ngrace = '200ms'");
    for (kind, error) in [
        ("throw", "RuntimeException: this job is poison in"),
        ("exit", "ended without results"),
        ("die", "the worker died"),
        ("eat", "ended without results"),
        ("loop", "the batch did not end within the queue's timeout"),
    ] {
        let id = one(&server, &json!({ "do": kind }));
        let shown = eventually(kind, || {
            Some(queue(&server, &["show", "work"])).filter(|text| text.contains("job "))
        });
        assert!(shown.contains(&format!("job {id}: 2 runs")) && shown.contains(error), "{shown}");
        assert!(shown.contains(&format!("payload {{\"do\":\"{kind}\"}}")), "{shown}");
        let attempts: Vec<Value> =
            site.ran().iter().filter(|job| job[0] == id).map(|job| job[2].clone()).collect();
        assert_eq!(attempts, [1, 2], "{kind}");
        assert_eq!(queue(&server, &["forget", "work"]), "1 job\n");
    }
    server.wait_for_log("a job is dead: RuntimeException: this job is poison in");
    one(&server, &json!("well"));
    wait_for_figure(&server, "done_total", 1);
    server.stop();
}

#[test]
fn job_can_fail_retry_and_release_itself() {
    let site = scripts();
    let server = site.start("attempts = 9");
    let failed = one(&server, &json!({ "do": "fail" }));
    wait_for_figure(&server, "dead", 1);
    assert!(queue(&server, &["show", "work"]).contains("not today"));
    let retried = one(&server, &json!({ "do": "retry" }));
    wait_for_figure(&server, "done_total", 1);
    let attempts = |id: i64| -> Vec<i64> {
        let ran = site.ran();
        ran.iter().filter(|job| job[0] == id).filter_map(|job| job[2].as_i64()).collect()
    };
    assert_eq!(attempts(failed), [1]);
    assert_eq!(attempts(retried), [1, 2, 3]);
    let released = one(&server, &json!({ "do": "release" }));
    eventually("two runs", || (attempts(released).len() > 1).then_some(()));
    site.go();
    wait_for_figure(&server, "done_total", 2);
    assert!(attempts(released).iter().all(|attempt| *attempt == 1));
    assert_eq!(queue(&server, &["retry", "work", &failed.to_string()]), "1 job\n");
    eventually("it runs again", || (attempts(failed).len() == 2).then_some(()));
    server.stop();
}

#[test]
fn wrong_pushes_throw() {
    let site = scripts();
    let server = site.start("");
    for (target, arguments, class, words) in [
        ("/?queue=other", json!({ "payload": 1 }), "ValueError", "the queues are `work`"),
        ("/", json!({ "payload": 1, "uniqueFor": 5 }), "ValueError", "needs a key"),
        ("/", json!({ "payload": 1, "delay": -1 }), "ValueError", "delay must be"),
        ("/", json!({ "payload": "x".repeat(50_000) }), "ValueError", "at most 49152 bytes"),
        ("/", json!({ "payload": 1, "priority": 1_i64 << 40 }), "ValueError", "priority"),
    ] {
        let thrown = push(&server, target, &arguments);
        assert_eq!(thrown[0], class, "{thrown}");
        assert!(thrown[1].as_str().is_some_and(|text| text.contains(words)), "{thrown}");
    }
    assert_eq!(figures(&server)["pushed_total"], 0);
    server.stop();
}

#[test]
fn objects_are_refused_as_payload() {
    let site = Site::new(
        "<?php try { Samovar\\queue('work')->push(['a' => new stdClass()]); }
         catch (TypeError $e) { echo $e->getMessage(); }",
    );
    let server = site.start("");
    let text = server.get("/").text();
    assert!(text.contains("type stdClass") && text.contains("hint:"), "{text}");
    server.stop();
}

#[test]
fn push_without_queue_throws() {
    let text = Server::script(
        "<?php try { Samovar\\queue('work')->push(1); }
         catch (ValueError $e) { echo $e->getMessage(); }",
    )
    .start()
    .get("/")
    .text();
    assert!(text.contains("this server has no queue"), "{text}");
}

#[test]
fn client_cannot_run_jobs() {
    let site = scripts();
    std::fs::copy(site.at("jobs/work.php"), site.at("public/work.php")).expect("a copy");
    let server = site.start("");
    let batch = json!({ "queue": "work", "jobs": [{ "id": 1, "attempt": 1, "payload": 1 }] });
    for host in ["localhost", "work"] {
        let request = Request::post("/work.php", "application/json", batch.to_string());
        server.client().request(&request.header("Host", host));
    }
    server.wait_for_log("runs jobs of a [[queue]] only");
    assert!(site.ran().is_empty());
    server.stop();
}

#[test]
fn stop_waits_for_running_job_and_keeps_the_others() {
    let site = scripts();
    let server = site.start("");
    one(&server, &json!({ "do": "wait" }));
    one(&server, &json!("later"));
    site.wait_for(1);
    server.terminate();
    site.go();
    let mut server = server;
    assert_eq!(server.wait(), Some(0));
    assert_eq!(site.ran().len(), 1, "no further job was started");
    let server = site.start("");
    wait_for_figure(&server, "done_total", 1);
    let ran = site.ran();
    assert_eq!((ran.len(), &ran[1][4]), (2, &json!("later")), "the first job did not run again");
    server.stop();
}

#[test]
fn jobs_survive_kill_of_server() {
    let site = scripts();
    let server = site.start("");
    let running = one(&server, &json!({ "do": "wait" }));
    let delayed = push(&server, "/", &json!({ "payload": 1, "delay": 0.2 }));
    let waiting = one(&server, &json!(2));
    site.wait_for(1);
    server.perish();
    site.go();
    let server = site.start("");
    let ran = site.wait_for(4);
    let ids: BTreeSet<i64> = ran.iter().filter_map(|job| job[0].as_i64()).collect();
    assert_eq!(ids, BTreeSet::from([running, delayed.as_i64().expect("an id"), waiting]));
    server.stop();
}

#[test]
fn reload_keeps_jobs() {
    let site = scripts();
    let server = site.start("");
    one(&server, &json!({ "do": "wait" }));
    site.wait_for(1);
    server.reload().expect("reloaded");
    site.go();
    one(&server, &json!(2));
    wait_for_figure(&server, "done_total", 2);
    assert_eq!(site.ran().len(), 2);
    server.stop();
}

#[test]
fn damaged_store_is_reported_and_set_aside() {
    let site = scripts();
    std::fs::create_dir(site.at("state")).expect("a folder");
    std::fs::write(site.at("state/jobs.sqlite"), "x".repeat(9_000)).expect("a file");
    let server = site.start("");
    server.wait_for_log("the store of jobs is damaged; it was renamed");
    one(&server, &json!(1));
    site.wait_for(1);
    server.stop();
}

#[test]
fn wrong_tables_are_reported() {
    let site = scripts();
    let handler = site.at("jobs/work.php");
    for (keys, words) in [
        ("batch = 0", "`batch` of a `[[queue]]` is not allowed"),
        ("rate = '100/d'", "`rate` of a `[[queue]]` is not allowed"),
        ("rate = 100", "`rate` of a `[[queue]]` is not allowed"),
        ("oldest_max = '9000h'", "`oldest_max` of a `[[queue]]` is not allowed"),
        ("match = '/a'", "`match` is not allowed in a `[[queue]]`"),
        ("root = '/a'", "`root` is not allowed in a `[[queue]]`"),
        ("handlr = 'a'", "did you mean `handler`?"),
    ] {
        let file = site.at("samovar.toml");
        let text = format!("[[queue]]\nname = 'work'\nhandler = '{}'\n{keys}\n", handler.display());
        std::fs::write(&file, text).expect("a file");
        assert!(check(&file, &site.at("public")).contains(words), "{keys}");
    }
    std::fs::write(site.at("samovar.toml"), "[[queue]]\nname = 'work'\n").expect("a file");
    assert!(check(&site.at("samovar.toml"), &site.at("public")).contains("has no `handler`"));
}

fn check(file: &Path, root: &Path) -> String {
    let output = Command::new(binary())
        .args(["check", "--config"])
        .arg(file)
        .arg(root)
        .output()
        .expect("the command runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Workers, the template and the server are killed at random points while jobs run.
#[test]
fn every_job_runs_at_least_once_despite_kills() {
    const ROUNDS: usize = 6;
    const JOBS: usize = 500;
    let site = scripts();
    let mut expected = BTreeSet::new();
    for round in 0..ROUNDS {
        let server = site.start("workers = 2\nbatch = 7\nattempts = 1000");
        for group in 0..5 {
            let from = (round * 5 + group) * (JOBS / 5);
            let payloads: Vec<usize> = (from..from + JOBS / 5).collect();
            let ids = push(&server, "/?many=1", &json!(payloads));
            expected.extend(ids.as_array().expect("ids").iter().filter_map(Value::as_i64));
            let pids = queue_workers(&server);
            if let Some(pid) = pids.get(group % pids.len().max(1)) {
                server.kill_worker(*pid);
            }
        }
        drop(server.perish());
    }
    let server = site.start("workers = 2\nbatch = 100");
    let ids = || -> BTreeSet<i64> { site.ran().iter().filter_map(|job| job[0].as_i64()).collect() };
    eventually("all jobs", || expected.is_subset(&ids()).then_some(()));
    wait_for_figure(&server, "ready", 0);
    assert_eq!(figures(&server)["dead"], 0);
    assert_eq!(expected.len(), ROUNDS * JOBS);
    server.stop();
}

/// Process ids of the workers that run jobs.
fn queue_workers(server: &Server) -> Vec<i32> {
    let status = server.status();
    let workers = status["workers"].as_array().cloned().unwrap_or_default();
    let own = workers.iter().filter(|worker| worker["pool"] == "work");
    own.filter_map(|worker| i32::try_from(worker["pid"].as_i64()?).ok()).collect()
}

/// A job that is pushed after the response exists only if the request has succeeded.
#[test]
fn push_after_response_depends_on_the_request() {
    const ENDS: &str = "
        $queue = Samovar\\queue('work');
        if ($_GET['end'] === 'many') {
            echo json_encode($queue->pushMany(['many', 'more'], afterResponse: true));
        } else {
            echo json_encode($queue->push($_GET['end'], afterResponse: true));
        }
        match ($_GET['end']) {
            'status' => http_response_code(503),
            'fatal' => trigger_error('it fails', E_USER_ERROR),
            'late' => (function () {
                echo str_repeat('x', 1 << 20);
                flush();
                no_such_function();
            })(),
            'throw' => throw new RuntimeException('it fails'),
            'exit' => exit(),
            'finish' => fastcgi_finish_request(),
            default => null,
        };
    ";
    for begin in [
        ENDS.to_owned(),
        format!("Samovar\\checkpoint(); {ENDS}"),
        format!("Samovar\\serve(function () {{ {ENDS} }});"),
    ] {
        let site = Site::new(&format!("<?php {begin}"));
        let server = site.start("");
        for end in ["status", "fatal", "late", "throw", "well", "many", "exit", "finish", "status"]
        {
            let response = server.client().try_request(&Request::get(&format!("/?end={end}")));
            if ["well", "exit", "finish"].contains(&end) {
                assert_eq!(response.expect("complete").text(), "null");
            }
        }
        wait_for_figure(&server, "done_total", 5);
        let payloads: Vec<Value> = site.ran().iter().map(|job| job[4].clone()).collect();
        let payloads: BTreeSet<&str> = payloads.iter().filter_map(Value::as_str).collect();
        assert_eq!(payloads, BTreeSet::from(["well", "many", "more", "exit", "finish"]));
        server.stop();
    }
}

#[test]
fn push_after_response_that_the_store_refuses_is_logged() {
    let site =
        Site::new("<?php Samovar\\queue('other')->push(1, afterResponse: true); echo 'well';");
    let server = site.start("");
    assert_eq!(server.get("/").text(), "well");
    server.wait_for_log("1 jobs for the queue `other` were not stored: there is no queue `other`");
    server.stop();
}
