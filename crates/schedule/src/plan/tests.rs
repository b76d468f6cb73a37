//! The plan with a clock of its own.

use super::*;
use crate::run::{Launch, Work};
use samovar_cron::Zone;
use std::time::Duration;

struct Nothing;

impl Work for Nothing {
    fn start(&self, _: Launch) {}
    fn stop(&self, _: u64) {}
    fn text(&self) -> String {
        String::new()
    }
}

/// 2026-03-28 00:00:00 UTC.
const BEGIN_MS: u64 = 1_774_656_000_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn schedule(name: &str, times: Times) -> Schedule {
    Schedule {
        name: name.to_owned(),
        times,
        overlap: Overlap::Skip,
        jitter: Duration::ZERO,
        catches_up: false,
        work: Box::new(Nothing),
    }
}

fn cron(text: &str) -> Times {
    Times::Cron(text.parse().expect(text), Zone::named("UTC").expect("a zone"))
}

struct Bench {
    plan: Plan,
    now: Now,
}

impl Bench {
    fn new(schedules: Vec<Schedule>) -> Bench {
        Bench::with(schedules, &HashMap::new())
    }

    fn with(schedules: Vec<Schedule>, records: &HashMap<String, Record>) -> Bench {
        let now = Now { wall_ms: BEGIN_MS, steady_ms: 5_000_000 };
        let mut plan = Plan::new(schedules, now);
        plan.activate(records, now);
        Bench { plan, now }
    }

    /// Time passes, in steps as the thread makes them. Returns the starts as seconds.
    fn pass(&mut self, ms: u64) -> Vec<(String, u64)> {
        let mut starts = Vec::new();
        for _ in 0..ms / 1_000 {
            self.now.wall_ms += 1_000;
            self.now.steady_ms += 1_000;
            starts.extend(self.turn());
        }
        starts
    }

    /// Each run ends at once.
    fn turn(&mut self) -> Vec<(String, u64)> {
        let mut starts = Vec::new();
        for run in self.started() {
            let name = self.plan.of_run(run).expect("a run").schedule.name.clone();
            starts.push((name, (self.now.steady_ms - 5_000_000) / 1_000));
            self.end(run, RunResult::Succeeded);
        }
        starts
    }

    fn started(&mut self) -> Vec<u64> {
        let start = |action| match action {
            Action::Start { run, .. } => Some(run),
            Action::Stop { .. } => None,
        };
        self.plan.turn(self.now).into_iter().filter_map(start).collect()
    }

    fn end(&mut self, run: u64, result: RunResult) {
        self.plan.ended(run, &RunEnd::new(result, ""), String::new(), self.now);
    }
}

fn seconds(starts: &[(String, u64)]) -> Vec<u64> {
    starts.iter().map(|(_, at)| *at).collect()
}

#[test]
fn schedule_runs_at_its_times() {
    let minutes = schedule("c", cron("*/2 * * * *"));
    let interval = schedule("e", Times::Every(Duration::from_secs(50)));
    let mut bench = Bench::new(vec![minutes, interval]);
    let starts = bench.pass(250_000);
    let of = |name: &str| -> Vec<u64> {
        starts.iter().filter(|(of, _)| of == name).map(|(_, at)| *at).collect()
    };
    assert_eq!(of("c"), [120, 240]);
    assert_eq!(of("e"), [50, 100, 150, 200, 250]);
}

