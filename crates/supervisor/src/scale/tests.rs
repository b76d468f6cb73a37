//! The table of decisions, and the state kept between them.

mod simulation;

use super::cpu::CpuUse;
use super::decide::{Bounds, Change, Counters, Reason, decide};
use super::machine::Memory;
use super::*;

const BOUNDS: Bounds = Bounds { min: 2, max: 64, memory_max: 0, cores: 2 };
/// The result on a machine without idle cores.
#[allow(clippy::unnecessary_wraps)] // Same type as in the comparison.
const fn used(wanted: u64) -> Option<CpuUse> {
    Some(CpuUse { wanted, idle: 0 })
}
const SECOND: Duration = Duration::from_secs(1);

/// Eight workers wait for a database, and twenty requests wait for workers.
const WAITING: Counters = Counters {
    queued: 20,
    oldest: Duration::from_millis(40),
    workers: 8,
    coming: 0,
    idle: 0,
    unneeded: 0,
    cpu: used(200),
    pool_bytes: 8 << 21,
    memory: None,
    fork_failed: false,
};

#[test]
fn decide_follows_the_table() {
    use Change::{Add, Remove, Stay};
    let memory = |free| Some(Memory { total: 1000 << 20, free });
    let limited = |memory_max| Bounds { memory_max, ..BOUNDS };
    let quiet = Counters { queued: 0, oldest: Duration::ZERO, idle: 8, ..WAITING };
    for (name, bounds, counters, expected) in [
        ("half as many again", BOUNDS, WAITING, (Add(4), Reason::Waiting)),
        ("no more than wait", BOUNDS, Counters { queued: 3, ..WAITING }, (Add(3), Reason::Waiting)),
        (
            "of two, one",
            BOUNDS,
            Counters { workers: 2, cpu: used(100), ..WAITING },
            (Add(1), Reason::Waiting),
        ),
        (
            "one worker on two cores computes",
            Bounds { min: 1, ..BOUNDS },
            Counters { workers: 1, cpu: used(1000), ..WAITING },
            (Add(1), Reason::Waiting),
        ),
        ("all compute", BOUNDS, Counters { cpu: used(8000), ..WAITING }, (Stay, Reason::Cpu)),
        (
            "they compute, in a group with a quota",
            BOUNDS,
            Counters { cpu: Some(CpuUse { wanted: 5334, idle: 500 }), ..WAITING },
            (Stay, Reason::Cpu),
        ),
        (
            "many that mostly wait, and idle cores",
            BOUNDS,
            Counters { cpu: Some(CpuUse { wanted: 5000, idle: 200 }), ..WAITING },
            (Add(1), Reason::Waiting),
        ),
        (
            "half of them have nothing to do, the others compute",
            BOUNDS,
            Counters { cpu: Some(CpuUse { wanted: 4000, idle: 200 }), idle: 4, ..WAITING },
            (Stay, Reason::Cpu),
        ),
        (
            "one more fills the cores",
            BOUNDS,
            Counters { cpu: used(1600), ..WAITING },
            (Add(1), Reason::Waiting),
        ),
        ("not measured", BOUNDS, Counters { cpu: None, ..WAITING }, (Stay, Reason::Measuring)),
        ("some come", BOUNDS, Counters { queued: 3, coming: 3, ..WAITING }, (Stay, Reason::Coming)),
        (
            "some are free",
            BOUNDS,
            Counters { queued: 3, idle: 4, ..WAITING },
            (Stay, Reason::Coming),
        ),
        ("the most", BOUNDS, Counters { workers: 64, ..WAITING }, (Stay, Reason::Max)),
        ("nearly", BOUNDS, Counters { workers: 62, ..WAITING }, (Add(2), Reason::Waiting)),
        ("beyond it", BOUNDS, Counters { workers: 70, ..WAITING }, (Stay, Reason::Max)),
        (
            "no process",
            BOUNDS,
            Counters { fork_failed: true, ..WAITING },
            (Stay, Reason::ForkFailed),
        ),
        ("own memory", limited(8 << 21), WAITING, (Stay, Reason::Memory)),
        ("for one more", limited(9 << 21), WAITING, (Add(1), Reason::Waiting)),
        (
            "a full machine",
            BOUNDS,
            Counters { memory: memory(50 << 20), ..WAITING },
            (Stay, Reason::MachineMemory),
        ),
        (
            "nearly so",
            BOUNDS,
            Counters { memory: memory(54 << 20), ..WAITING },
            (Add(2), Reason::Waiting),
        ),
        (
            "a moment's queue",
            BOUNDS,
            Counters { oldest: Duration::from_millis(1), ..WAITING },
            (Stay, Reason::Enough),
        ),
        ("a quiet moment", BOUNDS, quiet, (Stay, Reason::Enough)),
        ("quiet for long", BOUNDS, Counters { unneeded: 5, ..quiet }, (Remove(5), Reason::Idle)),
        ("all of them", BOUNDS, Counters { unneeded: 8, ..quiet }, (Remove(6), Reason::Idle)),
        (
            "not while requests wait",
            BOUNDS,
            Counters { unneeded: 5, queued: 1, oldest: Duration::ZERO, ..quiet },
            (Stay, Reason::Enough),
        ),
    ] {
        assert_eq!(decide(&bounds, &counters), expected, "{name}");
    }
}

