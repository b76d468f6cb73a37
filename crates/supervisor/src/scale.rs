//! Workers follow the waiting: counts what there is to count, asks [`decide`] what to do, and remembers why.
//!
//! Its owner tells what it sees of the workers of one kind at each turn; what the kernel knows comes from a [`Machine`].

mod cpu;
mod decide;
mod memory;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::backoff::Backoff;
use crate::settings::WorkerCount;
use cpu::{CpuMeter, Ticks};
use decide::{Bounds, Change, Counters, Memory, Reason, decide};
use memory::Pool;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::info;

/// How long no worker is added after the system has refused one.
const FORK_BACKOFF: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };
/// Refusals longer ago do not count.
const FORK_MEMORY: Duration = Duration::from_mins(1);
/// Between two looks at the memory that is free.
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);
/// A log has one line of what changes meanwhile.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The same limit is told of again after this.
const LIMIT_INTERVAL: Duration = Duration::from_secs(10);

/// What the kernel knows of processes.
pub(crate) trait Machine {
    /// How long a process has run, and wanted to, ns.
    fn times(&self, pid: i32) -> Option<u64>;
    /// The machine's time.
    fn ticks(&self) -> Option<Ticks>;
    /// Whether it does one of the two just now.
    fn is_runnable(&self, pid: i32) -> bool;
    /// Bytes of its own.
    fn own_bytes(&self, pid: i32) -> Option<u64>;
    /// Memory in all, and free.
    fn memory(&self) -> Option<Memory>;
}

/// The one that this process runs on.
pub(crate) struct Kernel;

impl Machine for Kernel {
    fn times(&self, pid: i32) -> Option<u64> {
        cpu::times(pid)
    }

    fn ticks(&self) -> Option<Ticks> {
        cpu::ticks()
    }

    fn is_runnable(&self, pid: i32) -> bool {
        cpu::is_runnable(pid)
    }

    fn own_bytes(&self, pid: i32) -> Option<u64> {
        memory::own(pid)
    }

    fn memory(&self) -> Option<Memory> {
        memory::free()
    }
}

/// A worker that was not told to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) cell: usize,
    /// Its process, if there is one.
    pub(crate) pid: Option<i32>,
    /// It takes requests.
    pub(crate) is_up: bool,
    /// It has one.
    pub(crate) is_busy: bool,
    /// How many it has finished.
    pub(crate) requests: u64,
}

/// Requests for these workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queued {
    pub(crate) count: usize,
    /// For how long the oldest has waited.
    pub(crate) oldest: Duration,
}

/// What its owner is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Have so many more.
    Grow(usize),
    /// Have the workers in these cells leave.
    Shrink(Vec<usize>),
}

/// How many workers there are, and why, for `samovar status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleLine {
    /// For scripts beside a booted application.
    pub is_script: bool,
    /// The least.
    pub min: usize,
    /// The most.
    pub max: usize,
    /// How many there are to be now.
    pub workers: usize,
    /// Requests that waited for one of them at the last look.
    pub queued: usize,
    /// Why there are not more, or fewer: one word.
    pub reason: &'static str,
    /// The same for people.
    pub text: &'static str,
    /// Cores that the workers wanted when requests waited last, thousandths.
    pub cpu_wanted: u64,
    /// Cores that there are.
    pub cores: usize,
    /// Bytes of their own, estimated; 0: nobody has looked yet.
    pub pool_bytes: u64,
    /// Workers that were added.
    pub grown: u64,
    /// Workers that were taken away.
    pub shrunk: u64,
}

/// Since when a worker has had nothing to do.
#[derive(Clone, Copy, Debug)]
struct Rest {
    pid: Option<i32>,
    requests: u64,
    since: Instant,
}

/// What was added or taken away since a line of the log said so.
#[derive(Clone, Copy, Debug)]
struct Untold {
    since: Instant,
    from: usize,
}

/// The workers of one kind of one generation.
#[derive(Debug)]
pub(crate) struct Scale {
    bounds: Bounds,
    idle: Duration,
    cpu: CpuMeter,
    pool: Pool,
    memory: Option<Memory>,
    memory_at: Option<Instant>,
    rests: BTreeMap<usize, Rest>,
    fork_failures: u64,
    failed: Option<(u32, Instant)>,
    untold: Option<Untold>,
    limit_told: Option<(Reason, Instant)>,
    line: ScaleLine,
}

impl Scale {
    pub(crate) fn new(count: &WorkerCount, is_script: bool) -> Scale {
        let WorkerCount { min, max, memory_max, idle, .. } = *count;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let reason = Reason::default();
        let line = ScaleLine {
            is_script,
            min,
            max,
            workers: min,
            reason: reason.word(),
            text: reason.text(),
            cores,
            ..ScaleLine::default()
        };
        Scale {
            bounds: Bounds { min, max, memory_max, cores },
            idle,
            cpu: CpuMeter::default(),
            pool: Pool::default(),
            memory: None,
            memory_at: None,
            rests: BTreeMap::new(),
            fork_failures: 0,
            failed: None,
            untold: None,
            limit_told: None,
            line,
        }
    }

    /// Requests wait that workers may be added for: it wants to look again soon.
    pub(crate) fn is_urgent(&self) -> bool {
        self.line.queued > 0 && self.line.workers < self.bounds.max
    }

    pub(crate) fn line(&self) -> ScaleLine {
        self.line
    }

