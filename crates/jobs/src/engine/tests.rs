//! Pushes, batches and results over the embedded store.

use super::*;
use crate::job::Rate;
use crate::sqlite::SqliteStore;
use proptest::prelude::*;
use samovar_channel::{NewJob, PAYLOAD_BYTES_MAX};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
    engine: Option<Engine>,
    settings: Vec<QueueSettings>,
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
        rate: None,
        oldest_max: Duration::ZERO,
    }
}

impl Bench {
    fn new() -> Bench {
        Bench::with(vec![settings()])
    }

    fn with(settings: Vec<QueueSettings>) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bench = Bench { folder, engine: None, settings, now_ms: 1_000 };
        bench.restart();
        bench
    }

    /// Opens the store as after a kill: everything in memory is lost.
    fn restart(&mut self) {
        self.engine = None;
        let path = self.folder.path().join("jobs.sqlite");
        let (store, _) = SqliteStore::open(&path, 1).expect("a store");
        let engine = Engine::open(Box::new(store), self.settings.clone(), 100_000, self.now_ms);
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
        self.figures_of(0)
    }

    fn figures_of(&mut self, queue: usize) -> QueueStatus {
        match self.command(&Command::Figures) {
            CommandResult::Figures(mut all) => all.remove(queue),
            other => panic!("{other:?}"),
        }
    }

    fn dead(&mut self, chosen: Chosen) -> (Vec<DeadJob>, Cursor) {
        match self.command(&Command::Dead(chosen)) {
            CommandResult::Dead(jobs, cursor) => (jobs, cursor),
            other => panic!("{other:?}"),
        }
    }

    fn relocate(&mut self, from: Chosen, stage: Stage) -> CommandResult {
        self.command(&Command::Move { from, to: "other".to_owned(), stage })
    }
}

fn all(queue: &str) -> Chosen {
    Chosen { queue: queue.to_owned(), ..Chosen::default() }
}

fn changed(result: CommandResult) -> usize {
    match result {
        CommandResult::Changed(count, _) => count,
        other => panic!("{other:?}"),
    }
}

#[allow(clippy::unnecessary_wraps)] // As a batch returns it.
fn died() -> Result<Vec<u8>, RunError> {
    Err(RunError::Failed { class: "(worker died)", why: "the worker died".to_owned() })
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
    assert_eq!((bench.figures().retried_total, bench.figures().failed_total), (1, 1));
    assert!(bench.start().is_empty(), "it waits for its delay");
    bench.restart();
    bench.now_ms += 10;
    let lease = bench.start()[0].0;
    bench.finish(lease, &died());
    let figures = bench.figures();
    assert_eq!((figures.ready, figures.delayed, figures.dead), (0, 0, 1));
    let dead = bench.dead(all("emails")).0;
    assert_eq!((&*dead[0].error, dead[0].attempts), ("the worker died", 2));
    assert_eq!((&*dead[0].class, figures.retried_total), ("(worker died)", 0));
    let failures: Vec<_> = figures.failures.into_iter().collect();
    assert_eq!(failures, [("(worker died)".to_owned(), 1)], "the other was before the restart");
    bench.restart();
    let retried = bench.command(&Command::Retry(all("emails")));
    assert_eq!(changed(retried), 1);
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
    let one = bench.command(&Command::Drop(Chosen { ids: vec![6], ..all("emails") }));
    assert_eq!(changed(one), 1);
    bench.finish(lease, &results(&["done", "done", "release"]));
    bench.command(&Command::Drop(all("emails")));
    bench.restart();
    assert_eq!(bench.figures().ready, 2, "the second batch was running, and runs again");
}

fn two_queues() -> Vec<QueueSettings> {
    vec![settings(), QueueSettings { name: "other".to_owned(), ..settings() }]
}

#[test]
fn moved_jobs_keep_their_state_and_running_ones_stay() {
    let mut bench = Bench::with(two_queues());
    bench.push((0..5).map(|n| job(&n.to_string())).collect());
    bench.push(vec![NewJob { delay_ms: 500, ..job("9") }]);
    bench.engine().queues[0].settings.workers = 1;
    let (lease, running) = bench.start()[0].clone();
    assert_eq!(running, [1, 2, 3]);
    assert_eq!(changed(bench.relocate(all("emails"), Stage::Alive)), 3);
    let (from, to) = (bench.figures_of(0), bench.figures_of(1));
    assert_eq!((from.ready, from.delayed, from.running), (0, 0, 3));
    assert_eq!((to.ready, to.delayed, to.running), (2, 1, 0));
    bench.finish(lease, &died());
    bench.restart();
    let (from, to) = (bench.figures_of(0), bench.figures_of(1));
    assert_eq!((from.delayed, to.ready, to.delayed), (3, 2, 1));
    let same = Command::Move { from: all("other"), to: "other".into(), stage: Stage::Alive };
    assert!(matches!(bench.command(&same), CommandResult::Failed(why) if why.contains("already")));
}

#[test]
fn dead_jobs_are_moved_as_dead_jobs() {
    let mut bench = Bench::with(two_queues());
    bench.push(vec![job("1"), job("2")]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["fail", "fail"]));
    let one = Chosen { ids: vec![2], ..all("emails") };
    assert_eq!(changed(bench.relocate(one, Stage::Dead)), 1);
    for _ in 0..2 {
        assert_eq!((bench.figures_of(0).dead, bench.figures_of(1).dead), (1, 1));
        assert_eq!(bench.dead(all("other")).0[0].id, 2);
        bench.restart();
    }
    bench.command(&Command::DropDead(all("emails")));
    bench.command(&Command::DropDead(all("other")));
    let left: Vec<u64> = bench.engine().totals.iter().map(|totals| totals.dead_bytes).collect();
    assert_eq!(left, [0, 0]);
}

