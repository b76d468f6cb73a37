//! Pushes, batches and results over the embedded store.

use super::*;
use crate::sqlite::SqliteStore;
use proptest::prelude::*;
use samovar_channel::NewJob;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
    engine: Option<Engine>,
    now_ms: u64,
}

fn settings() -> QueueSettings {
    QueueSettings {
        name: "emails".to_owned(),
        workers: 2,
        batch: 3,
        linger: Duration::ZERO,
        attempts: 2,
        backoff: Duration::from_millis(10),
        backoff_max: Duration::from_millis(10),
        dead_letter: true,
        concurrency_per_key: 0,
    }
}

impl Bench {
    fn new() -> Bench {
        let mut bench =
            Bench { folder: tempfile::tempdir().expect("a folder"), engine: None, now_ms: 1_000 };
        bench.restart();
        bench
    }

    /// Opens the store as after a kill: everything in memory is lost.
    fn restart(&mut self) {
        self.engine = None;
        let path = self.folder.path().join("jobs.sqlite");
        let (store, _) = SqliteStore::open(&path, 1).expect("a store");
        let engine = Engine::open(Box::new(store), vec![settings()], 100_000, self.now_ms);
        self.engine = Some(engine.expect("readable"));
    }

    fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("open")
    }

    fn try_push(&mut self, jobs: Vec<NewJob>) -> Result<Vec<i64>, PushReply> {
        let now_ms = self.now_ms;
        let pending = self.engine().push(Push { queue: "emails".to_owned(), jobs }, now_ms)?;
        let ids = self.engine().commit(now_ms).expect("stored");
        Ok(pending.iter().map(|at| at.map_or(0, |at| ids[at])).collect())
    }

    fn push(&mut self, jobs: Vec<NewJob>) -> Vec<i64> {
        self.try_push(jobs).expect("accepted")
    }

    /// Returns the leases of the started batches, with the ids of their jobs.
    fn start(&mut self) -> Vec<(u64, Vec<i64>)> {
        let now_ms = self.now_ms;
        let (started, _) = self.engine().start(now_ms);
        let ids = |body: &[u8]| {
            let batch: Value = serde_json::from_slice(body).expect("JSON");
            let jobs = batch["jobs"].as_array().expect("a list").clone();
            jobs.iter().map(|job| job["id"].as_i64().expect("a number")).collect()
        };
        started.iter().map(|batch| (batch.lease, ids(&batch.body))).collect()
    }

    fn finish(&mut self, lease: u64, ran: &Result<Vec<u8>, RunError>) {
        let now_ms = self.now_ms;
        self.engine().finish(lease, ran, now_ms);
        self.engine().commit(now_ms).expect("stored");
    }

    fn command(&mut self, command: &Command) -> CommandResult {
        let now_ms = self.now_ms;
        let result = self.engine().obey(command, now_ms);
        self.engine().commit(now_ms).expect("stored");
        result
    }

    fn figures(&mut self) -> QueueStatus {
        match self.command(&Command::Figures) {
            CommandResult::Figures(mut all) => all.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

fn job(payload: &str) -> NewJob {
    NewJob { payload: payload.to_owned(), ..NewJob::default() }
}

#[allow(clippy::unnecessary_wraps)] // As a batch returns them.
fn results(outcomes: &[&str]) -> Result<Vec<u8>, RunError> {
    let each: Vec<Value> =
        outcomes.iter().map(|outcome| serde_json::json!({ "outcome": outcome })).collect();
    Ok(format!("\x1e{}\x1e", serde_json::json!({ "results": each, "error": "no" })).into_bytes())
}

#[test]
fn job_is_pushed_run_and_removed() {
    let mut bench = Bench::new();
    assert_eq!(bench.push(vec![job("1"), job("[2]")]), [1, 2]);
    let batches = bench.start();
    assert_eq!(batches, [(1, vec![1, 2])]);
    assert!(bench.start().is_empty(), "no job runs twice at the same time");
    bench.finish(1, &results(&["done", "done"]));
    let figures = bench.figures();
    assert_eq!((figures.ready, figures.running, figures.done_total), (0, 0, 2));
    bench.restart();
    assert!(bench.start().is_empty());
}

#[test]
fn running_job_runs_again_after_death_of_server() {
    let mut bench = Bench::new();
    bench.push(vec![job("1")]);
    assert_eq!(bench.start().len(), 1);
    bench.restart();
    assert_eq!(bench.start(), [(1, vec![1])]);
}

#[test]
fn failed_job_is_retried_then_dead_then_revived() {
    let mut bench = Bench::new();
    bench.push(vec![job("1"), job("2")]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["retry", "done"]));
    assert!(bench.start().is_empty(), "it waits for its delay");
    bench.restart();
    bench.now_ms += 10;
    let lease = bench.start()[0].0;
    bench.finish(lease, &Err(RunError::Failed("the worker died".to_owned())));
    let figures = bench.figures();
    assert_eq!((figures.ready, figures.delayed, figures.dead), (0, 0, 1));
    let CommandResult::Dead(dead) = bench.command(&Command::Dead("emails".to_owned(), 0)) else {
        panic!("no dead jobs")
    };
    assert_eq!((&*dead[0].error, dead[0].attempts), ("the worker died", 2));
    bench.restart();
    let retried = bench.command(&Command::Retry("emails".to_owned(), vec![]));
    assert_eq!(retried, CommandResult::Changed(1));
    assert_eq!(bench.start()[0].1, [1]);
    assert_eq!(bench.figures().dead, 0);
}

#[test]
fn batch_that_did_not_start_counts_no_attempt() {
    let mut bench = Bench::new();
    bench.push(vec![job("1")]);
    for _ in 0..5 {
        let lease = bench.start()[0].0;
        bench.finish(lease, &Err(RunError::NotStarted("no worker".to_owned())));
        assert!(bench.start().is_empty(), "the queue pauses");
        bench.now_ms += NOT_STARTED_PAUSE_MS;
    }
    assert_eq!(bench.figures().failed_total, 0);
}

#[test]
fn unique_job_is_stored_once() {
    let mut bench = Bench::new();
    let unique = || NewJob { key: Some("a".to_owned()), unique_ms: 1_000, ..job("1") };
    assert_eq!(bench.push(vec![unique(), unique()]), [1, 0]);
    assert_eq!(bench.push(vec![unique()]), [0]);
    bench.restart();
    assert_eq!(bench.push(vec![unique()]), [0]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["done"]));
    assert_eq!(bench.push(vec![unique()]), [2]);
}

