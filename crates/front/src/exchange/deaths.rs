//! Decides whether a request is run again on another worker after its worker has died. Pure.
//!
//! If the worker was killed from outside, the request is not at fault, and another worker runs it.
//! A page that crashes PHP would crash the next worker too, and take that worker from all other
//! requests. It gets one retry, because an earlier request may have corrupted that worker's memory.
//! It gets no retry if the same page died in the same way within the last minute.
//!
//! A death can look like a kill from outside although the page caused it (a victim of the
//! out-of-memory killer, `posix_kill()`). Such a page is recognized because it dies in every run
//! that one request may have.

use samovar_ring::Death;
use std::collections::HashMap;

/// Time for which the death of a page is remembered.
const MEMORY_MS: u64 = 60_000;
/// Maximum number of remembered pages. When it is reached, the expired entries are removed; if that
/// is not enough, all are.
const PAGES_MAX: usize = 256;
/// Paths are compared only up to this length.
const PAGE_BYTES_MAX: usize = 256;
/// Maximum number of retries after a crash within [`MEMORY_MS`]. With random paths, each crash is
/// the first one of its page; this limits the cost of many such requests.
const CRASH_RETRIES_MAX: u32 = 30;

/// A run of a request that ended with the death of its worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// The requested path.
    pub(crate) page: &'a [u8],
    pub(crate) death: Death,
    /// Runs of the same request before this one.
    pub(crate) attempts: usize,
    /// Time of a clock that also advances while the front is stopped.
    pub(crate) now_ms: u64,
}

/// Pages in which workers died, and how they died.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    pages: HashMap<(Box<[u8]>, Death), u64>,
    /// Start of the interval in which [`Self::crash_retries`] are counted, and their number.
    counted_since_ms: u64,
    crash_retries: u32,
}

impl Deaths {
    /// Returns whether the request may be run again. Remembers the page if this death counts
    /// against it.
    pub(crate) fn allow_another(&mut self, attempt: &Attempt<'_>, retries_max: usize) -> bool {
        let is_again = attempt.attempts > 0;
        let is_known = self.knows(attempt);
        if attempt.death.is_own_doing() {
            self.remember(attempt);
            !is_again && !is_known && retries_max > 0 && self.count_crash_retry(attempt.now_ms)
        } else {
            let is_last = attempt.attempts >= retries_max;
            if is_again && is_last {
                self.remember(attempt);
            }
            !is_known && !is_last
        }
    }

    fn knows(&self, attempt: &Attempt<'_>) -> bool {
        let died = self.pages.get(&key(attempt));
        died.is_some_and(|at| attempt.now_ms.saturating_sub(*at) < MEMORY_MS)
    }

    fn remember(&mut self, attempt: &Attempt<'_>) {
        if self.pages.len() >= PAGES_MAX {
            self.pages.retain(|_, at| attempt.now_ms.saturating_sub(*at) < MEMORY_MS);
        }
        if self.pages.len() >= PAGES_MAX {
            self.pages.clear();
        }
        self.pages.insert(key(attempt), attempt.now_ms);
    }

    fn count_crash_retry(&mut self, now_ms: u64) -> bool {
        if now_ms.saturating_sub(self.counted_since_ms) >= MEMORY_MS {
            (self.counted_since_ms, self.crash_retries) = (now_ms, 0);
        }
        self.crash_retries = self.crash_retries.saturating_add(1);
        self.crash_retries <= CRASH_RETRIES_MAX
    }
}

fn key(attempt: &Attempt<'_>) -> (Box<[u8]>, Death) {
    (attempt.page[..attempt.page.len().min(PAGE_BYTES_MAX)].into(), attempt.death)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGKILL: i32 = 9;
    const SIGSEGV: i32 = 11;
    const SIGABRT: i32 = 6;
    const EXIT_1: i32 = 1 << 8;

    /// Cases of `at_s page status attempts expected`, checked in this order.
    fn check(deaths: &mut Deaths, cases: &[(u64, &str, i32, u32, bool)]) {
        for (at_s, page, status, attempts, expected) in cases {
            let attempt = Attempt {
                page: page.as_bytes(),
                death: Death::from_status(*status),
                attempts: *attempts as usize,
                now_ms: 1_000_000 + at_s * 1000,
            };
            let allowed = deaths.allow_another(&attempt, 2);
            assert_eq!(allowed, *expected, "{page} {status} at {at_s} s, attempt {attempts}");
        }
    }

    #[test]
    fn crash_is_retried_once_then_not_for_a_minute() {
        check(
            &mut Deaths::default(),
            &[
                (0, "/a", SIGSEGV, 0, true),
                (0, "/a", SIGSEGV, 1, false),
                (1, "/a", SIGSEGV, 0, false),
                (1, "/b", SIGSEGV, 0, true),
                (1, "/a", SIGABRT, 0, true),
                (1, "/c", EXIT_1, 0, true),
                (2, "/c", EXIT_1, 0, false),
                (62, "/a", SIGSEGV, 0, true),
            ],
        );
    }

    #[test]
    fn worker_killed_from_outside_is_retried_each_time() {
        let mut deaths = Deaths::default();
        for at_s in 0..50 {
            check(&mut deaths, &[(at_s, "/a", SIGKILL, 0, true)]);
        }
        let unknown = Attempt { page: b"/a", death: Death::UNKNOWN, attempts: 0, now_ms: 0 };
        assert!(deaths.allow_another(&unknown, 2));
    }

    #[test]
    fn page_killed_in_every_run_is_not_retried() {
        check(
            &mut Deaths::default(),
            &[
                (0, "/oom", SIGKILL, 0, true),
                (0, "/oom", SIGKILL, 1, true),
                (0, "/oom", SIGKILL, 0, true),
                (0, "/oom", SIGKILL, 2, false),
                (1, "/oom", SIGKILL, 0, false),
                (1, "/other", SIGKILL, 0, true),
                (62, "/oom", SIGKILL, 0, true),
            ],
        );
    }

    #[test]
    fn crashes_of_random_paths_keep_retries_and_memory_bounded() {
        let mut deaths = Deaths::default();
        let mut allowed = 0;
        for n in 0..2_000 {
            let page = format!("/{n}");
            let death = Death::from_status(SIGSEGV);
            let attempt = Attempt { page: page.as_bytes(), death, attempts: 0, now_ms: 70_000 };
            allowed += u32::from(deaths.allow_another(&attempt, 2));
            assert!(deaths.pages.len() <= PAGES_MAX);
        }
        assert_eq!(allowed, CRASH_RETRIES_MAX);
    }

    #[test]
    fn zero_retries_max_disables_retries() {
        let death = Death::from_status(SIGSEGV);
        for death in [death, Death::UNKNOWN] {
            let attempt = Attempt { page: b"/", death, attempts: 0, now_ms: 0 };
            assert!(!Deaths::default().allow_another(&attempt, 0));
        }
    }
}
