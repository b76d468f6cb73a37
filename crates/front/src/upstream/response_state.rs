//! deliver: response state shared by a request's own task and the task that talks to php-fpm.

use super::timing::Course;
use crate::exchange::BodyFailure;
use crate::exchange::budget::Charges;
use crate::exchange::spill_buffer::{self, Next, Room, SpillBuffer};
use crate::runtime::disk::{DiskThreads, Reading};
use crate::runtime::presence::ClientPresence;
use crate::runtime::upstream_failure::UpstreamFailure;
use crate::runtime::waker::remember;
use crate::setup::Setup;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Total time that php-fpm waits for the client of one response before further bytes go to a spill
/// file. A client that keeps up needs no file.
const PATIENCE: Duration = Duration::from_millis(200);

/// The header lines of a response.
#[derive(Debug)]
pub(crate) struct Head(pub(crate) Bytes);

/// Reason why a response is missing or incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// php-fpm failed.
    UpstreamFailure(UpstreamFailure),
    /// php-fpm closed a kept connection before it sent a byte. It may not have seen the request.
    Stale,
    /// The client did not send the whole request body, or it was too large.
    Body(BodyFailure),
    /// A part of the response cannot be read back from the spill file.
    Disk,
}

/// Read end of a response in flight. Dropping it means that the response is not needed any more.
#[derive(Debug)]
pub(crate) struct PendingResponse(Rc<Inner>);

/// Write end of the response.
#[derive(Debug)]
pub(super) struct Filling(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    head: RefCell<Option<Head>>,
    has_head: Cell<bool>,
    disk: Rc<DiskThreads>,
    setup: Rc<Setup>,
    kept: RefCell<SpillBuffer>,
    /// Pending read from the spill file.
    reading: RefCell<Option<Reading>>,
    /// Time for which php-fpm has waited for the client.
    waited: Cell<Duration>,
    end: Cell<Option<Result<(), Broken>>>,
    is_unwanted: Cell<bool>,
    /// The client has received the whole promised response; further bytes are discarded.
    is_let_go: Cell<bool>,
    /// The client that has received it.
    served: RefCell<Option<ClientPresence>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

/// Creates both ends of a response. The settings limit how many bytes are buffered for the client.
pub(super) fn pair(
    disk: &Rc<DiskThreads>,
    setup: &Rc<Setup>,
    charges: Option<Charges>,
) -> (PendingResponse, Filling) {
    let inner = Rc::new(Inner {
        head: RefCell::default(),
        has_head: Cell::new(false),
        disk: Rc::clone(disk),
        setup: Rc::clone(setup),
        kept: RefCell::new(charges.map_or_else(SpillBuffer::default, SpillBuffer::new)),
        reading: RefCell::default(),
        waited: Cell::default(),
        end: Cell::new(None),
        is_unwanted: Cell::new(false),
        is_let_go: Cell::new(false),
        served: RefCell::default(),
        reader: RefCell::default(),
        writer: RefCell::default(),
    });
    (PendingResponse(Rc::clone(&inner)), Filling(inner))
}

fn wake(waker: &RefCell<Option<Waker>>) {
    if let Some(waker) = waker.borrow_mut().take() {
        waker.wake();
    }
}

impl PendingResponse {
    /// Returns the response head, once.
    pub(crate) fn poll_head(&self, cx: &Context<'_>) -> Poll<Result<Head, Broken>> {
        if let Some(head) = self.0.head.borrow_mut().take() {
            return Poll::Ready(Ok(head));
        }
        match self.0.end.get() {
            Some(Err(broken)) => Poll::Ready(Err(broken)),
            Some(Ok(())) => Poll::Ready(Err(Broken::UpstreamFailure(UpstreamFailure::Closed))),
            None => {
                remember(&mut self.0.reader.borrow_mut(), cx);
                Poll::Pending
            }
        }
    }

    /// Returns the next bytes of the body, or `None` at its end.
    pub(crate) fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let inner = &*self.0;
        loop {
            ready!(inner.poll_reading(cx))?;
            match inner.kept.borrow_mut().next() {
                Next::Bytes(bytes) => {
                    wake(&inner.writer);
                    return Poll::Ready(Ok(Some(bytes)));
                }
                Next::OfFile(file, at, len) => {
                    *inner.reading.borrow_mut() = Some(inner.disk.read(&file, at, len));
                }
                Next::Nothing => break,
            }
        }
        if let Some(end) = inner.end.get() {
            return Poll::Ready(end.map(|()| None));
        }
        remember(&mut inner.reader.borrow_mut(), cx);
        Poll::Pending
    }
}

