//! Times of the samples: a fixed average rate, but never in step with the workers' own rhythm.

use std::time::{Duration, Instant};

/// Maximum number of intervals that a late sample represents.
const LATE_MAX: u32 = 10;

/// Regular points in time, each moved randomly by up to a quarter of the interval. Without this, a
/// program that does the same thing 49 times a second would always be sampled at the same place.
pub(super) struct Beat {
    every: Duration,
    next: Instant,
    seed: u64,
}

impl Beat {
    pub(super) fn new(every: Duration) -> Beat {
        let seed = u64::from(std::process::id()) | 1 << 32;
        Beat { every, next: Instant::now() + every, seed }
    }

    /// Returns the next point in time.
    pub(super) fn next(&mut self) -> Instant {
        self.next + self.every.mul_f64(self.random() / 4.0)
    }

    /// Waits for that point, or until the thread is unparked. Returns the time that the sample
    /// represents.
    pub(super) fn wait(&mut self, at: Instant) -> Duration {
        let now = Instant::now();
        if at > now {
            std::thread::park_timeout(at - now);
        }
        let now = Instant::now();
        let mut points = 1;
        self.next += self.every;
        while self.next <= now && points < LATE_MAX {
            self.next += self.every;
            points += 1;
        }
        if self.next <= now {
            self.next = now + self.every;
        }
        self.every * points
    }

    /// Returns a number from 0 to 1 (xorshift; its quality does not matter here).
    fn random(&mut self) -> f64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        f64::from((self.seed >> 40) as u32) / f64::from(1 << 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(beat: &mut Beat) -> Duration {
        let at = beat.next();
        beat.wait(at)
    }

    #[test]
    fn points_represent_the_elapsed_time() {
        let (begin, mut beat) = (Instant::now(), Beat::new(Duration::from_millis(2)));
        let told: Duration = (0..50).map(|_| wait(&mut beat)).sum();
        // On a loaded machine, points may represent less time than has passed, but never more.
        assert!(told <= begin.elapsed() + Duration::from_millis(2), "{told:?}");
        assert!(told >= Duration::from_millis(100), "{told:?}");
    }

    #[test]
    fn long_stop_is_limited_per_sample() {
        let mut beat = Beat::new(Duration::from_millis(1));
        beat.next = Instant::now().checked_sub(Duration::from_secs(5)).expect("a while after boot");
        assert_eq!(wait(&mut beat), Duration::from_millis(1) * LATE_MAX);
        assert!(beat.next > Instant::now().checked_sub(Duration::from_secs(1)).expect("likewise"));
    }
}
