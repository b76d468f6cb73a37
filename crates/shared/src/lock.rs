//! A lock that dies with its holder: one word, 0 or who holds it.
//!
//! Whoever finds it held by a process that has ended takes it over. So everything that is written under it becomes
//! visible by a single store: a holder that was killed between two stores has changed nothing, or all of it.

use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// A process in one of its lives: the number of its seat, and which of those that sat there. Never 0.
pub(crate) type Owner = u64;

/// Whether a process still lives. What is asked only when one has to wait.
pub(crate) trait Living {
    /// Whether `owner` may still write.
    fn is_alive(&self, owner: Owner) -> bool;
}

/// The process that acts, and how it learns who else lives.
#[derive(Clone, Copy)]
pub(crate) struct Me<'a> {
    pub(crate) owner: Owner,
    pub(crate) living: &'a dyn Living,
    /// Where it notes which row it is about to take or give back.
    pub(crate) journal: &'a AtomicU64,
    /// The object whose rows those are.
    pub(crate) object: u32,
}

impl Me<'_> {
    /// Before a row changes hands: who finds this process dead looks at that row.
    pub(crate) fn note_row(self, row: u32) {
        let note = u64::from(self.object) << 32 | u64::from(row + 1);
        self.journal.store(note, Ordering::Release);
    }

    /// No row is on its way.
    pub(crate) fn note_none(self) {
        self.journal.store(0, Ordering::Release);
    }
}

/// Object and row of a note, if it is one.
pub(crate) fn noted(note: u64) -> Option<(u32, u32)> {
    Some(((note >> 32) as u32, (note as u32).checked_sub(1)?))
}

/// A process that lives holds a lock and does not give it back: it is stopped, most likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Longest wait for a lock that is held for less than a microsecond.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Rounds of waiting that are spent turning; then the processor is given away.
const SPINS: u32 = 64;
/// Rounds after which one sleeps between two looks.
const YIELDS: u32 = 256;
/// How long.
const NAP: Duration = Duration::from_micros(50);

/// A held lock; given back when dropped.
pub(crate) struct Guard<'a> {
    word: &'a AtomicU64,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // PAIRS WITH `acquire` (Acquire): what was written under the lock is seen by the next holder.
        self.word.store(0, Ordering::Release);
    }
}

/// Takes the lock, from a dead holder too.
pub(crate) fn acquire<'a>(word: &'a AtomicU64, me: Me<'_>) -> Result<Guard<'a>, Busy> {
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

/// A wait for what others do within a microsecond, unless they are stopped.
#[derive(Default)]
pub(crate) struct Patience {
    rounds: u32,
    since: Option<Duration>,
}

impl Patience {
    /// Lets the others go on for a moment.
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

/// Takes the lock if nobody holds it.
pub(crate) fn try_acquire<'a>(word: &'a AtomicU64, me: Me<'_>) -> Option<Guard<'a>> {
    word.compare_exchange(0, me.owner, Ordering::Acquire, Ordering::Relaxed).ok()?;
    Some(Guard { word })
}

/// Nobody who lives holds it: the holder is dead, or it is this process itself, which is not within anything.
pub(crate) fn is_abandoned(holder: Owner, me: Me<'_>) -> bool {
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
    fn a_dead_holder_is_followed_and_a_living_one_is_not() {
        let journal = AtomicU64::new(0);
        let me = Me { owner: 3, living: &Dead(1), journal: &journal, object: 0 };
        let word = AtomicU64::new(1);
        drop(acquire(&word, me).expect("its holder is dead"));
        assert_eq!(word.load(Ordering::SeqCst), 0);
        word.store(2, Ordering::SeqCst);
        assert_eq!(acquire(&word, me).err(), Some(Busy));
        assert_eq!(word.load(Ordering::SeqCst), 2);
    }
}
