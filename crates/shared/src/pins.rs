//! Who may still see what was replaced: a word for each seat, which says since when its process reads.
//!
//! What is published has an *epoch*: each change is the next. A reader notes the epoch that it begins to read at, its *pin*,
//! and then looks at the *floor*: what was replaced before the floor may be gone. A pin that lies below it came too late, and
//! the reader begins again. Who replaces raises the floor to the lowest pin that it finds, and looks at the pins once more:
//! one that has come meanwhile brings the floor down again. Between its store and what it then looks at
//! each of the two has a fence, so at least one of them sees the other, and a reader that is killed anywhere has only left a pin, which counts for
//! as long as its process lives.
//!
//! What a boot has read before others were forked is theirs for as long as they live, but nothing that came later. So beside its pin a
//! process has a *span*: from the epoch that it began to read at to the newest at its end. What was there within it stays; what
//! came after it hangs on pins alone. A span is noted before the boot's pin is let go, and looked at after the pins, so one of them
//! is seen. Who is forked notes its parent's span as its own, and then looks whether the parent still counts: as long as
//! it does, what the span holds has been held. Who looks at spans looks again until nobody has died meanwhile.

#[cfg(not(loom))]
use crate::client::Client;
#[cfg(not(loom))]
use crate::lock::Living;
#[cfg(not(loom))]
use crate::memory::Shared;
#[cfg(not(loom))]
use crate::os;
#[cfg(not(loom))]
use crate::seats;
use crate::sync::{AtomicU64, Ordering, fence};

/// No epoch: its process reads nothing.
pub const NO_PIN: u64 = 0;
/// No span.
pub const NO_SPAN: u64 = 0;
/// Looks at spans, while processes die.
const LOOKS_MAX: u32 = 64;
/// A reader begins again as often as others publish in that moment.
const ATTEMPTS_MAX: u32 = 10_000;

/// The epochs from one to another, both of 32 bits.
pub const fn span(from: u64, to: u64) -> u64 {
    from << 32 | to & 0xffff_ffff
}

/// One that holds what either does.
pub const fn joined(one: u64, other: u64) -> u64 {
    let from = if one >> 32 < other >> 32 { one } else { other };
    let to = if one & 0xffff_ffff > other & 0xffff_ffff { one } else { other };
    if one == NO_SPAN {
        return other;
    }
    span(from >> 32, to)
}

/// Whether it holds what was there from the epoch `since` to `last`.
pub const fn holds(span: u64, since: u64, last: u64) -> bool {
    span != NO_SPAN && last >= span >> 32 && since <= span & 0xffff_ffff
}

/// Begins to read: the newest of what `newest` says, whose epoch `epoch` is. `None`: others publish without end.
pub(crate) fn pin_newest(
    pin: &AtomicU64,
    floor: &AtomicU64,
    newest: impl Fn() -> u64,
    epoch: impl Fn(u64) -> u64,
) -> Option<u64> {
    for _ in 0..ATTEMPTS_MAX {
        let root = newest();
        note(pin, epoch(root));
        if floor.load(Ordering::SeqCst) <= epoch(root) {
            return Some(root);
        }
    }
    pin.store(NO_PIN, Ordering::SeqCst);
    None
}

/// Stores a pin, before the floor is looked at.
fn note(pin: &AtomicU64, word: u64) {
    pin.store(word, Ordering::SeqCst);
    // PAIRS WITH `raise_floor`: it finds the pin, or who has noted it finds the floor that was raised.
    fence(Ordering::SeqCst);
}

/// Notes a pin that another process of this one's image holds, too; false: it has let go, and what was seen may be gone.
pub(crate) fn pin_again(pin: &AtomicU64, floor: &AtomicU64, wanted: u64) -> bool {
    note(pin, wanted);
    floor.load(Ordering::SeqCst) <= wanted
}

/// Holds a span from now on, and what the pin held no longer.
pub(crate) fn keep(pin: &AtomicU64, kept: &AtomicU64, span: u64) {
    // PAIRS WITH `spans`, which looks at pins first.
    kept.store(span, Ordering::SeqCst);
    pin.store(NO_PIN, Ordering::SeqCst);
}

/// Holds the span of the process that has forked this one; false: that does not count any more.
pub(crate) fn keep_again(kept: &AtomicU64, span: u64, counts: impl FnOnce() -> bool) -> bool {
    kept.store(span, Ordering::SeqCst);
    // PAIRS WITH `spans`: it finds the parent alive, or looks once more and finds this.
    fence(Ordering::SeqCst);
    counts()
}

