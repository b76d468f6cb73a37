//! How far a request at a php-fpm is, for who looks at the clock: what it takes is php-fpm's time, less that of clients.

use crate::runtime::trouble::Trouble;
use std::cell::Cell;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Where no time is set: longer than any server runs.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

pub(super) struct Course {
    started: Instant,
    /// When php-fpm took or gave something last.
    moved: Cell<Instant>,
    /// How many wait for the client: who reads its body, who gives it the answer.
    waiting: Cell<u32>,
    /// Since when one of them does.
    waiting_since: Cell<Instant>,
    waited: Cell<Duration>,
    has_byte: Cell<bool>,
}

/// While there is one the client is waited for.
pub(super) struct WaitForClient<'a>(&'a Course);

/// A time that is set, or none.
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

    /// php-fpm has taken something.
    pub(super) fn moves(&self) {
        self.moved.set(Instant::now());
    }

    /// It has given something.
    pub(super) fn has_begun(&self) {
        self.has_byte.set(true);
        self.moves();
    }

    /// Whether it has given anything.
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

    /// Returns when php-fpm's time is over: that for the next byte, or that for all. Zero: there is no such time.
    pub(super) async fn over(&self, answer: Duration, whole: Duration) -> Trouble {
        loop {
            match self.look(Instant::now(), or_ever(answer), or_ever(whole)) {
                Ok(next) => sleep_until(next).await,
                Err(trouble) => return trouble,
            }
        }
    }

    /// Until when nothing can be over.
    fn look(&self, now: Instant, answer: Duration, whole: Duration) -> Result<Instant, Trouble> {
        let is_clients = self.waiting.get() > 0;
        let clients = if is_clients { now - self.waiting_since.get() } else { Duration::ZERO };
        let long = self.started + self.waited.get() + clients + whole;
        let owes_since = if is_clients { now } else { self.moved.get() };
        let quiet = owes_since + answer;
        match () {
            () if now >= long => Err(Trouble::Long),
            () if now >= quiet => Err(Trouble::Quiet),
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
    fn time_is_php_fpms_but_for_that_of_clients() {
        let begun = Instant::now();
        let course = Course::since(begun);
        let check = |at: u32, expected: Result<u32, Trouble>| {
            let found = course.look(begun + S * at, S * 5, S * 10);
            assert_eq!(found, expected.map(|at| begun + S * at), "at {at}");
        };
        check(0, Ok(5));
        check(5, Err(Trouble::Quiet));
        course.begins_to_wait(begun + S);
        check(61, Ok(66));
        // The other direction waits, too: that is the same time.
        course.begins_to_wait(begun + S * 60);
        course.has_waited(begun + S * 90);
        check(100, Ok(105));
        course.has_waited(begun + S * 101);
        check(101, Ok(106));
        check(106, Err(Trouble::Quiet));
        course.moved.set(begun + S * 105);
        check(109, Ok(110));
        check(110, Err(Trouble::Long));
    }
}
