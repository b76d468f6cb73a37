//! Thread that renders pages. Slow reads of the history or of all figures run there, so that they
//! do not delay readiness checks.
//!
//! Pages are rendered one after another. The queue has a limit; requests beyond it are rejected
//! with an error. Between pages the thread reads the processes' memory, as long as a page needs it.

use crate::memory;
use crate::sources::Sources;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Instant;
use tokio::sync::oneshot;

/// Maximum number of queued pages: one for each possible connection and stream.
const JOBS_MAX: usize = 64;

type Job = Box<dyn FnOnce(&Sources) + Send>;

/// Sender for jobs. The thread ends when all clones are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Reader(SyncSender<Job>);

/// Reason why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The queue is full.
    Busy,
    /// Rendering panicked; the log has the location.
    Broken,
}

impl Reader {
    /// Starts the thread.
    pub(crate) fn start(sources: Arc<Sources>) -> io::Result<Reader> {
        let (jobs, wanted) = sync_channel(JOBS_MAX);
        std::thread::Builder::new()
            .name("admin-pages".to_owned())
            .spawn(move || run(&wanted, &sources))?;
        Ok(Reader(jobs))
    }

    /// Queues a job. Its result arrives at the receiver. If the receiver closes without a result,
    /// that is [`Unread::Broken`].
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Sources) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Unread> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |sources| {
            // Skips the job if the client has disconnected.
            if !tell.is_closed() {
                // The client may also disconnect now; the error is ignored.
                let _ = tell.send(make(sources));
            }
        });
        match self.0.try_send(job) {
            Ok(()) => Ok(told),
            Err(TrySendError::Full(_)) => Err(Unread::Busy),
            Err(TrySendError::Disconnected(_)) => Err(Unread::Broken),
        }
    }
}

fn run(wanted: &Receiver<Job>, sources: &Sources) {
    let mut looked = Instant::now();
    loop {
        match wanted.recv_timeout(memory::LOOK) {
            // A panic was already reported by the panic hook, and affects only this page.
            Ok(job) => drop(catch_unwind(AssertUnwindSafe(|| job(sources)))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if looked.elapsed() >= memory::LOOK {
            sources.look_at_memory();
            looked = Instant::now();
        }
    }
}
