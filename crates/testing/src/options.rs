//! The options of a run.

use crate::framework::Framework;
use crate::quarantine::Quarantine;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The tests that share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// All tests of one class.
    Class,
    /// All tests of one file.
    File,
    /// Each method has its own, with all its data sets.
    Test,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that embeds PHP.
    pub worker: PathBuf,
    /// The framework's command.
    pub framework: Framework,
    /// The project's folder.
    pub folder: PathBuf,
    /// Number of processes at the same time.
    pub jobs: usize,
    /// The tests that share a process.
    pub by: By,
    /// Maximum run time of a unit.
    pub time_limit: Duration,
    /// A file that boots the application, after the framework's bootstrap.
    pub boot: Option<PathBuf>,
    /// Whether classes of libraries that a unit has loaded are loaded once for all later ones.
    pub preload: bool,
    /// Whether tests may replace functions, methods and constants (`Samovar\Mock`).
    pub mocks: bool,
    /// php.ini to use instead of the command line's.
    pub php_ini: Option<PathBuf>,
    /// Directives that override php.ini.
    pub define: BTreeMap<String, String>,
    /// Number of reruns of a unit with failures.
    pub reruns: u32,
    /// Seed for a random order.
    pub shuffle: Option<u64>,
    /// Known failures.
    pub quarantine: Quarantine,
    /// Shell command before each unit, in its process; such as one that clones a database.
    pub before: Option<String>,
    /// Shell command after each unit.
    pub after: Option<String>,
}
