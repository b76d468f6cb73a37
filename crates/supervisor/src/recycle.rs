//! Which workers have done enough, and are to be replaced while all others serve: pure, but for one look into `/proc`.
//!
//! Their limits are spread over the last tenth, by the number of their life, so that workers that began together do not
//! end together.

use std::fs::read_to_string;
use std::time::Duration;

/// After what a worker is replaced; zero: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecycleLimits {
    /// Requests.
    pub requests_max: u64,
    /// Time since its fork.
    pub age_max: Duration,
    /// Bytes that it shares with nobody, while it has no request.
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
        let before = own_bytes(std::process::id().cast_signed()).expect("our own");
        let written = vec![7u8; 8 << 20];
        let after = own_bytes(std::process::id().cast_signed()).expect("our own");
        assert!(after >= before + (7 << 20), "{before} {after}");
        assert!(written.iter().all(|byte| *byte == 7));
        assert_eq!(own_bytes(i32::MAX), None);
    }
}
