//! Selects workers that have reached a recycling limit; they are replaced while all others serve.
//! Pure, except for reading `/proc`.
//!
//! The limits are spread over their last tenth, depending on the incarnation, so that workers that
//! started together do not end together.

use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::Duration;

/// Number of requests, in consecutive checks, in which a worker that is always busy must be too
/// large: a single request may need much memory.
const BUSY_LOOKS: u32 = 3;

/// Limits after which a worker is replaced; zero: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecycleLimits {
    /// Number of requests.
    pub requests_max: u64,
    /// Time since its fork.
    pub age_max: Duration,
    /// Private memory in bytes, measured without a request, or in [`BUSY_LOOKS`] requests.
    pub memory_max: u64,
}

/// Observed state of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Number of its incarnation.
    pub(crate) life: u32,
    pub(crate) requests: u64,
    pub(crate) age: Duration,
    /// Private memory in bytes, if it was measured.
    pub(crate) own_bytes: Option<u64>,
}

impl RecycleLimits {
    /// Whether there is a limit.
    pub(crate) fn is_on(&self) -> bool {
        *self != RecycleLimits::default()
    }

    /// Returns the limit that the worker has reached, if it has.
    pub(crate) fn due(&self, seen: &Seen) -> Option<&'static str> {
        let is_over = |limit: u64, found: u64| limit > 0 && found >= spread(limit, seen.life);
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        if is_over(self.requests_max, seen.requests) {
            return Some("limits.requests_max");
        }
        if is_over(millis(self.age_max), millis(seen.age)) {
            return Some("limits.age_max");
        }
        let is_large = self.memory_max > 0 && seen.own_bytes.is_some_and(|b| b > self.memory_max);
        is_large.then_some("limits.memory_max")
    }
}

/// Busy workers that were too large at every check.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// By place.
    seen: HashMap<usize, Suspicion>,
}

#[derive(Debug)]
struct Suspicion {
    life: u32,
    /// Finished requests at the last check.
    requests: u64,
    looks: u32,
}

impl Suspects {
    /// Records a check of a worker. Returns whether the worker itself is too large, and not just
    /// one of its requests.
    pub(crate) fn confirm(&mut self, place: usize, seen: &Seen, memory_max: u64) -> bool {
        if seen.own_bytes.is_none_or(|bytes| bytes <= memory_max) {
            self.seen.remove(&place);
            return false;
        }
        let (life, requests) = (seen.life, seen.requests);
        let known = self.seen.remove(&place).filter(|known| known.life == life);
        let looks = match &known {
            Some(known) if known.requests == requests => known.looks,
            Some(known) => known.looks + 1,
            None => 1,
        };
        self.seen.insert(place, Suspicion { life, requests, looks });
        looks >= BUSY_LOOKS
    }
}

/// Returns a value between nine tenths of `limit` and `limit`.
fn spread(limit: u64, life: u32) -> u64 {
    // Fibonacci hashing: neighbouring numbers get distant values.
    let share = u64::from(life.wrapping_mul(0x9e37_79b9) >> 22);
    limit - limit / 10 * share / 1024
}

/// Returns the private memory of the process in bytes, not backed by a file, including swapped-out
/// memory. `None` if it cannot be read or the process has ended.
pub(crate) fn own_bytes(pid: i32) -> Option<u64> {
    let text = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(bytes_of(&text, "Private_Dirty:")? + bytes_of(&text, "SwapPss:").unwrap_or(0))
}

/// Returns the private memory of a process in bytes. Costs some 100 µs.
#[must_use]
pub fn own_memory(pid: i32) -> Option<u64> {
    own_bytes(pid)
}

fn bytes_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RecycleLimits =
        RecycleLimits { requests_max: 1000, age_max: Duration::from_hours(1), memory_max: 1 << 20 };

    #[test]
    fn worker_over_a_limit_is_due() {
        let fresh = Seen { life: 1, requests: 0, age: Duration::ZERO, own_bytes: None };
        for (seen, expected) in [
            (fresh, None),
            (Seen { requests: 899, ..fresh }, None),
            (Seen { requests: 1000, ..fresh }, Some("limits.requests_max")),
            (Seen { age: Duration::from_secs(3239), ..fresh }, None),
            (Seen { age: Duration::from_hours(1), ..fresh }, Some("limits.age_max")),
            (Seen { own_bytes: Some(1 << 20), ..fresh }, None),
            (Seen { own_bytes: Some((1 << 20) + 1), ..fresh }, Some("limits.memory_max")),
        ] {
            assert_eq!(LIMITS.due(&seen), expected, "{seen:?}");
            assert_eq!(RecycleLimits::default().due(&seen), None);
        }
    }

    #[test]
    fn busy_worker_too_large_in_three_requests_is_due() {
        let seen = |life, requests, mebibytes: u64| Seen {
            life,
            requests,
            age: Duration::ZERO,
            own_bytes: Some(mebibytes << 20),
        };
        for (looks, expected) in [
            (vec![seen(1, 5, 9), seen(1, 6, 9), seen(1, 7, 9)], [false, false, true]),
            (vec![seen(1, 5, 9), seen(1, 5, 9), seen(1, 5, 9)], [false; 3]),
            (vec![seen(1, 5, 9), seen(1, 6, 1), seen(1, 7, 9)], [false; 3]),
            (vec![seen(1, 5, 9), seen(2, 6, 9), seen(2, 7, 9)], [false; 3]),
        ] {
            let mut suspects = Suspects::default();
            let found: Vec<_> = looks.iter().map(|s| suspects.confirm(0, s, 8 << 20)).collect();
            assert_eq!(found, expected, "{looks:?}");
        }
        let mut suspects = Suspects::default();
        let places = [0, 1, 2].map(|place| suspects.confirm(place, &seen(1, 5, 9), 8 << 20));
        assert_eq!(places, [false; 3], "each place has its own");
    }

    #[test]
    fn limits_are_spread_over_incarnations() {
        let mut ends: Vec<u64> = (1..=64).map(|life| spread(10_000, life)).collect();
        ends.sort_unstable();
        assert!(ends[0] >= 9_000 && ends[63] <= 10_000);
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] < 60), "evenly: {ends:?}");
        ends.dedup();
        assert!(ends.len() > 60, "{ends:?}");
        assert_eq!(spread(1, 7), 1, "none is lost of a small one");
    }

    #[test]
    fn bytes_of_reads_kilobytes_by_key() {
        let text =
            "Private_Dirty:      12 kB\nSwap:               90 kB\nSwapPss:            30 kB\n";
        assert_eq!(bytes_of(text, "Private_Dirty:"), Some(12 << 10));
        assert_eq!(bytes_of(text, "SwapPss:"), Some(30 << 10));
        assert_eq!(bytes_of(text, "Private_Hugetlb:"), None);
    }

    #[test]
    fn written_memory_counts_as_own_bytes() {
        // Concurrent tests of this process allocate and free some tens of mebibytes at most.
        const WRITTEN: usize = 256 << 20;
        let before = own_bytes(std::process::id().cast_signed()).expect("our own");
        let written = vec![7u8; WRITTEN];
        let after = own_bytes(std::process::id().cast_signed()).expect("our own");
        assert!(after >= before + (WRITTEN as u64) / 2, "{before} {after}");
        assert!(written.iter().all(|byte| *byte == 7));
        assert_eq!(own_bytes(i32::MAX), None);
    }
}
