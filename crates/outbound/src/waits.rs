//! How long to wait after an answer, or after none, and what of an answer's words is shown: pure.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, SystemTime};

/// The longest pause, whatever a collector asks for.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// Up to there pauses double by themselves.
const BACK_OFF_MAX: Duration = Duration::from_mins(1);
/// What is shown of a collector's own words.
const WORDS_MAX: usize = 200;

/// What the header `retry-after` asks for: seconds, or a date.
#[must_use]
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// As much of a stranger's text as fits into a line of a log.
#[must_use]
pub fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

/// The pause after the nth failure in a row, n from 0: `first` doubles, half of it is left to chance (`jitter`, 0 to 1),
/// so that servers that failed together do not come back together. What the collector asks for is the least.
#[must_use]
pub fn pause(first: Duration, n: u32, asked: Option<Duration>, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(1_u32.checked_shl(n).unwrap_or(u32::MAX));
    let ours = doubled.min(BACK_OFF_MAX).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    ours.max(asked.unwrap_or_default()).min(PAUSE_MAX)
}

/// Between 0 and 1, another each time: std's hash tables have a random seed each.
#[must_use]
pub fn chance() -> f64 {
    f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{pause, retry_after};
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_server_says_when_to_come_back_in_seconds_or_by_a_date() {
        for (text, expected) in
            [("0", Some(0)), (" 3600 ", Some(3600)), ("soon", None), ("", None), ("-1", None)]
        {
            let found = retry_after(text, SystemTime::now());
            assert_eq!(found, expected.map(Duration::from_secs), "{text}");
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        for (text, expected) in
            [("Thu, 01 Jan 1970 01:00:07 GMT", 7), ("Thu, 01 Jan 1970 00:00:00 GMT", 0)]
        {
            assert_eq!(retry_after(text, now), Some(Duration::from_secs(expected)), "{text}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_never_shorter_than_asked() {
        let second = Duration::from_secs(1);
        for (n, asked, jitter, expected_ms) in [
            (0, None, 1.0, 1_000),
            (0, None, 0.0, 500),
            (3, None, 1.0, 8_000),
            (40, None, 1.0, 60_000),
            (0, Some(7), 0.0, 7_000),
            (0, Some(u64::MAX), 0.0, 300_000),
        ] {
            let found = pause(second, n, asked.map(Duration::from_secs), jitter);
            assert_eq!(found, Duration::from_millis(expected_ms), "{n} {asked:?} {jitter}");
        }
    }
}
