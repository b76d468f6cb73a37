//! Pins: which processes may still read replaced values. One word per seat holds the epoch since
//! which its process reads.
//!
//! Published values have an *epoch*: each change begins the next one. A reader notes the epoch at
//! which it begins to read, its *pin*, and then checks the *floor*: values replaced before the
//! floor may be gone. If the pin is below the floor, it came too late, and the reader begins again.
//!
//! The process that replaces values raises the floor to the lowest pin it finds, then checks the
//! pins once more. A pin that was set in the meantime lowers the floor again. Each side has a fence
//! between its store and its check, so at least one of them sees the other. A reader that is killed
//! at any point leaves only a pin, which counts as long as its process lives.
//!
//! The values that a boot has read before it forks processes belong to these processes as long as
//! they live, but no later values do. So a process has a *span* in addition to its pin: from the
//! epoch at which the boot began to read to the newest epoch at its end. Values that existed within
//! the span stay. Later values depend on pins alone.
//!
//! A span is noted before the boot's pin is released, and spans are read after the pins, so one of
//! the two is seen. A forked process notes its parent's span as its own and then checks whether the
//! parent still counts. If it does, the values of the span have been held all the time. A process
//! that reads the spans repeats this until no process has died in the meantime.

#[cfg(not(loom))]
use crate::client::Client;
#[cfg(not(loom))]
use crate::lock::Living;
#[cfg(not(loom))]
use crate::memory::Shared;
#[cfg(not(loom))]
use crate::os;
#[cfg(not(loom))]
use crate::process_registry;
use crate::sync::{AtomicU64, Ordering, fence};

/// No epoch: the process reads nothing.
pub const NO_PIN: u64 = 0;
/// No span.
pub const NO_SPAN: u64 = 0;
/// Maximum number of attempts to read the spans while processes die.
const LOOKS_MAX: u32 = 64;
/// Maximum number of attempts of a reader to begin. It begins again each time others publish at
/// that moment.
const ATTEMPTS_MAX: u32 = 10_000;

/// The span from one epoch to another, each of 32 bits.
pub const fn span(from: u64, to: u64) -> u64 {
    from << 32 | to & 0xffff_ffff
}

/// The span that covers both spans.
pub const fn joined(one: u64, other: u64) -> u64 {
    let from = if one >> 32 < other >> 32 { one } else { other };
    let to = if one & 0xffff_ffff > other & 0xffff_ffff { one } else { other };
    if one == NO_SPAN {
        return other;
    }
    span(from >> 32, to)
}

/// Whether the span covers a value that existed from the epoch `since` to `last`.
pub const fn holds(span: u64, since: u64, last: u64) -> bool {
    span != NO_SPAN && last >= span >> 32 && since <= span & 0xffff_ffff
}

/// Begins to read: returns the newest value of `newest`, whose epoch is `epoch`. `None` if others
/// publish without end.
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

/// Stores a pin. The caller checks the floor afterwards.
fn note(pin: &AtomicU64, word: u64) {
    pin.store(word, Ordering::SeqCst);
    // PAIRS WITH `raise_floor`: either it sees the pin, or the process that noted the pin sees the
    // raised floor.
    fence(Ordering::SeqCst);
}

/// Notes a pin that another process of this image also holds. Returns false if that process has
/// released it, so that the values may be gone.
pub(crate) fn pin_again(pin: &AtomicU64, floor: &AtomicU64, wanted: u64) -> bool {
    note(pin, wanted);
    floor.load(Ordering::SeqCst) <= wanted
}

/// Holds a span from now on, and releases the pin.
pub(crate) fn keep(pin: &AtomicU64, kept: &AtomicU64, span: u64) {
    // PAIRS WITH `spans`, whose caller reads the pins first.
    kept.store(span, Ordering::SeqCst);
    pin.store(NO_PIN, Ordering::SeqCst);
}

/// Holds the span of the parent process. Returns false if the parent no longer counts.
pub(crate) fn keep_again(kept: &AtomicU64, span: u64, counts: impl FnOnce() -> bool) -> bool {
    kept.store(span, Ordering::SeqCst);
    // PAIRS WITH `spans`: it sees the parent alive, or looks once more and sees this span.
    fence(Ordering::SeqCst);
    counts()
}

/// All valid spans. The pins must be read before. `look` adds the spans to the list it receives and
/// returns the dead processes that have one. `None` if processes die without end and the result is
/// uncertain.
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

/// Raises the floor and returns it: the epoch before which no process reads or will read. Its
/// bounds are the `lowest` pin and the newest epoch.
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

/// A valid pin and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Epoch since which the process reads.
    pub epoch: u64,
    /// Process id.
    pub pid: i32,
}

#[cfg(not(loom))]
impl Shared {
    /// Pins of all live processes.
    pub fn pins(&self) -> impl Iterator<Item = Pin> {
        process_registry::used(self).filter_map(|seat| {
            let word = process_registry::pin(self, seat).load(Ordering::SeqCst);
            if word == NO_PIN {
                return None;
            }
            os::locker_of(self.file(), seat as u64).map(|pid| Pin { epoch: word, pid })
        })
    }

    /// Spans of all live processes. The pins must be read before. `None` if processes die faster
    /// than they can be checked.
    pub fn spans(&self) -> Option<Vec<u64>> {
        spans(|found| {
            let mut dead = Vec::new();
            for seat in process_registry::used(self) {
                let owner = process_registry::owner(self, seat);
                let span = process_registry::kept(self, seat).load(Ordering::SeqCst);
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

    /// Number of reads of the published value with this number.
    pub fn reads(&self, value: usize) -> Option<&AtomicU64> {
        self.read_counts().get(value)
    }
}

#[cfg(not(loom))]
impl Client {
    /// This process's pin. It must have a seat.
    fn pin(&self) -> &AtomicU64 {
        process_registry::pin(self.shared(), process_registry::entry_of(self.me(0).owner))
    }

    /// Begins to read. [`Client::begin`] must have succeeded before.
    pub fn pin_newest(
        &self,
        floor: &AtomicU64,
        newest: impl Fn() -> u64,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        pin_newest(self.pin(), floor, newest, epoch)
    }

    /// Continues to read the values of the parent process. Returns false if the parent has already
    /// released them.
    pub fn pin_again(&self, floor: &AtomicU64, wanted: u64) -> bool {
        pin_again(self.pin(), floor, wanted)
    }

    /// Holds `span` for the life of this process, and releases its pin. Returns the number to pass
    /// to [`Client::keep_again`].
    pub fn keep(&self, span: u64) -> u64 {
        let owner = self.me(0).owner;
        keep(
            self.pin(),
            process_registry::kept(self.shared(), process_registry::entry_of(owner)),
            span,
        );
        owner
    }

    /// Holds the span of `keeper`, the parent process. This process must have a seat of its own.
    /// Returns the keeper for its own children; `None` if the parent and the values it held are
    /// gone.
    pub fn keep_again(&self, span: u64, keeper: u64) -> Option<u64> {
        let owner = self.me(0).owner;
        if owner == keeper {
            return Some(owner);
        }
        let kept = process_registry::kept(self.shared(), process_registry::entry_of(owner));
        keep_again(kept, span, || self.shared().is_alive(keeper)).then_some(owner)
    }

    /// Sets its pin. The new pin must not be later than the present one.
    pub fn set_pin(&self, pin: u64) {
        self.pin().store(pin, Ordering::SeqCst);
    }

    /// Restores its pin to this one, if it has a seat.
    pub fn restore_pin(&self, pin: u64) {
        if self.is_registered() && self.pin().load(Ordering::Relaxed) != pin {
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
