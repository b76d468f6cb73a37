//! Formats figures for people: three digits, a unit, times in UTC.

const SECONDS_PER_DAY: u64 = 86_400;

/// Formats a duration: `850 µs`, `12.3 ms`, `1.2 s`, `22.6 min`.
pub(crate) fn time(ns: u64) -> String {
    let ns_f = ns as f64;
    match ns {
        0 => "0".to_owned(),
        1..10_000 => format!("{} µs", digits(ns_f / 1e3)),
        10_000..1_000_000 => format!("{:.0} µs", ns_f / 1e3),
        1_000_000..1_000_000_000 => format!("{} ms", digits(ns_f / 1e6)),
        1_000_000_000..120_000_000_000 => format!("{} s", digits(ns_f / 1e9)),
        120_000_000_000..7_200_000_000_000 => format!("{} min", digits(ns_f / 60e9)),
        7_200_000_000_000..172_800_000_000_000 => format!("{} h", digits(ns_f / 3_600e9)),
        _ => format!("{:.0} d", ns_f / 86_400e9),
    }
}

/// Formats a span of seconds: `42 s`, `5 min`, `3 h 4 min`, `2 d 3 h`.
pub(crate) fn span(seconds: u64) -> String {
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..SECONDS_PER_DAY => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / SECONDS_PER_DAY, "d", seconds / 3_600 % 24, "h"),
    }
}

/// Formats a size with units of 1000: `12.3 MB`.
pub(crate) fn bytes(of: u64) -> String {
    let of_f = of as f64;
    match of {
        0..1_000 => format!("{of} B"),
        1_000..1_000_000 => format!("{} kB", digits(of_f / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", digits(of_f / 1e6)),
        _ => format!("{} GB", digits(of_f / 1e9)),
    }
}

/// Maximum number of characters of a function's name.
const NAME_CHARS_MAX: usize = 120;

/// Shortens the long name of a function.
pub(crate) fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// Formats a count: `1,234,567`.
pub(crate) fn count(of: u64) -> String {
    let plain = of.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (at, digit) in plain.char_indices() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats three digits: `0.123`, `1.23`, `12.3`, `123`.
pub(crate) fn digits(of: f64) -> String {
    let decimals = match of.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{of:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a rate: `42.3/s`.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        return "0".to_owned();
    }
    let number = if per_second >= 1_000.0 { count(per_second as u64) } else { digits(per_second) };
    format!("{number}/s")
}

/// Formats a share: `3.2 %`. A small share above zero is never `0 %`.
pub(crate) fn percent(part: f64, of: f64) -> String {
    if part <= 0.0 || of <= 0.0 {
        return "0 %".to_owned();
    }
    match part / of * 100.0 {
        share if share < 0.01 => "< 0.01 %".to_owned(),
        share if share < 10.0 => format!("{} %", digits((share * 100.0).round() / 100.0)),
        share => format!("{share:.0} %"),
    }
}

/// Formats seconds since 1970 as a UTC time: `2026-11-22 07:14:10`.
pub(crate) fn moment(unix: u64) -> String {
    format!("{} {}", date(unix), clock(unix))
}

/// Formats the time of day: `07:14:10`.
pub(crate) fn clock(unix: u64) -> String {
    let s = unix % SECONDS_PER_DAY;
    format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
}

/// Formats the time of day without seconds: `07:14`.
pub(crate) fn minute(unix: u64) -> String {
    let s = unix % SECONDS_PER_DAY;
    format!("{:02}:{:02}", s / 3_600, s / 60 % 60)
}

/// Formats the date: `2026-11-22`. The algorithm is Howard Hinnant's `civil_from_days`.
pub(crate) fn date(unix: u64) -> String {
    let days = unix / SECONDS_PER_DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, digits, moment, percent, rate, span, time};

    #[test]
    fn time_is_formatted_with_fitting_unit() {
        for (ns, expected) in [
            (0, "0"),
            (500, "0.5 µs"),
            (9_990, "9.99 µs"),
            (850_400, "850 µs"),
            (1_000_000, "1 ms"),
            (12_340_000, "12.3 ms"),
            (999_900_000, "1000 ms"),
            (1_200_000_000, "1.2 s"),
            (125_000_000_000, "2.08 min"),
            (9_000_000_000_000, "2.5 h"),
            (u64::MAX, "213504 d"),
        ] {
            assert_eq!(time(ns), expected, "{ns}");
        }
    }

    #[test]
    fn other_figures_are_formatted_with_three_digits() {
        assert_eq!([span(42), span(300), span(11_040)], ["42 s", "5 min", "3 h 4 min"]);
        assert_eq!(
            [bytes(999), bytes(12_345_678), bytes(1 << 40)],
            ["999 B", "12.3 MB", "1100 GB"]
        );
        assert_eq!([count(0), count(999), count(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!(
            [digits(0.0), digits(1.0), digits(0.05), digits(120.4)],
            ["0", "1", "0.05", "120"]
        );
        assert_eq!([rate(0.25), rate(12_345.6)], ["0.25/s", "12,345/s"]);
        let shares = [percent(0.0, 5.0), percent(1.0, 1e6), percent(1.0, 30.0), percent(9.0, 9.0)];
        assert_eq!(shares, ["0 %", "< 0.01 %", "3.33 %", "100 %"]);
    }

    #[test]
    fn date_follows_the_calendar() {
        for (unix, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_826_599, "2000-02-29 12:16:39"),
            (1_795_331_650, "2026-11-22 07:14:10"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(moment(unix), expected);
        }
    }
}
