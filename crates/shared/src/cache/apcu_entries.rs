//! Values with their storage times: caches as users of the apcu extension know them.
//!
//! The notes are before the value's own bytes, and a bit of the kind marks them. A reader of plain
//! values that reads such a value finds an unknown kind, and vice versa.

use super::handle::{
    Cache, CacheError, CacheOpenError, EVICTED, HITS, Life, MISSES, TOO_LARGE, count, now_ns,
    parts, times,
};
use super::store::{Found, Times};
use crate::client::Client;
use crate::directory::Entry;
use crate::os;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Indexes of an entry's own words, in addition to those of all caches.
const STORED: usize = 4;
const SINCE: usize = 5;

/// Bit of a kind: there are notes before the value.
const NOTED: u8 = 0x80;
/// Bytes of the notes: three numbers.
const NOTED_BYTES: usize = 24;

/// Notes on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Kind of the value, defined by its user.
    pub kind: u8,
    /// When it was stored, in seconds of the wall clock.
    pub stored: i64,
    /// When it was last changed.
    pub changed: i64,
    /// Lifetime in seconds; 0: unlimited.
    pub ttl: i64,
    /// Whether it was read before.
    pub was_read: bool,
    /// Bytes that it occupies, its key included.
    pub bytes: usize,
}

/// Figures of a cache of such values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotedFigures {
    /// Cache hits.
    pub hits: u64,
    /// Cache misses.
    pub misses: u64,
    /// Values that were stored.
    pub stored: u64,
    /// Values that were evicted for others, or were too large.
    pub gone: u64,
    /// When it was first opened, in seconds of the wall clock.
    pub since: u64,
    /// Number of places for values.
    pub slots: u64,
    /// Bytes available for values.
    pub room: u64,
    /// Bytes written to.
    pub bytes: u64,
}

impl Noted {
    fn head(self) -> [u8; NOTED_BYTES] {
        let mut head = [0; NOTED_BYTES];
        for (at, number) in [self.stored, self.changed, self.ttl].into_iter().enumerate() {
            head[at * 8..at * 8 + 8].copy_from_slice(&number.to_ne_bytes());
        }
        head
    }

    fn of(found: Found, value: &[u8]) -> Option<Noted> {
        if found.kind & NOTED == 0 || value.len() < NOTED_BYTES {
            return None;
        }
        let mut numbers = value.as_chunks::<8>().0.iter().map(|bytes| i64::from_ne_bytes(*bytes));
        Some(Noted {
            kind: found.kind & !NOTED,
            stored: numbers.next()?,
            changed: numbers.next()?,
            ttl: numbers.next()?,
            was_read: found.was_read,
            bytes: found.bytes,
        })
    }
}

/// The notes of a value that has not expired.
fn present(found: Option<Found>, value: &[u8], now: u64) -> Option<(Noted, Times)> {
    let found = found.filter(|found| now < found.times.fresh_until)?;
    Some((Noted::of(found, value)?, found.times))
}

/// Times of a lifetime of `ttl` seconds. 0: unlimited. Negative: expired from the start.
fn times_of(now: u64, ttl: i64) -> Times {
    match u64::try_from(ttl) {
        Ok(seconds) => {
            times(now, Life { fresh: Duration::from_secs(seconds), stale: Duration::ZERO })
        }
        Err(_) => Times { fresh_until: now, stale_until: now },
    }
}

impl Cache {
    /// Opens the cache of that name, for values with notes. Their keys may have any length.
    pub fn open_noted(client: &Client, name: &[u8], bytes: usize) -> Result<Cache, CacheOpenError> {
        let mut cache = Cache::open(client, name, bytes)?;
        cache.keys = 0..=usize::MAX;
        let since = &Entry::of(client.shared(), cache.object).own()[SINCE];
        let now = os::wall_seconds().cast_unsigned();
        let _ = since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        Ok(cache)
    }

    /// Whether it was opened for values with notes.
    pub fn is_noted(&self) -> bool {
        *self.keys.start() == 0
    }

    /// Finds a value; its bytes are in [`Cache::noted_value`]. With `uses`, the value stays longer.
    pub fn find_noted(&mut self, client: &Client, key: &[u8], uses: bool) -> Option<Noted> {
        let (_, store) = parts(client, self.object, self.is)?;
        let found = store.read(client.hash(key), key, uses, &mut self.value);
        let noted = present(found, &self.value, now_ns()).map(|(noted, _)| noted);
        if uses {
            count(client, self.object, if noted.is_some() { HITS } else { MISSES });
        }
        noted
    }

