//! Waiting on conditions, under a watchdog.

use std::time::{Duration, Instant};

/// Maximum wait for anything. Generous: it only limits how long a broken test hangs, also on a
/// machine with ten times the load that it can handle.
pub const WATCHDOG: Duration = Duration::from_mins(2);

/// Interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(5);

/// Calls `condition` until it returns a value; panics with `what` after [`WATCHDOG`].
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < WATCHDOG, "{what}: did not happen in {WATCHDOG:?}");
        std::thread::sleep(LOOK);
    }
}
