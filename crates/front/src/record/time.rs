//! Times as the logs write them, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

struct Civil {
    year: i64,
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    ms: u32,
}

/// Howard Hinnant's `civil_from_days`, for days since 1970.
fn civil(at: SystemTime) -> Civil {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs();
    let days = (seconds / 86_400).cast_signed() + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    Civil {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month: month.cast_unsigned() as usize,
        day: (day_of_year - (153 * shifted + 2) / 5 + 1).cast_unsigned(),
        hour: seconds / 3_600 % 24,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        ms: since.subsec_millis(),
    }
}

/// `10/Oct/2000:13:55:36 +0000`.
pub(super) fn common(at: SystemTime) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = civil(at);
    let month = MONTHS[month - 1];
    format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0000")
}

/// `2000-10-10T13:55:36.000Z`.
pub(super) fn rfc3339(at: SystemTime) -> String {
    let Civil { year, month, day, hour, minute, second, ms } = civil(at);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (seconds, expected, rfc) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00.000Z"),
            (1_735_689_599, "31/Dec/2024:23:59:59 +0000", "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "01/Mar/2100:00:00:00 +0000", "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!((common(at).as_str(), rfc3339(at).as_str()), (expected, rfc));
        }
    }
}
