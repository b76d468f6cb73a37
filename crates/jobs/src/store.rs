//! The promises of a store to the engine.
//!
//! 1. The changes of one [`Store::commit`] become visible together, or not at all.
//! 2. After a durable commit has returned, they survive the death of the server at any instruction,
//!    and the loss of power.
//! 3. A commit that is not durable survives the death of the server. A loss of power may undo the
//!    latest ones, in reverse order: jobs whose removal is undone run again.
//! 4. Ids grow: a job that is inserted later has a larger id, also after a restart.
//! 5. [`Store::load`] returns all jobs that were inserted and not removed.
//!
//! So at-least-once follows from removing a job only after its result.

use crate::batch::Failure;
use crate::job::{Content, JobState};
use samovar_channel::NewJob;
use samovar_wire::DeadJob;
use std::path::PathBuf;

/// A job to be inserted.
#[derive(Clone, Debug)]
pub struct Insert {
    /// Name of its queue.
    pub queue: String,
    /// The job.
    pub job: NewJob,
    /// Time of the push, in Unix milliseconds.
    pub pushed_ms: u64,
}

/// A change of an existing job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It succeeded, or was dropped.
    Remove(i64),
    /// It failed, and runs again.
    Retry {
        /// The job.
        id: i64,
        /// Failed runs.
        attempts: u32,
        /// Earliest start, in Unix milliseconds.
        due_ms: u64,
        /// Reason of the last failure.
        error: String,
    },
    /// It failed for the last time, and is kept for the operator.
    Bury {
        /// The job.
        id: i64,
        /// Failed runs.
        attempts: u32,
        /// Time of its death, in Unix milliseconds.
        died_ms: u64,
        /// Reason of the last failure.
        failure: Failure,
    },
    /// A dead job becomes ready again, with no failed runs.
    Revive(i64),
    /// A dead job is removed.
    RemoveDead(i64),
    /// A waiting job is moved, if it still is in the first queue.
    Move(i64, String, String),
    /// A dead job is moved, if it still is in the first queue.
    MoveDead(i64, String, String),
    /// A queue is paused or resumed.
    Pause(String, bool),
}

/// Which jobs of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Ready, delayed and running jobs.
    Alive,
    /// Dead jobs.
    Dead,
}

/// Part of the jobs of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Only larger ids.
    pub after: i64,
    /// Only ids up to this one.
    pub until: i64,
    /// Maximum number.
    pub max: usize,
    /// Maximum bytes; the first job may have more.
    pub bytes_max: usize,
}

/// Content of a store when it is opened.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All jobs, by queue, in the order of their ids.
    pub jobs: Vec<(String, JobState)>,
    /// Number of dead jobs, and their bytes, by queue.
    pub dead: Vec<(String, u64, u64)>,
    /// Paused queues.
    pub paused: Vec<String>,
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of `SQLite`, often of the disk.
    #[error("cannot use the store of jobs `{}`: {source}", path.display())]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Its message.
        source: rusqlite::Error,
    },
    /// An error of Redis, or of the connection to it.
    #[error("cannot use the store of jobs: {0}")]
    Redis(#[from] samovar_redis::Error),
    /// Redis has returned something else than the store's scripts return.
    #[error(
        "cannot use the store of jobs: Redis returned an unexpected value for `{0}`\nhint: another \
         program may write keys with this prefix; set `jobs.redis_prefix`"
    )]
    Foreign(&'static str),
    /// A newer Samovar has written the file.
    #[error(
        "the store of jobs `{}` has version {found}; this server reads up to {known}\nhint: start \
         the newer Samovar, or move the file away",
        path.display()
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest version that this server knows.
        known: i64,
    },
    /// A damaged file could not be renamed.
    #[error("cannot set the damaged store of jobs `{}` aside: {source}", path.display())]
    Aside {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// A job in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: i64,
    /// Its bytes in the store.
    pub bytes: u64,
    /// The store knows that it runs.
    pub is_running: bool,
}

/// The jobs of a store, in parts.
pub trait Catalogue {
    /// Returns dead jobs of a queue in the order of their ids, at most as many as `page` allows.
    fn dead(&mut self, queue: &str, page: &Page) -> Result<Vec<DeadJob>, StoreError>;

    /// Returns the ids of jobs of a queue in their order, and their bytes in the store. At most
    /// `page.max`; the bytes of the page have no meaning.
    fn ids(&mut self, stage: Stage, queue: &str, page: &Page) -> Result<Vec<Listed>, StoreError>;

    /// Returns the largest id of a job; 0: there is none.
    fn last(&mut self, stage: Stage) -> Result<i64, StoreError>;
}

/// A store of jobs of one machine; the promises are above.
pub trait Store: Catalogue + Send {
    /// Returns the content.
    fn load(&mut self) -> Result<Loaded, StoreError>;

    /// Inserts jobs and applies changes. Returns the ids of the jobs.
    fn commit(
        &mut self,
        inserts: &[Insert],
        changes: &[Change],
        is_durable: bool,
    ) -> Result<Vec<i64>, StoreError>;

    /// Returns the content of these jobs, in their order; `None`: another process has removed it.
    fn contents(&mut self, ids: &[i64]) -> Result<Vec<Option<Content>>, StoreError>;

    /// Returns a job; `None`: it does not exist.
    fn job(&mut self, id: i64) -> Result<Option<JobState>, StoreError>;
}
