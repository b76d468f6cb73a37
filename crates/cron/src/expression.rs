//! The five fields of an expression, and its local times.

use jiff::civil::{Date, DateTime};
use std::str::FromStr;

/// Maximum length of an expression.
const BYTES_MAX: usize = 256;
/// Days that are searched for the next time. Sundays that are a 29th of February are up to 40 years
/// apart.
const DAYS_MAX: usize = 366 * 41;

/// A cron expression: `*/5 8-18 * * mon-fri`, or a name such as `@daily`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// The minute or the hour begins with `*`: the times are an interval, not times of a day.
    is_interval: bool,
    /// Neither field for days begins with `*`: one of the two is enough, as in every cron.
    is_either_day: bool,
}

/// Why a text is no cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronError {
    /// Not five fields.
    Fields,
    /// An unknown name.
    Name,
    /// A field has a mistake.
    Field(&'static str),
    /// No date has these fields.
    Never,
}

impl CronError {
    /// Returns the message.
    pub fn hint(self) -> &'static str {
        match self {
            CronError::Fields => {
                "write five fields: minute, hour, day of month, month, day of week; or `@daily`"
            }
            CronError::Name => "the names are @yearly, @monthly, @weekly, @daily and @hourly",
            CronError::Field(hint) => hint,
            CronError::Never => "no date matches this day and month",
        }
    }
}

struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
    hint: &'static str,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field {
        min: 0,
        max: 59,
        names: &[],
        hint: "a minute is `*`, 0 to 59, a range `0-29`, a step `*/5` or `0-30/5`, or a list of \
               these with commas",
    },
    Field {
        min: 0,
        max: 23,
        names: &[],
        hint: "an hour is `*`, 0 to 23, a range `8-18`, a step `*/2` or `8-18/2`, or a list of \
               these with commas",
    },
    Field {
        min: 1,
        max: 31,
        names: &[],
        hint: "a day of the month is `*`, 1 to 31, a range `1-7`, a step `*/2` or `1-15/2`, or a \
               list of these with commas",
    },
    Field {
        min: 1,
        max: 12,
        names: &MONTHS,
        hint: "a month is `*`, 1 to 12, `jan` to `dec`, a range `jun-aug`, a step `*/3`, or a \
               list of these with commas",
    },
    Field {
        min: 0,
        max: 7,
        names: &WEEKDAYS,
        hint: "a day of the week is `*`, 0 to 7 (0 and 7: Sunday), `sun` to `sat`, a range \
               `mon-fri`, or a list of these with commas",
    },
];

/// Names of expressions.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Field {
    /// Returns the values as bits.
    fn parse(&self, text: &str) -> Result<u64, CronError> {
        text.split(',').try_fold(0, |bits, part| {
            self.part(part).map(|more| bits | more).ok_or(CronError::Field(self.hint))
        })
    }

    fn part(&self, part: &str) -> Option<u64> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            // `5/10` means different things to different programs.
            None if step.is_some() => return None,
            None => (self.value(range)?, self.value(range)?),
        };
        if from > to {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        Some((from..=to).step_by(step).fold(0, |bits, value| bits | 1 << value))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let is_named = |name: &&&str| name.eq_ignore_ascii_case(text);
        if let Some(name) = self.names.iter().find(is_named) {
            let at = self.names.iter().position(|other| other == name)?;
            // Months begin with 1, days of the week with 0.
            return Some(self.min + u32::try_from(at).ok()?);
        }
        number(text).filter(|value| (self.min..=self.max).contains(value))
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Cron, CronError> {
        let text = text.trim();
        if text.len() > BYTES_MAX {
            return Err(CronError::Fields);
        }
        let fields = if text.starts_with('@') {
            let named = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
            named.ok_or(CronError::Name)?.1
        } else {
            text
        };
        let words: Vec<&str> = fields.split_ascii_whitespace().collect();
        let words: [&str; 5] = words.try_into().map_err(|_| CronError::Fields)?;
        let mut bits = [0; 5];
        for ((bits, field), word) in bits.iter_mut().zip(&FIELDS).zip(words) {
            *bits = field.parse(word)?;
        }
        let [minutes, hours, days, months, weekdays] = bits;
        let is_star = words.map(|word| word.starts_with('*'));
        let cron = Cron {
            text: words.join(" "),
            minutes,
            hours,
            days,
            months,
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            is_interval: is_star[0] || is_star[1],
            is_either_day: !is_star[2] && !is_star[4],
        };
        let cron = Cron { text: text.to_owned(), ..cron };
        let begin = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
        cron.next_local(begin).ok_or(CronError::Never)?;
        Ok(cron)
    }
}

