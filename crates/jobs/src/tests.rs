//! Pushes, batches and results: the same tests over the embedded store and over Redis.

use crate::backend::{Backend, NOT_STARTED_PAUSE_MS, reply};
use crate::batch::RunError;
use crate::catalogue::SHOWN_BYTES_MAX;
use crate::command::{Chosen, Command, CommandResult, Cursor};
use crate::engine::Engine;
use crate::job::{QueueSettings, Rate};
use crate::shared::{SharedOptions, SharedQueues};
use crate::sqlite::SqliteStore;
use crate::store::Stage;
use proptest::prelude::*;
use samovar_channel::{NewJob, PAYLOAD_BYTES_MAX, Push, PushReply};
use samovar_redis::{Address, Endpoint, Options};
use samovar_testkit::Redis;
use samovar_wire::{DeadJob, QueueStatus};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tempfile::TempDir;

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Embedded,
    Shared,
}

/// Where the jobs survive a restart of the server.
enum Ground {
    Embedded(TempDir),
    Shared(Redis),
}

enum Server {
    Embedded(Box<Engine>),
    Shared(Box<SharedQueues>),
}

struct Bench {
    ground: Ground,
    server: Option<Server>,
    settings: Vec<QueueSettings>,
    bytes_max: u64,
    now_ms: u64,
    /// Number of batches that run.
    running: usize,
}

const LEASE: Duration = Duration::from_secs(30);

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

fn options(redis: &Redis) -> SharedOptions {
    let endpoint = Endpoint::Unix(redis.socket());
    let second = Duration::from_secs(1);
    SharedOptions {
        redis: Options {
            address: Address { endpoint, database: 0, user: String::new() },
            password: String::new(),
            roots: None,
            connect_limit: second,
            wait_limit: second,
        },
        prefix: "test".to_owned(),
        lease: LEASE,
    }
}

impl Bench {
    fn new(kind: Kind) -> Bench {
        Bench::with(kind, vec![settings()])
    }

    fn with(kind: Kind, settings: Vec<QueueSettings>) -> Bench {
        let ground = match kind {
            Kind::Embedded => Ground::Embedded(tempfile::tempdir().expect("a folder")),
            Kind::Shared => Ground::Shared(Redis::start()),
        };
        let (bytes_max, now_ms) = (100_000, 1_000);
        let mut bench = Bench { ground, server: None, settings, bytes_max, now_ms, running: 0 };
        bench.restart();
        bench
    }

    /// Opens the store as after a kill: everything in memory is lost. In a shared store, the leases
    /// of the killed server end.
    fn restart(&mut self) {
        self.server = None;
        self.server = Some(match &self.ground {
            Ground::Embedded(folder) => {
                let path = folder.path().join("jobs.sqlite");
                let (store, _) = SqliteStore::open(&path, 1).expect("a store");
                let settings = self.settings.clone();
                let engine = Engine::open(Box::new(store), settings, self.bytes_max, self.now_ms);
                Server::Embedded(Box::new(engine.expect("readable")))
            }
            Ground::Shared(redis) => {
                if self.running > 0 {
                    self.now_ms += 30_000;
                }
                let settings = self.settings.clone();
                let shared = SharedQueues::open(&options(redis), settings, self.bytes_max);
                Server::Shared(Box::new(shared.expect("a store")))
            }
        });
        self.running = 0;
    }

    fn engine(&mut self) -> &mut dyn Backend {
        match self.server.as_mut().expect("open") {
            Server::Embedded(engine) => &mut **engine,
            Server::Shared(shared) => &mut **shared,
        }
    }

    /// Bytes of all jobs in the store.
    fn used(&self) -> u64 {
        match (&self.server, &self.ground) {
            (Some(Server::Embedded(engine)), _) => engine.used(),
            (_, Ground::Shared(redis)) => {
                redis.ask(&["get", "{test}:used"]).trim().parse().unwrap_or(0)
            }
            _ => panic!("not open"),
        }
    }

    fn try_push(&mut self, jobs: Vec<NewJob>) -> Result<Vec<i64>, PushReply> {
        let now_ms = self.now_ms;
        let pending = self.engine().push(Push { queue: "emails".to_owned(), jobs }, now_ms)?;
        let stored = self.engine().commit(now_ms);
        match reply(&pending, &stored) {
            PushReply::Stored(ids) => Ok(ids),
            refused => Err(refused),
        }
    }

    fn push(&mut self, jobs: Vec<NewJob>) -> Vec<i64> {
        self.try_push(jobs).expect("accepted")
    }

