//! Jobs with keys while processes are killed at random points: each job runs at least once, runs
//! are repeated only where a death explains it, and jobs of one key run in order.
//!
//! - `make test` pushes [`FEW`] jobs. `make queue-kills` pushes `KILLED_JOBS` (1,000,000).
//! - The seed is printed. `KILLS_SEED=…` repeats the same kills in the same order. Which jobs they
//!   meet depends on the machine.
//!
//! Any process is killed: workers of both pools, templates, image processes, the whole server, and
//! Redis. A push without a response may have been stored: its jobs may run, but need not.

use super::{Site, queue};
use samovar_testkit::SetOnDrop;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::order::{self, Order};
use samovar_testkit::{Redis, Server, Start, family, kill};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of jobs that `make test` pushes.
const FEW: usize = 6_000;
/// Workers of the queue.
const WORKERS: usize = 2;
/// Jobs of a batch.
const BATCH: usize = 100;
/// Jobs of a push.
const PUSH: usize = 250;
/// Keys: more than jobs of a batch, which has one job of each key. Each pusher has its own, so that
/// the order of a key's pushes is known.
const KEYS: usize = 400;
const PUSHERS: usize = 2;
/// Jobs that wait when pushers pause: the store stays small, and jobs run from the start.
const WAITING_MAX: u64 = 60_000;
/// Wait of a pusher for its response.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum wait for a batch between two deaths.
const BETWEEN_MAX: Duration = Duration::from_secs(2);
/// Wait for further runs before a lost job is reported.
const STALL: Duration = Duration::from_mins(1);
const SIGKILL: i32 = 9;

