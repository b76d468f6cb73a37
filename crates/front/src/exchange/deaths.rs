//! Whether a request whose worker has died is run on another one: pure.
//!
//! A worker that somebody has killed is not its request's fault, and another one answers. A page that crashes PHP would
//! crash the next worker too, and take it from all others: it gets one more try, because an earlier request may have
//! spoiled that worker's memory, and none at all when the same page has died in the same way a minute ago. What looks
//! like a kill from outside and is the page's own doing (the out-of-memory killer's victim, `posix_kill()`) is known by
//! dying in every run that one request may have.

use samovar_ring::Death;
use std::collections::HashMap;

/// How long a page's death is remembered.
const MEMORY_MS: u64 = 60_000;
/// Pages that are remembered; beyond, the expired and then all are forgotten.
const PAGES_MAX: usize = 256;
/// Longer paths are one page from here on.
const PAGE_BYTES_MAX: usize = 256;
/// Requests that are run again after a crash, in [`MEMORY_MS`]. With random paths every crash is the first of its page:
/// this bounds what a storm of them costs.
const CRASH_RETRIES_MAX: u32 = 30;

/// A run of a request that ended with its worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// The path that was asked for.
    pub(crate) page: &'a [u8],
    pub(crate) death: Death,
    /// Runs of the same request before this one.
    pub(crate) attempts: usize,
    /// By the clock that goes on while the front stands still.
    pub(crate) now_ms: u64,
}

/// Pages that workers died of, and how.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    pages: HashMap<(Box<[u8]>, Death), u64>,
    /// Since when [`Self::crash_retries`] are counted, and how many there were.
    counted_since_ms: u64,
    crash_retries: u32,
}

impl Deaths {
    /// Whether it may be run again; remembers what speaks against it.
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

    /// `at_s page status attempts expected`, one after another.
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
    fn a_crash_gets_one_more_try_and_then_none_for_a_minute() {
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
    fn whoever_kills_workers_costs_no_request() {
        let mut deaths = Deaths::default();
        for at_s in 0..50 {
            check(&mut deaths, &[(at_s, "/a", SIGKILL, 0, true)]);
        }
        let unknown = Attempt { page: b"/a", death: Death::UNKNOWN, attempts: 0, now_ms: 0 };
        assert!(deaths.allow_another(&unknown, 2));
    }

    #[test]
    fn a_page_that_has_itself_killed_is_found_out() {
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
    fn random_paths_cannot_have_everything_run_twice_nor_fill_the_memory() {
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
    fn without_retries_there_are_none() {
        let death = Death::from_status(SIGSEGV);
        for death in [death, Death::UNKNOWN] {
            let attempt = Attempt { page: b"/", death, attempts: 0, now_ms: 0 };
            assert!(!Deaths::default().allow_another(&attempt, 0));
        }
    }
}
