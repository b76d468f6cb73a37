//! submit: state of a server that failed to accept a connection recently. All threads of the front
//! skip it if there are other servers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for which a server is skipped; then one request tries it again.
pub(super) const PASSED_OVER_FOR: Duration = Duration::from_secs(5);

/// Time until which a php-fpm server, or one address of its name, is skipped.
#[derive(Debug, Default)]
pub(super) struct Down(Mutex<Option<Instant>>);

impl Down {
    /// `None` if the last connection was accepted, or none was attempted.
    pub(super) fn until(&self) -> Option<Instant> {
        *self.lock()
    }

    pub(super) fn is_down(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// Records that no connection was accepted.
    pub(super) fn was_not_reached(&self, now: Instant) {
        *self.lock() = Some(now + PASSED_OVER_FOR);
    }

    /// Records that one request tries a server that was down. For other requests it remains down
    /// until the result is known.
    pub(super) fn is_tried(&self, now: Instant) {
        let mut until = self.lock();
        *until = until.map(|_| now + PASSED_OVER_FOR);
    }

    /// Records that a connection was accepted. Returns whether the server was down before.
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
    fn down_server_is_tried_by_one_request_at_a_time() {
        let (down, now) = (Down::default(), Instant::now());
        down.is_tried(now);
        assert!(!down.is_down(now), "no failure recorded");
        down.was_not_reached(now);
        let later = now + PASSED_OVER_FOR;
        assert_eq!((down.is_down(now), down.is_down(later)), (true, false));
        down.is_tried(later);
        assert!(down.is_down(later), "it is not known yet");
        assert_eq!((down.was_reached(), down.was_reached()), (true, false));
        assert!(!down.is_down(now));
    }
}
