//! History on disk: minutes per route, events, slow and failed requests, in one `SQLite` file.
//!
//! A separate thread writes (`store/historian.rs`), and no other thread waits for it. A full disk
//! or a locked file causes lost history, which is reported, and no other harm. The file's size is
//! limited by `bytes_max`; a tenth of it is kept free by deleting the oldest hours. Data older than
//! `days_max` is always deleted. An unreadable file is renamed and replaced.

mod historian;
mod history_file;
mod rows;
mod schema;

pub use historian::{Historian, History, ProblemSink};
pub use history_file::{Store, StoreError, StoreLimits};
pub use rows::{
    Event, EventKind, Minute, MinuteCosts, MinuteTotal, RouteMinute, RouteSum, StoredTimer,
    StoredWait,
};

#[cfg(test)]
mod tests;
