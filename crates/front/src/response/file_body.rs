//! The bytes of a file, or parts of it, read in bounded pieces. The next piece is read when the
//! client has taken the last, so a slow client needs memory for one piece only.

use crate::runtime::disk::{DiskThreads, Held, Reading};
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Number of bytes read at a time.
pub(super) const CHUNK_BYTES: u64 = 64 * 1024;

/// A piece of a body: bytes in memory, or a range of the file.
#[derive(Debug)]
pub(super) enum Segment {
    Bytes(Bytes),
    Range(Range<u64>),
}

/// A body of segments, read one chunk at a time.
#[derive(Debug)]
pub(crate) struct FileBody {
    disk: Rc<DiskThreads>,
    file: Held,
    segments: VecDeque<Segment>,
    left: u64,
    reading: Option<Reading>,
}

impl FileBody {
    pub(super) fn new(
        disk: &Rc<DiskThreads>,
        file: Held,
        segments: impl IntoIterator<Item = Segment>,
    ) -> FileBody {
        let is_there = |segment: &Segment| segment.bytes() > 0;
        let segments: VecDeque<_> = segments.into_iter().filter(is_there).collect();
        let left = segments.iter().map(Segment::bytes).sum();
        FileBody { disk: Rc::clone(disk), file, segments, left, reading: None }
    }

    /// Number of bytes still to be sent.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the whole body if it is in the page cache. Otherwise the read that was started is
    /// kept for [`Self::poll_chunk`].
    pub(super) fn take_cached(&mut self) -> Option<io::Result<Bytes>> {
        let Some(Segment::Range(range)) = self.segments.pop_front() else {
            return Some(Ok(Bytes::new()));
        };
        let wanted = range.end - range.start;
        match self.disk.read(&self.file, range.start, wanted as usize) {
            Reading::Done(Ok(bytes)) if bytes.len() as u64 == wanted => Some(Ok(bytes)),
            Reading::Done(Err(error)) => Some(Err(error)),
            reading => {
                self.segments.push_front(Segment::Range(range));
                self.reading = Some(reading);
                None
            }
        }
    }

    /// Returns the next bytes, or `None` at the end. Fails if the file has become shorter.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let range = match self.segments.front() {
            None => return Poll::Ready(None),
            Some(Segment::Range(range)) => range.clone(),
            Some(Segment::Bytes(bytes)) => {
                let bytes = bytes.clone();
                self.segments.pop_front();
                return self.give(Ok(bytes));
            }
        };
        let reading = self.reading.get_or_insert_with(|| {
            let len = (range.end - range.start).min(CHUNK_BYTES);
            self.disk.read(&self.file, range.start, len as usize)
        });
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        if let Ok(bytes) = &read {
            self.segments.pop_front();
            let next = range.start + bytes.len() as u64;
            if next < range.end {
                self.segments.push_front(Segment::Range(next..range.end));
            }
        }
        self.give(read)
    }

    fn give(&mut self, bytes: io::Result<Bytes>) -> Poll<Option<io::Result<Bytes>>> {
        if let Ok(bytes) = &bytes {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(Some(bytes))
    }
}

impl Segment {
    fn bytes(&self) -> u64 {
        match self {
            Segment::Bytes(bytes) => bytes.len() as u64,
            Segment::Range(range) => range.end - range.start,
        }
    }
}
