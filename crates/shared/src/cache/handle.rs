//! A process's handle of a cache. It adds expiry times, and one maker per key, to the store below
//! it.

use super::single_flight::{MAKERS_WORDS, Makers, Role};
use super::store::{Found, Room, Store, Stored, Times};
use crate::client::Client;
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::lock::Busy;
use crate::os;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Minimum size of a cache, bytes.
pub const CACHE_BYTES_MIN: usize = 64 << 10;
/// Maximum size of a cache, bytes.
pub const CACHE_BYTES_MAX: usize = 8 << 30;
/// Maximum length of a key, bytes.
pub const CACHE_KEY_BYTES_MAX: usize = 1024;

/// Indexes of an entry's own words.
pub(super) const HITS: usize = 0;
pub(super) const MISSES: usize = 1;
pub(super) const EVICTED: usize = 2;
pub(super) const TOO_LARGE: usize = 3;

/// Why a cache cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CacheOpenError {
    /// Its size is too small or too large.
    #[error("a cache has {CACHE_BYTES_MIN} to {CACHE_BYTES_MAX} bytes, not {0}")]
    Bytes(usize),
    /// The object cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CacheError {
    /// The key is empty or too long.
    #[error("a key of a cache has 1 to {CACHE_KEY_BYTES_MAX} bytes, not {0}")]
    Key(usize),
    /// A process that writes does not continue.
    #[error("a stopped process holds a part of the cache")]
    Busy,
}

impl From<Busy> for CacheError {
    fn from(_: Busy) -> CacheError {
        CacheError::Busy
    }
}

/// Condition for storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// In any case.
    Always,
    /// If there is no value.
    Absent,
    /// If the stored value equals the given one, byte for byte and in kind.
    Equals,
}

/// Result of a lookup. The bytes are in [`Cache::value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// No value.
    Missing,
    /// A value of that kind.
    Fresh(u8),
    /// An expired value of that kind. It may be used while another process makes a new one.
    Stale(u8),
}

/// The process that must make a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightRole {
    /// This process makes it, and must report the end.
    Mine,
    /// Another process makes it.
    Others,
    /// This process makes it, and need not report the end.
    Unknown,
}

/// Lifetime of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Time until it expires; zero: never.
    pub fresh: Duration,
    /// Additional time in which it may be used while a new one is made.
    pub stale: Duration,
}

/// A process's handle of a cache, with a buffer for the value that it works on.
#[derive(Debug)]
pub struct Cache {
    pub(super) object: u32,
    pub(super) is: Room,
    /// Allowed lengths of a key.
    pub(super) keys: RangeInclusive<usize>,
    pub(super) value: Vec<u8>,
    /// Key of the value that a walk has reached.
    pub(super) key: Vec<u8>,
}

pub(super) fn now_ns() -> u64 {
    os::monotonic().as_nanos() as u64
}

impl Cache {
    /// Opens the cache of that name; a new one is empty.
    pub fn open(client: &Client, name: &[u8], bytes: usize) -> Result<Cache, CacheOpenError> {
        if !(CACHE_BYTES_MIN..=CACHE_BYTES_MAX).contains(&bytes) {
            return Err(CacheOpenError::Bytes(bytes));
        }
        let definition = format!("bytes={bytes}");
        let words = bytes / 8;
        let wanted = Wanted { kind: Kind::Cache, name, definition: &definition, words };
        let object = client.open(&wanted)?;
        let keys = 1..=CACHE_KEY_BYTES_MAX;
        Ok(Cache { object, is: room(bytes), keys, value: Vec::new(), key: Vec::new() })
    }

    /// Number of its object.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// The value found last.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Maximum bytes of a key and its value together.
    pub fn item_bytes_max(&self) -> usize {
        self.is.item_bytes_max()
    }

    fn check(&self, key: &[u8]) -> Result<(), CacheError> {
        let is_key = self.keys.contains(&key.len());
        if is_key { Ok(()) } else { Err(CacheError::Key(key.len())) }
    }

