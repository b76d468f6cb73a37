//! A lock that dies with its holder: one word, 0 or the holder.
//!
//! A process that finds the lock held by a process that has ended takes it over. So all data
//! written under the lock must become visible by a single store. A holder that was killed between
//! two stores has then changed nothing, or everything.

use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// One process on one seat: the number of the seat, and the number of the process among those that
/// used it. Never 0.
pub(crate) type Owner = u64;

/// Checks whether a process still lives. Called only when a process has to wait.
pub(crate) trait Living {
    /// Whether `owner` may still write.
    fn is_alive(&self, owner: Owner) -> bool;
}

/// The acting process, and its way to check whether others live.
#[derive(Clone, Copy)]
pub(crate) struct ActingProcess<'a> {
    pub(crate) owner: Owner,
    pub(crate) living: &'a dyn Living,
    /// Word in which it notes the row that it is about to take or give back.
    pub(crate) journal: &'a AtomicU64,
    /// The object that these rows belong to.
    pub(crate) object: u32,
}

impl ActingProcess<'_> {
    /// Notes a row before it changes hands. A process that finds this process dead looks at that
    /// row.
    pub(crate) fn note_row(self, row: u32) {
        let note = u64::from(self.object) << 32 | u64::from(row + 1);
        self.journal.store(note, Ordering::Release);
    }

    /// Notes that no row is changing hands.
    pub(crate) fn note_none(self) {
        self.journal.store(0, Ordering::Release);
    }
}

/// Object and row of a note, if it is valid.
pub(crate) fn noted(note: u64) -> Option<(u32, u32)> {
    Some(((note >> 32) as u32, (note as u32).checked_sub(1)?))
}

/// A live process holds a lock and does not release it. Most likely it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Maximum wait for a lock that is held for less than a microsecond.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Number of wait rounds spent spinning. After that the process yields the processor.
const SPINS: u32 = 64;
/// Number of wait rounds after which the process sleeps between two checks.
const YIELDS: u32 = 256;
/// Duration of such a sleep.
const NAP: Duration = Duration::from_micros(50);

/// A held lock, released when dropped.
pub(crate) struct Guard<'a> {
    word: &'a AtomicU64,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // PAIRS WITH `acquire` (Acquire): the next holder sees everything that was written under
        // the lock.
        self.word.store(0, Ordering::Release);
    }
}

/// Takes the lock, also from a dead holder.
pub(crate) fn acquire<'a>(word: &'a AtomicU64, me: ActingProcess<'_>) -> Result<Guard<'a>, Busy> {
    let mut patience = Patience::default();
    loop {
        let taken =
            |from| word.compare_exchange(from, me.owner, Ordering::Acquire, Ordering::Relaxed);
        let Err(holder) = taken(0) else { return Ok(Guard { word }) };
        let may_look = patience.rounds >= os::ROUNDS_BEFORE_LOOK;
        if may_look && is_abandoned(holder, me) && taken(holder).is_ok() {
            return Ok(Guard { word });
        }
        patience.wait()?;
    }
}

/// A wait for other processes to do something that takes less than a microsecond, unless they are
/// stopped.
#[derive(Default)]
pub(crate) struct Patience {
    rounds: u32,
    since: Option<Duration>,
}

impl Patience {
    /// Lets the others run for a moment. Returns `Busy` after `WAIT_MAX`.
    pub(crate) fn wait(&mut self) -> Result<(), Busy> {
        self.rounds += 1;
        if self.rounds < SPINS {
            os::spin();
        } else if self.rounds < YIELDS {
            os::give_way();
        } else {
            let since = *self.since.get_or_insert_with(os::monotonic);
            if os::monotonic().saturating_sub(since) > WAIT_MAX {
                return Err(Busy);
            }
            os::nap(NAP);
        }
        Ok(())
    }
}

/// Takes the lock if it is free.
pub(crate) fn try_acquire<'a>(word: &'a AtomicU64, me: ActingProcess<'_>) -> Option<Guard<'a>> {
    word.compare_exchange(0, me.owner, Ordering::Acquire, Ordering::Relaxed).ok()?;
    Some(Guard { word })
}

/// Whether no live process holds it. The holder is dead, or it is this process itself, which is not
/// in a locked section.
pub(crate) fn is_abandoned(holder: Owner, me: ActingProcess<'_>) -> bool {
    holder != 0 && (holder == me.owner || !me.living.is_alive(holder))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Dead(Owner);
    impl Living for Dead {
        fn is_alive(&self, owner: Owner) -> bool {
            owner != self.0
        }
    }

    #[test]
    fn lock_is_taken_over_from_dead_holder_only() {
        let journal = AtomicU64::new(0);
        let me = ActingProcess { owner: 3, living: &Dead(1), journal: &journal, object: 0 };
        let word = AtomicU64::new(1);
        drop(acquire(&word, me).expect("its holder is dead"));
        assert_eq!(word.load(Ordering::SeqCst), 0);
        word.store(2, Ordering::SeqCst);
        assert_eq!(acquire(&word, me).err(), Some(Busy));
        assert_eq!(word.load(Ordering::SeqCst), 2);
    }
}
