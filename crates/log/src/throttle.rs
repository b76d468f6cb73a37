//! Rate limit for log lines: keeps repeated lines from filling the disk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time window in which passed lines are counted.
const PERIOD: Duration = Duration::from_secs(5);
/// Bits of the state that count lines; the bits above hold a time.
const LINES_BITS: u32 = 16;

/// Lets a few lines of one kind pass per period, across all threads.
#[derive(Debug)]
pub struct Throttle {
    lines_max: u16,
    /// End of the current window, in ms since the first call of any throttle, and the number of
    /// lines passed in it.
    state: AtomicU64,
    suppressed: AtomicU64,
}

impl Throttle {
    /// Lets `lines_max` lines pass in five seconds.
    pub const fn of(lines_max: u16) -> Throttle {
        Throttle { lines_max, state: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Returns `Some(n)` if the line may be logged; `n` lines were suppressed since the last one.
    pub fn pass(&self) -> Option<u64> {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        self.pass_at(BEGUN.get_or_init(Instant::now).elapsed())
    }

    fn pass_at(&self, now: Duration) -> Option<u64> {
        let now_ms = now.as_millis() as u64;
        // Time and count share one word, so that the limit holds across threads.
        let passed = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            let (until_ms, said) = (state >> LINES_BITS, state & ((1 << LINES_BITS) - 1));
            if now_ms >= until_ms {
                Some(((now_ms + PERIOD.as_millis() as u64) << LINES_BITS) | 1)
            } else {
                (said < u64::from(self.lines_max)).then_some(state + 1)
            }
        });
        if passed.is_ok() {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// One line per period.
impl Default for Throttle {
    fn default() -> Throttle {
        Throttle::of(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_with_default_passes_one_line_per_period() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass_at(Duration::ZERO), Some(0));
        assert_eq!(throttle.pass_at(Duration::ZERO), None);
        assert_eq!(throttle.pass_at(PERIOD / 2), None);
        assert_eq!(throttle.pass_at(PERIOD), Some(2));
    }

    #[test]
    fn throttle_counts_suppressed_lines() {
        let throttle = Throttle::of(10);
        let said = (0..100).filter(|_| throttle.pass_at(Duration::ZERO).is_some()).count();
        assert_eq!(said, 10);
        assert_eq!(throttle.pass_at(PERIOD), Some(90));
        assert_eq!(throttle.pass_at(PERIOD), Some(0));
    }

    #[test]
    fn throttle_limit_holds_across_threads() {
        let throttle = Throttle::default();
        let pass = || throttle.pass_at(Duration::ZERO).is_some();
        let said: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..100).filter(|_| pass()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(said, 1);
        assert_eq!(throttle.pass_at(PERIOD), Some(399));
    }
}
