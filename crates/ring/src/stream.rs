//! Bytes in flight: the positions of a bounded byte ring with one writer and one reader.
//!
//! Both positions only grow; position modulo [`capacity`](Window::new) is the offset in the buffer.
//! Each side keeps its own position in private memory and publishes it; it reads only the other's.
//! A side that does not trust the other (the front) gets [`Corrupt`] instead of an offset out of
//! bounds.

use crate::codes::codes;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The shared positions of one byte stream.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Stream {
    written: AtomicU64,
    read: AtomicU64,
    end: AtomicU32,
    _pad: u32,
}

codes! {
    /// How a stream ends.
    pub enum End {
        /// More bytes may follow.
        Open = 0, "open";
        /// All bytes are written.
        Complete = 1, "complete";
        /// The writer gave up; the written bytes are incomplete.
        Aborted = 2, "aborted";
    }
}

/// The other side published an impossible position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream position in shared memory is out of bounds")]
pub(crate) struct Corrupt;

impl Stream {
    #[cfg(loom)]
    pub(crate) fn new() -> Stream {
        Stream {
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            end: AtomicU32::new(0),
            _pad: 0,
        }
    }

    /// Resets both positions to 0 and opens the stream, before the slot is queued.
    pub(crate) fn reset(&self) {
        self.written.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
    }

    /// Writer: publishes that bytes up to `position` are in the buffer. SeqCst, because the search
    /// for a sleeping reader follows.
    pub(crate) fn publish_written(&self, position: u64) {
        self.written.store(position, Ordering::SeqCst);
    }

    /// Reader: publishes that bytes up to `position` may be overwritten. SeqCst, because the search
    /// for a sleeping writer follows.
    pub(crate) fn publish_read(&self, position: u64) {
        self.read.store(position, Ordering::SeqCst);
    }

    /// Writer: publishes the end of the bytes. The last position must be published first.
    pub(crate) fn publish_end(&self, end: End) {
        self.end.store(end.code(), Ordering::SeqCst);
    }

    /// Reader: returns how the stream ends. Read it *before* [`Self::readable`], so that "complete
    /// and empty" is final.
    pub(crate) fn end(&self) -> End {
        // Garbage counts as incomplete.
        End::from_code(self.end.load(Ordering::SeqCst)).unwrap_or(End::Aborted)
    }

    /// Reader at `position`: number of bytes that may be read.
    pub(crate) fn readable(&self, position: u64, capacity: usize) -> Result<usize, Corrupt> {
        within(self.written.load(Ordering::SeqCst).wrapping_sub(position), capacity)
    }

    /// Writer at `position`: number of bytes that may be written.
    pub(crate) fn writable(&self, position: u64, capacity: usize) -> Result<usize, Corrupt> {
        let unread = position.wrapping_sub(self.read.load(Ordering::SeqCst));
        within(unread, capacity).map(|unread| capacity - unread)
    }
}

fn within(distance: u64, capacity: usize) -> Result<usize, Corrupt> {
    usize::try_from(distance).ok().filter(|d| *d <= capacity).ok_or(Corrupt)
}

/// The one or two places of the buffer that hold `len` bytes from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Offset of the first piece.
    pub(crate) start: usize,
    /// Bytes in the first piece.
    pub(crate) first: usize,
    /// Bytes in the second piece, which starts at offset 0.
    pub(crate) second: usize,
}

impl Window {
    /// `len` must not exceed `capacity`; callers got it from `readable` or `writable`.
    pub(crate) fn new(position: u64, len: usize, capacity: usize) -> Window {
        debug_assert!(len <= capacity);
        let start = (position % capacity as u64) as usize;
        let first = len.min(capacity - start);
        Window { start, first, second: len - first }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(written: u64, read: u64) -> Stream {
        Stream {
            written: AtomicU64::new(written),
            read: AtomicU64::new(read),
            end: AtomicU32::new(0),
            _pad: 0,
        }
    }

    #[test]
    fn impossible_positions_are_rejected() {
        assert_eq!(stream(10, 0).readable(11, 64), Err(Corrupt));
        assert_eq!(stream(100, 0).readable(0, 64), Err(Corrupt));
        assert_eq!(stream(u64::MAX, 0).readable(0, 64), Err(Corrupt));
        assert_eq!(stream(0, 11).writable(10, 64), Err(Corrupt));
        assert_eq!(stream(0, 0).writable(65, 64), Err(Corrupt));
        assert_eq!(stream(64, 0).readable(0, 64), Ok(64));
        assert_eq!(stream(0, 0).writable(64, 64), Ok(0));
    }

    proptest! {
        #[test]
        fn any_published_position_stays_within_the_buffer(
            written: u64, read: u64, position: u64, bits in 0u32..12,
        ) {
            let capacity = 1usize << bits;
            let stream = stream(written, read);
            for len in [stream.readable(position, capacity), stream.writable(position, capacity)]
                .into_iter()
                .flatten()
            {
                let window = Window::new(position, len, capacity);
                prop_assert!(window.start + window.first <= capacity);
                prop_assert!(window.second <= capacity);
                prop_assert_eq!(window.first + window.second, len);
            }
        }
    }
}
