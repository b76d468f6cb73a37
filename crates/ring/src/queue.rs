//! Selects the next slot: one first-in-first-out queue per lane. One producer, many consumers, no
//! lock.
//!
//! An entry only *points* at a slot and its generation; ownership changes in the slot's word. So
//! the head is a hint: any process may advance it past an entry whose slot is no longer queued. A
//! worker that dies between taking the slot and advancing the head blocks no other worker.

use crate::cells::{CacheLine, SlotCell};
use crate::limits::{QUEUE_LEN, SLOTS_MAX, SlotIndex};
use crate::sync::{AtomicU64, Ordering};
use crate::word::Incarnation;
use std::mem::offset_of;

/// Slot (12 bits), generation (32), order of submission over all lanes (20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry(u64);

const ORDER_BITS: u32 = 20;

impl QueueEntry {
    /// `order` counts submissions over all lanes, modulo 2²⁰.
    pub(crate) fn new(slot: SlotIndex, generation: u32, order: u32) -> QueueEntry {
        let order = u64::from(order) & ((1 << ORDER_BITS) - 1);
        QueueEntry(slot.get() as u64 | u64::from(generation) << 12 | order << 44)
    }

    /// The slot; `None` if another process wrote garbage.
    pub(crate) fn slot(self) -> Option<SlotIndex> {
        SlotIndex::new((self.0 & 0xfff) as usize, SLOTS_MAX)
    }

    /// The slot's generation at submission.
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 12) as u32
    }

    fn order(self) -> u32 {
        (self.0 >> 44) as u32
    }

    /// Whether it was submitted before `other`. Correct while fewer than 2¹⁹ requests are between
    /// them.
    pub(crate) fn is_before(self, other: QueueEntry) -> bool {
        let distance = other.order().wrapping_sub(self.order()) & ((1 << ORDER_BITS) - 1);
        distance != 0 && distance < 1 << (ORDER_BITS - 1)
    }
}

/// A lane's queue in shared memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Queue {
    tail: CacheLine<AtomicU64>,
    head: CacheLine<AtomicU64>,
    entries: [AtomicU64; QUEUE_LEN],
}

impl Queue {
    pub(crate) const TAIL_AT: usize = offset_of!(Queue, tail);
    pub(crate) const HEAD_AT: usize = offset_of!(Queue, head);
    pub(crate) const ENTRIES_AT: usize = offset_of!(Queue, entries);

    #[cfg(loom)]
    pub(crate) fn new() -> Queue {
        Queue {
            tail: CacheLine(AtomicU64::new(0)),
            head: CacheLine(AtomicU64::new(0)),
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Front: appends at `tail`, its private position. PAIRS WITH `oldest` (Acquire on `tail`).
    pub(crate) fn push(&self, tail: u64, entry: QueueEntry) {
        self.entry_at(tail).store(entry.0, Ordering::Relaxed);
        self.tail.0.store(tail + 1, Ordering::SeqCst);
    }

    /// Front: whether an entry fits at `tail`. Passes stale entries at the head first.
    ///
    /// The front's tick queues again the requests that a repaired head skips.
    pub(crate) fn has_room(&self, tail: u64, slots: &[SlotCell]) -> bool {
        self.mend(tail);
        for _ in 0..QUEUE_LEN {
            let head = self.head.0.load(Ordering::Acquire);
            if between(head, tail).is_none_or(|entries| entries < QUEUE_LEN as u64) {
                return true;
            }
            let entry = QueueEntry(self.entry_at(head).load(Ordering::Acquire));
            if is_queued(entry, slots) {
                return false;
            }
            self.advance(head);
        }
        false
    }

    /// Front: repairs values that no honest process writes: a tail other than the front's own, or a
    /// head further from it than the queue has entries.
    pub(crate) fn mend(&self, tail: u64) {
        if self.tail.0.load(Ordering::Relaxed) != tail {
            self.tail.0.store(tail, Ordering::SeqCst);
        }
        if between(self.head.0.load(Ordering::Acquire), tail).is_none() {
            self.head.0.store(tail, Ordering::SeqCst);
        }
    }

    /// Number of entries between head and tail, stale ones included. A hint.
    pub(crate) fn pending(&self) -> u64 {
        self.standing().map_or(0, |(_, entries)| entries)
    }

    /// Worker: the entry at the head and its position.
    pub(crate) fn oldest(&self) -> Option<(u64, QueueEntry)> {
        let (head, _) = self.standing().filter(|(_, entries)| *entries > 0)?;
        Some((head, QueueEntry(self.entry_at(head).load(Ordering::Acquire))))
    }

    /// The head and the number of entries from it. `None` if head or tail is garbage.
    fn standing(&self) -> Option<(u64, u64)> {
        let look = || {
            let head = self.head.0.load(Ordering::SeqCst);
            between(head, self.tail.0.load(Ordering::SeqCst)).map(|entries| (head, entries))
        };
        // A process that is delayed between the two loads may find them far apart. Once, not twice.
        look().or_else(look)
    }

    /// Worker: takes the slot of `entry` and passes the entry. `None` if another worker was faster
    /// or the entry was withdrawn.
    pub(crate) fn take(
        &self,
        at: u64,
        entry: QueueEntry,
        slots: &[SlotCell],
        worker: Incarnation,
    ) -> Option<SlotIndex> {
        let slot = entry.slot().filter(|s| {
            slots.get(s.get()).is_some_and(|s| s.word.0.take(entry.generation(), worker))
        });
        self.advance(at);
        slot
    }

    fn advance(&self, from: u64) {
        // If the exchange fails, another process has advanced the head: nothing to do.
        let _ = self.head.0.compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::Relaxed);
    }

    fn entry_at(&self, position: u64) -> &AtomicU64 {
        &self.entries[(position % QUEUE_LEN as u64) as usize]
    }
}

/// Number of entries from `head` to `tail`, at most [`QUEUE_LEN`]. Any other distance is garbage. A
/// worker that trusted it would search for its next request forever.
fn between(head: u64, tail: u64) -> Option<u64> {
    tail.checked_sub(head).filter(|entries| *entries <= QUEUE_LEN as u64)
}

fn is_queued(entry: QueueEntry, slots: &[SlotCell]) -> bool {
    let Some(cell) = entry.slot().and_then(|s| slots.get(s.get())) else { return false };
    let now = cell.word.0.load();
    now.state() == Some(crate::word::State::Queued) && now.generation() == entry.generation()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn entry(order: u32) -> QueueEntry {
        QueueEntry::new(SlotIndex::new(5, 16).expect("5 of 16"), 0xffff_fffe, order)
    }

    #[test]
    fn entry_keeps_its_parts() {
        assert_eq!(entry(3).slot().map(SlotIndex::get), Some(5));
        assert_eq!(entry(3).generation(), 0xffff_fffe);
    }

    #[test]
    fn impossible_distance_is_none() {
        let full = QUEUE_LEN as u64;
        let given = [(0, 0), (7, 7 + full), (7, 8 + full), (8, 7), (0, u64::MAX), (u64::MAX, 0)];
        let found = given.map(|(head, tail)| between(head, tail));
        assert_eq!(found, [Some(0), Some(full), None, None, None, None]);
    }

    #[test]
    fn order_is_kept_when_positions_wrap() {
        assert!(entry(1).is_before(entry(2)));
        assert!(!entry(2).is_before(entry(1)));
        assert!(!entry(2).is_before(entry(2)));
        assert!(entry((1 << 20) - 1).is_before(entry(1 << 20)));
    }
}