    /// `workers`: how many there are to be; of these, `seen` have a place already. `fork_failures`: how many forks the system
    /// has refused so far.
    pub(crate) fn look(
        &mut self,
        workers: usize,
        seen: &[Seen],
        queued: Queued,
        fork_failures: u64,
        machine: &impl Machine,
        now: Instant,
    ) -> Option<Step> {
        self.note_rests(seen, now);
        self.note_failures(fork_failures, now);
        let counters = self.count(workers, seen, queued, machine, now);
        let (change, reason) = decide(&self.bounds, &counters);
        self.note(&counters, change, reason, now);
        match change {
            Change::Add(count) => Some(Step::Grow(count)),
            Change::Remove(count) => Some(Step::Shrink(self.longest_idle(count, now))),
            Change::Stay => None,
        }
    }

    fn note_rests(&mut self, seen: &[Seen], now: Instant) {
        let before = std::mem::take(&mut self.rests);
        for worker in seen {
            let (pid, requests) = (worker.pid, worker.requests);
            let rested = before.get(&worker.cell).filter(|rest| {
                (rest.pid, rest.requests) == (pid, requests) && worker.is_up && !worker.is_busy
            });
            let since = rested.map_or(now, |rest| rest.since);
            self.rests.insert(worker.cell, Rest { pid, requests, since });
        }
    }

    fn note_failures(&mut self, failures: u64, now: Instant) {
        self.failed = self.failed.filter(|(_, until)| now < *until + FORK_MEMORY);
        if failures > self.fork_failures {
            let times = self.failed.map_or(0, |(times, _)| times).saturating_add(1);
            self.failed = Some((times, now + FORK_BACKOFF.after(times)));
        }
        self.fork_failures = failures;
    }

    fn count(
        &mut self,
        workers: usize,
        seen: &[Seen],
        queued: Queued,
        machine: &impl Machine,
        now: Instant,
    ) -> Counters {
        let may_grow = queued.count > 0 && workers < self.bounds.max;
        let pids: Vec<i32> =
            seen.iter().filter(|w| w.is_up).filter_map(|worker| worker.pid).collect();
        // Nobody looks while there is nothing to decide: it costs some µs for each worker.
        let cpu = if may_grow {
            self.cpu.look(&pids, now, machine)
        } else {
            self.cpu = CpuMeter::default();
            None
        };
        if may_grow && self.memory_at.is_none_or(|at| now - at >= MEMORY_INTERVAL) {
            self.memory_at = Some(now);
            self.memory = machine.memory();
        }
        // Together with the window of the CPU, which is some time.
        if cpu.is_some() {
            self.line.pool_bytes = self.pool.look(&pids, |pid| machine.own_bytes(pid));
        }
        let is_unneeded = |rest: &Rest| now - rest.since >= self.idle;
        Counters {
            queued: queued.count,
            oldest: queued.oldest,
            workers,
            coming: workers.saturating_sub(pids.len()),
            idle: seen.iter().filter(|worker| worker.is_up && !worker.is_busy).count(),
            unneeded: self.rests.values().filter(|rest| is_unneeded(rest)).count(),
            cpu,
            pool_bytes: self.line.pool_bytes,
            memory: self.memory,
            fork_failed: self.failed.is_some_and(|(_, until)| now < until),
        }
    }

    /// Of the workers that have had nothing to do for long enough those with the highest cells: the lowest are asked first.
    fn longest_idle(&self, count: usize, now: Instant) -> Vec<usize> {
        let idle = self.rests.iter().rev().filter(|(_, rest)| now - rest.since >= self.idle);
        idle.map(|(cell, _)| *cell).take(count).collect()
    }

    fn note(&mut self, counters: &Counters, change: Change, reason: Reason, now: Instant) {
        let line = &mut self.line;
        (line.workers, line.queued) = (counters.workers, counters.queued);
        line.cpu_wanted = counters.cpu.map_or(line.cpu_wanted, |cpu| cpu.wanted);
        let from = counters.workers;
        match change {
            Change::Add(count) => {
                line.workers += count;
                line.grown += count as u64;
            }
            Change::Remove(count) => {
                line.workers -= count;
                line.shrunk += count as u64;
            }
            Change::Stay => {}
        }
        // Between two windows what the last one said is still so.
        if reason != Reason::Measuring || line.reason == Reason::Enough.word() {
            (line.reason, line.text) = (reason.word(), reason.text());
        }
        if change != Change::Stay {
            self.untold.get_or_insert(Untold { since: now, from });
        }
        self.tell(reason, now);
    }

    /// The log, in few lines.
    fn tell(&mut self, reason: Reason, now: Instant) {
        let ScaleLine { is_script, workers, queued, cpu_wanted, .. } = self.line;
        if let Some(untold) = self.untold.take_if(|untold| now - untold.since >= LOG_INTERVAL) {
            let why = if workers >= untold.from { Reason::Waiting } else { Reason::Idle };
            info!(
                from = untold.from,
                workers,
                queued,
                scripts = is_script,
                reason = why.word(),
                "the number of workers changes: {}",
                why.text()
            );
        }
        let was_told =
            self.limit_told.is_some_and(|(told, at)| told == reason && now - at < LIMIT_INTERVAL);
        if reason.is_limit() && !was_told {
            self.limit_told = Some((reason, now));
            info!(
                workers,
                queued,
                scripts = is_script,
                cpu_wanted_thousandths = cpu_wanted,
                reason = reason.word(),
                "requests wait, and no worker is added: {}",
                reason.text()
            );
        }
    }
}
