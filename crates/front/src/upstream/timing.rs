//! Measures the time of a request at php-fpm against its limits. Time spent waiting for the client
//! does not count.

use crate::runtime::upstream_failure::UpstreamFailure;
use std::cell::Cell;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Replaces an unset limit: longer than any server runs.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

pub(super) struct Course {
    started: Instant,
    /// Time at which php-fpm last accepted or sent a byte.
    moved: Cell<Instant>,
    /// Number of directions that wait for the client: reading its body, or sending it the response.
    waiting: Cell<u32>,
    /// Time since which at least one of them waits.
    waiting_since: Cell<Instant>,
    waited: Cell<Duration>,
    has_byte: Cell<bool>,
}

/// Guard: while it exists, the client is waited for.
pub(super) struct WaitForClient<'a>(&'a Course);

/// Returns the limit, or a very long time if it is zero (unset).
pub(super) fn or_ever(time: Duration) -> Duration {
    if time.is_zero() { FOR_EVER } else { time }
}

impl Course {
    pub(super) fn new() -> Course {
        Course::since(Instant::now())
    }

    fn since(now: Instant) -> Course {
        Course {
            started: now,
            moved: Cell::new(now),
            waiting: Cell::new(0),
            waiting_since: Cell::new(now),
            waited: Cell::default(),
            has_byte: Cell::new(false),
        }
    }

    /// Records that php-fpm has accepted bytes.
    pub(super) fn moves(&self) {
        self.moved.set(Instant::now());
    }

    /// Records that php-fpm has sent bytes.
    pub(super) fn has_begun(&self) {
        self.has_byte.set(true);
        self.moves();
    }

    /// Whether php-fpm has sent any byte.
    pub(super) fn has_byte(&self) -> bool {
        self.has_byte.get()
    }

    pub(super) fn wait_for_client(&self) -> WaitForClient<'_> {
        self.begins_to_wait(Instant::now());
        WaitForClient(self)
    }

    fn begins_to_wait(&self, now: Instant) {
        if self.waiting.replace(self.waiting.get() + 1) == 0 {
            self.waiting_since.set(now);
        }
    }

    fn has_waited(&self, now: Instant) {
        self.moved.set(now);
        self.waiting.set(self.waiting.get() - 1);
        if self.waiting.get() == 0 {
            self.waited.set(self.waited.get() + (now - self.waiting_since.get()));
        }
    }

    /// Returns when php-fpm has exceeded a limit: `response` for the next byte, or `whole` for the
    /// whole request. Zero: no limit.
    pub(super) async fn over(&self, response: Duration, whole: Duration) -> UpstreamFailure {
        loop {
            match self.look(Instant::now(), or_ever(response), or_ever(whole)) {
                Ok(next) => sleep_until(next).await,
                Err(trouble) => return trouble,
            }
        }
    }

    /// Returns the earliest time at which a limit can be exceeded.
    fn look(
        &self,
        now: Instant,
        response: Duration,
        whole: Duration,
    ) -> Result<Instant, UpstreamFailure> {
        let is_clients = self.waiting.get() > 0;
        let clients = if is_clients { now - self.waiting_since.get() } else { Duration::ZERO };
        let long = self.started + self.waited.get() + clients + whole;
        let owes_since = if is_clients { now } else { self.moved.get() };
        let quiet = owes_since + response;
        match () {
            () if now >= long => Err(UpstreamFailure::Long),
            () if now >= quiet => Err(UpstreamFailure::Quiet),
            () => Ok(quiet.min(long)),
        }
    }
}

impl Drop for WaitForClient<'_> {
    fn drop(&mut self) {
        self.0.has_waited(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn waiting_for_client_does_not_count_toward_limits() {
        let begun = Instant::now();
        let course = Course::since(begun);
        let check = |at: u32, expected: Result<u32, UpstreamFailure>| {
            let found = course.look(begun + S * at, S * 5, S * 10);
            assert_eq!(found, expected.map(|at| begun + S * at), "at {at}");
        };
        check(0, Ok(5));
        check(5, Err(UpstreamFailure::Quiet));
        course.begins_to_wait(begun + S);
        check(61, Ok(66));
        // The other direction waits as well; the time is counted once.
        course.begins_to_wait(begun + S * 60);
        course.has_waited(begun + S * 90);
        check(100, Ok(105));
        course.has_waited(begun + S * 101);
        check(101, Ok(106));
        check(106, Err(UpstreamFailure::Quiet));
        course.moved.set(begun + S * 105);
        check(109, Ok(110));
        check(110, Err(UpstreamFailure::Long));
    }
}