    /// The value found last.
    pub fn noted_value(&self) -> &[u8] {
        self.value.get(NOTED_BYTES..).unwrap_or_default()
    }

    /// The key that a walk has reached.
    pub fn noted_key(&self) -> &[u8] {
        &self.key
    }

    /// Stores a value for `ttl` seconds. Returns false if it is too large (then the old value is
    /// removed), or if `absent` is set and there is a value.
    pub fn store_noted(
        &mut self,
        client: &Client,
        key: &[u8],
        (kind, value): (u8, &[u8]),
        ttl: i64,
        absent: bool,
    ) -> Result<bool, CacheError> {
        let (now, seconds) = (now_ns(), os::wall_seconds());
        let done = self.change(client, key, now, |found, buffer| {
            if absent && present(found, buffer, now).is_some() {
                return (None, false);
            }
            let noted =
                Noted { kind, stored: seconds, changed: seconds, ttl, was_read: false, bytes: 0 };
            buffer.clear();
            buffer.extend_from_slice(&noted.head());
            buffer.extend_from_slice(value);
            (Some((kind | NOTED, times_of(now, ttl))), true)
        })?;
        let is_stored = done.unwrap_or(false);
        if is_stored {
            count(client, self.object, STORED);
        }
        Ok(is_stored)
    }

    /// Changes an integer of `kind` by `change`. If there is none and `begins` is given, it starts
    /// at 0 with a lifetime of `begins` seconds. `None` if it has not changed.
    pub fn change_integer(
        &mut self,
        client: &Client,
        key: &[u8],
        (kind, begins): (u8, Option<i64>),
        change: impl Fn(i64) -> Option<i64>,
    ) -> Result<Option<i64>, CacheError> {
        let (now, seconds) = (now_ns(), os::wall_seconds());
        let done = self.change(client, key, now, |found, buffer| {
            let integer =
                |bytes: &[u8]| bytes[NOTED_BYTES..].try_into().ok().map(i64::from_ne_bytes);
            let before = match (present(found, buffer, now), begins) {
                (Some((noted, times)), _) if noted.kind == kind => {
                    integer(buffer).map(|before| (before, noted, times))
                }
                (None, Some(ttl)) => {
                    let stored = seconds;
                    let noted = Noted { kind, stored, changed: 0, ttl, was_read: false, bytes: 0 };
                    Some((0, noted, times_of(now, ttl)))
                }
                _ => None,
            };
            let changed = before.and_then(|(before, noted, times)| {
                change(before).map(|after| (after, noted, times))
            });
            let Some((after, noted, times)) = changed else { return (None, None) };
            buffer.clear();
            buffer.extend_from_slice(&Noted { changed: seconds, ..noted }.head());
            buffer.extend_from_slice(&after.to_ne_bytes());
            (Some((kind | NOTED, times)), Some(after))
        })?;
        Ok(done.flatten())
    }

    /// The first value from place `from` on, and the number of the place after it. Its key and
    /// bytes are in [`Cache::noted_key`] and [`Cache::noted_value`].
    pub fn walk_noted(&mut self, client: &Client, from: usize) -> Option<(Noted, usize)> {
        let (_, store) = parts(client, self.object, self.is)?;
        let now = now_ns();
        for place in from..store.slots() {
            let found = store.at(place, (&mut self.key, &mut self.value)).ok()?;
            if let Some((noted, _)) = present(found, &self.value, now) {
                return Some((noted, place + 1));
            }
        }
        None
    }

    /// Counts and contents of the cache.
    pub fn noted_figures(&self, client: &Client) -> NotedFigures {
        let Some((_, store)) = parts(client, self.object, self.is) else {
            return NotedFigures::default();
        };
        let entry = Entry::of(client.shared(), self.object);
        let own = |at: usize| entry.own()[at].load(Ordering::Relaxed);
        NotedFigures {
            hits: own(HITS),
            misses: own(MISSES),
            stored: own(STORED),
            gone: own(EVICTED) + own(TOO_LARGE),
            since: own(SINCE),
            slots: store.slots() as u64,
            room: store.room() as u64,
            bytes: store.bytes() as u64,
        }
    }
}
