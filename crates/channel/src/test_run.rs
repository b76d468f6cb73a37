//! Messages of a test run: from `samovar test` to the process that units of tests are forked from,
//! and back.

use crate::encoding::one_line;
use crate::lossless;
use crate::options::{NoStart, WorkerOptions, seal, unseal};
use crate::socket::Socket;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

/// Beginning of the name of the folder of a run; the process id of the command follows.
pub const TEST_FILES_PREFIX: &str = "samovar-tests-";
/// The flag with which `samovar-php` runs tests. The descriptor of the memory file follows.
pub const TEST_FLAG: &str = "--test";

/// The end of `samovar test`.
pub type TestRunnerEnd = Socket<TestOrder, TestEvent>;
/// The end of the process that has booted PHP and the test framework.
pub type TestImageEnd = Socket<TestEvent, TestOrder>;

/// All data that the process receives before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestStart {
    /// Process id of `samovar test`. The process does not run without it.
    pub parent: i32,
    /// The inherited socket to it.
    pub channel: RawFd,
    /// The PHP file that boots the test framework and asks for orders.
    #[serde(with = "lossless")]
    pub driver: PathBuf,
    /// The script of the test framework: the first argument, as the tests see it.
    #[serde(with = "lossless")]
    pub script: PathBuf,
    /// The settings of PHP.
    pub options: WorkerOptions,
}

impl TestStart {
    /// Writes this to a sealed memory file, which no process can change.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        seal(self)
    }

    /// Reads the memory file.
    pub fn read(file: OwnedFd) -> Result<TestStart, NoStart> {
        unseal(file)
    }
}

/// An order to that process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOrder {
    /// Fork a process that carries out the order in a file. The reply is [`TestEvent::Forked`] or
    /// [`TestEvent::Failed`].
    Fork {
        /// Number of the unit.
        unit: u32,
        /// File with the order for the driver.
        #[serde(with = "lossless")]
        order: PathBuf,
        /// File for the output of the process.
        #[serde(with = "lossless")]
        output: PathBuf,
    },
    /// Load the classes that a file names, for all later forks.
    Load {
        /// File with the order for the driver.
        #[serde(with = "lossless")]
        order: PathBuf,
    },
    /// The run is over: end. Without this order before the end of the channel, the command was
    /// killed, and the process removes the files of the run.
    End,
    /// Kill the process of a unit and the processes that it has started.
    Kill {
        /// Number of the unit.
        unit: u32,
    },
}

/// A report of that process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestEvent {
    /// PHP, the test framework and the application have been booted.
    Ready {
        /// PHP's version.
        #[serde(serialize_with = "one_line")]
        php: String,
    },
    /// A unit runs.
    Forked {
        /// Number of the unit.
        unit: u32,
        /// Process id.
        pid: i32,
    },
    /// A unit could not be forked.
    Failed {
        /// Number of the unit.
        unit: u32,
        /// The reason.
        #[serde(serialize_with = "one_line")]
        why: String,
    },
    /// A unit has ended.
    Died {
        /// Number of the unit.
        unit: u32,
        /// Status from `wait`.
        status: i32,
    },
}
