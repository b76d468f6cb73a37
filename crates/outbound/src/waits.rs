//! Pure functions for pauses after a response or a failure, and for the displayed text of a
//! response.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, SystemTime};

/// Maximum pause, also for one that a collector requests.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// Maximum pause that doubling leads to.
const BACK_OFF_MAX: Duration = Duration::from_mins(1);
/// Maximum number of characters shown of a collector's message.
const WORDS_MAX: usize = 200;

/// Parses the header `retry-after`: seconds or a date.
#[must_use]
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Returns the part of an untrusted text that fits into a log line, without unprintable
/// characters.
#[must_use]
pub fn words(text: &str) -> String {
    text.chars().filter(|c| !samovar_log::is_unprintable(*c)).take(WORDS_MAX).collect()
}

/// Returns the pause after failure number `n` in a row, counted from 0.
///
/// `first` doubles with each failure. Half of the pause is random (`jitter`, 0 to 1), so that
/// servers that failed together do not retry together. The pause is at least the duration that the
/// collector requested.
#[must_use]
pub fn pause(first: Duration, n: u32, asked: Option<Duration>, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(1_u32.checked_shl(n).unwrap_or(u32::MAX));
    let ours = doubled.min(BACK_OFF_MAX).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    ours.max(asked.unwrap_or_default()).min(PAUSE_MAX)
}

/// Returns a random number between 0 and 1. Each `RandomState` of std has its own random seed.
#[must_use]
pub fn chance() -> f64 {
    f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{pause, retry_after};
    use std::time::{Duration, SystemTime};

    #[test]
    fn retry_after_parses_seconds_and_date() {
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
    fn pause_doubles_to_limit_and_is_at_least_requested() {
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
