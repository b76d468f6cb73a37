//! `[[schedule]]`: commands and jobs that run at certain times.
//!
//! These tables exist only in the file: a flag or a variable has no notation for several of them.

use crate::schema::console::{ConsoleCommand, Field};
use samovar_cron::Times;
use std::time::Duration;

/// Key of the tables.
pub(crate) const KEY: &str = "schedule";
/// Maximum number of tables.
pub(crate) const TABLES_MAX: usize = 1_000;

pub(crate) const EVERY_MIN: Duration = Duration::from_secs(1);
pub(crate) const EVERY_MAX: Duration = Duration::from_hours(24 * 366);
pub(crate) const JITTER_MAX: Duration = Duration::from_hours(1);
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_hours(24 * 7);
/// Maximum length of a payload as JSON: that of a job.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 48 << 10;

/// One `[[schedule]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Name for log lines and `samovar schedule`; unique.
    pub name: String,
    /// Its times.
    pub times: Times,
    /// Command or job.
    pub work: Work,
    /// Treatment of a time at which the previous run is not over.
    pub overlap: Overlap,
    /// Maximum random delay of a run.
    pub jitter: Duration,
    /// Whether a time that passed while no server ran is made up for, once.
    pub catches_up: bool,
    /// Maximum run time of a command; zero: no limit.
    pub timeout: Duration,
}

/// Work of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A console command.
    Command {
        /// Pool whose PHP runs it; `None`: the default pool.
        pool: Option<String>,
        /// The command. Its count and its limits are not used, except for `stop_timeout`.
        command: ConsoleCommand,
    },
    /// A job for a queue.
    Push {
        /// Name of the queue.
        queue: String,
        /// Payload: JSON.
        payload: String,
    },
}

/// Treatment of a time at which the previous run is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing runs at this time.
    #[default]
    Skip,
    /// One run starts when the previous one is over.
    Queue,
    /// The previous run is stopped first.
    Kill,
}

pub(crate) const OVERLAPS: [(&str, Overlap); 3] =
    [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("kill", Overlap::Kill)];

pub(crate) const FIELDS: [Field; 14] = [
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`",
        default: "none; required",
        doc: "Name in log lines, metrics and `samovar schedule`",
    },
    Field {
        key: "cron",
        allowed: "five fields such as `\"*/5 8-18 * * mon-fri\"`, or `@hourly`, `@daily`, \
                  `@weekly`, `@monthly`, `@yearly`",
        default: "none; required unless `every` is set",
        doc: "Times: minute, hour, day of month, month, day of week",
    },
    Field {
        key: "every",
        allowed: "a time from 1s to 8784h",
        default: "none; required unless `cron` is set",
        doc: "Interval between two runs, independent of the clock",
    },
    Field {
        key: "command",
        allowed: "a string, which is split into words as in a shell, or an array of strings",
        default: "none; required unless `script` or `queue` is set",
        doc: "Console command with its arguments: `\"app:report --daily\"`",
    },
    Field {
        key: "script",
        allowed: "the path of a PHP file",
        default: "as in a `[[console]]`",
        doc: "PHP file that runs the command",
    },
    Field {
        key: "pool",
        allowed: "the name of a `[[pool]]`",
        default: "the default pool",
        doc: "Pool whose PHP, `php.ini` values and limits the command has",
    },
    Field {
        key: "queue",
        allowed: "the name of a `[[queue]]`",
        default: "none",
        doc: "Queue that gets a job, instead of a command",
    },
    Field {
        key: "payload",
        allowed: "a string, a number, a boolean, an array or a table, up to 48 KiB as JSON",
        default: "null",
        doc: "Payload of the job",
    },
    Field {
        key: "timezone",
        allowed: "a name such as `Europe/Berlin`",
        default: "that of the machine: `TZ`, else `/etc/localtime`",
        doc: "Time zone of `cron`",
    },
    Field {
        key: "overlap",
        allowed: "`skip`, `queue`, `kill`",
        default: "`skip`",
        doc: "At a time at which the previous run is not over: skip it, run once afterwards, or \
              stop the previous run first",
    },
    Field {
        key: "jitter",
        allowed: "a time up to 1h",
        default: "`0`",
        doc: "Maximum random delay of each run",
    },
    Field {
        key: "catch_up",
        allowed: "`none`, `once`",
        default: "`none`",
        doc: "Whether one run at the start makes up for times that passed while no server ran",
    },
    Field {
        key: "timeout",
        allowed: "a time up to 168h; `0`: no limit",
        default: "`1h`",
        doc: "Maximum run time of a command; then it gets SIGTERM",
    },
    Field {
        key: "stop_timeout",
        allowed: "a time up to 1h",
        default: "`10s`",
        doc: "Time between SIGTERM and SIGKILL",
    },
];
