//! Days and times: between seconds since 1970 and text, at a fixed offset from UTC.

use serde::Serializer;

/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// Names of months.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of weekdays; day 0 of 1970 was a Thursday.
const WEEKDAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
/// Years that a date can have.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=9999;

/// Returns the days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let of_era = year - era * 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day of a number of days since 1970.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// Returns the day of a date such as `2027-03-12`.
pub fn day_of(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    checked(year, month, day)
}

/// Returns the day of a date if it exists.
pub(crate) fn checked(year: i64, month: i64, day: i64) -> Option<i64> {
    if !YEARS.contains(&year) {
        return None;
    }
    let found = days(year, month, day);
    (civil(found) == (year, month, day)).then_some(found)
}

fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Parses `HH:MM` or `HH:MM:SS`; returns seconds.
pub(crate) fn clock_of(text: &str) -> Option<i64> {
    let text = text.split('.').next()?;
    let mut parts = text.split(':').map(number);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    let is_time = hour < 24 && minute < 60 && second < 61 && parts.next().is_none();
    is_time.then_some(hour * 3600 + minute * 60 + second)
}

/// Parses an offset such as `+02:00`, `-0330` or `Z`; returns seconds east of Greenwich.
pub fn offset_of(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match (rest.split_once(':'), rest.len()) {
        (Some(parts), _) => parts,
        (None, 4) => rest.split_at_checked(2)?,
        (None, _) => (rest, "0"),
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses a time: seconds since 1970, or `2026-11-28T12:00:00Z` with `T` or a blank, with an offset
/// or without one; then `offset` applies.
pub fn time_of(text: &str, offset: i64) -> Option<i64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        let is_time = (0.0..253_402_300_800.0).contains(&seconds);
        return is_time.then_some(seconds as i64);
    }
    let (date, rest) = text.split_at_checked(10)?;
    let day = day_of(date)?;
    let rest = rest.strip_prefix(['T', ' ']).unwrap_or(rest).trim();
    if rest.is_empty() {
        return Some(day * DAY - offset);
    }
    let end = rest.find(['Z', 'z', '+', '-', 'U']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let offset = if zone.is_empty() { offset } else { offset_of(zone)? };
    Some(day * DAY + clock_of(clock.trim())? - offset)
}

/// Returns a day for people, such as `12 March 2027`.
pub fn date(day: i64) -> String {
    let (year, month, date) = civil(day);
    format!("{date} {} {year}", month_name(month))
}

/// Returns a day without its year, such as `12 March`.
pub(crate) fn short_date(day: i64) -> String {
    let (_, month, date) = civil(day);
    format!("{date} {}", month_name(month))
}

pub(crate) fn year(day: i64) -> i64 {
    civil(day).0
}

fn month_name(month: i64) -> &'static str {
    usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or_default()
}

/// Returns a day such as `2027-03-12`.
pub fn iso(day: i64) -> String {
    let (year, month, date) = civil(day);
    format!("{year:04}-{month:02}-{date:02}")
}

/// Writes a day such as `"2027-03-12"` to JSON.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
pub(crate) fn json<S: Serializer>(day: &i64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&iso(*day))
}

/// Writes a day to JSON, or null.
#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref)] // serde's signature.
pub(crate) fn json_option<S: Serializer>(day: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
    match day {
        Some(day) => to.serialize_some(&iso(*day)),
        None => to.serialize_none(),
    }
}

/// Returns the place of a day in its week, from 0 to 6; 0 is a Thursday.
pub(crate) fn weekday(day: i64) -> usize {
    usize::try_from(day.rem_euclid(7)).unwrap_or(0)
}

/// Returns the name of a place in the week.
pub(crate) fn weekday_name(place: usize) -> &'static str {
    WEEKDAYS[place % 7]
}

/// Returns hour and minute of a time at an offset, such as `20:05`.
pub(crate) fn clock(at: i64, offset: i64) -> String {
    let second = (at + offset).rem_euclid(DAY);
    format!("{:02}:{:02}", second / 3600, second / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_four_centuries_survive_a_round_trip() {
        for day in (0..146_097 * 2).step_by(13) {
            assert_eq!(day_of(&iso(day)), Some(day));
        }
        assert_eq!(day_of("2026-11-28"), Some(20_785));
        assert_eq!(weekday_name(weekday(20_785)), "Saturday");
        assert_eq!(date(20_785), "28 November 2026");
        for wrong in ["2026-02-29", "2026-13-01", "2026-1", "x", "2026-01-01-01", "1969-01-01", ""]
        {
            assert_eq!(day_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_have_an_offset_of_their_own_or_the_given_one() {
        let noon = 20_785 * DAY + 43_200;
        for (text, offset, expected) in [
            ("2026-11-28T12:00:00Z", 3600, Some(noon)),
            ("2026-11-28 12:00:00", 0, Some(noon)),
            ("2026-11-28 13:00:00", 3600, Some(noon)),
            ("2026-11-28T14:30:00.250+02:30", 0, Some(noon)),
            ("2026-11-28 12:00:00 UTC", 7200, Some(noon)),
            ("2026-11-28", 0, Some(noon - 43_200)),
            ("1795867200", 0, Some(1_795_867_200)),
            ("NaN", 0, None),
            ("-5", 0, None),
            ("1e30", 0, None),
            ("2026-11-28T25:00", 0, None),
            ("2026-11-28T12:00+99:00", 0, None),
            ("tomorrow", 0, None),
        ] {
            assert_eq!(time_of(text, offset), expected, "{text}");
        }
        assert_eq!(offset_of("-0330"), Some(-12_600));
        assert_eq!(clock(noon, 3600), "13:00");
    }
}