    /// Finds a value.
    pub fn get(&mut self, client: &Client, key: &[u8]) -> Result<Look, CacheError> {
        self.check(key)?;
        let Some((_, store)) = parts(client, self.object, self.is) else {
            return Ok(Look::Missing);
        };
        let found = store.read(client.hash(key), key, true, &mut self.value);
        let now = now_ns();
        let look = match found {
            Some(Found { kind, times, .. }) if now < times.fresh_until => Look::Fresh(kind),
            Some(Found { kind, times, .. }) if now < times.stale_until => Look::Stale(kind),
            _ => Look::Missing,
        };
        count(client, self.object, if matches!(look, Look::Fresh(_)) { HITS } else { MISSES });
        Ok(look)
    }

    /// Stores a value. Returns false if the condition does not hold, or if the value is too large.
    /// In the latter case the old value is removed.
    pub fn set(
        &mut self,
        client: &Client,
        key: &[u8],
        (kind, value): (u8, &[u8]),
        life: Life,
        (condition, expected): (Condition, (u8, &[u8])),
    ) -> Result<bool, CacheError> {
        let now = now_ns();
        let stored = self.change(client, key, now, |found, buffer| {
            let found = found.filter(|found| now < found.times.fresh_until);
            let holds = match condition {
                Condition::Always => true,
                Condition::Absent => found.is_none(),
                Condition::Equals => found.is_some_and(|found| {
                    (found.kind, buffer.as_slice()) == (expected.0, expected.1)
                }),
            };
            if !holds {
                return (None, false);
            }
            buffer.clear();
            buffer.extend_from_slice(value);
            (Some((kind, times(now, life))), true)
        })?;
        Ok(stored.unwrap_or(false))
    }

    /// Adds to an integer of `kind`. A new one starts at 0 and lives for `life`. `None` if there is
    /// another kind of value, or if the sum is too large.
    pub fn add(
        &mut self,
        client: &Client,
        key: &[u8],
        (kind, by): (u8, i64),
        life: Life,
    ) -> Result<Option<i64>, CacheError> {
        let now = now_ns();
        let sum = self.change(client, key, now, |found, buffer| {
            let found = found.filter(|found| now < found.times.fresh_until);
            let before = match found {
                None => Some(0),
                Some(found) if found.kind == kind => {
                    buffer.as_slice().try_into().ok().map(i64::from_ne_bytes)
                }
                Some(_) => None,
            };
            let Some(sum) = before.and_then(|before| before.checked_add(by)) else {
                return (None, None);
            };
            buffer.clear();
            buffer.extend_from_slice(&sum.to_ne_bytes());
            let times = found.map_or_else(|| times(now, life), |found| found.times);
            (Some((kind, times)), Some(sum))
        })?;
        Ok(sum.flatten())
    }

    /// Changes a value. `None` if the new value is too large; then the old value, which is
    /// outdated, is removed.
    pub(super) fn change<R>(
        &mut self,
        client: &Client,
        key: &[u8],
        now: u64,
        change: impl FnOnce(Option<Found>, &mut Vec<u8>) -> (Option<(u8, Times)>, R),
    ) -> Result<Option<R>, CacheError> {
        self.check(key)?;
        let (_, store) = parts(client, self.object, self.is).ok_or(CacheError::Busy)?;
        let (me, hash) = (client.me(self.object), client.hash(key));
        let (stored, goes, result) =
            store.change(me, (hash, key), (now, &mut self.value), change)?;
        if goes {
            count(client, self.object, EVICTED);
        }
        if stored == Stored::TooLarge {
            store.remove(me, hash, key)?;
            count(client, self.object, TOO_LARGE);
            return Ok(None);
        }
        Ok(Some(result))
    }

    /// Removes a value. Returns false if there is none.
    pub fn delete(&mut self, client: &Client, key: &[u8]) -> Result<bool, CacheError> {
        self.check(key)?;
        let (_, store) = parts(client, self.object, self.is).ok_or(CacheError::Busy)?;
        Ok(store.remove(client.me(self.object), client.hash(key), key)?)
    }

    /// Removes all values.
    pub fn clear(&mut self, client: &Client) -> Result<(), CacheError> {
        let (_, store) = parts(client, self.object, self.is).ok_or(CacheError::Busy)?;
        Ok(store.clear(client.me(self.object))?)
    }

