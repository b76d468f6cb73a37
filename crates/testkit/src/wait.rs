//! Waiting on conditions, under a watchdog.

use std::time::{Duration, Instant};

/// Maximum wait for anything. Generous: it only limits how long a broken test hangs, also on a
/// machine with ten times the load that it can handle.
pub const WATCHDOG: Duration = Duration::from_mins(2);

/// Interval between the first two checks of a condition. It grows with the time waited, because
/// checks take CPU time, which the waited-for process needs.
const LOOK: Duration = Duration::from_millis(5);

/// Maximum interval between two checks of a condition.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// Part of the time waited so far that passes between two checks.
const LOOK_PART: u32 = 10;

/// Calls `condition` until it returns a value; panics with `what` after [`WATCHDOG`].
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < WATCHDOG, "{what}: did not happen in {WATCHDOG:?}");
        std::thread::sleep((start.elapsed() / LOOK_PART).clamp(LOOK, LOOK_MAX));
    }
}
