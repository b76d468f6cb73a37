//! Keeps a flood of the same warning from filling the disk.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// One warning of each kind per this time.
const PERIOD: Duration = Duration::from_secs(5);

/// Lets one warning of a kind pass now and then.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    last: Cell<Option<Instant>>,
    suppressed: Cell<u64>,
}

impl Throttle {
    /// `Some(n)`: say it now, and that `n` were not said since the last time.
    pub(crate) fn pass(&self) -> Option<u64> {
        let now = Instant::now();
        if self.last.get().is_some_and(|last| now - last < PERIOD) {
            self.suppressed.set(self.suppressed.get() + 1);
            return None;
        }
        self.last.set(Some(now));
        Some(self.suppressed.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass(), Some(0));
        assert_eq!(throttle.pass(), None);
        assert_eq!(throttle.pass(), None);
        throttle.last.set(None);
        assert_eq!(throttle.pass(), Some(2));
    }
}
