//! How many workers there should be: a pure function of what is counted.
//!
//! Workers are added while requests wait and the workers wait too, for something else than the CPU. They go one by one,
//! each when it has had nothing to do for long enough.

use super::cpu::CpuUse;
use std::time::Duration;

/// A request that has waited shorter than this is about to be taken.
const WAITED_MIN: Duration = Duration::from_millis(5);
/// The CPU is the limit when workers want this share of it, thousandths, …
const SATURATED: u64 = 900;
/// … and wait for nothing else in as much of their time, by thirds.
const COMPUTING_THIRDS: u64 = 2;
/// … or when the machine has less than this share of its cores idle.
const IDLE_MIN: u64 = 100;
/// In one step at most this share of the workers is added again: half of them.
const STEP_DIVISOR: usize = 2;
/// Of the memory that there is, so much stays free: a twentieth.
const RESERVE_DIVISOR: u64 = 20;
/// A worker is not taken for smaller than this, bytes: one that has just been forked looks as if it cost nothing.
const WORKER_BYTES_MIN: u64 = 1 << 20;

/// Between which numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Bytes of all workers' own; 0: any.
    pub(crate) memory_max: u64,
    /// Cores that the server may use.
    pub(crate) cores: usize,
}

/// What is counted, of workers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Requests that wait for a worker.
    pub(crate) queued: usize,
    /// For how long the oldest of them has.
    pub(crate) oldest: Duration,
    /// Workers that there are or that were asked for, but those that were told to leave.
    pub(crate) workers: usize,
    /// Of these, those that do not take requests yet.
    pub(crate) coming: usize,
    /// Of these, those that have no request.
    pub(crate) idle: usize,
    /// Of the idle ones, those that have had nothing to do for long enough to go.
    pub(crate) unneeded: usize,
    /// What the workers would use of the CPU, over a window that has just ended. None: it has not.
    pub(crate) cpu: Option<CpuUse>,
    /// Bytes of all workers' own.
    pub(crate) pool_bytes: u64,
    /// What the machine, or the control group, has and has free; None: nobody knows.
    pub(crate) memory: Option<Memory>,
    /// A fork has failed, and it is too early for another.
    pub(crate) fork_failed: bool,
}

/// Of the machine or of the control group, whichever has less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) free: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add(usize),
    Remove(usize),
    Stay,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Reason {
    /// No request waits, and no worker is too many.
    #[default]
    Enough,
    /// Requests wait, and so do the workers.
    Waiting,
    /// Workers had nothing to do.
    Idle,
    /// Requests wait, and those that will take them are there or on their way.
    Coming,
    /// Requests wait; whether for the CPU is being measured.
    Measuring,
    /// Requests wait for the CPU.
    Cpu,
    /// As many workers as `workers.max`.
    Max,
    /// `workers.memory_max`.
    Memory,
    /// There is too little memory free on the machine.
    MachineMemory,
    /// The system has refused a process.
    ForkFailed,
}

impl Reason {
    /// The word for it in status, metrics and logs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reason::Enough => "enough",
            Reason::Waiting => "waiting",
            Reason::Idle => "idle",
            Reason::Coming => "coming",
            Reason::Measuring => "measuring",
            Reason::Cpu => "cpu",
            Reason::Max => "max",
            Reason::Memory => "memory",
            Reason::MachineMemory => "machine_memory",
            Reason::ForkFailed => "fork_failed",
        }
    }

    /// The same for people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Reason::Enough => "no request waits",
            Reason::Waiting => "requests wait, and the workers do too",
            Reason::Idle => "workers had nothing to do",
            Reason::Coming => "workers for the requests that wait are on their way",
            Reason::Measuring => "requests wait: is it for the CPU?",
            Reason::Cpu => "the CPU is the limit: more workers would not be faster",
            Reason::Max => "workers.max is reached",
            Reason::Memory => "workers.memory_max is reached",
            Reason::MachineMemory => "too little memory is free",
            Reason::ForkFailed => "the system has refused a process",
        }
    }

    /// Whether requests wait that more workers could be for, and none come.
    pub(crate) fn is_limit(self) -> bool {
        use Reason::{Cpu, ForkFailed, MachineMemory, Max, Memory};
        matches!(self, Cpu | Max | Memory | MachineMemory | ForkFailed)
    }
}