impl PendingResponse {
    /// Discards further bytes: the client has received the whole promised response. The script may
    /// continue to run until the client leaves.
    pub(crate) fn let_go(&self, client: &ClientPresence) {
        self.0.is_let_go.set(true);
        *self.0.served.borrow_mut() = Some(client.clone());
        *self.0.kept.borrow_mut() = SpillBuffer::default();
        wake(&self.0.writer);
    }
}

impl Inner {
    /// Advances the pending read.
    fn poll_reading(&self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut reading = self.reading.borrow_mut();
        let Some(running) = reading.as_mut() else { return Poll::Ready(Ok(())) };
        let read = ready!(Pin::new(running).poll(cx));
        *reading = None;
        let mut kept = self.kept.borrow_mut();
        Poll::Ready(match read {
            Ok(bytes) => {
                kept.has_read(bytes);
                Ok(())
            }
            Err(error) => {
                self.report(&error);
                kept.has_lost();
                Err(Broken::Disk)
            }
        })
    }

    fn report(&self, error: &io::Error) {
        self.disk.report("a response", &self.setup.settings.temp_dir, error);
    }

    /// Returns the place for php-fpm's next bytes.
    fn room(&self) -> Option<Room> {
        let mut kept = self.kept.borrow_mut();
        // Even with a limit of zero, one piece may be buffered.
        if kept.is_empty() {
            return Some(Room::Memory);
        }
        kept.room(&self.setup.settings.limits)
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if !self.0.is_let_go.get() {
            self.0.is_unwanted.set(true);
        }
        wake(&self.0.writer);
    }
}

impl Filling {
    pub(super) fn head(&self, head: Bytes) {
        *self.0.head.borrow_mut() = Some(Head(head));
        self.0.has_head.set(true);
        wake(&self.0.reader);
    }

    /// Passes bytes on to the client, or buffers them: in memory, or in a file after the client has
    /// been waited for. When both are full, php-fpm has to wait.
    pub(super) async fn put(&self, bytes: Bytes, course: &Course) -> Result<(), Broken> {
        let inner = &*self.0;
        if bytes.is_empty() {
            return Ok(());
        }
        if inner.room() != Some(Room::Memory) {
            let _client = course.wait_for_client();
            while !inner.is_let_go.get() {
                let patience = PATIENCE.saturating_sub(inner.waited.get());
                match inner.room() {
                    Some(Room::Memory) => break,
                    Some(Room::File) if patience.is_zero() => return self.spool(bytes).await,
                    Some(Room::File) => {
                        let since = Instant::now();
                        // The result of the timeout is ignored: the next iteration checks the
                        // available room.
                        let _ = timeout(patience, self.room_in_memory()).await;
                        inner.waited.set(inner.waited.get() + since.elapsed());
                    }
                    None => self.room_in_memory().await,
                }
            }
        }
        if inner.is_let_go.get() {
            // The script writes more than it declared.
            inner.is_unwanted.set(true);
        } else {
            inner.kept.borrow_mut().put(bytes);
            wake(&inner.reader);
        }
        Ok(())
    }

    async fn room_in_memory(&self) {
        poll_fn(|cx| {
            self.watch(cx);
            let is_over = self.0.is_let_go.get() || self.0.room() == Some(Room::Memory);
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn spool(&self, bytes: Bytes) -> Result<(), Broken> {
        let inner = &*self.0;
        let write =
            spill_buffer::write(&inner.disk, &inner.setup.settings, &inner.kept.borrow(), bytes);
        let written = write.await.map_err(|_| Broken::Disk)?;
        if let Err(error) = inner.kept.borrow_mut().has_written(written) {
            inner.report(&error);
        }
        wake(&inner.reader);
        Ok(())
    }

    pub(super) fn end(&self, end: Result<(), Broken>) {
        self.0.end.set(Some(end));
        wake(&self.0.reader);
    }

    /// Whether nothing that php-fpm may still send is needed.
    pub(super) fn is_unwanted(&self) -> bool {
        let served = self.0.served.borrow();
        self.0.is_unwanted.get() || served.as_ref().is_some_and(ClientPresence::has_left)
    }

    /// Whether the response has begun.
    pub(super) fn has_head(&self) -> bool {
        self.0.has_head.get()
    }

    pub(super) fn is_let_go(&self) -> bool {
        self.0.is_let_go.get()
    }

    /// Registers `cx` to be woken when there may be room, or when the response is not needed any
    /// more.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        remember(&mut self.0.writer.borrow_mut(), cx);
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // The task has panicked, or the runtime has ended it.
        if self.0.end.get().is_none() {
            self.end(Err(Broken::UpstreamFailure(UpstreamFailure::Closed)));
        }
    }
}