    /// Applies to make the value of a key.
    pub fn begin_making(&self, client: &Client, key: &[u8]) -> Result<FlightRole, CacheError> {
        self.check(key)?;
        let (makers, _) = parts(client, self.object, self.is).ok_or(CacheError::Busy)?;
        let turn = makers.begin(client.me(self.object), client.hash(key))?;
        Ok(match turn {
            Role::Mine => FlightRole::Mine,
            Role::Others => FlightRole::Others,
            Role::Unknown => FlightRole::Unknown,
        })
    }

    /// Ends the making of the value with that hash. Processes that wait for the value check again.
    pub fn end_making(&self, client: &Client, hash: u64) {
        if let Some((makers, _)) = parts(client, self.object, self.is) {
            makers.end(client.me(self.object), hash);
        }
    }

    /// The hash that identifies the maker of a key's value.
    pub fn hash(&self, client: &Client, key: &[u8]) -> u64 {
        client.hash(key)
    }

    /// Waits until another process has made the value or has died. Returns false if `limit` has
    /// passed first.
    pub fn wait(&self, client: &Client, key: &[u8], limit: Duration) -> Result<bool, CacheError> {
        let hash = client.hash(key);
        let until = os::monotonic().saturating_add(limit);
        loop {
            let (makers, _) = parts(client, self.object, self.is).ok_or(CacheError::Busy)?;
            let heard = makers.heard(hash);
            match self.begin_making(client, key)? {
                FlightRole::Others => {}
                // The next applicant becomes the maker: the caller applies itself.
                FlightRole::Mine => {
                    self.end_making(client, hash);
                    return Ok(true);
                }
                FlightRole::Unknown => return Ok(true),
            }
            let now = os::monotonic();
            if now >= until {
                return Ok(false);
            }
            makers.wait(hash, heard, until.saturating_sub(now));
        }
    }
}

fn room(bytes: usize) -> Room {
    Room::new(bytes.saturating_sub(MAKERS_WORDS * 8))
}

pub(super) fn times(now: u64, life: Life) -> Times {
    let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let fresh_until =
        if life.fresh.is_zero() { u64::MAX } else { now.saturating_add(ns(life.fresh)) };
    Times { fresh_until, stale_until: fresh_until.saturating_add(ns(life.stale)) }
}

pub(super) fn count(client: &Client, object: u32, what: usize) {
    Entry::of(client.shared(), object).own()[what].fetch_add(1, Ordering::Relaxed);
}

/// The words of a cache; `None` if they are fewer than it needs.
pub(super) fn parts(client: &Client, object: u32, is: Room) -> Option<(Makers<'_>, Store<'_>)> {
    split(Entry::of(client.shared(), object).words(client.shared())?, is)
}

fn split(words: &[AtomicU64], is: Room) -> Option<(Makers<'_>, Store<'_>)> {
    let (makers, rest) = words.split_at_checked(MAKERS_WORDS)?;
    (rest.len() >= is.words()).then(|| (Makers(makers), Store::new(rest, is)))
}

/// Counts and contents of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Cache hits.
    pub hits: u64,
    /// Cache misses.
    pub misses: u64,
    /// Values evicted for others in their set of the index.
    pub evicted: u64,
    /// Values that were too large.
    pub too_large: u64,
    /// Values in the cache, expired ones included.
    pub values: u64,
    /// Bytes written so far in the segments.
    pub bytes: u64,
}

/// Figures for a process that only reads.
pub(crate) fn figures(
    words: &[AtomicU64],
    own: &[AtomicU64],
    definition: &str,
) -> Option<CacheFigures> {
    let bytes = definition.strip_prefix("bytes=")?.parse().ok()?;
    let is_cache = (CACHE_BYTES_MIN..=CACHE_BYTES_MAX).contains(&bytes);
    let (_, store) = is_cache.then(|| split(words, room(bytes))).flatten()?;
    let own = |at: usize| own[at].load(Ordering::Relaxed);
    Some(CacheFigures {
        hits: own(HITS),
        misses: own(MISSES),
        evicted: own(EVICTED),
        too_large: own(TOO_LARGE),
        values: store.count() as u64,
        bytes: store.bytes() as u64,
    })
}
