//! Scales the number of workers with the waiting requests: collects counters, calls [`decide`], and
//! stores the reason.
//!
//! In each turn, the owner passes the state of the workers of one kind. Data from the kernel comes
//! from a [`Machine`].

mod cpu;
mod decide;
mod machine;
mod memory;
#[cfg(test)]
mod tests;

use crate::backoff::Backoff;
use crate::settings::WorkerCount;
use cpu::CpuMeter;
use decide::{Bounds, Change, Counters, Reason, decide};
use machine::{Machine, Memory, Ticks};
use memory::Pool;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::info;

/// Time for which no worker is added after the system has refused a process.
const FORK_BACKOFF: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };
/// Time after which refusals no longer count.
const FORK_MEMORY: Duration = Duration::from_mins(1);
/// Interval between two checks of the free memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);
/// Changes within this time are logged as one line.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which the same limit is logged again.
const LIMIT_INTERVAL: Duration = Duration::from_secs(10);

/// The kernel of this process.
pub(crate) struct Kernel;

/// Returns the free memory of the machine, or of the control group if that has less, in bytes.
#[must_use]
pub fn free_memory() -> Option<u64> {
    memory::free().map(|memory| memory.free)
}

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

/// A worker that is not retiring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) cell: usize,
    /// Its process, if there is one.
    pub(crate) pid: Option<i32>,
    /// It can take requests.
    pub(crate) is_up: bool,
    /// It has a request.
    pub(crate) is_busy: bool,
    /// Number of requests that it has finished.
    pub(crate) requests: u64,
}

/// Queued requests for these workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queued {
    pub(crate) count: usize,
    /// Wait of the oldest one.
    pub(crate) oldest: Duration,
}

/// Action for the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Add this number of workers.
    Grow(usize),
    /// Retire the workers in these cells.
    Shrink(Vec<usize>),
}

/// Number of workers and its reason, for `samovar status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleLine {
    /// The workers are for scripts other than a booted application.
    pub is_script: bool,
    /// Minimum number of workers.
    pub min: usize,
    /// Maximum number of workers.
    pub max: usize,
    /// Wanted number of workers.
    pub workers: usize,
    /// Number of requests waiting at the last check.
    pub queued: usize,
    /// Reason for this number, as one word.
    pub reason: &'static str,
    /// Reason for this number, as text.
    pub text: &'static str,
    /// Cores that the workers wanted when requests last waited, in thousandths.
    pub cpu_wanted: u64,
    /// Available cores.
    pub cores: usize,
    /// Estimated private memory of all workers, in bytes; 0: not measured yet.
    pub pool_bytes: u64,
    /// Number of workers added.
    pub grown: u64,
    /// Number of workers removed.
    pub shrunk: u64,
}

/// Start of a worker's idle time.
#[derive(Clone, Copy, Debug)]
struct Rest {
    pid: Option<i32>,
    requests: u64,
    since: Instant,
}

/// Changes that are not logged yet.
#[derive(Clone, Copy, Debug)]
struct Untold {
    since: Instant,
    from: usize,
}

/// Scaling of the workers of one kind in one generation.
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

    /// Whether requests wait and workers may be added for them: the next check should be soon.
    pub(crate) fn is_urgent(&self) -> bool {
        self.line.queued > 0 && self.line.workers < self.bounds.max
    }

    pub(crate) fn line(&self) -> ScaleLine {
        self.line
    }

    /// Checks the load and returns the next step. `workers`: wanted number, of which `seen` already
    /// have a place. `fork_failures`: number of forks that the system has refused so far.
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
        // Not measured if there is nothing to decide: it costs some µs per worker.
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
        // Measured once per CPU window, to limit its frequency.
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

    /// Returns, of the workers that were idle for long enough, those with the highest cells. The
    /// lowest cells get requests first.
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
        // Between two windows, the reason of the last one is kept.
        if reason != Reason::Measuring || line.reason == Reason::Enough.word() {
            (line.reason, line.text) = (reason.word(), reason.text());
        }
        if change != Change::Stay {
            self.untold.get_or_insert(Untold { since: now, from });
        }
        self.tell(reason, now);
    }

    /// Logs changes and limits in few lines.
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
                "number of workers changed: {}",
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
                "requests wait, but no worker is added: {}",
                reason.text()
            );
        }
    }
}
