//! A lock with a name. A request may hold it for any time, but not longer than its process lives.
//!
//! One word holds the holder and a mark that processes sleep for it; a notifier next to it wakes
//! one of them. A woken process checks again like all others. So no process depends on one that was
//! woken and then killed: all sleepers check regularly, also whether the holder lives.

#[cfg(not(loom))]
use crate::client::Client;
#[cfg(not(loom))]
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::lock::{ActingProcess, Living, Owner, is_abandoned};
use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

const HOLDER: usize = 0;
const BELL: usize = 1;
/// Words of a lock.
#[cfg(all(test, loom))]
pub(crate) const LOCK_WORDS: usize = 2;
/// Bit next to the holder's number: processes sleep.
const SLEEPERS: u64 = 1 << 63;
/// Maximum sleep before a waiting process checks whether the holder lives.
const LOOK: Duration = Duration::from_millis(20);

/// Result of an attempt to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// This process holds it now.
    Yes,
    /// Another process holds it and has not released it in time.
    No,
    /// This process already holds it: the wait would never end.
    Already,
}

fn holder(word: u64) -> Owner {
    word & !SLEEPERS
}

/// Waits until no live process holds the lock, at most for `limit`, and takes it.
pub(crate) fn acquire(words: &[AtomicU64], me: ActingProcess<'_>, limit: Duration) -> Acquired {
    let (word, bell) = (&words[HOLDER], &words[BELL]);
    // After a sleep there may be other sleepers: this process takes the lock with their mark.
    let mut mark = 0;
    let mut until = None;
    loop {
        let before = os::heard(bell);
        let found = word.load(Ordering::SeqCst);
        if holder(found) == me.owner {
            return Acquired::Already;
        }
        let taken = me.owner | mark | (found & SLEEPERS);
        if holder(found) == 0 || is_abandoned(holder(found), me) {
            if exchange(word, found, taken) {
                return Acquired::Yes;
            }
            continue;
        }
        let now = os::monotonic();
        let until = *until.get_or_insert(now.saturating_add(limit));
        if now >= until {
            return Acquired::No;
        }
        // PAIRS WITH `release`: either it sees the mark, or this process sees that it has released
        // the lock or rung the notifier.
        if found & SLEEPERS != 0 || exchange(word, found, found | SLEEPERS) {
            mark = SLEEPERS;
            os::sleep_until_rung(bell, before, LOOK.min(until.saturating_sub(now)));
        }
    }
}

/// Releases the lock. Returns false if this process did not hold it.
pub(crate) fn release(words: &[AtomicU64], owner: Owner) -> bool {
    let (word, bell) = (&words[HOLDER], &words[BELL]);
    loop {
        let found = word.load(Ordering::SeqCst);
        if holder(found) != owner || owner == 0 {
            return false;
        }
        if exchange(word, found, 0) {
            if found & SLEEPERS != 0 {
                os::ring(bell);
            }
            return true;
        }
    }
}

fn exchange(word: &AtomicU64, from: u64, to: u64) -> bool {
    word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// Whether a live process holds it.
pub(crate) fn is_held(words: &[AtomicU64], living: &dyn Living) -> bool {
    let found = holder(words[HOLDER].load(Ordering::SeqCst));
    found != 0 && living.is_alive(found)
}

/// A lock with a name.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLock(u32);

#[cfg(not(loom))]
impl NamedLock {
    /// Opens the lock of that name; a new one is free.
    pub fn open(client: &Client, name: &[u8]) -> Result<NamedLock, OpenError> {
        let wanted = Wanted { kind: Kind::Lock, name, definition: "", words: 0 };
        client.open(&wanted).map(NamedLock)
    }

    /// Number of its object.
    pub fn object(self) -> u32 {
        self.0
    }

    /// The lock with this object number, from [`NamedLock::object`].
    pub fn of(object: u32) -> NamedLock {
        NamedLock(object)
    }

    /// Takes it. Waits for at most `limit`.
    pub fn acquire(self, client: &Client, limit: Duration) -> Acquired {
        acquire(Entry::of(client.shared(), self.0).own(), client.me(self.0), limit)
    }

    /// Releases it. Returns false if this process does not hold it.
    pub fn release(self, client: &Client) -> bool {
        release(Entry::of(client.shared(), self.0).own(), client.me(self.0).owner)
    }

    /// Whether this process holds it.
    pub fn is_mine(self, client: &Client) -> bool {
        let word = Entry::of(client.shared(), self.0).own()[HOLDER].load(Ordering::SeqCst);
        word != 0 && holder(word) == client.me(self.0).owner
    }
}
