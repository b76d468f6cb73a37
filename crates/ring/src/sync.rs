//! The atomics of the protocol, and the lock of its fronts: the processor's, loom's when the model checker runs, or such as
//! count (`counted`).

#[cfg(counted)]
pub(crate) use crate::counted::{AtomicU32, AtomicU64, Mutex};
#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(any(loom, counted)))]
pub(crate) use std::sync::Mutex;
#[cfg(not(any(loom, counted)))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};

pub(crate) use std::sync::atomic::Ordering;

/// Between "publish" and "look for sleepers", and between "announce sleep" and "look for work".
///
/// Both sides' accesses are SeqCst, so the language already orders them in one total order: no
/// instruction is needed. Loom treats SeqCst accesses as AcqRel and knows only SeqCst fences, so the
/// model gets one here.
#[inline]
pub(crate) fn publish_before_look() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