const PUSHES: &str = "<?php
    $jobs = json_decode(file_get_contents('php://input'), true);
    $options = array_map(fn (array $job): array => ['key' => \"k$job[0]\"], $jobs);
    echo json_encode(count(Samovar\\queue('work')->pushMany($jobs, options: $options)));
";

/// Writes one line per batch. A line that has no end was written by a process that was killed.
const RUNS: &str = r#"<?php
Samovar\consume(function (Samovar\Job ...$jobs) {
    $line = "\n";
    foreach ($jobs as $job) {
        [$key, $number] = $job->payload();
        $line .= "$key:$number ";
    }
    file_put_contents(__DIR__ . '/../ran', "$line.", FILE_APPEND);
});
"#;

/// A job: its key, and its number among the jobs of this key.
type Name = (u32, u32);

/// State that pushers and killer share.
#[derive(Debug, Default)]
struct Progress {
    /// Address of the server, while it runs.
    address: Mutex<Option<std::net::SocketAddr>>,
    /// Pushers that are not done.
    pushers: AtomicUsize,
    /// Whether more than `WAITING_MAX` jobs wait.
    is_full: AtomicBool,
    /// Whether there will be no further server.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Pushed {
    stored: BTreeSet<Name>,
    uncertain: BTreeSet<Name>,
}

/// Pushes jobs of its keys until its share is stored.
fn push_all(progress: &Progress, number: usize, jobs: usize) -> Pushed {
    let mut pushed = Pushed::default();
    let mut next = [0_u32; KEYS / PUSHERS];
    let mut client: Option<Client> = None;
    let mut turn = 0;
    while pushed.stored.len() < jobs && !progress.is_over.load(Ordering::SeqCst) {
        let address = *progress.address.lock().expect("no panic");
        let connect = || Client::try_connect(address?, PATIENCE).ok();
        let Some(mut connection) =
            client.take().or_else(connect).filter(|_| !progress.is_full.load(Ordering::Relaxed))
        else {
            // The server is started, or has enough to do.
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let names: Vec<Name> = (0..PUSH.min(jobs - pushed.stored.len()))
            .map(|_| {
                turn = (turn + 7) % next.len();
                next[turn] += 1;
                ((turn * PUSHERS + number) as u32, next[turn])
            })
            .collect();
        let request = Request::post("/", "application/json", json!(names).to_string());
        let response = connection.try_request(&request);
        let is_stored = response.is_ok_and(|response| {
            let is_stored = response.status == 200 && response.text() == names.len().to_string();
            client = response.complete.then_some(connection);
            is_stored
        });
        if is_stored {
            pushed.stored.extend(names);
        } else {
            client = None;
            pushed.uncertain.extend(names);
        }
    }
    progress.pushers.fetch_sub(1, Ordering::SeqCst);
    pushed
}

/// Kills, and the number of batches that they may repeat.
#[derive(Debug, Default)]
struct Deaths {
    servers: usize,
    processes: usize,
    redis: usize,
    batches: usize,
}

fn descendants(pid: i32) -> Vec<i32> {
    let mut found = family::children_of(pid);
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(family::children_of(parent));
        at += 1;
    }
    found
}

/// Starts the server again and again, and kills processes, until all pushes are done.
fn kill_all(
    start: &dyn Fn() -> Start,
    progress: &Progress,
    mut redis: Option<&mut Redis>,
    order: &mut Order,
    server_share: usize,
    ran: &Path,
) -> (Server, Deaths) {
    let mut deaths = Deaths::default();
    let mut server = start().start();
    *progress.address.lock().expect("no panic") = Some(server.address());
    while progress.pushers.load(Ordering::SeqCst) > 0 {
        wait_for_batch(ran);
        // Sets the rate of deaths; not a wait for a condition.
        std::thread::sleep(Duration::from_millis(order.next(150) as u64));
        let chance = order.next(server_share);
        // It ends if its template is killed before it is ready.
        if chance == 0 || server.ended().is_some() {
            *progress.address.lock().expect("no panic") = None;
            end(server);
            deaths.servers += 1;
            deaths.batches += WORKERS;
            server = start().start();
            *progress.address.lock().expect("no panic") = Some(server.address());
        } else if let Some(redis) = redis.as_deref_mut().filter(|_| chance == 1) {
            redis.crash();
            redis.start_again();
            deaths.redis += 1;
        } else {
            let all = descendants(server.pid());
            let Some(victim) = all.get(order.next(64) % all.len().max(1)) else { continue };
            let lost = if descendants(*victim).is_empty() { 1 } else { WORKERS };
            kill(*victim, SIGKILL);
            deaths.processes += 1;
            deaths.batches += lost;
        }
        if order.next(8) == 0 {
            let waiting = figures(&server)["ready"].as_u64().unwrap_or_default();
            progress.is_full.store(waiting > WAITING_MAX, Ordering::Relaxed);
        }
    }
    if server.ended().is_some() {
        deaths.servers += 1;
        deaths.batches += WORKERS;
        end(server);
        server = start().start();
    }
    (server, deaths)
}

/// Waits until a batch has run since the last death: processes that die young are started again
/// after a pause. The wait is limited, so that a process can also die before it has run one.
fn wait_for_batch(ran: &Path) {
    let length = || std::fs::metadata(ran).map_or(0, |file| file.len());
    let (before, began) = (length(), Instant::now());
    while length() == before && began.elapsed() < BETWEEN_MAX {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the server, unless it has ended.
fn end(mut server: Server) {
    if server.ended().is_none() {
        server.perish();
    }
}

/// Figures of the queue; null if the server has ended.
fn figures(server: &Server) -> Value {
    let list = queue(server, &["ls", "--json"]);
    serde_json::from_str::<Value>(&list).map_or(Value::Null, |list| list["queues"][0].clone())
}

/// Runs in the order of their ends.
fn runs(file: &Path) -> Vec<Name> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_suffix(" ."));
    let name = |word: &str| {
        let (key, number) = word.split_once(':')?;
        Some((key.parse().ok()?, number.parse().ok()?))
    };
    lines.flat_map(|line| line.split(' ').filter_map(name).collect::<Vec<_>>()).collect()
}

/// Checks the order of each key, and returns how many runs were repeated. A repeated batch begins
/// at a job that has run, and continues in order.
fn repeated(runs: &[Name]) -> usize {
    let mut known: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (key, number) in runs {
        known.entry(*key).or_default().insert(*number);
    }
    let ranks: BTreeMap<u32, BTreeMap<u32, usize>> = known
        .into_iter()
        .map(|(key, numbers)| (key, numbers.into_iter().zip(0..).collect()))
        .collect();
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    let mut repeated = 0;
    let mut seen: BTreeSet<Name> = BTreeSet::new();
    for (key, number) in runs {
        let rank = ranks[key][number];
        let next = last.get(key).map_or(0, |last| last + 1);
        assert!(rank <= next, "job {number} of key {key} ran before an earlier one");
        last.insert(*key, rank);
        repeated += usize::from(!seen.insert((*key, *number)));
    }
    repeated
}

/// Waits until nothing waits or runs. Fails if nothing happens for [`STALL`].
fn drain(server: &Server) {
    let mut last = (Value::Null, Instant::now());
    loop {
        let now = figures(server);
        if now["ready"] == 0 && now["running"] == 0 && now["delayed"] == 0 {
            return;
        }
        if now["done_total"] != last.0 {
            last = (now["done_total"].clone(), Instant::now());
        }
        assert!(last.1.elapsed() < STALL, "no job ends: {now}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run(jobs: usize, place: &str, redis: Option<&mut Redis>, server_share: usize) {
    let site = Site::new(PUSHES);
    std::fs::write(site.at("jobs/work.php"), RUNS).expect("a script");
    let start = || {
        let config = format!(
            "[jobs]\n{place}\n[[queue]]\nname = 'work'\nhandler = '{}'\nworkers = {WORKERS}\n\
             batch = {BATCH}\nbackoff = '5ms'\nattempts = 1000\nconcurrency_per_key = 1\n",
            site.at("jobs/work.php").display(),
        );
        Server::at(site.at("public")).workers(2).config(&config)
    };
    let mut order = Order::new(order::seed("KILLS_SEED"), 0);
    let progress = Progress { pushers: AtomicUsize::new(PUSHERS), ..Progress::default() };
    let began = Instant::now();
    let (pushed, (server, deaths)) = std::thread::scope(|scope| {
        let pushers: Vec<_> = (0..PUSHERS)
            .map(|pusher| {
                let progress = &progress;
                scope.spawn(move || push_all(progress, pusher, jobs / PUSHERS))
            })
            .collect();
        let over = SetOnDrop(&progress.is_over);
        let killed = kill_all(&start, &progress, redis, &mut order, server_share, &site.at("ran"));
        let pushed: Vec<Pushed> =
            pushers.into_iter().map(|pusher| pusher.join().expect("a pusher")).collect();
        drop(over);
        (pushed, killed)
    });
    drain(&server);
    assert_eq!(figures(&server)["dead"], 0);
    let runs = runs(&site.at("ran"));
    let distinct: BTreeSet<Name> = runs.iter().copied().collect();
    let (mut stored, mut uncertain) = (0, 0);
    for of in &pushed {
        let lost: Vec<_> = of.stored.difference(&distinct).take(9).collect();
        assert!(lost.is_empty(), "jobs are lost: {lost:?}\n{}", server.log());
        stored += of.stored.len();
        uncertain += of.uncertain.intersection(&distinct).count();
    }
    assert_eq!(distinct.len(), stored + uncertain, "only pushed jobs ran");
    let repeated = repeated(&runs);
    println!(
        "{stored} jobs in {:.0?}; {uncertain} more ran whose push had no response; {repeated} runs \
         repeated; {deaths:?}",
        began.elapsed()
    );
    assert!(repeated <= deaths.batches * BATCH, "{repeated} repeated runs: {deaths:?}");
    server.stop();
}

fn embedded(jobs: usize, server_share: usize) {
    let folder = tempfile::TempDir::with_prefix("samovar-kills-").expect("a folder");
    let place = format!("store = '{}'", folder.path().join("jobs.sqlite").display());
    run(jobs, &place, None, server_share);
}

fn over_redis(jobs: usize, server_share: usize) {
    let mut redis = Redis::durable();
    let place = format!("redis = 'unix://{}'\nlease = '2s'", redis.socket().display());
    run(jobs, &place, Some(&mut redis), server_share);
}

fn many() -> usize {
    order::number_of("KILLED_JOBS").map_or(1_000_000, |jobs| jobs as usize)
}

#[test]
fn jobs_are_kept_in_order_despite_kills() {
    embedded(FEW, 6);
}

#[test]
fn jobs_in_redis_are_kept_in_order_despite_kills() {
    over_redis(FEW, 6);
}

#[test]
#[ignore = "minutes: make queue-kills"]
fn many_jobs_are_kept_in_order_despite_kills() {
    embedded(many(), 20);
}

#[test]
#[ignore = "minutes: make queue-kills"]
fn many_jobs_in_redis_are_kept_in_order_despite_kills() {
    over_redis(many(), 20);
}
