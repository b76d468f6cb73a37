//! Limits and sizes of the ring, and the checked number of a slot. `layout` arranges the memory
//! file by them.

#[cfg(not(loom))]
mod counts {
    /// Cells for worker processes of all generations. A new generation needs its own cells while
    /// the others still use theirs.
    pub const WORKERS_MAX: usize = 4096;
    /// Maximum number of requests queued or in flight.
    pub const SLOTS_MAX: usize = 4096;
    /// Entries of a lane's queue. Stale ones (withdrawn requests) need room in addition to the live
    /// ones.
    pub(crate) const QUEUE_LEN: usize = 4 * SLOTS_MAX;
    /// Number of queues of a pool.
    pub const LANES: usize = 6;
    /// Maximum number of fronts of a ring: threads that fill slots and receive news of them.
    pub const FRONTS_MAX: usize = 16;
    /// Number of duration buckets: up to 4 s.
    pub(crate) const ROLLBACK_BUCKETS: usize = 128;
}
#[cfg(loom)]
// As few as still show every case: loom tries all interleavings of them.
#[allow(missing_docs)]
mod counts {
    pub const WORKERS_MAX: usize = 2;
    pub const SLOTS_MAX: usize = 2;
    pub(crate) const QUEUE_LEN: usize = 8;
    pub const LANES: usize = 2;
    pub const FRONTS_MAX: usize = 2;
    pub(crate) const ROLLBACK_BUCKETS: usize = 1;
}
pub use counts::{FRONTS_MAX, LANES, SLOTS_MAX, WORKERS_MAX};
pub(crate) use counts::{QUEUE_LEN, ROLLBACK_BUCKETS};

/// Bytes of the encoded request head: 64 KiB on the wire, plus the header table and the script's
/// paths.
pub const REQUEST_BYTES: usize = 96 * 1024;
/// Bytes of the request body in flight.
pub const BODY_BYTES: usize = 64 * 1024;
/// Bytes of the status and header lines of a response.
pub(crate) const HEAD_BYTES: usize = 32 * 1024;
/// Bytes of the response body in flight.
pub(crate) const RESPONSE_BYTES: usize = 128 * 1024;
/// Bytes of a worker's report on a request, in addition to its usage: waits, timers, tags. The
/// reader of the report knows its format.
pub const REPORT_BYTES: usize = 8 * 1024;
/// Bytes of one slot's payload area.
pub(crate) const AREA_BYTES: usize =
    REQUEST_BYTES + BODY_BYTES + HEAD_BYTES + RESPONSE_BYTES + REPORT_BYTES;

/// A slot's number, checked against the number of slots of the ring it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotIndex(u16);

impl SlotIndex {
    /// `None` if there is no such slot.
    pub fn new(index: usize, slots: usize) -> Option<SlotIndex> {
        (index < slots.min(SLOTS_MAX)).then_some(SlotIndex(index as u16))
    }

    /// The number.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}
