//! Timing of the samples.

use std::time::{Duration, Instant};

/// Clock of a sampler: points in time at a constant interval, regardless of a sample's duration.
pub(super) struct Beat {
    next: Instant,
    pub(super) every: Duration,
}

impl Beat {
    pub(super) fn new(hertz: u32) -> Self {
        let every = Duration::from_secs(1) / hertz.max(1);
        Self { next: Instant::now() + every, every }
    }

    /// Waits for the next point. Skips points that have passed meanwhile. Returns the number of
    /// intervals that have passed.
    pub(super) fn wait(&mut self) -> u32 {
        let now = Instant::now();
        if self.next > now {
            std::thread::sleep(self.next - now);
            self.next += self.every;
            return 1;
        }
        let late = (now - self.next).as_nanos() / self.every.as_nanos().max(1);
        let missed = u32::try_from(late).unwrap_or(u32::MAX - 1) + 1;
        self.next += self.every * missed;
        missed
    }
}
