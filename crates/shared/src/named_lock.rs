//! A lock with a name, that is held for as long as a request likes, and no longer than its process lives.
//!
//! One word says who holds it, and whether somebody sleeps for it; a bell beside it wakes one of these. Who is woken looks again
//! like everybody, so nobody depends on one that was woken and killed: all look by themselves now and then, and whether
//! the holder lives.

#[cfg(not(loom))]
use crate::client::Client;
#[cfg(not(loom))]
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::lock::{Living, Me, Owner, is_abandoned};
use crate::os;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

const HOLDER: usize = 0;
const BELL: usize = 1;
/// Words of a lock.
#[cfg(all(test, loom))]
pub(crate) const LOCK_WORDS: usize = 2;
/// Beside the holder's number: somebody sleeps.
const SLEEPERS: u64 = 1 << 63;
/// How long one sleeps before one looks whether the holder lives.
const LOOK: Duration = Duration::from_millis(20);

/// What came of trying to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is this process's.
    Yes,
    /// Another process holds it, and has not let go in time.
    No,
    /// This process holds it already: waiting would last for ever.
    Already,
}

fn holder(word: u64) -> Owner {
    word & !SLEEPERS
}

/// Waits until nobody who lives holds the lock, at most for `limit`, and takes it.
pub(crate) fn acquire(words: &[AtomicU64], me: Me<'_>, limit: Duration) -> Acquired {
    let (word, bell) = (&words[HOLDER], &words[BELL]);
    // Who has slept may have others beside it: it takes the lock with their mark.
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
        // PAIRS WITH `release`: it finds the mark, or this finds that it has let go, or that it has rung.
        if found & SLEEPERS != 0 || exchange(word, found, found | SLEEPERS) {
            mark = SLEEPERS;
            os::sleep_until_rung(bell, before, LOOK.min(until.saturating_sub(now)));
        }
    }
}

/// Lets go; false: it was not this process's.
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

/// Whether somebody who lives holds it.
pub(crate) fn is_held(words: &[AtomicU64], living: &dyn Living) -> bool {
    let found = holder(words[HOLDER].load(Ordering::SeqCst));
    found != 0 && living.is_alive(found)
}

/// The lock of a name.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLock(u32);

#[cfg(not(loom))]
impl NamedLock {
    /// The lock of that name; nobody holds it if it is new.
    pub fn open(client: &Client, name: &[u8]) -> Result<NamedLock, OpenError> {
        let wanted = Wanted { kind: Kind::Lock, name, definition: "", words: 0 };
        client.open(&wanted).map(NamedLock)
    }

    /// The number of the object behind it.
    pub fn object(self) -> u32 {
        self.0
    }

    /// The lock that has this number, as [`NamedLock::object`] has said it.
    pub fn of(object: u32) -> NamedLock {
        NamedLock(object)
    }

    /// Takes it; waits for at most `limit`.
    pub fn acquire(self, client: &Client, limit: Duration) -> Acquired {
        acquire(Entry::of(client.shared(), self.0).own(), client.me(self.0), limit)
    }

    /// Lets go of it; false: this process does not hold it.
    pub fn release(self, client: &Client) -> bool {
        release(Entry::of(client.shared(), self.0).own(), client.me(self.0).owner)
    }

    /// Whether this process holds it.
    pub fn is_mine(self, client: &Client) -> bool {
        let word = Entry::of(client.shared(), self.0).own()[HOLDER].load(Ordering::SeqCst);
        word != 0 && holder(word) == client.me(self.0).owner
    }
}
