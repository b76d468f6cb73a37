//! Schedules: when each one runs, its last run, and the thread that starts runs.
//!
//! | file | role |
//! |---|---|
//! | `clock.rs` | the two clocks: the wall clock, and one that cannot be set |
//! | `run.rs` | a run: its start, its end, and the channel for both |
//! | `schedule.rs` | the settings of a schedule |
//! | `record.rs` | the last run, as the store keeps it |
//! | `store.rs` | the file of the last runs, and the lock that only one server holds |
//! | `shared_store.rs`, `runs.lua` | the same in a Redis that several machines share |
//! | `plan.rs` | which run to start or to stop next. Pure |
//! | `output.rs` | the last bytes that a run printed |
//! | `service.rs` | the thread |
//!
//! Only the server that holds the lock starts runs, so that two servers of an upgrade, or two
//! servers with the same folder, never start the same run. The record of a run is stored before the
//! run starts. So a server that dies never starts it a second time: at most once. Knows neither PHP
//! nor queues: a [`Work`] starts and stops a run.

mod clock;
mod output;
mod plan;
mod record;
mod run;
mod schedule;
mod service;
mod shared_store;
mod store;

pub use run::{Launch, Reporter, RunEnd, RunResult, Work};
pub use schedule::{Overlap, Schedule};
pub use service::{Command, RunPlace, ScheduleOptions, Schedules};
pub use shared_store::SharedRuns;
pub use store::{Store, StoreError};