#[test]
fn decide_stays_within_bounds() {
    let numbers = [0, 1, 2, 3, 7, 63, 64, 65, usize::MAX >> 1];
    let all = numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b)));
    for ((queued, workers), (coming, idle)) in
        all.clone().flat_map(|a| all.clone().map(move |b| (a, b)))
    {
        let counters = Counters { queued, workers, coming, idle, unneeded: idle, ..WAITING };
        match decide(&BOUNDS, &counters).0 {
            Change::Add(count) => assert!(count > 0 && workers + count <= 64, "{counters:?}"),
            Change::Remove(count) => assert!(count > 0 && workers - count >= 2, "{counters:?}"),
            Change::Stay => {}
        }
    }
}

struct Idle;

impl Machine for Idle {
    fn times(&self, _: i32) -> Option<u64> {
        Some(0)
    }
    fn ticks(&self) -> Option<Ticks> {
        None
    }
    fn is_runnable(&self, _: i32) -> bool {
        false
    }
    fn own_bytes(&self, _: i32) -> Option<u64> {
        Some(1 << 20)
    }
    fn memory(&self) -> Option<Memory> {
        None
    }
}

fn bounds(min: usize, max: usize) -> WorkerCount {
    WorkerCount { min, max, ..WorkerCount::fixed(0) }
}

fn workers(count: usize, is_busy: bool) -> Vec<Seen> {
    let worker = |cell: usize| Seen {
        cell,
        pid: Some(100 + i32::try_from(cell).unwrap()),
        is_up: true,
        is_busy,
        requests: 7,
    };
    (0..count).map(worker).collect()
}

#[test]
fn refused_forks_increase_backoff() {
    let mut scale = Scale::new(&bounds(1, 64), false);
    let queued = Queued { count: 50, oldest: SECOND };
    let (begin, mut at, mut failures) = (Instant::now(), Duration::ZERO, 0);
    let mut tries = Vec::new();
    // Each fork is refused.
    while at < Duration::from_mins(3) {
        if scale.look(4, &workers(4, true), queued, failures, &Idle, begin + at).is_some() {
            tries.push(at);
            failures += 1;
        }
        at += Duration::from_millis(25);
    }
    let gaps: Vec<u64> =
        tries.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_secs()).collect();
    assert!(gaps.len() < 15 && gaps.contains(&30), "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "{gaps:?}");
    assert_eq!(scale.line().reason, "fork_failed");
}

#[test]
fn idle_workers_with_highest_cells_are_removed() {
    let mut scale = Scale::new(&bounds(2, 64), false);
    let begin = Instant::now();
    let mut look = |seen: &[Seen], ms| {
        scale.look(seen.len(), seen, Queued::default(), 0, &Idle, begin + Duration::from_millis(ms))
    };
    let mut seen = workers(5, false);
    assert_eq!(look(&seen, 0), None);
    assert_eq!(look(&seen, 9_000), None);
    // One has finished a request between two checks, and another has a new process.
    seen[4].requests += 1;
    seen[1].pid = Some(99);
    assert_eq!(look(&seen, 9_500), None);
    assert_eq!(look(&seen, 10_000), Some(Step::Shrink(vec![3, 2, 0])));
    assert_eq!((scale.line().reason, scale.line().shrunk), ("idle", 3));
}

#[test]
fn reason_words_are_valid_metric_labels() {
    for reason in [Reason::Enough, Reason::MachineMemory, Reason::ForkFailed] {
        assert!(reason.word().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert!(!reason.text().is_empty());
    }
}
