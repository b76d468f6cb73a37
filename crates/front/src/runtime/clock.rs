//! The front's clock: read once per turn of the runtime, and never older than that.
//!
//! A request arms no timer and reads no clock for its deadlines. The clock is read whenever the
//! runtime's thread has slept, and by each sweep. So code in between sees a time that is at most
//! one sweep old, however long the front was idle before.
//!
//! A front may be stopped: by a signal, with its frozen cgroup, or because it gets no CPU time. It
//! has not waited in that time, and events that it could not receive are not a delay of the worker
//! or the client. Deadlines use a clock that is stopped as well.

use std::cell::Cell;
use std::time::Duration;

/// While there are deadlines, the front checks them every [`SWEEP`](crate::SWEEP). If it did not
/// for this time, it was stopped.
const STANDSTILL_MS: u64 = 2_000;

/// Milliseconds of `CLOCK_MONOTONIC`, as of this turn.
#[derive(Debug)]
pub(crate) struct Clock {
    real_ms: Cell<u64>,
    /// Total time for which the front was stopped.
    missed_ms: Cell<u64>,
    /// Part of `missed_ms` that was not reported yet.
    unsaid_ms: Cell<u64>,
    /// There is nothing to sweep: a long sleep is normal.
    rests: Cell<bool>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let zero = || Cell::new(0);
        let real_ms = Cell::new(monotonic_ms());
        Clock { real_ms, missed_ms: zero(), unsaid_ms: zero(), rests: Cell::new(true) }
    }

    /// Reads the clock. Called when the runtime's thread wakes, and by each sweep.
    pub(crate) fn refresh(&self) {
        self.set(monotonic_ms());
    }

    fn set(&self, real_ms: u64) {
        let gap_ms = real_ms.saturating_sub(self.real_ms.replace(real_ms));
        if gap_ms >= STANDSTILL_MS && !self.rests.get() {
            self.missed_ms.set(self.missed_ms.get() + gap_ms);
            self.unsaid_ms.set(self.unsaid_ms.get() + gap_ms);
        }
    }

    /// Sets whether sweeps have ended (true) or begin again (false).
    pub(crate) fn rest(&self, rests: bool) {
        self.refresh();
        self.rests.set(rests);
    }

    /// Time for deadlines: advances only while the front runs.
    pub(crate) fn now_ms(&self) -> u64 {
        self.real_ms.get() - self.missed_ms.get()
    }

    /// Time for facts that expire at a point in time, whether the front runs or not.
    pub(crate) fn real_ms(&self) -> u64 {
        self.real_ms.get()
    }

    /// Returns the time for which the front was stopped since the last call.
    pub(crate) fn take_standstill(&self) -> Option<Duration> {
        let unsaid = Duration::from_millis(self.unsaid_ms.take());
        (!unsaid.is_zero()).then_some(unsaid)
    }
}

/// Whether the time that began at `since_ms` has reached the timeout. A timeout of zero is never
/// reached.
pub(crate) fn is_over(timeout: Duration, since_ms: u64, now_ms: u64) -> bool {
    !timeout.is_zero() && now_ms.saturating_sub(since_ms) >= timeout.as_millis() as u64
}

fn monotonic_ms() -> u64 {
    samovar_ring::monotonic_ns() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_and_stopped_time_does_not() {
        let clock = Clock::new();
        let (now, real) = (clock.now_ms(), clock.real_ms());
        clock.set(real + 60_000);
        assert_eq!(clock.now_ms(), now + 60_000);
        clock.rests.set(false);
        clock.set(real + 60_100);
        assert_eq!((clock.now_ms(), clock.take_standstill()), (now + 60_100, None));
        clock.set(real + 90_100);
        assert_eq!(clock.now_ms(), now + 60_100);
        assert_eq!(clock.real_ms(), real + 90_100);
        assert_eq!(clock.take_standstill(), Some(Duration::from_secs(30)));
        assert_eq!(clock.take_standstill(), None);
    }
}