impl std::fmt::Display for Cron {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1)
}

impl Cron {
    /// Whether the times are an interval, such as `*/5 * * * *`, and not times of a day.
    pub fn is_interval(&self) -> bool {
        self.is_interval
    }

    /// Returns the first matching local time after this one, as if the clock never changed.
    pub(crate) fn next_local(&self, after: DateTime) -> Option<DateTime> {
        let minute = jiff::SignedDuration::from_mins(1);
        let begin = after.checked_add(minute).ok()?;
        let (mut date, mut from) = (begin.date(), (begin.hour(), begin.minute()));
        for _ in 0..DAYS_MAX {
            if self.has_day(date)
                && let Some((hour, minute)) = self.first_time(from)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            from = (0, 0);
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = if self.is_either_day { day || weekday } else { day && weekday };
        is_day && has(self.months, date.month())
    }

    /// Returns the first hour and minute that match, from these on.
    fn first_time(&self, (hour, minute): (i8, i8)) -> Option<(i8, i8)> {
        let first = |bits: u64, from: i8, end: i8| (from..end).find(|value| has(bits, *value));
        if has(self.hours, hour)
            && let Some(minute) = first(self.minutes, minute, 60)
        {
            return Some((hour, minute));
        }
        Some((first(self.hours, hour + 1, 24)?, first(self.minutes, 0, 60)?))
    }

    /// Whether this local time matches. Slow: for the tests of the search.
    #[cfg(test)]
    pub(crate) fn matches(&self, local: DateTime) -> bool {
        self.has_day(local.date())
            && has(self.hours, local.hour())
            && has(self.minutes, local.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_every_cron_reads_them() {
        let bits = |field: usize, text: &str| FIELDS[field].parse(text).expect(text);
        assert_eq!(bits(0, "*/20"), 1 | 1 << 20 | 1 << 40);
        assert_eq!(bits(0, "5-15/5,59"), 1 << 5 | 1 << 10 | 1 << 15 | 1 << 59);
        assert_eq!(bits(1, "*"), (1 << 24) - 1);
        assert_eq!(bits(3, "Jan,dec"), 1 << 1 | 1 << 12);
        assert_eq!(bits(4, "mon-FRI"), 0b11_1110);
        let sunday: Cron = "0 0 * * 7".parse().expect("an expression");
        assert_eq!(sunday.weekdays, 1);
        let weekend: Cron = "0 0 * * 5-7".parse().expect("an expression");
        assert_eq!(weekend.weekdays, 0b110_0001);
    }

    #[test]
    fn mistakes_are_rejected_with_a_hint() {
        let error = |text: &str| text.parse::<Cron>().expect_err(text);
        for text in ["", "* * * *", "* * * * * *", "x", &"*".repeat(300)] {
            assert_eq!(error(text), CronError::Fields, "{text}");
        }
        assert_eq!(error("@reboot"), CronError::Name);
        assert_eq!(error("0 0 30 2 *"), CronError::Never);
        assert_eq!(error("0 0 31 4,6,9,11 *"), CronError::Never);
        for text in [
            "60 * * * *",
            "-1 * * * *",
            "+1 * * * *",
            "*/0 * * * *",
            "5/10 * * * *",
            "5-1 * * * *",
            "1, * * * *",
            ",1 * * * *",
            "1-2-3 * * * *",
            "*/5/5 * * * *",
            "a * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * L * *",
            "* * * 13 *",
            "* * * 0 *",
            "* * * foo *",
            "* * * * 8",
            "* * * * mon#1",
            "* * ? * *",
            "١ * * * *",
            "001 * * * *",
        ] {
            assert!(matches!(error(text), CronError::Field(_)), "{text}: {:?}", error(text));
        }
    }
}
