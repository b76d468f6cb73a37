//! What a panic costs: a request, if it happened while one was served; the front, if it happened in what all need.
//!
//! A panic is a bug, and the hook that the binary installs has it in the log. What was being served unwinds: its slot,
//! its place among the connections and its line in the log are given back by their owners' `Drop`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pin_project_lite::pin_project! {
    /// What `serving` comes to, and what is left to do with it: nothing is left of it if it has panicked.
    pub(crate) struct Guarded<F, S> {
        #[pin]
        serving: F,
        settle: S,
    }
}

/// `settle` is given what `serving` comes to, or [`None`] if it panics, and has the last word.
pub(crate) fn guard<F, S>(serving: F, settle: S) -> Guarded<F, S>
where
    F: Future,
    S: Fn(Option<F::Output>) -> F::Output,
{
    Guarded { serving, settle }
}

impl<F, S> Future for Guarded<F, S>
where
    F: Future,
    S: Fn(Option<F::Output>) -> F::Output,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Whatever was borrowed is given back while it unwinds; the future is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| this.serving.poll(cx)));
        let come_to = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Some(output),
            Err(_) => None,
        };
        Poll::Ready((this.settle)(come_to))
    }
}

/// Says when a task that the front cannot do without has ended by a panic.
#[derive(Debug, Default)]
pub(crate) struct Essentials {
    is_broken: Cell<bool>,
    broke: Notify,
}

impl Essentials {
    /// Spawns such a task on the runtime of this thread.
    pub(crate) fn spawn(
        self: &Rc<Self>,
        task: impl Future<Output = ()> + 'static,
    ) -> JoinHandle<()> {
        let watch = Watch(Rc::clone(self));
        tokio::task::spawn_local(async move {
            let _watch = watch;
            task.await;
        })
    }

    /// Waits for the first that breaks.
    pub(crate) async fn broken(&self) {
        while !self.is_broken.get() {
            self.broke.notified().await;
        }
    }
}

#[cfg(test)]
thread_local! {
    /// A test wants the sweep of this thread to break: what all requests need.
    pub(crate) static BREAKS: Cell<bool> = const { Cell::new(false) };
}

struct Watch(Rc<Essentials>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.set(true);
            self.0.broke.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, LocalOptions};

    #[test]
    fn an_essential_task_that_panics_is_noticed() {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            let essentials = Rc::new(Essentials::default());
            drop(essentials.spawn(async {}).await);
            assert!(!essentials.is_broken.get());
            drop(essentials.spawn(async { panic!("as a test does") }).await);
            essentials.broken().await;
        });
    }
}
