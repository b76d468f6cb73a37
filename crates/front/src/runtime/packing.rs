//! What all packed answers share: threads, and how many there are.

use crate::runtime::threads::{Job, Threads};
use std::cell::Cell;
use std::io;

/// Threads, if there are as many cores.
const THREADS_MAX: usize = 4;

/// Work on answers that are packed.
#[derive(Debug)]
pub(crate) struct Packing {
    threads: Threads,
    /// Answers that are being packed.
    pub(crate) in_flight: Cell<usize>,
}

impl Packing {
    /// Its threads; nothing is packed yet.
    pub(crate) fn start() -> io::Result<Packing> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = Threads::start("compress", cores.min(THREADS_MAX))?;
        Ok(Packing { threads, in_flight: Cell::new(0) })
    }

    /// Has `work` done by one of the threads.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Job<T> {
        self.threads.run(work)
    }
}
