//! Keeps a flood of the same warning from filling the disk.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One warning of each kind per this time.
const PERIOD: Duration = Duration::from_secs(5);

/// Lets one warning of a kind pass now and then, whichever thread has it.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When the next may pass, in ms since the first look at any; 0: now.
    next_ms: AtomicU64,
    suppressed: AtomicU64,
}

impl Throttle {
    /// `Some(n)`: say it now, and that `n` were not said since the last time.
    pub(crate) fn pass(&self) -> Option<u64> {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        let now_ms = BEGUN.get_or_init(Instant::now).elapsed().as_millis() as u64;
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let passes = now_ms >= next_ms && {
            // Of several threads one says it.
            let after = now_ms + PERIOD.as_millis() as u64;
            let said =
                self.next_ms.compare_exchange(next_ms, after, Ordering::Relaxed, Ordering::Relaxed);
            said.is_ok()
        };
        if passes {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
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
        throttle.next_ms.store(0, Ordering::Relaxed);
        assert_eq!(throttle.pass(), Some(2));
    }

    #[test]
    fn of_several_threads_one_has_it() {
        let throttle = Throttle::default();
        let said: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..100).filter(|_| throttle.pass().is_some()).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(said, 1);
        throttle.next_ms.store(0, Ordering::Relaxed);
        assert_eq!(throttle.pass(), Some(399));
    }
}
