//! Who makes which value: one process for each key, the others wait for it.
//!
//! A maker is known by the hash of its key. Whose process has died is followed by the next who asks.

use crate::lock::{Busy, Me, acquire, is_abandoned};
use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Sets of makers; keys whose hashes share one wake each other.
const SETS: usize = 64;
/// Makers of a set at once; more make without being known.
const MAKERS: usize = 7;
/// Lock and bell, then hash and owner of each maker.
const SET_WORDS: usize = 2 + 2 * MAKERS;
/// Words of all of it.
pub(crate) const MAKERS_WORDS: usize = SETS * SET_WORDS;
/// How long one sleeps before one looks again.
const LOOK: Duration = Duration::from_millis(20);

/// Who is to make a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This process.
    Mine,
    /// Another one does.
    Others,
    /// This process, but nobody knows: there are too many, or it makes that value already.
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

    /// Becomes the maker of a key, unless one who lives is it.
    pub(crate) fn begin(self, me: Me<'_>, hash: u64) -> Result<Turn, Busy> {
        let set = self.set(hash);
        let _guard = acquire(&set[0], me)?;
        let mut free = None;
        for maker in set[2..].chunks(2) {
            let (known, owner) = (&maker[0], maker[1].load(Ordering::SeqCst));
            if known.load(Ordering::SeqCst) == hash && owner == me.owner {
                return Ok(Turn::Unknown);
            }
            if owner == 0 || is_abandoned(owner, me) && owner != me.owner {
                free = free.or(Some(maker));
            } else if known.load(Ordering::SeqCst) == hash {
                return Ok(Turn::Others);
            }
        }
        let Some(maker) = free else { return Ok(Turn::Unknown) };
        // It is nobody's while its hash changes.
        maker[1].store(0, Ordering::SeqCst);
        maker[0].store(hash, Ordering::SeqCst);
        maker[1].store(me.owner, Ordering::SeqCst);
        Ok(Turn::Mine)
    }

    /// Is no maker any more, and wakes who waits.
    pub(crate) fn end(self, me: Me<'_>, hash: u64) {
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

    /// What the bell of a key says, to be told to [`Makers::wait`].
    pub(crate) fn heard(self, hash: u64) -> u32 {
        os::heard(&self.set(hash)[1])
    }

    /// Sleeps for a moment, or until a maker of this set has ended since.
    pub(crate) fn wait(self, hash: u64, heard: u32, limit: Duration) {
        os::sleep_until_rung(&self.set(hash)[1], heard, limit.min(LOOK));
    }
}