/// What is to be done, and why.
pub(crate) fn decide(bounds: &Bounds, counters: &Counters) -> (Change, Reason) {
    if counters.queued == 0 || counters.oldest < WAITED_MIN {
        return remove(bounds, counters);
    }
    match room(bounds, counters) {
        Ok(count) => (Change::Add(count), Reason::Waiting),
        Err(reason) => (Change::Stay, reason),
    }
}

fn remove(bounds: &Bounds, counters: &Counters) -> (Change, Reason) {
    let above = counters.workers.saturating_sub(bounds.min);
    match above.min(counters.unneeded) {
        0 => (Change::Stay, Reason::Enough),
        count if counters.queued == 0 => (Change::Remove(count), Reason::Idle),
        _ => (Change::Stay, Reason::Enough),
    }
}

/// How many may be added, or why none.
fn room(bounds: &Bounds, counters: &Counters) -> Result<usize, Reason> {
    let need = counters.queued.saturating_sub(counters.coming + counters.idle);
    let below_max = bounds.max.saturating_sub(counters.workers);
    let serving = counters.workers.saturating_sub(counters.coming).max(1);
    if below_max == 0 {
        return Err(Reason::Max);
    }
    if counters.fork_failed {
        return Err(Reason::ForkFailed);
    }
    let by_memory = room_in_memory(bounds, counters)?;
    let cpu = counters.cpu.ok_or(Reason::Measuring)?;
    let busy = serving.saturating_sub(counters.idle).max(1);
    let by_cpu = room_on_cpu(bounds, [serving, busy], cpu).ok_or(Reason::Cpu)?;
    if need == 0 {
        return Err(Reason::Coming);
    }
    let step = (serving / STEP_DIVISOR).max(1);
    Ok(need.min(below_max).min(by_memory).min(by_cpu).min(step))
}

/// How many more would keep the cores busy, if they were like those that serve. None: these do.
fn room_on_cpu(bounds: &Bounds, [serving, busy]: [usize; 2], cpu: CpuUse) -> Option<usize> {
    let CpuUse { wanted, idle } = cpu;
    let left = (bounds.cores as u64 * SATURATED).saturating_sub(wanted);
    let each = (wanted / serving as u64).max(1);
    // To the nearest: room for less than half of one is none.
    let fits = left.saturating_add(each / 2) / each;
    if fits > 0 {
        return Some(usize::try_from(fits).unwrap_or(usize::MAX));
    }
    // Many that mostly wait for something else, and each time a moment for a core, want more than there is while the cores
    // are idle in between. Then one after the other. The idle cores may be others': who computes all the time is at the
    // end of a quota.
    let computes = wanted.saturating_mul(3) >= busy as u64 * 1000 * COMPUTING_THIRDS;
    (!computes && idle >= IDLE_MIN).then_some(1)
}

fn room_in_memory(bounds: &Bounds, counters: &Counters) -> Result<usize, Reason> {
    let each = (counters.pool_bytes / counters.workers.max(1) as u64).max(WORKER_BYTES_MIN);
    let fit = |bytes: u64| usize::try_from(bytes / each).unwrap_or(usize::MAX);
    let by_setting = match bounds.memory_max {
        0 => usize::MAX,
        most => fit(most.saturating_sub(counters.pool_bytes)),
    };
    let by_machine = counters.memory.map_or(usize::MAX, |memory| {
        fit(memory.free.saturating_sub(memory.total / RESERVE_DIVISOR))
    });
    match (by_setting, by_machine) {
        (0, _) => Err(Reason::Memory),
        (_, 0) => Err(Reason::MachineMemory),
        (setting, machine) => Ok(setting.min(machine)),
    }
}
