//! `[[console]]`, and `[[pool.console]]` of a pool: console commands that run beside HTTP, such as a framework's message consumers.
//!
//! They are tables of the file alone: a flag or a variable has no room for several of them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The key of the tables.
pub(crate) const KEY: &str = "console";
/// What the tables are called that stand in a pool.
pub(crate) const KEY_OF_POOL: &str = "pool.console";

/// What it was before: `workers` are processes for HTTP.
pub(crate) const FORMER_KEY: &str = "worker";

/// Most tables of a pool.
pub(crate) const TABLES_MAX: usize = 32;
/// How many processes one table may ask for.
pub(crate) const COUNT: RangeInclusive<i64> = 1..=64;
/// Words of a command, and bytes of all of them: they are passed on in one message.
pub(crate) const WORDS_MAX: usize = 64;
pub(crate) const WORDS_BYTES_MAX: usize = 3072;
pub(crate) const MEMORY: RangeInclusive<u64> = (16 << 20)..=(1 << 40);
pub(crate) const TIME_MAX: Duration = Duration::from_hours(7 * 24);
pub(crate) const STOP_TIMEOUT_MAX: Duration = Duration::from_hours(1);
pub(crate) const NAME_BYTES_MAX: usize = 32;

/// Where frameworks keep their console, below the application's folder.
pub(crate) const SCRIPTS: [&str; 2] = ["bin/console", "artisan"];

/// One `[[console]]`: the same command in `count` processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// For log lines and `samovar status`; unique in its pool.
    pub name: String,
    /// The PHP file that is run: absolute, exists.
    pub script: PathBuf,
    /// What the script is given as `$argv`, without its own name.
    pub arguments: Vec<String>,
    /// Working directory: the folder of the settings' file; of a pool with a root of its own, the one above that.
    pub folder: PathBuf,
    /// Processes that run it at the same time.
    pub count: usize,
    /// Resident memory after which a process is asked to leave, bytes.
    pub memory_max: u64,
    /// Age after which it is asked to leave; zero: never.
    pub time_max: Duration,
    /// Time between being asked to leave and SIGKILL.
    pub stop_timeout: Duration,
}

/// A key of the table, for the manual and for mistyped ones.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) allowed: &'static str,
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

pub(crate) const FIELDS: [Field; 7] = [
    Field {
        key: "command",
        allowed: "a string, split into words as a shell does, or an array of strings",
        default: "none; needed unless `script` is set",
        doc: "What the console is told to run: `\"messenger:consume async --time-limit=3600\"`",
    },
    Field {
        key: "script",
        allowed: "the path of a PHP file",
        default: "`bin/console` or `artisan`, in the folder of the file or above the root",
        doc: "The PHP file that runs the command",
    },
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`",
        default: "the last part of the command's first word, as `consume`",
        doc: "Its name in log lines and in `samovar status`",
    },
    Field { key: "count", allowed: "1 to 64", default: "`1`", doc: "Processes that run it" },
    Field {
        key: "memory_max",
        allowed: "a size from 16M to 1024G",
        default: "`512M`",
        doc: "Resident memory after which a process is asked to leave (SIGTERM) and another takes its place",
    },
    Field {
        key: "time_max",
        allowed: "a time up to 168h, or `0`: no limit",
        default: "`0`",
        doc: "Age after which a process is asked to leave",
    },
    Field {
        key: "stop_timeout",
        allowed: "a time up to 1h",
        default: "`10s`",
        doc: "From being asked to leave to SIGKILL: give it what the longest message takes",
    },
];
