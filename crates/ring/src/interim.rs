//! worker → front: interim responses, in frames before the response body and in the same window.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum bytes of a request's interim responses, frames included. They wait in the window of its
/// response.
pub(crate) const INTERIM_BYTES_MAX: usize = 16 * 1024;
/// Bytes before the header lines of each interim response.
pub(crate) const FRAME_BYTES: usize = size_of::<Frame>();

/// Frame before the header lines of an interim response.
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

    /// Status and length of the lines, if the status is that of an interim response and the length
    /// is at most `room`.
    pub(crate) fn checked(self, room: usize) -> Option<(u16, usize)> {
        let (status, len) = (self.status, self.lines_bytes as usize);
        ((100..200).contains(&status) && len <= room).then_some((status as u16, len))
    }
}
