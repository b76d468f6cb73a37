//! Keeps a flood of the same line from filling the disk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// So long counts what was said.
const PERIOD: Duration = Duration::from_secs(5);
/// Bits of the state that count lines; those above are a time.
const LINES_BITS: u32 = 16;

/// Lets a few lines of a kind pass now and then, whichever thread has them.
#[derive(Debug)]
pub struct Throttle {
    lines_max: u16,
    /// Until when the lines count that were said, in ms since the first look at any; and how many these are.
    state: AtomicU64,
    suppressed: AtomicU64,
}

impl Throttle {
    /// Lets so many pass in five seconds.
    pub const fn of(lines_max: u16) -> Throttle {
        Throttle { lines_max, state: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// `Some(n)`: say it now, and that `n` were not said since the last time.
    pub fn pass(&self) -> Option<u64> {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        self.pass_at(BEGUN.get_or_init(Instant::now).elapsed())
    }

    fn pass_at(&self, now: Duration) -> Option<u64> {
        let now_ms = now.as_millis() as u64;
        // One word, so that of several threads as many say it as may.
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

/// One line at a time.
impl Default for Throttle {
    fn default() -> Throttle {
        Throttle::of(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass_at(Duration::ZERO), Some(0));
        assert_eq!(throttle.pass_at(Duration::ZERO), None);
        assert_eq!(throttle.pass_at(PERIOD / 2), None);
        assert_eq!(throttle.pass_at(PERIOD), Some(2));
    }

    #[test]
    fn or_a_few_and_a_number() {
        let throttle = Throttle::of(10);
        let said = (0..100).filter(|_| throttle.pass_at(Duration::ZERO).is_some()).count();
        assert_eq!(said, 10);
        assert_eq!(throttle.pass_at(PERIOD), Some(90));
        assert_eq!(throttle.pass_at(PERIOD), Some(0));
    }

    #[test]
    fn of_several_threads_one_has_it() {
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
