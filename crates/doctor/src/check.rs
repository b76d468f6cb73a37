//! A check: its code, its explanation, and the function that applies it.

use crate::facts::{Facts, Missing};
use crate::finding::Findings;

/// Subject of checks, in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// State of the server, judged as by `samovar status`.
    Health,
    /// Requests, by route.
    Requests,
    /// Number of workers, their CPU time and memory.
    Workers,
    /// The booted application.
    Boot,
    /// The opcode cache.
    Opcache,
    /// Settings and extensions of PHP.
    Php,
    /// Composer's autoloader and the application's files.
    Application,
    /// The kernel, and settings of the server.
    Server,
}

impl Group {
    /// All groups, in the order of the output.
    pub const ALL: [Group; 8] = [
        Group::Health,
        Group::Requests,
        Group::Workers,
        Group::Boot,
        Group::Opcache,
        Group::Php,
        Group::Application,
        Group::Server,
    ];

    /// Returns the name in JSON and headings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Health => "health",
            Group::Requests => "requests",
            Group::Workers => "workers",
            Group::Boot => "boot",
            Group::Opcache => "opcache",
            Group::Php => "php",
            Group::Application => "application",
            Group::Server => "server",
        }
    }
}

/// Result of a check: an error if a fact is missing.
pub(crate) type Checked = Result<(), Missing>;

/// A check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Stable code, such as `opcache-full`.
    pub code: &'static str,
    /// Its subject.
    pub group: Group,
    /// The fault or cost that it finds.
    pub finds: &'static str,
    /// The reason why that matters.
    pub why: &'static str,
    /// Adds the findings. Findings that were added before an error stay.
    pub(crate) run: fn(&Facts, &mut Findings) -> Checked,
}
