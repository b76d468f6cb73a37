//! Makers of values: one process makes the value of a key, the others wait for it.
//!
//! A maker is identified by the hash of its key. If its process has died, the next process that
//! applies takes its place.

use crate::lock::{ActingProcess, Busy, acquire, is_abandoned};
use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of sets of makers. Keys whose hashes share a set wake each other.
const SETS: usize = 64;
/// Makers of a set at the same time. Further ones make values without being registered.
const MAKERS: usize = 7;
/// Lock and notifier, then hash and owner of each maker.
const SET_WORDS: usize = 2 + 2 * MAKERS;
/// Words of all sets.
pub(crate) const MAKERS_WORDS: usize = SETS * SET_WORDS;
/// Maximum sleep before a waiting process checks again.
const LOOK: Duration = Duration::from_millis(20);

/// The process that must make a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// This process.
    Mine,
    /// Another process makes it.
    Others,
    /// This process, but it is not registered: there are too many makers, or it already makes that
    /// value.
    Unknown,
}

/// The words of one cache's makers.
#[derive(Clone, Copy)]
pub(crate) struct Makers<'a>(pub(crate) &'a [AtomicU64]);

impl<'a> Makers<'a> {
    fn set(self, hash: u64) -> &'a [AtomicU64] {
        let at = (hash >> 32) as usize % SETS * SET_WORDS;
        &self.0[at..at + SET_WORDS]
    }

    /// Makes this process the maker of a key, unless a live process already is.
    pub(crate) fn begin(self, me: ActingProcess<'_>, hash: u64) -> Result<Role, Busy> {
        let set = self.set(hash);
        let _guard = acquire(&set[0], me)?;
        let mut free = None;
        for maker in set[2..].chunks(2) {
            let (known, owner) = (&maker[0], maker[1].load(Ordering::SeqCst));
            if known.load(Ordering::SeqCst) == hash && owner == me.owner {
                return Ok(Role::Unknown);
            }
            if owner == 0 || is_abandoned(owner, me) && owner != me.owner {
                free = free.or(Some(maker));
            } else if known.load(Ordering::SeqCst) == hash {
                return Ok(Role::Others);
            }
        }
        let Some(maker) = free else { return Ok(Role::Unknown) };
        // It has no owner while its hash changes.
        maker[1].store(0, Ordering::SeqCst);
        maker[0].store(hash, Ordering::SeqCst);
        maker[1].store(me.owner, Ordering::SeqCst);
        Ok(Role::Mine)
    }

    /// Ends the making and wakes the waiting processes.
    pub(crate) fn end(self, me: ActingProcess<'_>, hash: u64) {
        let set = self.set(hash);
        for maker in set[2..].chunks(2) {
            if maker[0].load(Ordering::SeqCst) == hash
                && maker[1].load(Ordering::SeqCst) == me.owner
            {
                maker[1].store(0, Ordering::SeqCst);
            }
        }
        os::ring_for_all(&set[1]);
    }

    /// Value of a key's notifier, to be passed to [`Makers::wait`].
    pub(crate) fn heard(self, hash: u64) -> u32 {
        os::heard(&self.set(hash)[1])
    }

    /// Sleeps for a moment, or until a maker of this set has ended since `heard` was read.
    pub(crate) fn wait(self, hash: u64, heard: u32, limit: Duration) {
        os::sleep_until_rung(&self.set(hash)[1], heard, limit.min(LOOK));
    }
}
