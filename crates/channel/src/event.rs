//! What template and image process say of themselves.

use crate::encoding::one_line;
use crate::order::WorkerId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the supervisor is told, by the template and by the image process.
///
/// Texts are for people and come from processes that PHP has run in: each is sent as one line of at most
/// [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX) bytes, and ends with `…` where it was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// PHP has started in the template.
    Ready {
        /// PHP's version.
        #[serde(serialize_with = "one_line")]
        php: String,
        /// The front controller's own text says that it is to be booted ahead of its requests.
        resident: bool,
        /// How its code is linked.
        linking: Linking,
        /// Which libphp it is, if the settings name one.
        engine: Option<Engine>,
    },
    /// A worker was forked.
    Forked {
        /// The worker's place and life.
        worker: WorkerId,
        /// The process's number.
        pid: i32,
    },
    /// A worker has ended.
    Died {
        /// The worker's place and life.
        worker: WorkerId,
        /// The process's number.
        pid: i32,
        /// How it ended, from `wait`.
        status: i32,
    },
    /// A worker could not be forked.
    Failed {
        /// The worker's place and life.
        worker: WorkerId,
        /// Why not.
        #[serde(serialize_with = "one_line")]
        why: String,
    },
    /// The application boots in that process, ahead of all requests.
    Booting {
        /// The process's number.
        pid: i32,
    },
    /// The application's boot ended without asking for requests.
    BootFailed,
    /// What the application's boot came to.
    Image(Image),
    /// What stands against sharing or rolling back the booted application.
    Finding(Finding),
    /// The template is there.
    Pong,
    /// A console worker was forked.
    ConsoleForked {
        /// As the order to fork has it.
        life: u32,
        /// The process's number.
        pid: i32,
    },
    /// A console worker could not be forked.
    ConsoleFailed {
        /// As the order to fork has it.
        life: u32,
        /// Why not.
        #[serde(serialize_with = "one_line")]
        why: String,
    },
    /// A console worker has ended.
    ConsoleDied {
        /// The process's number.
        pid: i32,
        /// How it ended, from `wait`.
        status: i32,
    },
}

/// The libphp that the settings name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Its file.
    #[serde(serialize_with = "one_line")]
    pub file: String,
    /// Of which source package it was made here; empty: nobody knows.
    #[serde(serialize_with = "one_line")]
    pub source: String,
}

/// How PHP's code calls its own functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linking {
    /// Whether that was changed.
    pub state: LinkingState,
    /// Why not.
    #[serde(serialize_with = "one_line")]
    pub why: String,
    /// Libraries whose code was changed: libphp, and extensions.
    pub libraries: u64,
    /// Calls that are direct now.
    pub calls: u64,
    /// Loads of an address that need no table now.
    pub loads: u64,
    /// Calls that go by way of the table as before.
    pub left: u64,
}

/// Whether PHP's code was linked anew in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkingState {
    /// It was.
    Direct,
    /// Nobody has asked for it, or the processor is of another kind.
    #[default]
    Off,
    /// Something was not as expected: nothing was changed.
    Refused,
}

impl LinkingState {
    /// The word for it, in `samovar status`.
    pub fn word(self) -> &'static str {
        match self {
            LinkingState::Direct => "direct",
            LinkingState::Off => "off",
            LinkingState::Refused => "refused",
        }
    }
}

/// What the image process says to the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageWord {
    /// It stays, and forks booted workers.
    Ready,
    /// Each worker must boot by itself.
    BootPerWorker,
    /// Nothing can be rolled back: each request runs the whole script.
    Script,
    /// The boot ended without asking for requests.
    Failed,
    /// The answer to a ping.
    Pong,
    /// An order to fork was carried out, or has failed: one that a dead image process has left undone is known.
    Done,
}

/// How workers come to the booted application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageMode {
    /// They are forked from the image, and return to it.
    Shared,
    /// They are forked from the booted application, without rollback.
    Resident,
    /// Each boots by itself.
    Worker,
    /// There is none: each request runs the whole script.
    #[default]
    Script,
}

impl ImageMode {
    const ALL: [ImageMode; 4] =
        [ImageMode::Shared, ImageMode::Resident, ImageMode::Worker, ImageMode::Script];

    /// The word for it, in `samovar status` and in csrc/boundary.h.
    pub fn word(self) -> &'static str {
        match self {
            ImageMode::Shared => "shared",
            ImageMode::Resident => "resident",
            ImageMode::Worker => "worker",
            ImageMode::Script => "script",
        }
    }

    /// The mode that a word means; one that is not known cannot be shared.
    pub fn of(word: &str) -> ImageMode {
        ImageMode::ALL.into_iter().find(|mode| mode.word() == word).unwrap_or_default()
    }

    /// Whether there is a process that workers are forked from.
    pub fn is_shared(self) -> bool {
        matches!(self, ImageMode::Shared | ImageMode::Resident)
    }
}

/// What the application's boot came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// How workers come to it.
    pub mode: ImageMode,
    /// Bytes of memory in it.
    pub bytes: u64,
    /// How many mappings are in it.
    pub regions: u64,
    /// What the boot took.
    pub boot: Duration,
}

/// One thing that the boot has left open. Texts come from the application's process: for people only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A word, as `connection`.
    #[serde(serialize_with = "one_line")]
    pub kind: String,
    /// `note`, or the fall-back: `worker`, `script`.
    #[serde(serialize_with = "one_line")]
    pub action: String,
    /// What the thing found is.
    #[serde(serialize_with = "one_line")]
    pub what: String,
    /// `file:line` that opened it, or empty.
    #[serde(serialize_with = "one_line")]
    pub place: String,
    /// What to do about it.
    #[serde(serialize_with = "one_line")]
    pub advice: String,
}

/// What a worker that traces says of a request that is over. Its call graph comes with it, in a sealed memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNote {
    /// How long the graph is.
    pub bytes: u64,
}

/// What a process says that has booted the application, or run a request of it: what that has loaded. The text comes with it, in a
/// sealed memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadsNote {
    /// How long the text is.
    pub bytes: u64,
}
