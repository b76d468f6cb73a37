//! Threads for work that would block the front's thread.
//!
//! They are started with the front. The runtime's own blocking threads would be started on demand,
//! and if a limit of processes prevented that, the server would end.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

type Task = Box<dyn FnOnce() + Send>;

/// Threads for one kind of work, shared by all clones of this handle.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    tasks: Sender<Task>,
    count: usize,
}

impl Threads {
    /// Starts the threads. Succeeds if at least one starts. `name` is the name of each thread.
    pub(crate) fn start(name: &'static str, count: usize) -> io::Result<Threads> {
        let (tasks, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut started = 0;
        for number in 0..count {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name(name.into());
            match thread.spawn(move || work(&queue)) {
                Ok(_) => started += 1,
                Err(error) if number == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        threads = number,
                        kind = name,
                        "fewer threads than usual (hint: raise the process limit)"
                    );
                    break;
                }
            }
        }
        Ok(Threads { tasks, count: started })
    }

    /// Number of threads.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Runs `work` on one of the threads. Dropping the result does not stop it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Job<T> {
        let (tell, told) = oneshot::channel();
        let task = move || {
            // The receiver may have been dropped.
            let _ = tell.send(work());
        };
        // The threads live as long as `tasks`.
        let _ = self.tasks.send(Box::new(task));
        Job(told)
    }
}

/// Pending work of a thread.
#[derive(Debug)]
pub(crate) struct Job<T>(oneshot::Receiver<io::Result<T>>);

impl<T> Job<T> {
    /// Work that was not started.
    pub(crate) fn refused(error: io::Error) -> Job<T> {
        let (tell, told) = oneshot::channel();
        let _ = tell.send(Err(error));
        Job(told)
    }
}

impl<T> Future for Job<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let told = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(
            told.unwrap_or_else(|_| Err(io::Error::other("thread task ended without a result"))),
        )
    }
}

fn work(queue: &Mutex<Receiver<Task>>) {
    loop {
        let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        // The waiting task gets an error; the thread continues to serve others.
        if catch_unwind(AssertUnwindSafe(task)).is_err() {
            tracing::error!("thread task panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn thread_survives_panic_of_its_work() {
        const COUNT: usize = 2;
        let threads = Threads::start("test", COUNT).expect("threads");
        for _ in 0..2 * COUNT {
            let broken = block_on(threads.run(|| -> io::Result<()> { panic!("as a test does") }));
            assert!(broken.is_err());
        }
        assert_eq!(block_on(threads.run(|| Ok(7))).expect("a number"), 7);
    }
}
