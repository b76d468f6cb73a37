//! `[[console]]`, and `[[pool.console]]` of a pool: console commands that run in addition to HTTP,
//! such as a framework's message consumers.
//!
//! These tables exist only in the file: a flag or a variable has no notation for several of them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Key of the tables.
pub(crate) const KEY: &str = "console";
/// Name of the tables inside a pool.
pub(crate) const KEY_OF_POOL: &str = "pool.console";

/// Former name of the key. It was renamed because `workers` are the processes for HTTP.
pub(crate) const FORMER_KEY: &str = "worker";

/// Maximum number of tables per pool.
pub(crate) const TABLES_MAX: usize = 32;
/// Allowed number of processes per table.
pub(crate) const COUNT: RangeInclusive<i64> = 1..=64;
/// Maximum number of words of a command, and of bytes in all of them: they are passed on in one
/// message.
pub(crate) const WORDS_MAX: usize = 64;
pub(crate) const WORDS_BYTES_MAX: usize = 3072;
pub(crate) const MEMORY: RangeInclusive<u64> = (16 << 20)..=(1 << 40);
pub(crate) const TIME_MAX: Duration = Duration::from_hours(7 * 24);
pub(crate) const STOP_TIMEOUT_MAX: Duration = Duration::from_hours(1);
pub(crate) const NAME_BYTES_MAX: usize = 32;

/// Usual paths of a framework's console script, relative to the application's folder.
pub(crate) const SCRIPTS: [&str; 2] = ["bin/console", "artisan"];

/// One `[[console]]`: the same command in `count` processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// Name for log lines and `samovar status`; unique in its pool.
    pub name: String,
    /// PHP file to run: absolute, exists.
    pub script: PathBuf,
    /// The script's `$argv`, without the script's own name.
    pub arguments: Vec<String>,
    /// Working directory: the folder of the settings file. For a pool with its own root, the parent
    /// folder of that root.
    pub folder: PathBuf,
    /// Number of processes that run the command at the same time.
    pub count: usize,
    /// Resident memory, in bytes, above which a process is requested to exit.
    pub memory_max: u64,
    /// Age after which a process is requested to exit; zero: never.
    pub time_max: Duration,
    /// Time from the request to exit until SIGKILL.
    pub stop_timeout: Duration,
}

/// A key of the table, for the manual and for hints about mistyped keys.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) allowed: &'static str,
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

pub(crate) const FIELDS: [Field; 7] = [
    Field {
        key: "command",
        allowed: "a string, which is split into words as in a shell, or an array of strings",
        default: "none; required unless `script` is set",
        doc: "Command with its arguments: `\"messenger:consume async --time-limit=3600\"`",
    },
    Field {
        key: "script",
        allowed: "the path of a PHP file",
        default: "`bin/console` or `artisan`, next to the settings file, above the root, or in the \
                  root",
        doc: "PHP file that runs the command",
    },
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`",
        default: "the last part of the command's first word, such as `consume`",
        doc: "Name in log lines and in `samovar status`",
    },
    Field { key: "count", allowed: "1 to 64", default: "`1`", doc: "Number of processes" },
    Field {
        key: "memory_max",
        allowed: "a size from 16M to 1024G",
        default: "`512M`",
        doc: "Resident memory above which a process gets SIGTERM and is replaced",
    },
    Field {
        key: "time_max",
        allowed: "a time up to 168h, or `0`: no limit",
        default: "`0`",
        doc: "Age above which a process gets SIGTERM and is replaced",
    },
    Field {
        key: "stop_timeout",
        allowed: "a time up to 1h",
        default: "`10s`",
        doc: "Time between SIGTERM and SIGKILL: at least that of the longest message",
    },
];
