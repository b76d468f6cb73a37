//! Simulates loads to test the decisions: requests compute and wait on simulated cores, and the
//! number of workers follows.
//!
//! Time advances in steps of one millisecond. Computing workers share the cores evenly.

use super::*;
use std::cell::RefCell;

const STEP: Duration = Duration::from_millis(1);
/// The same values as `TICK` and `TICK_URGENT` of `run::pools`.
const TICKS: [u64; 2] = [100, 25];

/// Load of a period: the number of clients, which send requests continuously, and the work of each
/// request.
#[derive(Clone, Copy, Debug)]
struct Load {
    clients: usize,
    compute_us: u64,
    wait_ms: u64,
}

#[derive(Clone, Debug)]
struct Request {
    compute_us: u64,
    ready_ms: u64,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    pid: i32,
    up_at_ms: u64,
    request: Option<Request>,
    requests: u64,
    cpu_ns: u64,
}

struct World {
    cores: u64,
    /// Time from a fork until the worker takes requests.
    boot_ms: u64,
    workers: Vec<Worker>,
    queue: Vec<u64>,
    now_ms: u64,
    next_pid: i32,
    served: u64,
    /// Total computing time.
    ran_ns: u64,
    /// Time of each change, and the number of workers after it.
    history: Vec<(u64, usize)>,
}

struct Times<'a>(&'a RefCell<World>);

impl Machine for Times<'_> {
    fn times(&self, pid: i32) -> Option<u64> {
        self.0.borrow().workers.iter().find(|w| w.pid == pid).map(|w| w.cpu_ns)
    }
    fn ticks(&self) -> Option<Ticks> {
        let world = self.0.borrow();
        let all = world.now_ms * world.cores * 1_000_000;
        Some(Ticks { idle: all.saturating_sub(world.ran_ns), all })
    }
    fn is_runnable(&self, _: i32) -> bool {
        false // All wanted time is already counted.
    }
    fn own_bytes(&self, _: i32) -> Option<u64> {
        Some(2 << 20)
    }
    fn memory(&self) -> Option<Memory> {
        None
    }
}

impl World {
    fn new(cores: u64, workers: usize) -> World {
        let (history, served, now_ms, next_pid) = (Vec::new(), 0, 0, 1);
        let (queue, boot_ms) = (Vec::new(), 3);
        let mut world = World {
            cores,
            boot_ms,
            workers: Vec::new(),
            queue,
            now_ms,
            next_pid,
            served,
            ran_ns: 0,
            history,
        };
        world.fork(workers);
        world
    }

    fn fork(&mut self, count: usize) {
        for _ in 0..count {
            // The template forks workers one after another.
            let busy = self.workers.iter().map(|w| w.up_at_ms).max().unwrap_or(0);
            let up_at_ms = busy.max(self.now_ms) + self.boot_ms;
            self.workers.push(Worker { pid: self.next_pid, up_at_ms, ..Worker::default() });
            self.next_pid += 1;
        }
        self.history.push((self.now_ms, self.workers.len()));
    }

    fn step(&mut self, load: &Load) {
        self.now_ms += 1;
        let busy = self.workers.iter().filter(|w| w.request.is_some()).count();
        let missing = load.clients.saturating_sub(busy + self.queue.len());
        self.queue.extend(std::iter::repeat_n(self.now_ms, missing));
        for worker in &mut self.workers {
            if worker.request.is_none() && worker.up_at_ms <= self.now_ms && !self.queue.is_empty()
            {
                let compute_us = load.compute_us;
                let ready_ms = self.now_ms + load.wait_ms;
                self.queue.remove(0);
                worker.request = Some(Request { compute_us, ready_ms });
            }
        }
        self.compute();
    }

