//! What all packed answers share: threads, and how many there are.

use crate::runtime::threads::{Job, Threads};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads, if there are as many cores.
const THREADS_MAX: usize = 4;

/// Work on answers that are packed.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    threads: Threads,
    /// Answers that are being packed, by whatever thread of the front.
    in_flight: Arc<AtomicUsize>,
}

impl Packing {
    /// Its threads; nothing is packed yet.
    pub(crate) fn start() -> io::Result<Packing> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = Threads::start("compress", cores.min(THREADS_MAX))?;
        Ok(Packing { threads, in_flight: Arc::default() })
    }

    /// How many answers are being packed.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// One more is.
    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them has ended.
    pub(crate) fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has `work` done by one of the threads.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Job<T> {
        self.threads.run(work)
    }
}