#[test]
fn clock_set_back_repeats_no_time_of_a_day_and_delays_no_interval() {
    let mut bench = Bench::new(vec![
        schedule("daily", cron("5 0 * * *")),
        schedule("often", cron("*/5 * * * *")),
        schedule("every", Times::Every(Duration::from_mins(4))),
    ]);
    let count =
        |starts: &[(String, u64)], name: &str| starts.iter().filter(|(of, _)| of == name).count();
    let starts = bench.pass(6 * MINUTE);
    assert_eq!(
        [count(&starts, "daily"), count(&starts, "often"), count(&starts, "every")],
        [1, 1, 1]
    );
    bench.now.wall_ms -= HOUR;
    let starts = bench.pass(64 * MINUTE);
    assert_eq!(count(&starts, "daily"), 0, "it has run at 00:05");
    assert_eq!(count(&starts, "often"), 13);
    assert_eq!(count(&starts, "every"), 16);
    // A correction by a day is a new time.
    bench.now.wall_ms -= 24 * HOUR;
    assert_eq!(count(&bench.pass(24 * HOUR), "daily"), 1);
}

#[test]
fn clock_set_forward_runs_a_skipped_time_of_a_day_once() {
    let mut bench = Bench::new(vec![
        schedule("daily", cron("30 2 * * *")),
        schedule("five", cron("0 5 * * *")),
    ]);
    assert_eq!(bench.pass(2 * HOUR), []);
    bench.now.wall_ms += HOUR;
    assert_eq!(bench.pass(1_000), [("daily".to_owned(), 7_201)]);
    bench.now.wall_ms += 12 * HOUR;
    assert_eq!(bench.pass(10_000), [], "a correction");
}

#[test]
fn machine_that_slept_runs_each_schedule_once() {
    let mut bench = Bench::new(vec![schedule("often", cron("*/5 * * * *"))]);
    bench.now.wall_ms += 9 * HOUR;
    bench.now.steady_ms += 9 * HOUR;
    assert_eq!(seconds(&bench.turn()), [9 * 3_600]);
    assert_eq!(bench.pass(4 * MINUTE), []);
}

#[test]
fn downtime_is_made_up_for_once_if_wanted() {
    let record = Record { due_ms: BEGIN_MS - 25 * HOUR, ..Record::default() };
    let records = HashMap::from(
        ["a".to_owned(), "b".to_owned(), "c".to_owned(), "d".to_owned()]
            .map(|name| (name, record.clone())),
    );
    let catching =
        |name: &str, times: Times| Schedule { catches_up: true, ..schedule(name, times) };
    let hours = |n| Times::Every(Duration::from_hours(n));
    let all = vec![
        catching("a", cron("30 * * * *")),
        schedule("b", cron("30 * * * *")),
        catching("c", hours(10)),
        schedule("d", hours(10)),
        catching("e", cron("30 * * * *")),
    ];
    let mut bench = Bench::with(all, &records);
    let names: Vec<_> = bench.turn().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "c"], "`e` has never run");
    let starts = bench.pass(10 * HOUR);
    let first = |name: &str| starts.iter().find(|(of, _)| of == name).map(|(_, at)| at / 60);
    assert_eq!([first("a"), first("b"), first("e")], [Some(30); 3]);
    assert_eq!((first("c"), first("d")), (Some(600), Some(300)), "intervals keep their phase");
}

#[test]
fn server_that_waited_for_the_lock_continues_where_the_other_stopped() {
    let now = Now { wall_ms: BEGIN_MS, steady_ms: 1_000 };
    let later = Now { wall_ms: BEGIN_MS + 90_000, steady_ms: 91_000 };
    let run = |due_ms: u64| {
        let mut plan = Plan::new(vec![schedule("a", cron("* * * * *"))], now);
        assert_eq!(plan.turn(later), [], "without the lock");
        let record = Record { due_ms, ..Record::default() };
        plan.activate(&HashMap::from([("a".to_owned(), record)]), later);
        plan.turn(later).len()
    };
    assert_eq!(run(BEGIN_MS + 60_000), 0, "the other server has run it");
    assert_eq!(run(BEGIN_MS), 1, "nobody has");
}

