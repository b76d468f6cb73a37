//! submit: who took no connection a short while ago: where there are others it is passed over, by all threads of the front.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long; then one request tries it again.
pub(super) const PASSED_OVER_FOR: Duration = Duration::from_secs(5);

/// Of a php-fpm, or of one of the addresses of its name: until when it is passed over.
#[derive(Debug, Default)]
pub(super) struct Down(Mutex<Option<Instant>>);

impl Down {
    /// `None`: it has taken the last connection, or nobody has asked.
    pub(super) fn until(&self) -> Option<Instant> {
        *self.lock()
    }

    pub(super) fn is_down(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// It took no connection.
    pub(super) fn was_not_reached(&self, now: Instant) {
        *self.lock() = Some(now + PASSED_OVER_FOR);
    }

    /// One request tries one that was down; for the others it stays so until that is known.
    pub(super) fn is_tried(&self, now: Instant) {
        let mut until = self.lock();
        *until = until.map(|_| now + PASSED_OVER_FOR);
    }

    /// It took one; whether that is news.
    pub(super) fn was_reached(&self) -> bool {
        self.lock().take().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_tries_who_was_down() {
        let (down, now) = (Down::default(), Instant::now());
        down.is_tried(now);
        assert!(!down.is_down(now), "nobody has said so");
        down.was_not_reached(now);
        let later = now + PASSED_OVER_FOR;
        assert_eq!((down.is_down(now), down.is_down(later)), (true, false));
        down.is_tried(later);
        assert!(down.is_down(later), "it is not known yet");
        assert_eq!((down.was_reached(), down.was_reached()), (true, false));
        assert!(!down.is_down(now));
    }
}
