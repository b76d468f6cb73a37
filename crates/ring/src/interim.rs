//! worker → front: interim answers, in frames ahead of the answer's body and in the same window.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Most bytes of a request's interim answers, frames included: they wait in the window of its answer.
pub(crate) const INTERIM_BYTES_MAX: usize = 16 * 1024;
/// What stands before the header lines of each.
pub(crate) const FRAME_BYTES: usize = size_of::<Frame>();

/// Before the header lines of an interim answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(crate) struct Frame {
    status: u32,
    lines_bytes: u32,
}

impl Frame {
    pub(crate) fn new(status: u16, lines: &[u8]) -> Frame {
        Frame { status: u32::from(status), lines_bytes: lines.len() as u32 }
    }

    /// Status and length of the lines, if they are an interim answer's and no more than `room`.
    pub(crate) fn checked(self, room: usize) -> Option<(u16, usize)> {
        let (status, len) = (self.status, self.lines_bytes as usize);
        ((100..200).contains(&status) && len <= room).then_some((status as u16, len))
    }
}
