//! `[[queue]]`: a queue of jobs, and the pool of the workers that run them.
//!
//! A queue is a pool that no request reaches: its root and front controller are the handler's. So
//! its table may also have the settings of a pool.

use crate::schema::console::Field;
use samovar_cron::Zone;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Key of the tables.
pub(crate) const KEY: &str = "queue";

pub(crate) const BATCH: RangeInclusive<i64> = 1..=1_000;
pub(crate) const ATTEMPTS: RangeInclusive<i64> = 1..=1_000;
pub(crate) const CPU_MAX: RangeInclusive<i64> = 1..=100;
pub(crate) const PER_KEY: RangeInclusive<i64> = 0..=1_000;
pub(crate) const RATE: RangeInclusive<u64> = 1..=1_000_000;
pub(crate) const OLDEST_MAX: Duration = Duration::from_hours(24 * 366);
pub(crate) const LINGER_MAX: Duration = Duration::from_mins(1);
pub(crate) const BACKOFF_MAX: Duration = Duration::from_hours(24 * 7);

/// Settings of a queue, in addition to those of its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Maximum number of jobs in a batch.
    pub batch: usize,
    /// Time for which a batch that is not full waits for further jobs.
    pub linger: Duration,
    /// Number of runs after which a job that failed is dead.
    pub attempts: u32,
    /// Delay before the second attempt; doubled for each further one.
    pub backoff: Duration,
    /// Maximum delay before an attempt.
    pub backoff_max: Duration,
    /// Whether dead jobs are kept.
    pub dead_letter: bool,
    /// Maximum number of running jobs with the same key; 0: no limit.
    pub concurrency_per_key: usize,
    /// Maximum number of jobs that start per time; `None`: no limit.
    pub rate: Option<JobRate>,
    /// Age of the oldest ready job above which the health check warns; zero: never.
    pub oldest_max: Duration,
    /// Whether its jobs run only while HTTP is quiet.
    pub is_idle: bool,
    /// CPU time of the machine, in percent, from which on no idle job starts; 100: no limit.
    pub cpu_max: u64,
    /// Time of the day at which its jobs may start; `None`: always.
    pub window: Option<Window>,
}

/// A part of each day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Minute of the day at which it begins.
    pub from: u16,
    /// Minute of the day at which it ends; a smaller one than `from` is on the next day.
    pub until: u16,
    /// Time zone of both.
    pub zone: Zone,
}

impl Window {
    /// Parses a text such as `02:00-06:00`.
    pub(crate) fn parse(text: &str, zone: Zone) -> Option<Window> {
        let (from, until) = text.split_once('-')?;
        let (from, until) = (minute(from)?, minute(until)?);
        (from != until).then_some(Window { from, until, zone })
    }

    /// Returns whether the window contains this minute of the day.
    pub fn contains(&self, minute: u16) -> bool {
        if self.from < self.until {
            (self.from..self.until).contains(&minute)
        } else {
            minute >= self.from || minute < self.until
        }
    }
}

/// Returns the minute of the day of a text such as `02:00`.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, max: u16| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_plain && *number <= max)
    };
    Some(number(hours, 23)? * 60 + number(minutes, 59)?)
}

/// A number of jobs per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRate {
    /// Number of jobs.
    pub count: u64,
    /// Time in milliseconds.
    pub period_ms: u64,
}

impl JobRate {
    /// Parses a text such as `100/s`.
    pub(crate) fn parse(text: &str) -> Option<JobRate> {
        let (count, period) = text.split_once('/')?;
        let period_ms = match period {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        // `+5` is a number for `parse`.
        let count = count.parse().ok().filter(|_| !count.starts_with('+'))?;
        RATE.contains(&count).then_some(JobRate { count, period_ms })
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            batch: 1,
            linger: Duration::ZERO,
            attempts: 5,
            backoff: Duration::from_secs(10),
            backoff_max: Duration::from_hours(1),
            dead_letter: true,
            concurrency_per_key: 0,
            rate: None,
            oldest_max: Duration::from_mins(15),
            is_idle: false,
            cpu_max: 50,
            window: None,
        }
    }
}

