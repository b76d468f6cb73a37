//! Process registry: each process that writes has a *seat*, and the kernel knows whether the
//! process still lives.
//!
//! A seat is a byte of the memory file on which its process holds a record lock. The kernel
//! releases that lock when the process ends in any way, and does not pass it on to forked children.
//! The number of a seat and the count of its processes so far make the *owner* number that is
//! stored in locks. So the next process on a seat is never mistaken for the last one.

use crate::limits::SEATS;
use crate::lock::{Living, Owner};
use crate::memory::{AT_SEATS, Shared};
use crate::os;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

const OWNER: usize = 0;
const JOURNAL: usize = 1;
const GENERATION: usize = 2;
const PIN: usize = 3;
const KEPT: usize = 4;

impl Living for Shared {
    fn is_alive(&self, owner: Owner) -> bool {
        let seat = entry_of(owner);
        self.seat(seat)[OWNER].load(Ordering::Acquire) == owner
            && os::is_byte_locked(self.file(), seat as u64)
    }
}

pub(crate) fn entry_of(owner: Owner) -> usize {
    owner as usize % SEATS
}

/// Takes a seat; `None` if no seat is free.
pub(crate) fn sit(shared: &Shared, generation: u64) -> io::Result<Option<Owner>> {
    for seat in 0..SEATS {
        if !os::lock_byte(shared.file(), seat as u64)? {
            continue;
        }
        let words = shared.seat(seat);
        let last = words[OWNER].load(Ordering::Acquire) / SEATS as u64;
        let owner = (last + 1).wrapping_mul(SEATS as u64).wrapping_add(seat as u64);
        words[GENERATION].store(generation, Ordering::Relaxed);
        // Values of the last process on the seat, which is dead.
        words[PIN].store(0, Ordering::SeqCst);
        words[KEPT].store(0, Ordering::SeqCst);
        words[OWNER].store(owner, Ordering::Release);
        shared.words()[AT_SEATS].fetch_max(seat as u64 + 1, Ordering::AcqRel);
        return Ok(Some(owner));
    }
    Ok(None)
}

/// Word in which the process on the seat notes the change that it is about to make.
pub(crate) fn journal(shared: &Shared, owner: Owner) -> &AtomicU64 {
    &shared.seat(entry_of(owner))[JOURNAL]
}

/// Epoch since which the process on the seat reads published values.
pub(crate) fn pin(shared: &Shared, seat: usize) -> &AtomicU64 {
    &shared.seat(seat)[PIN]
}

/// Span of published values that the process on the seat holds as long as it lives.
pub(crate) fn kept(shared: &Shared, seat: usize) -> &AtomicU64 {
    &shared.seat(seat)[KEPT]
}

/// The process on the seat, or the last one.
pub(crate) fn owner(shared: &Shared, seat: usize) -> Owner {
    shared.seat(seat)[OWNER].load(Ordering::Acquire)
}

/// Seats that were ever used.
pub(crate) fn used(shared: &Shared) -> std::ops::Range<usize> {
    0..(shared.words()[AT_SEATS].load(Ordering::Acquire) as usize).min(SEATS)
}

/// Generation of the live process on the seat, unless it is this process itself.
pub(crate) fn generation(shared: &Shared, seat: usize) -> Option<u64> {
    os::is_byte_locked(shared.file(), seat as u64)
        .then(|| shared.seat(seat)[GENERATION].load(Ordering::Relaxed))
}

/// Note that the last process on a seat left in its journal, if the seat is free.
pub(crate) fn left_behind(shared: &Shared, seat: usize) -> Option<u64> {
    let note = shared.seat(seat)[JOURNAL].load(Ordering::Acquire);
    (note != 0 && !os::is_byte_locked(shared.file(), seat as u64)).then_some(note)
}