#[test]
fn overlap_skips_queues_or_kills() {
    let with =
        |overlap| Schedule { overlap, ..schedule("a", Times::Every(Duration::from_secs(10))) };
    let fire = |bench: &mut Bench| {
        bench.now.wall_ms += 10_000;
        bench.now.steady_ms += 10_000;
        bench.plan.turn(bench.now)
    };
    let start = |run| Action::Start { entry: 0, run };
    let mut bench = Bench::new(vec![with(Overlap::Skip)]);
    assert_eq!(fire(&mut bench), [start(1)]);
    assert_eq!(fire(&mut bench), []);
    bench.end(1, RunResult::Succeeded);
    assert_eq!(bench.plan.turn(bench.now), []);
    assert_eq!(bench.plan.entries[0].counts.skipped, 1);

    let mut bench = Bench::new(vec![with(Overlap::Queue)]);
    assert_eq!(fire(&mut bench), [start(1)]);
    assert_eq!([fire(&mut bench), fire(&mut bench)], [[], []]);
    bench.end(1, RunResult::Failed);
    assert_eq!(bench.plan.turn(bench.now), [start(2)]);
    bench.end(2, RunResult::Failed);
    assert_eq!(bench.plan.turn(bench.now), [], "only one is queued");

    let mut bench = Bench::new(vec![with(Overlap::Kill)]);
    assert_eq!(fire(&mut bench), [start(1)]);
    assert_eq!(fire(&mut bench), [Action::Stop { entry: 0, run: 1 }]);
    assert_eq!(fire(&mut bench), [], "it is being stopped");
    bench.end(1, RunResult::Stopped);
    assert_eq!(bench.plan.turn(bench.now), [start(2)]);
}

#[test]
fn many_schedules_run_within_the_limit() {
    let each = |n: usize| schedule(&format!("s{n}"), cron("* * * * *"));
    let mut bench = Bench::new((0..1_000).map(each).collect());
    bench.now.wall_ms += MINUTE;
    bench.now.steady_ms += MINUTE;
    let mut total = 0;
    loop {
        let started = bench.started();
        assert!(started.len() <= RUNS_MAX);
        if started.is_empty() {
            break;
        }
        total += started.len();
        assert_eq!(bench.started(), [0_u64; 0], "all places are taken");
        for run in started {
            bench.end(run, RunResult::Succeeded);
        }
    }
    assert_eq!(total, 1_000);
}

#[test]
fn reload_keeps_a_run_and_applies_new_times() {
    let every = |seconds| schedule("a", Times::Every(Duration::from_secs(seconds)));
    let mut bench = Bench::new(vec![every(10), schedule("b", cron("* * * * *"))]);
    bench.now.steady_ms += 10_000;
    bench.now.wall_ms += 10_000;
    assert_eq!(bench.started(), [1]);
    bench.plan.set(vec![every(10)], &HashMap::new(), bench.now);
    assert_eq!(bench.plan.entries.len(), 1);
    assert!(matches!(bench.plan.entries[0].state, State::Running { run: 1, .. }));
    bench.plan.set(Vec::new(), &HashMap::new(), bench.now);
    assert_eq!(bench.plan.find("a").ok(), None, "it ends unseen");
    bench.end(1, RunResult::Succeeded);
    bench.plan.entries[0].is_changed = false;
    bench.plan.tidy();
    assert_eq!(bench.plan.entries.len(), 0);
    bench.plan.set(vec![every(3)], &HashMap::new(), bench.now);
    assert_eq!(seconds(&bench.pass(6_000)), [13, 16]);
}

#[test]
fn run_that_died_with_its_server_is_not_repeated() {
    let record = Record { due_ms: BEGIN_MS - 1, started_ms: BEGIN_MS - 1, ..Record::default() };
    let catching = Schedule { catches_up: true, ..schedule("a", cron("@daily")) };
    let mut bench = Bench::with(vec![catching], &HashMap::from([("a".to_owned(), record)]));
    assert_eq!(bench.plan.entries[0].record.result, Some(RunResult::Interrupted));
    bench.now.wall_ms -= 1;
    assert_eq!(bench.pass(10_000).len(), 1, "only the time that came after it");
}
