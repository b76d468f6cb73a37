//! ring → front: the eventfd that ends the runtime's sleep.
#![allow(unsafe_code)] // tokio requires the caller to guarantee that the descriptor stays open.

use samovar_ring::FrontEnd;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers the notifier of a front of the ring with this runtime. Edge-triggered: a write wakes
/// once, and no read is needed.
pub(crate) fn register(front: &FrontEnd) -> io::Result<AsyncFd<OwnedFd>> {
    let notifier = front.notifier().try_clone_to_owned()?;
    // SAFETY: `notifier` is a duplicate that no other code knows; the `AsyncFd` owns it and
    // deregisters it before closing it.
    let registered = unsafe { AsyncFd::register_with_interest(notifier, Interest::READABLE) };
    registered.map_err(io::Error::from)
}
