//! Who is who: each process that writes sits on a seat, and the kernel knows whether it still does.
//!
//! A seat is a byte of the memory file on which its process holds a record lock. The kernel takes that back when the process
//! ends, however it does, and gives none to what it forks. A seat's number and how many have sat there make the *owner*
//! that stands in locks, so that the next on a seat is never taken for the last.

use crate::lock::{Living, Owner};
use crate::memory::{AT_SEATS, Shared};
use crate::os;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Processes of all generations at once: workers, console workers, templates, and what scripts fork.
pub(crate) const SEATS: usize = 1024;
pub(crate) const SEAT_WORDS: usize = 8;

const OWNER: usize = 0;
const JOURNAL: usize = 1;
const GENERATION: usize = 2;
const PIN: usize = 3;
const KEPT: usize = 4;

impl Living for Shared {
    fn is_alive(&self, owner: Owner) -> bool {
        let seat = seat_of(owner);
        self.seat(seat)[OWNER].load(Ordering::Acquire) == owner
            && os::is_byte_locked(self.file(), seat as u64)
    }
}

pub(crate) fn seat_of(owner: Owner) -> usize {
    owner as usize % SEATS
}

/// Sits down; `None`: no seat is free.
pub(crate) fn sit(shared: &Shared, generation: u64) -> io::Result<Option<Owner>> {
    for seat in 0..SEATS {
        if !os::lock_byte(shared.file(), seat as u64)? {
            continue;
        }
        let words = shared.seat(seat);
        let last = words[OWNER].load(Ordering::Acquire) / SEATS as u64;
        let owner = (last + 1).wrapping_mul(SEATS as u64).wrapping_add(seat as u64);
        words[GENERATION].store(generation, Ordering::Relaxed);
        // The last one's, who is dead.
        words[PIN].store(0, Ordering::SeqCst);
        words[KEPT].store(0, Ordering::SeqCst);
        words[OWNER].store(owner, Ordering::Release);
        shared.words()[AT_SEATS].fetch_max(seat as u64 + 1, Ordering::AcqRel);
        return Ok(Some(owner));
    }
    Ok(None)
}

/// Where whoever sits there notes what it is about to do.
pub(crate) fn journal(shared: &Shared, owner: Owner) -> &AtomicU64 {
    &shared.seat(seat_of(owner))[JOURNAL]
}

/// Since when whoever sits there reads what is published.
pub(crate) fn pin(shared: &Shared, seat: usize) -> &AtomicU64 {
    &shared.seat(seat)[PIN]
}

/// What of it whoever sits there holds for as long as it lives.
pub(crate) fn kept(shared: &Shared, seat: usize) -> &AtomicU64 {
    &shared.seat(seat)[KEPT]
}

/// Who sits there, or has sat there last.
pub(crate) fn owner(shared: &Shared, seat: usize) -> Owner {
    shared.seat(seat)[OWNER].load(Ordering::Acquire)
}

/// The seats that somebody has ever had.
pub(crate) fn used(shared: &Shared) -> std::ops::Range<usize> {
    0..(shared.words()[AT_SEATS].load(Ordering::Acquire) as usize).min(SEATS)
}

/// The generation of whoever sits there and lives, but for this process itself.
pub(crate) fn generation(shared: &Shared, seat: usize) -> Option<u64> {
    os::is_byte_locked(shared.file(), seat as u64)
        .then(|| shared.seat(seat)[GENERATION].load(Ordering::Relaxed))
}

/// What the last on a seat has left in its journal, if nobody sits there.
pub(crate) fn left_behind(shared: &Shared, seat: usize) -> Option<u64> {
    let note = shared.seat(seat)[JOURNAL].load(Ordering::Acquire);
    (note != 0 && !os::is_byte_locked(shared.file(), seat as u64)).then_some(note)
}
