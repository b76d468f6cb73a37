//! Reports of the template and the image process.

use crate::encoding::one_line;
use crate::order::WorkerId;
use crate::php_setup::PhpSetup;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A report to the supervisor, from the template or the image process.
///
/// Texts are for people and come from processes that PHP has run in. Each is sent as one line of at
/// most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX) bytes, and ends with `…` if it was truncated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// PHP has started in the template.
    Ready {
        /// PHP's version.
        #[serde(serialize_with = "one_line")]
        php: String,
        /// Whether the front controller's own text requests a boot ahead of its requests.
        resident: bool,
        /// How its code is linked.
        linking: Linking,
        /// The libphp in use, if the settings name one.
        engine: Option<Engine>,
    },
    /// A worker was forked.
    Forked {
        /// Cell and incarnation of the worker.
        worker: WorkerId,
        /// Process id.
        pid: i32,
    },
    /// A worker has ended.
    Died {
        /// Cell and incarnation of the worker.
        worker: WorkerId,
        /// Process id.
        pid: i32,
        /// Status from `wait`.
        status: i32,
    },
    /// A worker could not be forked.
    Failed {
        /// Cell and incarnation of the worker.
        worker: WorkerId,
        /// The reason.
        #[serde(serialize_with = "one_line")]
        why: String,
    },
    /// The application boots in that process, ahead of all requests.
    Booting {
        /// Process id.
        pid: i32,
    },
    /// The application's boot ended without a call for requests.
    BootFailed,
    /// Result of the application's boot.
    Image(Image),
    /// A preflight finding that prevents sharing or rolling back the booted application.
    Finding(Finding),
    /// Reply to a ping: the template is alive.
    Pong,
    /// Figures of opcache, which have changed.
    Opcache(Opcache),
    /// Directives and extensions of the started PHP. Bounded by [`PhpSetup::bounded`].
    Php(PhpSetup),
    /// A console worker was forked.
    ConsoleForked {
        /// The supervisor's number, from the order to fork.
        life: u32,
        /// Process id.
        pid: i32,
    },
    /// A console worker could not be forked.
    ConsoleFailed {
        /// The supervisor's number, from the order to fork.
        life: u32,
        /// The reason.
        #[serde(serialize_with = "one_line")]
        why: String,
    },
    /// A console worker has ended.
    ConsoleDied {
        /// Process id.
        pid: i32,
        /// Status from `wait`.
        status: i32,
    },
}

/// Figures of opcache, whose memory all processes of a generation share. Counters are since its
/// last restart, except the restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opcache {
    /// Used memory, bytes; excludes wasted memory.
    pub used_bytes: u64,
    /// Free memory, bytes.
    pub free_bytes: u64,
    /// Memory of scripts that have changed, bytes. Only a restart frees it.
    pub wasted_bytes: u64,
    /// Number of interned strings.
    pub strings: u64,
    /// Memory of interned strings, bytes.
    pub strings_used_bytes: u64,
    /// Free memory for interned strings, bytes.
    pub strings_free_bytes: u64,
    /// Number of cached scripts.
    pub scripts: u64,
    /// Number of keys: names under which scripts are found.
    pub keys: u64,
    /// Maximum number of keys.
    pub keys_max: u64,
    /// Number of scripts found in the cache.
    pub hits: u64,
    /// Number of scripts that were compiled.
    pub misses: u64,
    /// Number of restarts because the memory was full.
    pub restarts_memory: u64,
    /// Number of restarts because there were too many keys.
    pub restarts_keys: u64,
    /// Number of restarts by `opcache_reset()`.
    pub restarts_manual: u64,
    /// Whether the memory is full: further scripts are compiled by each request.
    pub is_full: bool,
}

/// The libphp that the settings name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Its file.
    #[serde(serialize_with = "one_line")]
    pub file: String,
    /// Source package from which it was built here; empty if that is unknown.
    #[serde(serialize_with = "one_line")]
    pub source: String,
}

