//! Limits the effect of a panic. A panic while a request is served ends that request; a panic in an
//! essential task ends the front.
//!
//! A panic is a bug, and the hook that the binary installs logs it. The request's state unwinds:
//! its slot, its place among the connections and its log line are released by the `Drop` of their
//! owners.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pin_project_lite::pin_project! {
    /// Result of `serving`, passed through `settle`. After a panic, `serving` is not used any more.
    pub(crate) struct Guarded<F, S> {
        #[pin]
        serving: F,
        settle: S,
    }
}

/// Wraps `serving`. `settle` gets its output, or [`None`] if it panics, and returns the final
/// output.
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
        // Borrows are released during unwinding, and the future is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| this.serving.poll(cx)));
        let come_to = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Some(output),
            Err(_) => None,
        };
        Poll::Ready((this.settle)(come_to))
    }
}

/// Reports that an essential task of the front has ended by a panic.
#[derive(Debug, Default)]
pub(crate) struct Essentials {
    is_broken: Cell<bool>,
    broke: Notify,
}

impl Essentials {
    /// Spawns an essential task on the runtime of this thread.
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

    /// Waits until an essential task panics.
    pub(crate) async fn broken(&self) {
        while !self.is_broken.get() {
            self.broke.notified().await;
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Set by a test to make the sweep of this thread panic, which all requests need.
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
    fn panic_of_essential_task_is_reported() {
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
