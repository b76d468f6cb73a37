//! The thread that makes pages: what reads the history or all figures takes its time there, and not from whoever asks whether
//! the server is ready.
//!
//! Pages are made one after the other. What waits has a limit; who comes beyond it is told so. Between pages the thread looks
//! at the processes' memory, while somebody wants to know.

use crate::Sources;
use crate::memory;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Instant;
use tokio::sync::oneshot;

/// Pages that wait to be made: one for each connection that there may be, and each stream.
const JOBS_MAX: usize = 64;

type Job = Box<dyn FnOnce(&Sources) + Send>;

/// The thread's other end. It ends when all of these are gone.
#[derive(Clone, Debug)]
pub(crate) struct Reader(SyncSender<Job>);

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Too many are waited for.
    Busy,
    /// A bug ended it; the log says where.
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

    /// Has something made; it comes through the receiver, whose end without it is [`Unread::Broken`].
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Sources) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Unread> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |sources| {
            // Nobody makes a page for who has left.
            if !tell.is_closed() {
                // Neither does anybody mind if he leaves now.
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
            // A panic has been told by the panic hook, and is the end of that page alone.
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
