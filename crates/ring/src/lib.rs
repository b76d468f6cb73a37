//! front ↔ ring ↔ worker: the shared-memory protocol in which the processes meet.
//!
//! One memory file holds a [`Control`](layout::Control) block (words that change hands) and, for each slot, a payload
//! area (request head, request body, answer head, answer body). The front fills a slot and queues it; any
//! worker takes the oldest; the answer streams back through the same slot. Nobody holds a lock,
//! because anybody may be killed at any instruction.
//!
//! Reading order: [`word`] (who owns a slot), [`queue`] (which slot is next), [`bell`] (who is
//! asleep), [`turns`] (who runs), [`stream`] (bytes in flight), [`layout`] (where it all lies), [`protocol`] (what each side
//! does, in which order), [`crew`] (several fronts), then the three views that add the bytes: [`FrontEnd`], [`WorkerEnd`] and [`Supervision`].
//!
//! What depends on the system: nothing but the calls in `os`.
#![allow(unsafe_code)] // Shared memory is reached through raw pointers: `os` maps it, `map` holds them.

mod bell;
mod codes;
#[cfg(counted)]
pub mod counted;
mod crew;
mod front_end;
mod interim;
#[cfg(all(test, loom))]
mod interleavings;
mod layout;
mod map;
mod mirror;
pub mod offsets;
mod os;
mod protocol;
mod queue;
mod report;
pub mod request;
mod stream;
mod supervision;
mod sync;
mod turns;
mod usage;
mod word;
mod worker_end;

pub use front_end::{Account, Filling, FrontEnd, Hostile, Progress, Run};
pub use layout::{
    BODY_BYTES, FRONTS_MAX, LANES, Lane, REPORT_BYTES, REQUEST_BYTES, SLOTS_MAX, SlotIndex,
    VERSION, WORKERS_MAX,
};
pub use map::{AttachError, Ring};
pub use os::monotonic_ns;
pub use report::{
    Death, DesiredState, Ending, LeaveReason, Model, Overrun, RollbackReport, WorkerReport,
    WorkerState,
};
pub use stream::End;
pub use supervision::{RequestLine, Supervision, Taken};
pub use turns::{Turn, TurnWatch};
pub use usage::{Usage, UsageDetails, WorkerName};
pub use word::Incarnation;
pub use worker_end::{Aborted, Take, WorkerEnd};