    /// Returns the leases of the started batches, with the ids of their jobs.
    fn start(&mut self) -> Vec<(u64, Vec<i64>)> {
        let now_ms = self.now_ms;
        let (started, _) = self.engine().start(now_ms, &|_| None);
        self.running += started.len();
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
        self.running -= 1;
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

fn closed_queue_starts_nothing(kind: Kind) {
    let mut bench = Bench::with(kind, two_queues());
    bench.push(vec![job("1")]);
    let (started, look_ms) = bench.engine().start(1_000, &|at| (at == 0).then_some(1_010));
    assert!(started.is_empty());
    assert_eq!(look_ms, Some(1_010));
    assert_eq!(bench.start().len(), 1);
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

fn job_is_pushed_run_and_removed(kind: Kind) {
    let mut bench = Bench::new(kind);
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

fn running_job_runs_again_after_death_of_server(kind: Kind) {
    let mut bench = Bench::new(kind);
    bench.push(vec![job("1")]);
    assert_eq!(bench.start().len(), 1);
    bench.restart();
    assert_eq!(bench.start(), [(1, vec![1])]);
}

fn failed_job_is_retried_then_dead_then_revived(kind: Kind) {
    let mut bench = Bench::new(kind);
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

fn batch_that_did_not_start_counts_no_attempt(kind: Kind) {
    let mut bench = Bench::new(kind);
    bench.push(vec![job("1")]);
    for _ in 0..5 {
        let lease = bench.start()[0].0;
        bench.finish(lease, &Err(RunError::NotStarted("no worker".to_owned())));
        assert!(bench.start().is_empty(), "the queue pauses");
        bench.now_ms += NOT_STARTED_PAUSE_MS;
    }
    assert_eq!(bench.figures().failed_total, 0);
}

fn unique_job_is_stored_once(kind: Kind) {
    let mut bench = Bench::new(kind);
    let unique = || NewJob { key: Some("a".to_owned()), unique_ms: 1_000, ..job("1") };
    assert_eq!(bench.push(vec![unique(), unique()]), [1, 0]);
    assert_eq!(bench.push(vec![unique()]), [0]);
    bench.restart();
    assert_eq!(bench.push(vec![unique()]), [0]);
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["done"]));
    assert_eq!(bench.push(vec![unique()]), [2]);
}

fn wrong_and_too_many_pushes_are_refused(kind: Kind) {
    let mut bench = Bench::new(kind);
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
    let now_ms = bench.now_ms;
    let refused = bench.engine().push(unknown, now_ms).expect_err("unknown");
    assert!(matches!(refused, PushReply::Wrong(why) if why.contains("`emails`")));
    let large = || job(&format!("\"{}\"", "x".repeat(40_000)));
    assert_eq!(bench.push(vec![large(), large()]), [1, 2]);
    let refused = bench.try_push(vec![large()]).expect_err("full");
    assert!(matches!(refused, PushReply::Refused(why) if why.contains("jobs.bytes_max")));
    assert_eq!(bench.figures().refused_total, 1);
}

fn paused_queue_stays_paused_after_restart(kind: Kind) {
    let mut bench = Bench::new(kind);
    bench.push(vec![job("1")]);
    bench.command(&Command::Pause("emails".to_owned()));
    bench.restart();
    assert!(bench.start().is_empty() && bench.figures().paused);
    bench.command(&Command::Resume("emails".to_owned()));
    assert_eq!(bench.start().len(), 1);
}

fn drop_removes_waiting_jobs_only(kind: Kind) {
    let mut bench = Bench::new(kind);
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

fn moved_jobs_keep_their_state_and_running_ones_stay(kind: Kind) {
    let mut settings = two_queues();
    settings[0].workers = 1;
    let mut bench = Bench::with(kind, settings);
    bench.push((0..5).map(|n| job(&n.to_string())).collect());
    bench.push(vec![NewJob { delay_ms: 500, ..job("9") }]);
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

fn dead_jobs_are_moved_as_dead_jobs(kind: Kind) {
    let mut bench = Bench::with(kind, two_queues());
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
    assert_eq!(bench.used(), 0);
}

fn revived_job_frees_its_bytes(kind: Kind) {
    let mut bench = Bench::new(kind);
    bench.push(vec![NewJob { key: Some("ä".to_owned()), ..job("\"ü\"") }]);
    let used = bench.used();
    let lease = bench.start()[0].0;
    bench.finish(lease, &results(&["fail"]));
    assert!(bench.used() > used, "the error takes room");
    bench.command(&Command::Retry(all("emails")));
    assert_eq!(bench.used(), used);
    assert_eq!(bench.figures().ready, 1);
}

fn jobs_of_a_removed_queue_can_be_moved(kind: Kind) {
    let mut bench = Bench::new(kind);
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

fn command_changes_limited_parts(kind: Kind) {
    let mut bench = Bench::with(kind, two_queues());
    bench.bytes_max = 10_000_000;
    bench.restart();
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

fn response_with_dead_jobs_is_limited_by_bytes(kind: Kind) {
    let mut bench = Bench::new(kind);
    bench.bytes_max = 10_000_000;
    bench.restart();
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

fn rate_limits_the_starts_of_all_workers(kind: Kind) {
    let rate = Some(Rate { count: 10, period_ms: 1_000 });
    let slow = QueueSettings { rate, workers: 50, batch: 1, ..settings() };
    let mut bench = Bench::with(kind, vec![slow]);
    bench.push((0..50).map(|n| job(&n.to_string())).collect());
    let mut started = 0;
    for _ in 0..100 {
        started += bench.start().len();
        bench.now_ms += 20;
    }
    assert!((20..=21).contains(&started), "{started} jobs in two seconds");
}

fn job_that_failed_keeps_the_turn_of_its_key_after_a_restart(kind: Kind) {
    let one = QueueSettings { concurrency_per_key: 1, ..settings() };
    let mut bench = Bench::with(kind, vec![one]);
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

#[test]
fn queue_continues_after_redis_has_evicted_a_job() {
    let mut bench = Bench::new(Kind::Shared);
    bench.push(vec![job("1"), job("2"), NewJob { delay_ms: 5, ..job("3") }]);
    let Ground::Shared(redis) = &bench.ground else { unreachable!() };
    for id in [1, 3] {
        redis.ask(&["del", &format!("{{test}}:job:{id:016}")]);
    }
    bench.now_ms += 10;
    let (lease, ids) = bench.start()[0].clone();
    assert_eq!(ids, [2]);
    bench.finish(lease, &results(&["done"]));
    assert_eq!((bench.figures().ready, bench.figures().delayed), (0, 0));
}

/// A server whose lease has ended, and which continues: its results have no effect.
#[test]
fn result_after_the_lease_has_no_effect() {
    let mut bench = Bench::new(Kind::Shared);
    bench.push(vec![job("1")]);
    let (late, _) = bench.start()[0].clone();
    let Ground::Shared(redis) = &bench.ground else { unreachable!() };
    let mut other =
        SharedQueues::open(&options(redis), vec![settings()], 1 << 30).expect("a store");
    let before = bench.now_ms + 29_000;
    assert!(other.start(before, &|_| None).0.is_empty(), "the lease holds");
    bench.now_ms += 30_000;
    let started = other.start(bench.now_ms, &|_| None).0;
    assert_eq!(started.len(), 1, "it runs elsewhere");
    bench.finish(late, &results(&["done"]));
    assert_eq!((bench.figures().running, bench.figures().done_total), (1, 0));
    other.finish(started[0].lease, &results(&["done"]), bench.now_ms);
    other.commit(bench.now_ms).expect("stored");
    assert_eq!(bench.figures().running, 0);
}

macro_rules! over_each_store {
    ($($name:ident)*) => {
        mod embedded {
            $(#[test] fn $name() { super::$name(super::Kind::Embedded); })*
        }
        mod shared {
            $(#[test] fn $name() { super::$name(super::Kind::Shared); })*
        }
    };
}

over_each_store! {
    closed_queue_starts_nothing
    job_is_pushed_run_and_removed
    running_job_runs_again_after_death_of_server
    failed_job_is_retried_then_dead_then_revived
    batch_that_did_not_start_counts_no_attempt
    unique_job_is_stored_once
    wrong_and_too_many_pushes_are_refused
    paused_queue_stays_paused_after_restart
    drop_removes_waiting_jobs_only
    moved_jobs_keep_their_state_and_running_ones_stay
    dead_jobs_are_moved_as_dead_jobs
    revived_job_frees_its_bytes
    jobs_of_a_removed_queue_can_be_moved
    command_changes_limited_parts
    response_with_dead_jobs_is_limited_by_bytes
    rate_limits_the_starts_of_all_workers
    job_that_failed_keeps_the_turn_of_its_key_after_a_restart
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Embedded), Just(Kind::Shared)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Jobs run while results get lost and the server dies: each one ends, and none is lost.
    #[test]
    fn every_job_runs_at_least_once(
        kind in kinds(),
        steps in proptest::collection::vec(0_u8..6, 1..60)
    ) {
        let mut bench = Bench::new(kind);
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
