//! A body that is being compressed.
//!
//! Flushes of the script are preserved: whenever the body has no more bytes, all bytes received so
//! far are sent. Larger amounts of work run on a thread, and the body waits for it, so each body
//! has at most one piece in progress.

mod coder;

use crate::runtime::compression_threads::Packing;
use crate::runtime::threads::Job;
use bytes::Bytes;
use http_body::Body;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

pub(super) use self::coder::Coder;
pub use self::coder::LEVELS;

/// Maximum size compressed on the front's own thread. This takes less than half a millisecond.
pub(super) const INLINE_BYTES_MAX: usize = 16 * 1024;

/// A body that may have to wait for more bytes.
pub(crate) trait Written: Body<Data = Bytes, Error = io::Error> + Unpin {
    /// Whether a script is writing the body now and may have flushed it.
    fn is_written(&self) -> bool;
}

/// A body with its coder.
#[derive(Debug)]
pub(crate) struct Packed<B> {
    packing: Rc<Packing>,
    body: B,
    coder: State,
    /// Bytes that the coder may still hold back.
    unflushed: usize,
}

#[derive(Debug)]
enum State {
    Here(Coder),
    /// On a thread, which returns the coder with the bytes to send. No coder: the body is complete.
    Away(Job<(Option<Coder>, Vec<u8>)>),
    Over,
}

/// Action after the bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Flush,
    Finish,
}

/// Output of a compressed body.
#[derive(Debug)]
pub(crate) enum Given {
    Bytes(Bytes),
    End,
    /// The body failed before its end.
    Broken(io::Error),
}

impl<B: Written> Packed<B> {
    pub(super) fn new(packing: &Rc<Packing>, coder: Coder, body: B) -> Packed<B> {
        packing.begin();
        Packed { packing: Rc::clone(packing), body, coder: State::Here(coder), unflushed: 0 }
    }

    /// The uncompressed body.
    pub(crate) fn body(&mut self) -> &mut B {
        &mut self.body
    }

    pub(crate) fn poll_given(&mut self, cx: &mut Context<'_>) -> Poll<Given> {
        loop {
            match &mut self.coder {
                State::Over => return Poll::Ready(Given::End),
                State::Away(job) => {
                    let (coder, bytes) = match ready!(Pin::new(job).poll(cx)) {
                        Ok(done) => done,
                        Err(error) => return Poll::Ready(Given::Broken(error)),
                    };
                    self.coder = coder.map_or(State::Over, State::Here);
                    if !bytes.is_empty() {
                        return Poll::Ready(Given::Bytes(bytes.into()));
                    }
                }
                State::Here(_) => {
                    let step = match Pin::new(&mut self.body).poll_frame(cx) {
                        Poll::Ready(Some(Ok(frame))) => {
                            let bytes = frame.into_data().unwrap_or_default();
                            let is_last = self.body.is_end_stream();
                            self.step(bytes, if is_last { Then::Finish } else { Then::GoOn })
                        }
                        Poll::Ready(None) => self.step(Bytes::new(), Then::Finish),
                        Poll::Ready(Some(Err(error))) => {
                            return Poll::Ready(Given::Broken(error));
                        }
                        // The next bytes of a file are being read.
                        Poll::Pending if self.unflushed == 0 || !self.body.is_written() => {
                            return Poll::Pending;
                        }
                        Poll::Pending => self.step(Bytes::new(), Then::Flush),
                    };
                    match step {
                        Ok(bytes) if bytes.is_empty() => {}
                        Ok(bytes) => return Poll::Ready(Given::Bytes(bytes.into())),
                        Err(error) => return Poll::Ready(Given::Broken(error)),
                    }
                }
            }
        }
    }

    /// Compresses `bytes`: directly if they are few, otherwise on a thread. In that case it returns
    /// nothing to send yet.
    fn step(&mut self, bytes: Bytes, then: Then) -> io::Result<Vec<u8>> {
        let State::Here(coder) = std::mem::replace(&mut self.coder, State::Over) else {
            return Ok(Vec::new());
        };
        self.unflushed += bytes.len();
        // A coder may defer work on earlier bytes, so these count too.
        let is_little = self.unflushed <= INLINE_BYTES_MAX;
        if then != Then::GoOn {
            self.unflushed = 0;
        }
        if is_little {
            let (coder, packed) = work(coder, &bytes, then)?;
            self.coder = coder.map_or(State::Over, State::Here);
            return Ok(packed);
        }
        self.coder = State::Away(self.packing.run(move || work(coder, &bytes, then)));
        Ok(Vec::new())
    }
}

impl<B> Drop for Packed<B> {
    fn drop(&mut self) {
        self.packing.end();
    }
}

fn work(mut coder: Coder, bytes: &Bytes, then: Then) -> io::Result<(Option<Coder>, Vec<u8>)> {
    coder.write(bytes)?;
    match then {
        Then::Finish => return Ok((None, coder.finish()?)),
        Then::Flush => coder.flush()?,
        Then::GoOn => {}
    }
    let packed = coder.take();
    Ok((Some(coder), packed))
}