/// All spans that count, after the pins were looked at. `look` is told where to put them, and says who has one and is dead. `None`:
/// processes die without end, and nobody knows.
pub(crate) fn spans<D: PartialEq>(mut look: impl FnMut(&mut Vec<u64>) -> D) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    let mut dead = look(&mut found);
    for _ in 0..LOOKS_MAX {
        // PAIRS WITH `keep_again`.
        fence(Ordering::SeqCst);
        let now = look(&mut found);
        if now == dead {
            found.sort_unstable();
            found.dedup();
            return Some(found);
        }
        dead = now;
    }
    None
}

/// The epoch before which nobody reads, and nobody will: the floor, which `lowest` pin and the newest epoch bound.
pub fn raise_floor(floor: &AtomicU64, newest: u64, lowest: impl Fn() -> Option<u64>) -> u64 {
    let before = floor.load(Ordering::SeqCst);
    let first = lowest().map_or(newest, |pin| pin.min(newest)).max(before);
    floor.store(first, Ordering::SeqCst);
    // PAIRS WITH `note`.
    fence(Ordering::SeqCst);
    let second = lowest().map_or(first, |pin| pin.min(first)).max(before);
    if second < first {
        floor.store(second, Ordering::SeqCst);
    }
    second
}

/// A pin that counts, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Since when it reads.
    pub epoch: u64,
    /// The process.
    pub pid: i32,
}

#[cfg(not(loom))]
impl Shared {
    /// The pins of all processes that live.
    pub fn pins(&self) -> impl Iterator<Item = Pin> {
        seats::used(self).filter_map(|seat| {
            let word = seats::pin(self, seat).load(Ordering::SeqCst);
            if word == NO_PIN {
                return None;
            }
            os::locker_of(self.file(), seat as u64).map(|pid| Pin { epoch: word, pid })
        })
    }

    /// The spans of all processes that live, after their pins were looked at. `None`: they die faster than one can look.
    pub fn spans(&self) -> Option<Vec<u64>> {
        spans(|found| {
            let mut dead = Vec::new();
            for seat in seats::used(self) {
                let owner = seats::owner(self, seat);
                let span = seats::kept(self, seat).load(Ordering::SeqCst);
                if span == NO_SPAN {
                    continue;
                }
                match os::locker_of(self.file(), seat as u64) {
                    Some(_) => found.push(span),
                    None => dead.push(owner),
                }
            }
            dead
        })
    }

    /// How often the published value of this number was read.
    pub fn reads(&self, value: usize) -> Option<&AtomicU64> {
        self.read_counts().get(value)
    }
}

#[cfg(not(loom))]
impl Client {
    /// This process's pin, which it has a seat for.
    fn pin(&self) -> &AtomicU64 {
        seats::pin(self.shared(), seats::seat_of(self.me(0).owner))
    }

    /// Begins to read, as [`Client::begin`] has succeeded.
    pub fn pin_newest(
        &self,
        floor: &AtomicU64,
        newest: impl Fn() -> u64,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        pin_newest(self.pin(), floor, newest, epoch)
    }

    /// Goes on with what the process that has forked this one reads. False: that has let go already.
    pub fn pin_again(&self, floor: &AtomicU64, wanted: u64) -> bool {
        pin_again(self.pin(), floor, wanted)
    }

    /// Holds that span for as long as it lives, and lets go of its pin. What is to be told to [`Client::keep_again`].
    pub fn keep(&self, span: u64) -> u64 {
        let owner = self.me(0).owner;
        keep(self.pin(), seats::kept(self.shared(), seats::seat_of(owner)), span);
        owner
    }

    /// In a process on a seat of its own, forked from `keeper`, which held this span: whom to tell the next of. `None`: that has gone,
    /// and what it held.
    pub fn keep_again(&self, span: u64, keeper: u64) -> Option<u64> {
        let owner = self.me(0).owner;
        if owner == keeper {
            return Some(owner);
        }
        let kept = seats::kept(self.shared(), seats::seat_of(owner));
        keep_again(kept, span, || self.shared().is_alive(keeper)).then_some(owner)
    }

    /// From now on its pin is this one, which lies no later.
    pub fn set_pin(&self, pin: u64) {
        self.pin().store(pin, Ordering::SeqCst);
    }

    /// Its pin is this one again, if it has a seat.
    pub fn restore_pin(&self, pin: u64) {
        if self.is_seated() && self.pin().load(Ordering::Relaxed) != pin {
            self.set_pin(pin);
        }
    }

    /// Counts a read.
    pub fn count_read(&self, value: usize) {
        if let Some(count) = self.shared().reads(value) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
