//! Waiting on conditions, under a watchdog.

use std::time::{Duration, Instant};

/// Longest wait for anything. Generous: it only decides how long a broken test hangs, also on a machine with ten times as
/// much to do as it can.
pub const WATCHDOG: Duration = Duration::from_mins(2);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Calls `condition` until it gives something; panics with `what` after [`WATCHDOG`].
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
