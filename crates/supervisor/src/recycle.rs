//! Which workers have done enough, and are to be replaced while all others serve: pure, but for one look into `/proc`.
//!
//! Their limits are spread over the last tenth, by the number of their life, so that workers that began together do not
//! end together.

use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::Duration;

/// In so many requests, at as many looks in a row, a worker that is never seen without one has to be too large: a single request may be.
const BUSY_LOOKS: u32 = 3;

/// After what a worker is replaced; zero: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecycleLimits {
    /// Requests.
    pub requests_max: u64,
    /// Time since its fork.
    pub age_max: Duration,
    /// Bytes that it shares with nobody, while it has no request, or in [`BUSY_LOOKS`] of them.
    pub memory_max: u64,
}

/// What is seen of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The number of its life.
    pub(crate) life: u32,
    pub(crate) requests: u64,
    pub(crate) age: Duration,
    /// Where it was looked at: the bytes that are its own.
    pub(crate) own_bytes: Option<u64>,
}

impl RecycleLimits {
    /// Whether there are any.
    pub(crate) fn is_on(&self) -> bool {
        *self != RecycleLimits::default()
    }

    /// Why that worker is to be replaced, if it is.
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

/// Workers that were too large whenever they were looked at, and had a request each time.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// By place.
    seen: HashMap<usize, Suspicion>,
}

#[derive(Debug)]
struct Suspicion {
    life: u32,
    /// Finished ones at the last look.
    requests: u64,
    looks: u32,
}

impl Suspects {
    /// A worker was looked at. Whether it is too large by itself although it is busy, and not by one of its requests.
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

/// Between nine tenths of `limit` and all of it.
fn spread(limit: u64, life: u32) -> u64 {
    // Fibonacci hashing: neighbours are far apart.
    let share = u64::from(life.wrapping_mul(0x9e37_79b9) >> 22);
    limit - limit / 10 * share / 1024
}

/// Bytes of the process that no other has and no file holds, those that were swapped out among them; `None`: nobody may know, or it
/// is gone.
pub(crate) fn own_bytes(pid: i32) -> Option<u64> {
    let text = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(bytes_of(&text, "Private_Dirty:")? + bytes_of(&text, "SwapPss:").unwrap_or(0))
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
    fn who_is_due() {
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
    fn who_is_too_large_in_each_request_is_too_large_by_itself() {
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
    fn workers_that_began_together_do_not_end_together() {
        let mut ends: Vec<u64> = (1..=64).map(|life| spread(10_000, life)).collect();
        ends.sort_unstable();
        assert!(ends[0] >= 9_000 && ends[63] <= 10_000);
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] < 60), "evenly: {ends:?}");
        ends.dedup();
        assert!(ends.len() > 60, "{ends:?}");
        assert_eq!(spread(1, 7), 1, "none is lost of a small one");
    }

    #[test]
    fn kilobytes_are_read_by_their_key() {
        let text =
            "Private_Dirty:      12 kB\nSwap:               90 kB\nSwapPss:            30 kB\n";
        assert_eq!(bytes_of(text, "Private_Dirty:"), Some(12 << 10));
        assert_eq!(bytes_of(text, "SwapPss:"), Some(30 << 10));
        assert_eq!(bytes_of(text, "Private_Hugetlb:"), None);
    }

    #[test]
    fn what_is_written_is_ones_own() {
        // The other tests of this process write and free beside this one, tens of mebibytes at most.
        const WRITTEN: usize = 256 << 20;
        let before = own_bytes(std::process::id().cast_signed()).expect("our own");
        let written = vec![7u8; WRITTEN];
        let after = own_bytes(std::process::id().cast_signed()).expect("our own");
        assert!(after >= before + (WRITTEN as u64) / 2, "{before} {after}");
        assert!(written.iter().all(|byte| *byte == 7));
        assert_eq!(own_bytes(i32::MAX), None);
    }
}
