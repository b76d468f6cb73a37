//! Messages of `samovar lint`: to a process that compiles PHP files without running them, and back.

use crate::encoding::one_line;
use crate::options::{NoStart, WorkerOptions, seal, unseal};
use crate::socket::Socket;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{OwnedFd, RawFd};

/// The flag with which `samovar-php` compiles files. The descriptor of the memory file follows.
pub const LINT_FLAG: &str = "--lint";
/// Maximum size of a file, bytes.
pub const LINT_FILE_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of findings in one file; PHP goes on after a warning only.
pub const LINT_FINDINGS_MAX: usize = 100;

/// The end of `samovar lint`.
pub type LintClientEnd = Socket<LintOrder, LintEvent>;
/// The end of the process that compiles.
pub type LintCompilerEnd = Socket<LintEvent, LintOrder>;

/// All data that the process receives before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintStart {
    /// Process id of `samovar lint`. The process does not run without it.
    pub parent: i32,
    /// The inherited socket to it.
    pub channel: RawFd,
    /// The settings of PHP.
    pub options: WorkerOptions,
}

impl LintStart {
    /// Writes this to a sealed memory file, which no process can change.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        seal(self)
    }

    /// Reads the memory file.
    pub fn read(file: OwnedFd) -> Result<LintStart, NoStart> {
        unseal(file)
    }
}

/// A file to compile. The message passes its descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintOrder {
    /// Its path for messages of PHP, as bytes: PHP compares names of files only.
    pub name: Vec<u8>,
}

/// A report of that process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LintEvent {
    /// PHP has started.
    Ready {
        /// PHP's version.
        #[serde(serialize_with = "one_line")]
        php: String,
    },
    /// A message of PHP about the file of the current order.
    Found(LintFinding),
    /// The file of the current order is done.
    Done {
        /// Reason why it could not be compiled, apart from messages of PHP; empty: it was.
        #[serde(serialize_with = "one_line")]
        error: String,
    },
}

/// A message of PHP about a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LintFinding {
    /// Line, from 1.
    pub line: u32,
    /// The file does not compile.
    pub is_error: bool,
    /// PHP's word for the kind: `Parse error`, `Deprecated`.
    #[serde(serialize_with = "one_line")]
    pub kind: String,
    /// The text.
    #[serde(serialize_with = "one_line")]
    pub message: String,
}
