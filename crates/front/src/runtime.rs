//! What every stage stands on: the time, threads for files, numbers, the supervisor's ear, what a panic costs.
//!
//! Knows nothing of HTTP, of routes and of requests. Imports no other folder of this crate.

pub(crate) mod bell;
pub(crate) mod clock;
pub(crate) mod counters;
pub(crate) mod disk;
pub(crate) mod hands;
pub(crate) mod hostile;
pub(crate) mod link;
pub(crate) mod lots;
pub(crate) mod memory;
pub(crate) mod mishap;
mod mounts;
pub(crate) mod packing;
pub(crate) mod peaks;
pub(crate) mod scheduling;
pub(crate) mod shed;
pub(crate) mod threads;
pub(crate) mod tokens;
pub(crate) mod trouble;
pub(crate) mod waker;
