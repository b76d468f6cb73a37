//! How long the successor of a process waits that has failed "at once". Pure.

use std::time::Duration;

/// Waits that double up to a cap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// The wait after a second short life; doubles with each further one.
    pub(crate) min: Duration,
    /// The longest wait, however many lives were short.
    pub(crate) max: Duration,
}

impl Backoff {
    /// No wait after the first short life: a single failure costs no time.
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
    fn waits_double_up_to_the_cap() {
        let backoff = Backoff { min: Duration::from_millis(50), max: Duration::from_secs(5) };
        let waits = [0, 1, 2, 3, 8, 9, u32::MAX].map(|n| backoff.after(n).as_millis());
        assert_eq!(waits, [0, 0, 50, 100, 3200, 5000, 5000]);
    }
}
