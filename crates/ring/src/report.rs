//! worker ↔ supervisor: what the two say of a worker's life in its cell, and how it is shown.
//!
//! Whatever a worker writes may be garbage: a code that is none reads as the harmless one, or as nothing.

use crate::codes::codes;
use crate::layout::{ROLLBACK_BUCKETS, WorkerCell};
use crate::sync::{AtomicU64, Ordering};

codes! {
    /// What a worker does.
    pub enum WorkerState {
        /// No process, or not yet in its loop.
        Starting = 0, "starting";
        /// Runs the application's boot.
        Booting = 1, "booting";
        /// Waits for a request.
        Idle = 2, "idle";
        /// Runs a request.
        Busy = 3, "busy";
    }
}

codes! {
    /// Which execution model the worker's application chose.
    pub enum Model {
        /// Each request runs the script.
        Script = 0, "script";
        /// `Samovar\serve` calls a handler for each request.
        Resident = 1, "resident";
        /// The process returns to its image after requests.
        Checkpoint = 2, "checkpoint";
    }
}

/// What a worker is until its application says otherwise.
impl Default for Model {
    fn default() -> Model {
        Model::Script
    }
}

codes! {
    /// How PHP ended a request. `ending` in C.
    pub enum Ending {
        /// Its code came to its end.
        Returned = 0, "returned";
        /// A fatal error ended it, or an exception that nobody caught.
        Fatal = 1, "fatal";
        /// It ran longer than `max_execution_time` allows.
        Overtime = 2, "overtime";
        /// It called `exit()`.
        Exit = 3, "exit";
    }
}

/// What most do.
impl Default for Ending {
    fn default() -> Ending {
        Ending::Returned
    }
}

codes! {
    /// What the supervisor wants of a worker.
    pub enum DesiredState {
        /// Take requests from the queue.
        Serve = 0, "serve";
        /// Get ready, and wait: another generation serves yet.
        Hold = 1, "hold";
        /// Leave when the request is done.
        Retire = 2, "retire";
    }
}

codes! {
    /// Why a worker asked to be replaced by a fresh fork. `leave_reason` in C.
    pub enum LeaveReason {
        /// A request left a child process.
        Child = 1, "child";
        /// A request left a thread.
        Thread = 2, "thread";
        /// A request closed a descriptor of the image.
        Descriptor = 3, "descriptor";
        /// A connection of the image died, or had bytes left.
        Connection = 4, "connection";
        /// A request unmapped memory of the image, or changed more of it than can be followed.
        Mapping = 5, "mapping";
        /// A request changed user, limits, root … of the process.
        Privileges = 6, "privileges";
        /// A worker that runs whole scripts met a checkpoint: its successor boots ahead.
        Checkpoint = 7, "checkpoint";
        /// The application cannot go on.
        Fatal = 8, "fatal";
        /// A request left a System V semaphore changed.
        Lock = 9, "lock";
        /// A request made a POSIX timer.
        Timer = 10, "timer";
        /// The application's own loop over requests has ended.
        End = 11, "end";
        /// A request of a worker that does not roll back left signals blocked.
        Signal = 12, "signal";
        /// The application's resume hook says that what it has booted no longer fits.
        Stale = 13, "stale";
        /// A request was ended because its time was over.
        Overrun = 14, "overrun";
    }
}

codes! {
    /// Which of its times a request has used up; named by the setting.
    pub enum Overrun {
        /// That without a byte of the answer.
        Answer = 1, "timeouts.answer";
        /// That for the whole request.
        Request = 2, "timeouts.request";
        /// That after its answer, or without its client.
        After = 3, "timeouts.after";
        /// That which the server itself has to end.
        Drain = 4, "timeouts.drain";
    }
}

/// The code of a worker that is busy with its return to the image: nothing of the application runs there.
pub(crate) const RETURNS: u32 = 4;

// A cell has one code, and each reads as one thing.
const _: () = assert!(WorkerState::from_code(RETURNS).is_none());

/// What a worker's cell says, checked for range.
#[derive(Clone, Copy, Debug)]
pub struct WorkerReport {
    /// What the worker does.
    pub state: WorkerState,
    /// Which model its application chose.
    pub model: Model,
    /// Requests finished in this life.
    pub requests: u64,
    /// It has taken one that is not finished.
    pub has_request: bool,
    /// It has finished one, and returns to its image.
    pub returns: bool,
    /// Another number each time that it has looked for a request: while it has none, at least once a second.
    pub beat: u32,
    /// Pages that a rollback copies.
    pub hot_pages: u32,
    /// Returns to the image in this life.
    pub rollbacks: u64,
    /// Why it ended itself, if it said so.
    pub leave: Option<LeaveReason>,
}

