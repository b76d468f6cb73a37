//! The two clocks: the wall clock, and one that cannot be set.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Difference of the two clocks above which the clock of the wall was set, in milliseconds.
const SET_MS_MIN: u64 = 1_000;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Unix time, in milliseconds.
    pub(crate) wall_ms: u64,
    /// Time since the start of the machine, in milliseconds. It continues while the machine sleeps.
    pub(crate) steady_ms: u64,
}

impl Now {
    pub(crate) fn read() -> Now {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let steady = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(steady.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(steady.tv_nsec).unwrap_or(0);
        Now {
            wall_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            steady_ms: seconds * 1_000 + nanos / 1_000_000,
        }
    }

    /// Returns by how many milliseconds the clock of the wall was set since an earlier moment;
    /// `None`: it was not set.
    pub(crate) fn was_set_since(self, before: Now) -> Option<i64> {
        let steady = self.steady_ms.saturating_sub(before.steady_ms);
        let expected = before.wall_ms.saturating_add(steady);
        (expected.abs_diff(self.wall_ms) >= SET_MS_MIN)
            .then(|| i64::try_from(i128::from(self.wall_ms) - i128::from(expected)).unwrap_or(0))
    }
}
