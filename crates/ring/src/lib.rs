//! front ↔ ring ↔ worker: the shared-memory protocol in which the processes meet.
//!
//! One memory file holds a [`Control`](layout::Control) block (words that change hands) and, for each slot, a payload
//! area (request head, request body, answer head, answer body). The front fills a slot and queues it; any
//! worker takes the oldest; the answer streams back through the same slot. Nobody holds a lock,
//! because anybody may be killed at any instruction.
//!
//! Reading order: [`word`] (who owns a slot), [`queue`] (which slot is next), [`bell`] (who is
//! asleep), [`stream`] (bytes in flight), [`layout`] (where it all lies), then the three views:
//! [`FrontEnd`], [`WorkerEnd`] and [`Supervision`].
//!
//! What depends on the architecture: nothing but the futex and memfd system calls in `os`.
#![allow(unsafe_code)] // Shared memory is reached through raw pointers; `map` and `os` hold them.

mod bell;
mod front;
mod layout;
mod map;
#[cfg(all(test, loom))]
mod model;
mod os;
mod queue;
mod repair;
pub mod request;
mod stream;
mod sync;
mod word;
mod worker;

pub use front::{Filling, FrontEnd, Hostile, Progress};
pub use layout::{
    BODY_BYTES, LANES, Lane, LeaveReason, Ledger, Model, REQUEST_BYTES, SLOTS_MAX, SlotIndex,
    Standing, VERSION, WORKERS_MAX, WorkerState,
};
pub use map::{AttachError, Ring, monotonic_ns};
pub use repair::{RollbackReport, Supervision, WorkerReport};
pub use stream::End;
pub use word::Incarnation;
pub use worker::{Aborted, Take, WorkerEnd};