impl WorkerCell {
    /// What the cell says, for the supervisor.
    pub(crate) fn report(&self) -> WorkerReport {
        let code = self.state.load(Ordering::Relaxed);
        let returns = code == RETURNS;
        let state = if returns { Some(WorkerState::Busy) } else { WorkerState::from_code(code) };
        let model = Model::from_code(self.model.load(Ordering::Relaxed));
        WorkerReport {
            state: state.unwrap_or(WorkerState::Starting),
            model: model.unwrap_or(Model::Script),
            requests: self.requests.load(Ordering::Relaxed),
            has_request: self.slot.load(Ordering::Relaxed) != 0,
            returns,
            beat: self.beat.load(Ordering::Relaxed),
            hot_pages: self.hot_pages.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            leave: LeaveReason::from_code(self.leave.load(Ordering::SeqCst)),
        }
    }

    /// What is wanted of the worker. Garbage reads as [`DesiredState::Serve`]: its supervisor says it again.
    pub(crate) fn desired_state(&self) -> DesiredState {
        let code = self.desired_state.load(Ordering::SeqCst);
        DesiredState::from_code(code).unwrap_or(DesiredState::Serve)
    }
}

/// How a worker ended that held a request: what `wait` said of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Death(u32);

impl Death {
    /// No `wait` status is known.
    pub const UNKNOWN: Death = Death(0);

    /// From a wait status (`waitpid(2)`).
    pub fn from_status(status: i32) -> Death {
        Death(status.cast_unsigned().wrapping_add(1))
    }

    /// Its request may have brought it about: a signal that a process earns by what it does, or an exit. What operators,
    /// service managers, the out-of-memory killer and a dying parent send does not count, nor does what is unknown.
    pub fn is_own_doing(self) -> bool {
        const SENT: [i32; 5] =
            [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
        let status = self.0.wrapping_sub(1).cast_signed();
        let is_sent = libc::WIFSIGNALED(status) && SENT.contains(&libc::WTERMSIG(status));
        self != Death::UNKNOWN && !is_sent
    }

    /// The code in shared memory.
    pub(crate) fn code(self) -> u32 {
        self.0
    }

    /// From a code in shared memory, which may be garbage.
    pub(crate) fn from_code(code: u32) -> Death {
        Death(code)
    }
}

/// How long rollbacks took, of all workers together: four buckets per power of two of nanoseconds.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RollbackTimes {
    pub(crate) buckets: [AtomicU64; ROLLBACK_BUCKETS],
    pub(crate) total_ns: AtomicU64,
    /// Rollbacks that searched memory for written pages.
    pub(crate) searches: AtomicU64,
}

/// How long all workers' returns to the image took.
#[derive(Clone, Copy, Debug, Default)]
pub struct RollbackReport {
    /// How many there were.
    pub count: u64,
    /// Median, ns, at most a quarter too high.
    pub p50_ns: u64,
    /// 99th percentile, ns, likewise.
    pub p99_ns: u64,
    /// All of them together.
    pub total_ns: u64,
    /// Those that searched memory for written pages.
    pub searches: u64,
}

impl RollbackTimes {
    pub(crate) fn record(&self, ns: u64, searched: bool) {
        self.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        if searched {
            self.searches.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn report(&self) -> RollbackReport {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Ordering::Relaxed)).collect();
        // Workers write these words: a sum may overflow without harm.
        let count = counts.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
        if count == 0 {
            return RollbackReport::default();
        }
        let quantile = |percent: u64| {
            let wanted = (u128::from(count) * u128::from(percent)).div_ceil(100);
            let mut seen = 0u64;
            let at = counts.iter().position(|n| {
                seen = seen.wrapping_add(*n);
                u128::from(seen) >= wanted
            });
            at.map_or(0, bucket_end)
        };
        RollbackReport {
            count,
            p50_ns: quantile(50),
            p99_ns: quantile(99),
            total_ns: self.total_ns.load(Ordering::Relaxed),
            searches: self.searches.load(Ordering::Relaxed),
        }
    }
}

fn bucket_of(ns: u64) -> usize {
    let ns = ns.max(4);
    let power = ns.ilog2();
    (4 * power as usize + (ns >> (power - 2) & 3) as usize).min(ROLLBACK_BUCKETS - 1)
}

/// The smallest time of the bucket after this one, ns.
fn bucket_end(bucket: usize) -> u64 {
    let (power, quarter) = ((bucket + 1) / 4, (bucket + 1) as u64 % 4);
    (1 << power) + quarter * (1 << power) / 4
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_at_most_a_quarter_above_what_is_in_it() {
        for ns in [4, 5, 7, 8, 100, 12_345, 1_000_000, 3_999_999_999] {
            let end = bucket_end(bucket_of(ns));
            assert!(ns < end && end <= ns + ns.div_ceil(4), "{ns} is in a bucket up to {end}");
        }
    }

    #[test]
    fn codes_are_read_as_they_were_written() {
        for reason in LeaveReason::ALL {
            assert_eq!(LeaveReason::from_code(reason.code()), Some(*reason));
        }
        assert_eq!(LeaveReason::from_code(0), None);
        assert_eq!(WorkerState::from_code(99), None);
    }
}
