//! record: statistics of the servers that run a location's scripts: requests sent, responses, and
//! the last failure.

use crate::runtime::upstream_failure::UpstreamFailure;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Maximum number of characters of the system's error message.
const WORDS_MAX: usize = 200;

/// Counters of one php-fpm server, or of one address of its name.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU64,
    responses: AtomicU64,
    responses_us: AtomicU64,
    troubles: [AtomicU64; UpstreamFailure::ALL.len()],
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    trouble: Option<LastFailure>,
    asked: Option<Instant>,
}

/// The most recent failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// Kind of failure.
    pub trouble: UpstreamFailure,
    /// Time of the failure.
    pub at: SystemTime,
    /// The system's error message: one line of at most 200 characters; empty if there was none.
    pub words: String,
}

/// The values of a [`Tally`].
#[derive(Clone, Debug)]
pub struct TallyFigures {
    /// Number of requests that were sent to it.
    pub requests: u64,
    /// Number of these requests for which a response has begun.
    pub responses: u64,
    /// Total time that these requests waited for the response head.
    pub waited: Duration,
    /// Number of requests without a complete response, indexed by the number of a
    /// [`UpstreamFailure`].
    pub troubles: [u64; UpstreamFailure::ALL.len()],
    /// The last of these failures.
    pub last: Option<LastFailure>,
}

impl Tally {
    /// Counts a request that is sent.
    pub(super) fn sent(&self, now: Instant) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.last().asked = Some(now);
    }

    /// Counts a response head that arrived after this time.
    pub(super) fn responded(&self, waited: Duration) {
        let us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.responses_us.fetch_add(us, Ordering::Relaxed);
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failure; `error` is the system's error message.
    pub(super) fn failed(&self, trouble: UpstreamFailure, error: Option<&str>) {
        self.troubles[trouble as usize].fetch_add(1, Ordering::Relaxed);
        let plain = error.unwrap_or_default().chars().filter(|c| !samovar_log::is_unprintable(*c));
        let words = plain.take(WORDS_MAX).collect();
        let mut last = self.last();
        last.asked = Some(Instant::now());
        last.trouble = Some(LastFailure { trouble, at: SystemTime::now(), words });
    }

    /// Time of the last request or failure.
    pub(super) fn asked(&self) -> Option<Instant> {
        self.last().asked
    }

    pub(super) fn figures(&self) -> TallyFigures {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TallyFigures {
            requests: get(&self.requests),
            responses: get(&self.responses),
            waited: Duration::from_micros(get(&self.responses_us)),
            troubles: self.troubles.each_ref().map(get),
            last: self.last().trouble.clone(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_contain_counts_and_sanitized_error() {
        let tally = Tally::default();
        assert_eq!((tally.asked(), tally.figures().last), (None, None));
        let now = Instant::now();
        tally.sent(now);
        tally.responded(Duration::from_millis(3));
        let figures = tally.figures();
        assert_eq!((figures.requests, figures.responses), (1, 1));
        assert_eq!((figures.waited, tally.asked()), (Duration::from_millis(3), Some(now)));
        let words = "nobody\r\n\u{1b}[31m ".to_owned() + &"x".repeat(1000);
        tally.failed(UpstreamFailure::Unreachable, Some(&words));
        let figures = tally.figures();
        assert_eq!(figures.troubles[UpstreamFailure::Unreachable as usize], 1);
        let last = figures.last.expect("a failure was recorded");
        assert_eq!(
            (last.trouble, last.words.chars().count()),
            (UpstreamFailure::Unreachable, WORDS_MAX)
        );
        assert!(!last.words.contains(char::is_control), "{}", last.words);
    }
}