#[test]
fn revived_job_frees_its_bytes() {
    let mut bench = Bench::new();
    bench.push(vec![NewJob { key: Some("ä".to_owned()), ..job("\"ü\"") }]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["fail"]));
    assert!(bench.engine().totals[0].dead_bytes > 0);
    bench.command(&Command::Retry(all("emails")));
    assert_eq!(bench.engine().totals[0].dead_bytes, 0);
    assert_eq!(bench.figures().ready, 1);
}

#[test]
fn jobs_of_a_removed_queue_can_be_moved() {
    let mut bench = Bench::new();
    bench.push(vec![job("1"), job("2")]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["fail", "done"]));
    bench.push(vec![job("3")]);
    bench.settings = vec![QueueSettings { name: "other".to_owned(), ..settings() }];
    bench.restart();
    assert_eq!(changed(bench.relocate(all("emails"), Stage::Alive)), 1);
    assert_eq!(changed(bench.relocate(all("emails"), Stage::Dead)), 1);
    assert_eq!((bench.figures().ready, bench.figures().dead), (1, 1));
    let wrong = bench.relocate(all("emials"), Stage::Alive);
    assert!(matches!(wrong, CommandResult::Failed(why) if why.contains("no queue `emials`")));
    bench.restart();
    assert_eq!(bench.start()[0].1, [3]);
}

#[test]
fn command_changes_limited_parts() {
    let mut bench = Bench::with(two_queues());
    bench.engine().bytes_max = 10_000_000;
    for _ in 0..3 {
        bench.push((0..900).map(|n| job(&n.to_string())).collect());
    }
    let (mut chosen, mut parts) = (all("emails"), Vec::new());
    loop {
        let result = bench.relocate(chosen.clone(), Stage::Alive);
        let CommandResult::Changed(count, cursor) = result else { panic!("{result:?}") };
        parts.push(count);
        // Jobs that are pushed in the meantime stay.
        bench.push(vec![job("1")]);
        if cursor.next == 0 {
            break;
        }
        (chosen.after, chosen.until) = (cursor.next, cursor.until);
    }
    assert_eq!(parts, [1_000, 1_000, 700]);
    assert_eq!((bench.figures_of(0).ready, bench.figures_of(1).ready), (3, 2_700));
}

#[test]
fn response_with_dead_jobs_is_limited_by_bytes() {
    let mut bench = Bench::new();
    bench.engine().bytes_max = 10_000_000;
    let payload = format!("\"{}\"", "x".repeat(40_000));
    for _ in 0..60 {
        bench.push(vec![job(&payload)]);
        let lease = bench.start()[0].0;
        bench.finish(lease, &results(&["fail"]));
    }
    let (mut chosen, mut seen) = (all("emails"), Vec::new());
    loop {
        let (jobs, cursor) = bench.dead(chosen.clone());
        let bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
        assert!(bytes <= SHOWN_BYTES_MAX && !jobs.is_empty(), "{bytes}");
        seen.extend(jobs.iter().map(|job| job.id));
        if cursor.next == 0 {
            break;
        }
        (chosen.after, chosen.until) = (cursor.next, cursor.until);
    }
    assert_eq!(seen, (1..=60).collect::<Vec<i64>>());
    let (jobs, cursor) = bench.dead(Chosen { limit: 2, ..all("emails") });
    assert_eq!((jobs.len(), cursor.next), (2, 2));
    let (jobs, _) = bench.dead(Chosen { ids: vec![7, 99], ..all("emails") });
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [7]);
}

#[test]
fn rate_limits_the_starts_of_all_workers() {
    let rate = Some(Rate { count: 10, period_ms: 1_000 });
    let slow = QueueSettings { rate, workers: 50, batch: 1, ..settings() };
    let mut bench = Bench::with(vec![slow]);
    bench.push((0..50).map(|n| job(&n.to_string())).collect());
    let mut started = 0;
    for _ in 0..100 {
        started += bench.start().len();
        bench.now_ms += 20;
    }
    assert!((20..=21).contains(&started), "{started} jobs in two seconds");
}

#[test]
fn job_that_failed_keeps_the_turn_of_its_key_after_a_restart() {
    let one = QueueSettings { concurrency_per_key: 1, ..settings() };
    let mut bench = Bench::with(vec![one]);
    let keyed = |key: &str| NewJob { key: Some(key.to_owned()), ..job("1") };
    bench.push(vec![keyed("a"), keyed("a"), keyed("b")]);
    let (lease, ids) = bench.start()[0].clone();
    assert_eq!(ids, [1, 3]);
    bench.finish(lease, &results(&["retry", "done"]));
    assert!(bench.start().is_empty(), "the second job waits for the first one");
    bench.restart();
    assert!(bench.start().is_empty(), "also after a restart");
    bench.now_ms += 10;
    let (lease, ids) = bench.start()[0].clone();
    assert_eq!(ids, [1]);
    bench.finish(lease, &results(&["fail"]));
    assert_eq!(bench.start()[0].1, [2], "a dead job gives its turn away");
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
