//! Who may still see what was replaced: a word for each seat, which says since when its process reads.
//!
//! What is published has an *epoch*: each change is the next. A reader notes the epoch that it begins to read at, its *pin*,
//! and then looks at the *floor*: what was replaced before the floor may be gone. A pin that lies below it came too late, and
//! the reader begins again. Who replaces raises the floor to the lowest pin that it finds, and looks at the pins once more:
//! one that has come meanwhile brings the floor down again. Between its store and what it then looks at
//! each of the two has a fence, so at least one of them sees the other, and a reader that is killed anywhere has only left a pin, which counts for
//! as long as its process lives.
//!
//! A pin may carry [`KEPT`]: its process cannot let go of what it has read for as long as it lives.

#[cfg(not(loom))]
use crate::client::Client;
#[cfg(not(loom))]
use crate::memory::Shared;
#[cfg(not(loom))]
use crate::os;
#[cfg(not(loom))]
use crate::seats;
use crate::sync::{AtomicU64, Ordering, fence};

/// No epoch: its process reads nothing.
pub const NO_PIN: u64 = 0;
/// Beside an epoch: neither the end of a request nor a successor of the process lets go of it, but a reload.
pub const KEPT: u64 = 1 << 63;
/// A reader begins again as often as others publish in that moment.
const ATTEMPTS_MAX: u32 = 10_000;

/// The epoch of a pin.
pub const fn epoch_of(pin: u64) -> u64 {
    pin & !KEPT
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
    floor.load(Ordering::SeqCst) <= epoch_of(wanted)
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
    /// As it was noted.
    pub word: u64,
    /// The process.
    pub pid: i32,
}

#[cfg(not(loom))]
impl Shared {
    /// The pins of all processes that live.
    pub fn pins(&self) -> impl Iterator<Item = Pin> {
        seats::used(self).filter_map(|seat| {
            let word = seats::pin(self, seat).load(Ordering::SeqCst);
            if epoch_of(word) == NO_PIN {
                return None;
            }
            os::locker_of(self.file(), seat as u64).map(|pid| Pin { word, pid })
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
