//! Formats times for the logs, in UTC.

use jiff::Timestamp;
use std::time::SystemTime;

/// `10/Oct/2000:13:55:36 +0000`.
pub(super) fn common(at: SystemTime) -> String {
    timestamp(at).strftime("%d/%b/%Y:%H:%M:%S +0000").to_string()
}

/// `2000-10-10T13:55:36.000Z`.
pub(super) fn rfc3339(at: SystemTime) -> String {
    format!("{:.3}", timestamp(at))
}

/// Converts a time; times after the year 9999 become 1970.
fn timestamp(at: SystemTime) -> Timestamp {
    Timestamp::try_from(at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn time_is_formatted_for_both_logs() {
        for (seconds, expected, rfc) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00.000Z"),
            (1_735_689_599, "31/Dec/2024:23:59:59 +0000", "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "01/Mar/2100:00:00:00 +0000", "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!((common(at).as_str(), rfc3339(at).as_str()), (expected, rfc));
        }
        let at = UNIX_EPOCH + Duration::from_nanos(1_234_999_999);
        assert_eq!(rfc3339(at), "1970-01-01T00:00:01.234Z");
    }
}
