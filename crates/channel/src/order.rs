//! Orders to processes, from the supervisor and from the template.

use crate::encoding;
use crate::lossless;
use samovar_ring::{Incarnation, WORKERS_MAX};
use serde::{Deserialize, Deserializer, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// Purpose of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Any request; the application decides by its first call whether it stays resident.
    Any,
    /// Any request; the application is known to be booted ahead of its requests.
    Boot,
    /// Only scripts other than the front controller.
    Script,
}

/// Identity of a worker in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerId {
    /// Its cell in the ring, below [`WORKERS_MAX`].
    #[serde(deserialize_with = "cell")]
    pub cell: usize,
    /// Incarnation of the process in that cell.
    #[serde(with = "encoding::incarnation")]
    pub life: Incarnation,
}

fn cell<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let cell = usize::deserialize(from)?;
    if cell < WORKERS_MAX {
        return Ok(cell);
    }
    Err(serde::de::Error::custom(format_args!("the ring has {WORKERS_MAX} cells, not {cell}")))
}

/// An order from the supervisor to the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Fork a worker. The reply is [`Event::Forked`](crate::Event::Forked) or
    /// [`Event::Failed`](crate::Event::Failed).
    Fork {
        /// Cell and incarnation of the worker.
        worker: WorkerId,
        /// Its purpose.
        role: Role,
    },
    /// Fork a console worker. The reply is [`Event::ConsoleForked`](crate::Event::ConsoleForked) or
    /// [`Event::ConsoleFailed`](crate::Event::ConsoleFailed). The pipe for its output comes with
    /// the order.
    Console(ConsoleOrder),
    /// Reply with [`Event::Pong`](crate::Event::Pong), and ping the image process as well.
    Ping {
        /// Number of pings that the image process may leave unanswered before it is killed; 0: any
        /// number.
        looks: u32,
        /// Maximum duration of its boot, in pings; 0: unlimited.
        boot_looks: u32,
    },
}

/// The script that a console worker runs, and its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleOrder {
    /// The supervisor's number of the process.
    pub life: u32,
    /// Name of the command, visible to the script.
    pub name: String,
    /// Number of the process among those of its command, from 1; 0: it runs once, and leads a
    /// process group.
    pub number: usize,
    /// The script's working directory.
    #[serde(with = "lossless")]
    pub folder: PathBuf,
    /// The script to run.
    #[serde(with = "lossless")]
    pub script: PathBuf,
    /// Arguments of the script.
    #[serde(with = "lossless")]
    pub arguments: Vec<OsString>,
}

/// An order from the template to the image process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageOrder {
    /// Fork a worker. The supervisor receives the result, the template receives
    /// [`ImageWord::Done`](crate::ImageWord::Done).
    Fork {
        /// Cell and incarnation of the worker.
        worker: WorkerId,
    },
    /// Reply with [`ImageWord::Pong`](crate::ImageWord::Pong).
    Ping,
}
