//! The atomics of the protocol and the lock of its fronts: the standard ones, loom's under the
//! model checker, or counting ones (`counted`).

#[cfg(counted)]
pub(crate) use crate::counting_atomics::{AtomicU32, AtomicU64, Mutex};
#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(any(loom, counted)))]
pub(crate) use std::sync::Mutex;
#[cfg(not(any(loom, counted)))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};

pub(crate) use std::sync::atomic::Ordering;

/// Called between "publish" and "look for sleepers", and between "announce sleep" and "look for
/// work".
///
/// The accesses of both sides are SeqCst, so the language already orders them in one total order:
/// no instruction is needed. Loom treats SeqCst accesses as AcqRel and knows only SeqCst fences, so
/// the model gets one here.
#[inline]
pub(crate) fn publish_before_look() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
