//! History on disk: minutes per route, events, slow and failed requests, in one `SQLite` file.
//!
//! A separate thread writes (`store/historian.rs`), and no other thread waits for it. A full disk
//! or a locked file causes lost history, which is reported, and no other harm. The file's size is
//! limited by `bytes_max`; a tenth of it is kept free. Minutes older than two days are deleted
//! first, and the sums of their hours stay; then the oldest hours are deleted. Data older than
//! `days_max` is always deleted. An unreadable file is renamed and replaced; an older file is
//! converted.

mod historian;
mod history_file;
mod hours;
mod ranges;
mod route_minute;
mod rows;
mod schema;

pub use historian::{Historian, History, ProblemSink};
pub use history_file::{Store, StoreError, StoreLimits};
pub use route_minute::{Counts, RouteMinute, RouteSum, StoredTimer, StoredWait};
pub use rows::{Event, EventKind, Minute, MinuteCosts};

#[cfg(test)]
mod tests;
