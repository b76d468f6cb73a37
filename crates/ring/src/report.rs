//! worker ↔ supervisor: the words of a worker's cell that describe its life, and their
//! presentation.
//!
//! A worker may write garbage. An unknown code reads as the harmless value or as no value.

use crate::codes::codes;
use crate::limits::ROLLBACK_BUCKETS;
use crate::sync::{AtomicU64, Ordering};

codes! {
    /// Activity of a worker.
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
    /// Execution model that the worker's application chose.
    pub enum Model {
        /// Each request runs the script.
        Script = 0, "script";
        /// `Samovar\serve` calls a handler for each request.
        Resident = 1, "resident";
        /// The process returns to its image after requests.
        Checkpoint = 2, "checkpoint";
    }
}

/// The model of a worker until its application reports another.
impl Default for Model {
    fn default() -> Model {
        Model::Script
    }
}

codes! {
    /// How PHP ended a request. `ending` in C.
    pub enum Ending {
        /// The script ran to its end.
        Returned = 0, "returned";
        /// A fatal error or an uncaught exception ended it.
        Fatal = 1, "fatal";
        /// It ran longer than `max_execution_time` allows.
        Overtime = 2, "overtime";
        /// It called `exit()`.
        Exit = 3, "exit";
    }
}

/// The ending of most requests.
impl Default for Ending {
    fn default() -> Ending {
        Ending::Returned
    }
}

codes! {
    /// State that the supervisor wants of a worker.
    pub enum DesiredState {
        /// Take requests from the queue.
        Serve = 0, "serve";
        /// Get ready, and wait: another generation still serves.
        Hold = 1, "hold";
        /// Leave when the request is done.
        Retire = 2, "retire";
    }
}

codes! {
    /// Why a worker requested a fresh fork as its replacement. `leave_reason` in C.
    pub enum LeaveReason {
        /// A request left a child process, or a process that holds descriptors of the image.
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
        /// The application's resume hook reports that the booted application no longer fits.
        Stale = 13, "stale";
        /// A request was ended because its time was over.
        Overrun = 14, "overrun";
    }
}

codes! {
    /// The time limit that a request exceeded, named by its setting.
    pub enum Overrun {
        /// The time without a byte of the response.
        Response = 1, "timeouts.response";
        /// The time for the whole request.
        Request = 2, "timeouts.request";
        /// The time after the response, or without the client.
        After = 3, "timeouts.post_response";
        /// The time within which the server itself must end.
        Drain = 4, "timeouts.drain";
    }
}

/// Code of a worker that is busy with its return to the image: no application code runs there.
pub(crate) const RETURNS: u32 = 4;

// A cell has one code, and each code has one meaning.
const _: () = assert!(WorkerState::from_code(RETURNS).is_none());

/// Contents of a worker's cell, checked for range.
#[derive(Clone, Copy, Debug)]
pub struct WorkerReport {
    /// Activity of the worker.
    pub state: WorkerState,
    /// Execution model that its application chose.
    pub model: Model,
    /// Requests finished by this incarnation.
    pub requests: u64,
    /// Whether it has taken a request that is not finished.
    pub has_request: bool,
    /// Whether it has finished a request and is returning to its image.
    pub returns: bool,
    /// Changes each time the worker looks for a request: without one, at least once a second.
    pub beat: u32,
    /// Pages that a rollback copies.
    pub hot_pages: u32,
    /// Returns to the image by this incarnation.
    pub rollbacks: u64,
    /// Why it ended itself, if it reported a reason.
    pub leave: Option<LeaveReason>,
}

/// How a worker that held a request ended: its `wait` status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Death(u32);

impl Death {
    /// The `wait` status is not known.
    pub const UNKNOWN: Death = Death(0);

    /// From a wait status (`waitpid(2)`).
    pub fn from_status(status: i32) -> Death {
        Death(status.cast_unsigned().wrapping_add(1))
    }

    /// Whether the worker's request may have caused the death: an exit, or a signal caused by the
    /// process's own actions. Signals that operators, service managers, the out-of-memory killer or
    /// a dying parent send do not count. An unknown status does not count either.
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

codes! {
    /// Severity of a message of PHP. The codes are also in `boundary.h` of the worker.
    pub enum MessageLevel {
        /// A fatal or recoverable error, or one of the application.
        Error = 0, "error";
        /// A warning.
        Warning = 1, "warning";
        /// A notice.
        Notice = 2, "notice";
        /// Use of a deprecated feature.
        Deprecated = 3, "deprecated";
    }
}

/// Number of levels of messages.
pub(crate) const MESSAGE_LEVELS: usize = MessageLevel::ALL.len();

/// Numbers of PHP's messages of all workers, by level.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MessageCounts {
    pub(crate) by_level: [AtomicU64; MESSAGE_LEVELS],
}

impl MessageCounts {
    pub(crate) fn record(&self, level: MessageLevel) {
        self.by_level[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> [u64; MESSAGE_LEVELS] {
        std::array::from_fn(|level| self.by_level[level].load(Ordering::Relaxed))
    }
}

/// Durations of the rollbacks of all workers: four buckets per power of two of nanoseconds.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RollbackTimes {
    pub(crate) buckets: [AtomicU64; ROLLBACK_BUCKETS],
    pub(crate) total_ns: AtomicU64,
    /// Rollbacks that searched memory for written pages.
    pub(crate) searches: AtomicU64,
    /// Database connections whose session was reset.
    pub(crate) connection_resets: AtomicU64,
}

/// Durations of all workers' returns to the image.
#[derive(Clone, Copy, Debug, Default)]
pub struct RollbackReport {
    /// Number of returns.
    pub count: u64,
    /// Median, ns, at most a quarter too high.
    pub p50_ns: u64,
    /// 99th percentile, ns, at most a quarter too high.
    pub p99_ns: u64,
    /// Total of all returns, ns.
    pub total_ns: u64,
    /// Returns that searched memory for written pages.
    pub searches: u64,
    /// Resets of the session of a database connection of the image.
    pub connection_resets: u64,
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
            connection_resets: self.connection_resets.load(Ordering::Relaxed),
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
    fn bucket_end_exceeds_value_by_at_most_a_quarter() {
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
