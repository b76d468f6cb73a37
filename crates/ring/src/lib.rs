//! front ↔ ring ↔ worker: the shared-memory protocol between the processes.
//!
//! One memory file holds a [`Control`](layout::Control) block (words that change hands) and, for
//! each slot, a payload area (request head, request body, response head, response body). The front
//! fills a slot and queues it; any worker takes the oldest; the response streams back through the
//! same slot. No process holds a lock, because any process may be killed at any instruction.
//!
//! Reading order:
//!
//! - [`word`]: ownership of a slot
//! - [`queue`]: the next slot
//! - [`notifier`]: sleeping processes and their wake-ups
//! - [`permit_words`], [`run_permits`]: run permits of the workers
//! - [`stream`]: bytes in flight
//! - [`limits`], [`cells`] and [`layout`]: the memory layout
//! - [`protocol`]: the steps of each side, in order
//! - [`front_group`]: several fronts
//! - [`FrontEnd`], [`WorkerEnd`] and [`Supervision`]: the three views that add the bytes
//!
//! Only the calls in `os` depend on the operating system.
#![allow(unsafe_code)] // Raw pointers to shared memory: `os` maps it, `map` holds them.

mod c_header;
mod cells;
mod codes;
#[cfg(counted)]
pub mod counting_atomics;
mod front_end;
mod front_group;
mod front_waking;
mod interim;
#[cfg(all(test, loom))]
mod interleavings;
mod layout;
mod limits;
mod map;
mod notifier;
pub mod offsets;
mod os;
mod permit_words;
mod protocol;
mod queue;
mod report;
pub mod request;
mod run_permits;
mod stream;
mod supervision;
mod sync;
mod usage;
mod word;
mod worker_end;

pub use front_end::{Account, Filling, FrontEnd, Hostile, Progress, Run};
pub use layout::{Lane, VERSION};
pub use limits::{
    BODY_BYTES, FRONTS_MAX, LANES, REPORT_BYTES, REQUEST_BYTES, SLOTS_MAX, SlotIndex, WORKERS_MAX,
};
pub use map::{AttachError, Ring};
pub use os::monotonic_ns;
pub use report::{
    Death, DesiredState, Ending, LeaveReason, MessageLevel, Model, Overrun, RollbackReport,
    WorkerReport, WorkerState,
};
pub use run_permits::{PermitWatch, RunPermit};
pub use stream::End;
pub use supervision::{RequestLine, Supervision, Taken};
pub use usage::{Usage, UsageDetails, WorkerName};
pub use word::Incarnation;
pub use worker_end::{Aborted, Take, WorkerEnd};