#[test]
fn wrong_and_too_many_pushes_are_refused() {
    let mut bench = Bench::new();
    let wrong = |bench: &mut Bench, jobs: Vec<NewJob>, word: &str| {
        let Err(PushReply::Wrong(why)) = bench.try_push(jobs) else { panic!("accepted: {word}") };
        assert!(why.contains(word), "{why}");
    };
    wrong(&mut bench, vec![], "1 to 1000");
    wrong(&mut bench, vec![job("{")], "not JSON");
    wrong(&mut bench, vec![job(&"[".repeat(5_000))], "not JSON");
    wrong(&mut bench, vec![job(&format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX)))], "at most");
    wrong(&mut bench, vec![NewJob { unique_ms: 1, ..job("1") }], "needs a key");
    wrong(&mut bench, vec![NewJob { key: Some(String::new()), ..job("1") }], "a key has");
    wrong(&mut bench, vec![NewJob { delay_ms: u64::MAX, ..job("1") }], "366 days");
    let unknown = Push { queue: "other".to_owned(), jobs: vec![job("1")] };
    let refused = bench.engine().push(unknown, 0).expect_err("unknown");
    assert!(matches!(refused, PushReply::Wrong(why) if why.contains("`emails`")));
    let large = || job(&format!("\"{}\"", "x".repeat(40_000)));
    assert_eq!(bench.push(vec![large(), large()]), [1, 2]);
    let refused = bench.try_push(vec![large()]).expect_err("full");
    assert!(matches!(refused, PushReply::Refused(why) if why.contains("jobs.bytes_max")));
    assert_eq!(bench.figures().refused_total, 1);
}

#[test]
fn paused_queue_stays_paused_after_restart() {
    let mut bench = Bench::new();
    bench.push(vec![job("1")]);
    bench.command(&Command::Pause("emails".to_owned()));
    bench.restart();
    assert!(bench.start().is_empty() && bench.figures().paused);
    bench.command(&Command::Resume("emails".to_owned()));
    assert_eq!(bench.start().len(), 1);
}

#[test]
fn drop_removes_waiting_jobs_only() {
    let mut bench = Bench::new();
    bench.push((0..5).map(|n| job(&n.to_string())).collect());
    let (lease, running) = bench.start()[0].clone();
    assert_eq!(running, [1, 2, 3]);
    bench.push(vec![NewJob { delay_ms: 500, ..job("9") }]);
    let one = bench.command(&Command::Drop("emails".to_owned(), vec![6]));
    assert_eq!(one, CommandResult::Changed(1));
    bench.finish(lease, &results(&["done", "done", "release"]));
    bench.command(&Command::Drop("emails".to_owned(), vec![]));
    bench.restart();
    assert_eq!(bench.figures().ready, 2, "the second batch was running, and runs again");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Jobs run while results get lost and the server dies: each one ends, and none is lost.
    #[test]
    fn every_job_runs_at_least_once(steps in proptest::collection::vec(0_u8..6, 1..60)) {
        let mut bench = Bench::new();
        let (mut pushed, mut ran) = (HashSet::new(), HashSet::new());
        let mut leases = Vec::new();
        for step in steps {
            match step {
                0 | 1 => pushed.extend(bench.push(vec![job("1"), job("2")])),
                2 => leases.extend(bench.start()),
                3 => if let Some((lease, ids)) = leases.pop() {
                    bench.finish(lease, &results(&vec!["done"; ids.len()]));
                    ran.extend(ids);
                },
                4 => if let Some((lease, ids)) = leases.pop() {
                    bench.finish(lease, &results(&vec!["release"; ids.len()]));
                },
                _ => {
                    bench.restart();
                    leases.clear();
                }
            }
        }
        for (lease, ids) in leases {
            bench.finish(lease, &results(&vec!["release"; ids.len()]));
        }
        for _ in 0..200 {
            for (lease, ids) in bench.start() {
                bench.finish(lease, &results(&vec!["done"; ids.len()]));
                ran.extend(ids);
            }
        }
        prop_assert_eq!(&pushed, &ran);
        let figures = bench.figures();
        prop_assert_eq!((figures.ready, figures.running, figures.dead), (0, 0, 0));
    }
}
