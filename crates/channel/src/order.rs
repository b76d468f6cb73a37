//! What processes are told to do: by the supervisor, and by the template.

use crate::encoding::{self, lossless};
use samovar_ring::{Incarnation, WORKERS_MAX};
use serde::{Deserialize, Deserializer, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a worker is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Any request; the application decides by its first call whether it stays resident.
    Any,
    /// Any request, and the application is known to be booted ahead of its requests.
    Boot,
    /// Only scripts beside the front controller.
    Script,
}

/// A worker as the ring knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerId {
    /// Its cell in the ring, below [`WORKERS_MAX`].
    #[serde(deserialize_with = "cell")]
    pub cell: usize,
    /// Which of the processes in that cell.
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

/// What the supervisor tells the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Fork a worker; answered by [`Event::Forked`](crate::Event::Forked) or
    /// [`Event::Failed`](crate::Event::Failed).
    Fork {
        /// The worker's place and life.
        worker: WorkerId,
        /// What it is for.
        role: Role,
    },
    /// Fork a console worker; answered likewise. The pipe for its output comes with it.
    Console(ConsoleOrder),
    /// Answer with [`Event::Pong`](crate::Event::Pong), and ask the image process likewise.
    Ping {
        /// How many such questions the image process may leave unanswered before it is killed; 0: any number.
        looks: u32,
        /// How many such questions its boot may last; 0: any number.
        boot_looks: u32,
    },
}

/// Which script a console worker runs, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleOrder {
    /// The supervisor's number for the process.
    pub life: u32,
    /// The command's name, for the script to see.
    pub name: String,
    /// Which of its command's processes it is, from 1.
    pub number: usize,
    /// The script's working directory.
    #[serde(with = "lossless")]
    pub folder: PathBuf,
    /// The script that is run.
    #[serde(with = "lossless")]
    pub script: PathBuf,
    /// What the script is given.
    #[serde(with = "lossless")]
    pub arguments: Vec<OsString>,
}

/// What the template tells the image process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageOrder {
    /// Fork a worker. The supervisor is told what came of it, the template [`ImageWord::Done`](crate::ImageWord::Done).
    Fork {
        /// The worker's place and life.
        worker: WorkerId,
    },
    /// Answer with [`ImageWord::Pong`](crate::ImageWord::Pong).
    Ping,
}
