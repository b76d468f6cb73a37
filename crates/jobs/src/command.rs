//! Commands of operators, and their results. `engine.rs` carries them out.

use crate::store::Stage;
use samovar_wire::{DeadJob, QueueStatus};

/// A command of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Returns the figures of all queues.
    Figures,
    /// Returns dead jobs.
    Dead(Chosen),
    /// Makes dead jobs ready again.
    Retry(Chosen),
    /// Removes dead jobs.
    DropDead(Chosen),
    /// Removes waiting jobs.
    Drop(Chosen),
    /// Moves waiting jobs, or dead ones, to another queue. They keep their state. The first queue
    /// may be one that does not exist any more.
    Move {
        /// The jobs.
        from: Chosen,
        /// Name of the other queue.
        to: String,
        /// Which jobs.
        stage: Stage,
    },
    /// Starts no further batches.
    Pause(String),
    /// Starts batches again.
    Resume(String),
}

/// Jobs of a queue that a command is about. It looks at a limited number of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Name of the queue.
    pub queue: String,
    /// These jobs; empty: all.
    pub ids: Vec<i64>,
    /// Only jobs with larger numbers.
    pub after: i64,
    /// Only jobs with numbers up to this one; 0: those that exist now.
    pub until: i64,
    /// Maximum number of jobs; 0: as many as possible.
    pub limit: usize,
}

/// Where a command has stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// `after` of the next command; 0: there are no further jobs.
    pub next: i64,
    /// `until` of the next command.
    pub until: i64,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandResult {
    /// Figures of all queues.
    Figures(Vec<QueueStatus>),
    /// Dead jobs.
    Dead(Vec<DeadJob>, Cursor),
    /// Number of jobs that have changed.
    Changed(usize, Cursor),
    /// Nothing was done.
    Failed(String),
}
