//! State shared by all compressed responses: the threads, and the number of responses.

use crate::runtime::threads::{Job, Threads};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of threads; at most one per core.
const THREADS_MAX: usize = 4;

/// Threads that compress responses.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    threads: Threads,
    /// Responses that are being compressed, for all threads of the front.
    in_flight: Arc<AtomicUsize>,
}

impl Packing {
    /// Starts the threads.
    pub(crate) fn start() -> io::Result<Packing> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = Threads::start("compress", cores.min(THREADS_MAX))?;
        Ok(Packing { threads, in_flight: Arc::default() })
    }

    /// Number of responses that are being compressed.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Counts a response whose compression begins.
    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a response whose compression has ended from the count.
    pub(crate) fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Runs `work` on one of the threads.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Job<T> {
        self.threads.run(work)
    }
}
