//! Durable queues of jobs: workers push jobs, and the server hands them to the workers of each
//! queue in batches.
//!
//! | file | role |
//! |---|---|
//! | `job.rs` | a job, its limits, and the settings of a queue |
//! | `store.rs` | the promises of a store; its changes and errors |
//! | `sqlite.rs` | the embedded store: one `SQLite` file |
//! | `token_bucket.rs` | the rate at which jobs of a queue may start |
//! | `line_up.rs` | one queue in memory: which jobs are ready, delayed or running. Pure |
//! | `push_check.rs` | checks of a push |
//! | `command.rs` | commands of operators, and their results |
//! | `death_log.rs` | the line in the log about a dead job |
//! | `trace.rs` | trace contexts: the spans that push jobs, and those of batches |
//! | `minutes.rs` | totals of all queues at the end of each minute |
//! | `totals.rs` | figures of a queue since the start |
//! | `verdict.rs` | the consequence of a run for a job |
//! | `backend.rs` | the boundary between the thread and the place of the queues |
//! | `catalogue.rs` | parts of the jobs, for commands |
//! | `engine.rs` | a backend: all queues in memory, and the store of this machine |
//! | `shared.rs`, `shared/queues.lua` | a backend: queues in a Redis that several machines share |
//! | `batch.rs` | a batch as the handler gets it, and its results |
//! | `service.rs` | the thread that serves pushes and results, and starts batches |
//!
//! The thread owns the engine, so there are no locks. Everything that waits when the thread looks
//! is stored in one transaction with one `fsync` (group commit), then all senders get their
//! replies. A running job exists in the store until its result is stored. So a job is run again if
//! its worker or the server dies: at least once. Knows neither the ring nor HTTP: the server passes
//! a function that runs a batch.

mod backend;
mod batch;
mod catalogue;
mod command;
mod death_log;
mod engine;
mod job;
mod line_up;
mod minutes;
mod push_check;
mod service;
mod shared;
mod sqlite;
mod store;
mod token_bucket;
mod totals;
mod trace;
mod verdict;

pub use batch::{BATCH_BYTES_MAX, Failure, RunError, first_failure};
pub use command::{Chosen, Command, CommandResult, Cursor};
pub use job::{Content, JobState, QueueSettings, Rate};
pub use service::{BatchToRun, Jobs, JobsOptions, Ran, RunBatch, StartError, StorePlace};
pub use shared::SharedOptions;
pub use sqlite::SqliteStore;
pub use store::{Catalogue, Change, Insert, Listed, Loaded, Page, Stage, Store, StoreError};
pub use trace::BatchTrace;

#[cfg(test)]
mod tests;
