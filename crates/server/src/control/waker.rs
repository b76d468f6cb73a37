//! Wakes the clients' thread from another thread.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Wakes the thread when a response is available.
#[derive(Clone, Debug)]
pub(super) struct Waker(pub(super) Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(super) fn wake(&self) {
        // A full counter also wakes the thread.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}