    fn compute(&mut self) {
        let now_ms = self.now_ms;
        let computes = |w: &Worker| w.request.as_ref().is_some_and(|r| r.ready_ms <= now_ms);
        let running = self.workers.iter().filter(|w| computes(w)).count() as u64;
        let share_us = (self.cores * 1000 / running.max(1)).min(1000);
        for worker in self.workers.iter_mut().filter(|w| computes(w)) {
            let Some(request) = &mut worker.request else { continue };
            let all_of_it = request.compute_us <= share_us;
            // Waiting for a core counts as wanted time, as in the kernel.
            let wanted_us =
                if all_of_it { request.compute_us * 1000 / share_us.max(1) } else { 1000 };
            worker.cpu_ns += wanted_us.min(1000) * 1000;
            self.ran_ns += request.compute_us.min(share_us) * 1000;
            request.compute_us = request.compute_us.saturating_sub(share_us);
            if all_of_it {
                worker.request = None;
                worker.requests += 1;
                self.served += 1;
            }
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let see = |worker: &Worker| Seen {
            // Unique: the cell of a removed worker is never reused.
            cell: usize::try_from(worker.pid).unwrap(),
            pid: Some(worker.pid),
            is_up: worker.up_at_ms <= self.now_ms,
            is_busy: worker.request.is_some(),
            requests: worker.requests,
        };
        self.workers.iter().map(see).collect()
    }

    fn queued(&self) -> Queued {
        let oldest = self.queue.first().map_or(0, |since| self.now_ms - since);
        Queued { count: self.queue.len(), oldest: Duration::from_millis(oldest) }
    }
}

/// Runs the loads one after another, each for its number of seconds, and returns the final state.
fn run(world: World, bounds: (usize, usize), loads: &[(Load, u64)]) -> World {
    let count = WorkerCount { min: bounds.0, max: bounds.1, ..WorkerCount::fixed(0) };
    let mut scale = Scale::new(&count, false);
    scale.bounds.cores = usize::try_from(world.cores).unwrap();
    let (world, begin) = (RefCell::new(world), Instant::now());
    let mut due_ms = 0;
    for (load, seconds) in loads {
        for _ in 0..seconds * 1000 {
            world.borrow_mut().step(load);
            let (now_ms, seen, queued) = {
                let world = world.borrow();
                (world.now_ms, world.seen(), world.queued())
            };
            if now_ms < due_ms {
                continue;
            }
            let now = begin + STEP * u32::try_from(now_ms).unwrap();
            match scale.look(seen.len(), &seen, queued, 0, &Times(&world), now) {
                Some(Step::Grow(count)) => world.borrow_mut().fork(count),
                Some(Step::Shrink(cells)) => {
                    let mut world = world.borrow_mut();
                    world.workers.retain(|w| !cells.contains(&usize::try_from(w.pid).unwrap()));
                    let change = (world.now_ms, world.workers.len());
                    world.history.push(change);
                }
                None => {}
            }
            due_ms = now_ms + TICKS[usize::from(scale.is_urgent())];
        }
    }
    world.into_inner()
}

impl World {
    /// Returns the number of changes between growing and shrinking.
    fn turns(&self) -> usize {
        let sizes: Vec<usize> = self.history.iter().map(|(_, count)| *count).collect();
        let grows: Vec<bool> = sizes.windows(2).map(|pair| pair[1] > pair[0]).collect();
        grows.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    fn most(&self) -> usize {
        self.history.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// Returns the maximum number of workers added within 50 ms.
    fn storm(&self) -> usize {
        let added = |(at, from): (u64, usize)| {
            let within = self.history.iter().filter(|(t, _)| (at..=at + 50).contains(t));
            within.map(|(_, count)| count.saturating_sub(from)).max().unwrap_or(0)
        };
        self.history.iter().map(|change| added(*change)).max().unwrap_or(0)
    }
}

const DATABASE: Load = Load { clients: 64, compute_us: 400, wait_ms: 20 };
const COMPUTING: Load = Load { clients: 64, compute_us: 8_000, wait_ms: 0 };
const QUIET: Load = Load { clients: 0, compute_us: 0, wait_ms: 0 };

#[test]
fn database_load_grows_to_number_of_clients() {
    let world = run(World::new(2, 2), (2, 256), &[(DATABASE, 5)]);
    assert!((55..=64).contains(&world.workers.len()), "{:?}", world.history);
    assert_eq!(world.turns(), 0, "{:?}", world.history);
    let settled = world.history.last().unwrap().0;
    assert!(settled < 1_500, "{settled} ms: {:?}", world.history);
    assert!(world.storm() <= 45, "{:?}", world.history);
    // With two workers it would be 5 times 100.
    assert!(world.served > 5 * 2_000, "{}", world.served);
}

#[test]
fn computing_load_adds_no_workers() {
    let world = run(World::new(2, 2), (2, 256), &[(COMPUTING, 10)]);
    assert_eq!(world.history.len(), 1, "{:?}", world.history);
}

#[test]
fn computing_load_grows_to_number_of_cores() {
    let world = run(World::new(4, 1), (1, 256), &[(COMPUTING, 10)]);
    assert!((4..=5).contains(&world.workers.len()), "{:?}", world.history);
}

#[test]
fn mixed_load_fills_the_cores_only() {
    let mixed = Load { clients: 200, compute_us: 5_000, wait_ms: 20 };
    let world = run(World::new(2, 2), (2, 256), &[(mixed, 10)]);
    // Two cores are full with 2 × 25 / 5 workers.
    assert!((8..=16).contains(&world.workers.len()), "{:?}", world.history);
    assert_eq!(world.turns(), 0);
}

#[test]
fn workers_shrink_to_minimum_without_load() {
    let world = run(World::new(2, 2), (2, 256), &[(DATABASE, 5), (QUIET, 15)]);
    assert_eq!(world.workers.len(), 2, "{:?}", world.history);
    assert_eq!(world.turns(), 1, "{:?}", world.history);
}

#[test]
fn bursts_do_not_cause_oscillation() {
    let burst = [(DATABASE, 1), (QUIET, 2)].repeat(20);
    let world = run(World::new(2, 2), (2, 256), &burst);
    // Between two bursts, no worker is idle for long enough: the number grows only once.
    assert_eq!(world.turns(), 0, "{:?}", world.history);
    assert!(world.most() <= 64, "{:?}", world.history);
    // With rare bursts, it grows and shrinks once for each.
    let rare = [(DATABASE, 2), (QUIET, 15)].repeat(4);
    let world = run(World::new(2, 2), (2, 256), &rare);
    assert!(world.turns() <= 7, "{:?}", world.history);
}

#[test]
fn workers_follow_slow_and_fast_database() {
    let fast = Load { clients: 16, wait_ms: 5, ..DATABASE };
    let slow = Load { clients: 40, wait_ms: 500, ..DATABASE };
    let world = run(World::new(2, 2), (2, 256), &[(fast, 3), (slow, 5), (fast, 20)]);
    assert!((35..=40).contains(&world.most()), "{:?}", world.history);
    assert!(world.workers.len() <= 16, "{:?}", world.history);
    assert_eq!(world.turns(), 1, "{:?}", world.history);
}

#[test]
fn hanging_database_grows_to_maximum() {
    let hangs = Load { clients: 5_000, compute_us: 400, wait_ms: 30_000 };
    let world = run(World::new(2, 2), (2, 256), &[(hangs, 10)]);
    assert_eq!((world.workers.len(), world.turns()), (256, 0));
    assert!(world.storm() <= 192, "half as many again in each window: {:?}", world.history);
}

#[test]
fn refusing_database_adds_few_workers() {
    let refused = Load { clients: 16, compute_us: 200, wait_ms: 0 };
    let world = run(World::new(2, 2), (2, 256), &[(refused, 5)]);
    assert!(world.workers.len() <= 4, "{:?}", world.history);
}

#[test]
fn slow_boots_do_not_overshoot() {
    let mut world = World::new(2, 2);
    world.boot_ms = 400;
    let world = run(world, (2, 256), &[(DATABASE, 60)]);
    assert!(world.workers.len() <= 64, "{:?}", world.history);
    assert_eq!(world.turns(), 0);
}
