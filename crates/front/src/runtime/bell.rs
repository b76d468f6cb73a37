//! ring → front: the eventfd that ends the runtime's sleep.
#![allow(unsafe_code)] // tokio asks its caller to promise that the descriptor stays open.

use samovar_ring::FrontEnd;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The bell of a front of the ring, known to this runtime. Edge-triggered: a write wakes once, and nobody has to read.
pub(crate) fn register(front: &FrontEnd) -> io::Result<AsyncFd<OwnedFd>> {
    let bell = front.bell().try_clone_to_owned()?;
    // SAFETY: `bell` is a duplicate that nobody else knows; the `AsyncFd` owns it and deregisters
    // before it closes it.
    let registered = unsafe { AsyncFd::register_with_interest(bell, Interest::READABLE) };
    registered.map_err(io::Error::from)
}
