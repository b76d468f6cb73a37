//! When workers are looked at: so many times a second on average, and never in step with what they do.

use std::time::{Duration, Instant};

/// A look that comes late stands for no more than so many.
const LATE_MAX: u32 = 10;

/// Points in time that are as far apart as they should be, each moved by up to a quarter of that: a program that does the same
/// 49 times a second would otherwise always be seen at the same.
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

    /// The next point.
    pub(super) fn next(&mut self) -> Instant {
        self.next + self.every.mul_f64(self.random() / 4.0)
    }

    /// Waits for it, or until the thread is unparked; returns the time that it stands for.
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

    /// From 0 to 1 (xorshift; its quality is no matter here).
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
    fn all_points_together_stand_for_the_time_that_has_passed() {
        let (begin, mut beat) = (Instant::now(), Beat::new(Duration::from_millis(2)));
        let told: Duration = (0..50).map(|_| wait(&mut beat)).sum();
        // A loaded machine may leave out more than a point stands for, never less.
        assert!(told <= begin.elapsed() + Duration::from_millis(2), "{told:?}");
        assert!(told >= Duration::from_millis(100), "{told:?}");
    }

    #[test]
    fn a_long_stop_is_not_charged_to_one_look() {
        let mut beat = Beat::new(Duration::from_millis(1));
        beat.next = Instant::now().checked_sub(Duration::from_secs(5)).expect("a while after boot");
        assert_eq!(wait(&mut beat), Duration::from_millis(1) * LATE_MAX);
        assert!(beat.next > Instant::now().checked_sub(Duration::from_secs(1)).expect("likewise"));
    }
}