/// How PHP's code calls its own functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linking {
    /// Whether the calls were changed.
    pub state: LinkingState,
    /// The reason if they were not.
    #[serde(serialize_with = "one_line")]
    pub why: String,
    /// Libraries whose code was changed: libphp, and extensions.
    pub libraries: u64,
    /// Calls that are direct now.
    pub calls: u64,
    /// Loads of an address that no longer need the table.
    pub loads: u64,
    /// Calls that still go through the table.
    pub left: u64,
}

/// Whether PHP's code was relinked in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkingState {
    /// It was relinked.
    Direct,
    /// It was not requested, or the processor is not supported.
    #[default]
    Off,
    /// Something was not as expected: nothing was changed.
    Refused,
}

impl LinkingState {
    /// Its name in `samovar status`.
    pub fn word(self) -> &'static str {
        match self {
            LinkingState::Direct => "direct",
            LinkingState::Off => "off",
            LinkingState::Refused => "refused",
        }
    }
}

/// A message from the image process to the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageWord {
    /// It stays alive and forks booted workers.
    Ready,
    /// Each worker must boot on its own.
    BootPerWorker,
    /// No rollback is possible: each request runs the whole script.
    Script,
    /// The boot ended without a call for requests.
    Failed,
    /// Reply to a ping.
    Pong,
    /// An order to fork was carried out or has failed. So the order that a dead image process left
    /// undone is known.
    Done,
}

/// How workers get the booted application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageMode {
    /// They are forked from the image, and return to it.
    Shared,
    /// They are forked from the booted application, without rollback.
    Resident,
    /// Each worker boots on its own.
    Worker,
    /// There is no booted application: each request runs the whole script.
    #[default]
    Script,
}

impl ImageMode {
    const ALL: [ImageMode; 4] =
        [ImageMode::Shared, ImageMode::Resident, ImageMode::Worker, ImageMode::Script];

    /// Its name in `samovar status` and in csrc/boundary.h.
    pub fn word(self) -> &'static str {
        match self {
            ImageMode::Shared => "shared",
            ImageMode::Resident => "resident",
            ImageMode::Worker => "worker",
            ImageMode::Script => "script",
        }
    }

    /// The mode with that name. An unknown name means a mode without sharing.
    pub fn of(word: &str) -> ImageMode {
        ImageMode::ALL.into_iter().find(|mode| mode.word() == word).unwrap_or_default()
    }

    /// Whether workers are forked from a booted process.
    pub fn is_shared(self) -> bool {
        matches!(self, ImageMode::Shared | ImageMode::Resident)
    }
}

/// Result of the application's boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// How workers get the application.
    pub mode: ImageMode,
    /// Bytes of memory in the image.
    pub bytes: u64,
    /// Number of mappings in the image.
    pub regions: u64,
    /// Duration of the boot.
    pub boot: Duration,
}

/// A resource that the boot has left open. The texts come from the application's process: for
/// people only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A word, such as `connection`.
    #[serde(serialize_with = "one_line")]
    pub kind: String,
    /// `note`, or the fall-back: `worker`, `script`.
    #[serde(serialize_with = "one_line")]
    pub action: String,
    /// Description of the resource.
    #[serde(serialize_with = "one_line")]
    pub what: String,
    /// `file:line` that opened it; may be empty.
    #[serde(serialize_with = "one_line")]
    pub place: String,
    /// Advice to the operator.
    #[serde(serialize_with = "one_line")]
    pub advice: String,
}

/// A tracing worker's message about a finished request. Its call graph comes with it, in a sealed
/// memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNote {
    /// Length of the graph.
    pub bytes: u64,
}

/// A message from a process that has booted the application, or run a request of it. The list of
/// loaded files comes with it as a text, in a sealed memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadsNote {
    /// Length of the text.
    pub bytes: u64,
}
