//! Backoff before the successor of a process that failed immediately. Pure.

use std::time::Duration;

/// Waits that double up to a maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// Wait after the second short life in a row; doubled with each further one.
    pub(crate) min: Duration,
    /// Maximum wait, for any number of short lives.
    pub(crate) max: Duration,
}

impl Backoff {
    /// Returns the wait. The first short life causes none: a single failure costs no time.
    pub(crate) fn after(self, short_lives: u32) -> Duration {
        match short_lives {
            0 | 1 => Duration::ZERO,
            n => (self.min * 2u32.saturating_pow((n - 2).min(10))).min(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_doubles_up_to_maximum() {
        let backoff = Backoff { min: Duration::from_millis(50), max: Duration::from_secs(5) };
        let waits = [0, 1, 2, 3, 8, 9, u32::MAX].map(|n| backoff.after(n).as_millis());
        assert_eq!(waits, [0, 0, 50, 100, 3200, 5000, 5000]);
    }
}