pub(crate) const FIELDS: [Field; 16] = [
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`; not `default`",
        default: "none; required",
        doc: "Name for `Samovar\\queue()`, and name of the pool of its workers",
    },
    Field {
        key: "handler",
        allowed: "the path of a PHP file",
        default: "none; required",
        doc: "Script that calls `Samovar\\consume()`; relative to the settings file",
    },
    Field {
        key: "batch",
        allowed: "1 to 1000",
        default: "`1`",
        doc: "Maximum number of jobs that a worker gets at once",
    },
    Field {
        key: "linger",
        allowed: "a time up to 1m",
        default: "`0`",
        doc: "Time for which a batch that is not full waits for further jobs",
    },
    Field {
        key: "timeout",
        allowed: "a time; `0`: no limit",
        default: "`60s`",
        doc: "Maximum run time of a batch: `timeouts.request` and `timeouts.response` of the pool",
    },
    Field {
        key: "attempts",
        allowed: "1 to 1000",
        default: "`5`",
        doc: "Number of runs after which a job that failed is dead",
    },
    Field {
        key: "backoff",
        allowed: "a time up to 168h",
        default: "`10s`",
        doc: "Delay before the second attempt, doubled for each further one. A random part of up \
              to one half is subtracted",
    },
    Field {
        key: "backoff_max",
        allowed: "a time up to 168h",
        default: "`1h`",
        doc: "Maximum delay before an attempt",
    },
    Field {
        key: "dead_letter",
        allowed: "`true`, `false`",
        default: "`true`",
        doc: "Whether dead jobs are kept, with their payload and the last error",
    },
    Field {
        key: "concurrency_per_key",
        allowed: "0 to 1000; `0`: no limit",
        default: "`0`",
        doc: "Maximum number of running jobs with the same key. With `1`, jobs with the same key \
              run one after another, in the order in which they were pushed: a job that failed \
              keeps its turn",
    },
    Field {
        key: "rate",
        allowed: "1 to 1000000, and `/s`, `/m` or `/h`, such as `100/s`",
        default: "no limit",
        doc: "Maximum number of jobs that all workers together start per second, minute or hour",
    },
    Field {
        key: "oldest_max",
        allowed: "a time up to 8784h; `0`: none",
        default: "`15m`",
        doc: "If a job has been ready for longer, the health check warns",
    },
    Field {
        key: "priority",
        allowed: "`normal`, `idle`",
        default: "`normal`",
        doc: "With `idle`, jobs start only while HTTP is quiet, and their workers run only on CPUs \
              that are otherwise idle",
    },
    Field {
        key: "cpu_max",
        allowed: "1 to 100; `100`: no limit",
        default: "`50`",
        doc: "With `priority = \"idle\"`, no job starts while the machine uses this percentage of \
              its CPU time for other work than idle jobs",
    },
    Field {
        key: "window",
        allowed: "two times of a day, such as `02:00-06:00`",
        default: "always",
        doc: "Jobs start only between these times",
    },
    Field {
        key: "timezone",
        allowed: "a name such as `Europe/Berlin`",
        default: "that of the machine",
        doc: "Time zone of `window`",
    },
];

#[cfg(test)]
mod tests {
    use super::{JobRate, Window};
    use samovar_cron::Zone;

    #[test]
    fn windows_are_parts_of_a_day() {
        let window = |text: &str| Window::parse(text, Zone::of_machine());
        for (text, inside, outside) in [
            ("02:00-06:00", &[120, 359][..], &[119, 360, 0][..]),
            ("22:30-04:00", &[1_350, 1_439, 0, 239], &[240, 1_349]),
        ] {
            let window = window(text).expect(text);
            assert!(inside.iter().all(|minute| window.contains(*minute)), "{text}");
            assert!(!outside.iter().any(|minute| window.contains(*minute)), "{text}");
        }
        for text in [
            "",
            "2-6",
            "02:00",
            "2:00-06:00",
            "24:00-06:00",
            "02:60-06:00",
            "02:00-02:00",
            "02:00-+6:00",
            "02:00-06:00-07:00",
        ] {
            assert_eq!(window(text), None, "{text}");
        }
    }

    #[test]
    fn rates_have_a_number_and_a_unit() {
        for (text, count, period_ms) in
            [("100/s", 100, 1_000), ("1/m", 1, 60_000), ("1000000/h", 1_000_000, 3_600_000)]
        {
            assert_eq!(JobRate::parse(text), Some(JobRate { count, period_ms }), "{text}");
        }
        for text in
            ["", "5", "/s", "0/s", "1000001/s", "-1/s", "+1/s", "1.5/s", "1/d", "1 /s", "1/s/s"]
        {
            assert_eq!(JobRate::parse(text), None, "{text}");
        }
    }
}
