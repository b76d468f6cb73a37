//! Decides how many workers there should be: a pure function of the counters.
//!
//! Workers are added while requests wait and the workers wait too, for something other than the
//! CPU. A worker is removed when it was idle for long enough.

use super::cpu::CpuUse;
use super::machine::Memory;
use std::time::Duration;

/// Minimum wait: a request with a shorter wait is about to be taken.
const WAITED_MIN: Duration = Duration::from_millis(5);
/// Share of the cores, in thousandths, above which the CPU can be the limit. It is the limit if one
/// of the next two conditions holds as well.
const SATURATED: u64 = 900;
/// First condition: busy workers want a core for at least this many thirds of their time.
const COMPUTING_THIRDS: u64 = 2;
/// Second condition: less than this share of the machine's cores is idle, in thousandths.
const IDLE_MIN: u64 = 100;
/// Divisor for the size of a step: one step adds at most half as many workers as serve.
const STEP_DIVISOR: usize = 2;
/// Divisor for the memory reserve: one twentieth of the memory stays free.
const RESERVE_DIVISOR: u64 = 20;
/// Minimum assumed size of a worker in bytes: a worker that was just forked seems to use no memory.
const WORKER_BYTES_MIN: u64 = 1 << 20;

/// Bounds of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Maximum private memory of all workers, in bytes; 0: no limit.
    pub(crate) memory_max: u64,
    /// Number of cores that the server may use.
    pub(crate) cores: usize,
}

/// Counters of the workers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Number of requests that wait for a worker.
    pub(crate) queued: usize,
    /// Wait of the oldest of them.
    pub(crate) oldest: Duration,
    /// Number of workers that exist or are ordered, without retiring ones.
    pub(crate) workers: usize,
    /// Number of these workers that do not take requests yet.
    pub(crate) coming: usize,
    /// Number of these workers that have no request.
    pub(crate) idle: usize,
    /// Number of idle workers that were idle for long enough to be removed.
    pub(crate) unneeded: usize,
    /// CPU use of the workers in a window that has just ended; `None`: no window has ended.
    pub(crate) cpu: Option<CpuUse>,
    /// Private memory of all workers, in bytes.
    pub(crate) pool_bytes: u64,
    /// Memory of the machine or the control group; `None`: unknown.
    pub(crate) memory: Option<Memory>,
    /// A fork has failed, and its backoff is not over.
    pub(crate) fork_failed: bool,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add(usize),
    Remove(usize),
    Stay,
}

/// Reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Reason {
    /// No request waits, and no worker is superfluous.
    #[default]
    Enough,
    /// Requests wait, and the workers wait too.
    Waiting,
    /// Workers were idle.
    Idle,
    /// Requests wait, and the workers for them are idle or starting.
    Coming,
    /// Requests wait; the use of the CPU is being measured.
    Measuring,
    /// Requests wait for the CPU.
    Cpu,
    /// `workers.max` is reached.
    Max,
    /// `workers.memory_max` is reached.
    Memory,
    /// The machine has too little free memory.
    MachineMemory,
    /// The system has refused a process.
    ForkFailed,
}

impl Reason {
    /// Returns the word for status, metrics and logs.
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

    /// Returns the text for operators.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Reason::Enough => "no request waits",
            Reason::Waiting => "requests wait, and the workers wait for I/O",
            Reason::Idle => "workers were idle",
            Reason::Coming => "workers for the waiting requests are starting",
            Reason::Measuring => "requests wait; measuring whether the CPU is the limit",
            Reason::Cpu => "the CPU is the limit: more workers would not help",
            Reason::Max => "workers.max is reached",
            Reason::Memory => "workers.memory_max is reached",
            Reason::MachineMemory => "too little memory is free",
            Reason::ForkFailed => "the system could not create a process",
        }
    }

    /// Whether requests wait that need more workers, and none can be added.
    pub(crate) fn is_limit(self) -> bool {
        use Reason::{Cpu, ForkFailed, MachineMemory, Max, Memory};
        matches!(self, Cpu | Max | Memory | MachineMemory | ForkFailed)
    }
}

/// Returns the decision and its reason.
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

/// Returns the number of workers that may be added, or the reason why none may.
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

/// Returns the number of workers that would fill the cores, if they were like those that serve.
/// `None`: the cores are full.
fn room_on_cpu(bounds: &Bounds, [serving, busy]: [usize; 2], cpu: CpuUse) -> Option<usize> {
    let CpuUse { wanted, idle } = cpu;
    let left = (bounds.cores as u64 * SATURATED).saturating_sub(wanted);
    let each = (wanted / serving as u64).max(1);
    // Rounded to the nearest number: room for less than half a worker counts as none.
    let fits = left.saturating_add(each / 2) / each;
    if fits > 0 {
        return Some(usize::try_from(fits).unwrap_or(usize::MAX));
    }
    // Workers that mostly wait for something else still need a core for a moment each time. Many
    // of them together can want more than all cores, although cores are idle in between. In this
    // case, workers are added one by one. The idle cores may also be unavailable to this server:
    // workers that compute all the time have reached a CPU quota, and none are added.
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
