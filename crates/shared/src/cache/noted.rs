//! Values that tell when they were stored: caches as users of the apcu extension know them.
//!
//! What is noted stands before the value's own bytes, and its kind says so: who reads such a value as a plain one finds none that it
//! knows, and the other way round.

use super::{Cache, CacheError, EVICTED, HITS, MISSES, TOO_LARGE, count, now_ns, parts, times};
use super::{CacheOpenError, Found, Life, Times};
use crate::client::Client;
use crate::directory::Entry;
use crate::os;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Of an entry's own words, beside those of all caches.
const STORED: usize = 4;
const SINCE: usize = 5;

/// Of a kind: there is something noted before the value.
const NOTED: u8 = 0x80;
/// Bytes of that: three numbers.
const NOTED_BYTES: usize = 24;

/// What is noted of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Its user's.
    pub kind: u8,
    /// When it was stored, in seconds of the clock on the wall.
    pub stored: i64,
    /// When it was changed last.
    pub changed: i64,
    /// For how many seconds it was stored; 0: for ever.
    pub ttl: i64,
    /// Somebody has read it before.
    pub was_read: bool,
    /// That it takes, its key included.
    pub bytes: usize,
}

/// What a cache of such values says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotedFigures {
    /// Values that were found.
    pub hits: u64,
    /// Those that were not.
    pub misses: u64,
    /// Values that were stored.
    pub stored: u64,
    /// Values that had to go for others, or were too large.
    pub gone: u64,
    /// When it was first opened, in seconds of the clock on the wall.
    pub since: u64,
    /// Places for values.
    pub slots: u64,
    /// Bytes for values.
    pub room: u64,
    /// Those that were written to.
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

/// Which is there now.
fn present(found: Option<Found>, value: &[u8], now: u64) -> Option<(Noted, Times)> {
    let found = found.filter(|found| now < found.times.fresh_until)?;
    Some((Noted::of(found, value)?, found.times))
}

/// 0: for ever; less: it is over when it begins.
fn times_of(now: u64, ttl: i64) -> Times {
    match u64::try_from(ttl) {
        Ok(seconds) => {
            times(now, Life { fresh: Duration::from_secs(seconds), stale: Duration::ZERO })
        }
        Err(_) => Times { fresh_until: now, stale_until: now },
    }
}

impl Cache {
    /// The cache of that name, for values that tell of themselves; their keys are of any length.
    pub fn open_noted(client: &Client, name: &[u8], bytes: usize) -> Result<Cache, CacheOpenError> {
        let mut cache = Cache::open(client, name, bytes)?;
        cache.keys = 0..=usize::MAX;
        let since = &Entry::of(client.shared(), cache.object).own()[SINCE];
        let now = os::wall_seconds().cast_unsigned();
        let _ = since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        Ok(cache)
    }

    /// Whether it was opened so.
    pub fn is_noted(&self) -> bool {
        *self.keys.start() == 0
    }

    /// Finds a value, whose bytes [`Cache::noted_value`] has; whoever `uses` it has it stay longer.
    pub fn find_noted(&mut self, client: &Client, key: &[u8], uses: bool) -> Option<Noted> {
        let (_, store) = parts(client, self.object, self.is)?;
        let found = store.read(client.hash(key), key, uses, &mut self.value);
        let noted = present(found, &self.value, now_ns()).map(|(noted, _)| noted);
        if uses {
            count(client, self.object, if noted.is_some() { HITS } else { MISSES });
        }
        noted
    }

    /// The value that was found last.
    pub fn noted_value(&self) -> &[u8] {
        self.value.get(NOTED_BYTES..).unwrap_or_default()
    }

    /// The key that a walk has come to.
    pub fn noted_key(&self) -> &[u8] {
        &self.key
    }

    /// Stores a value for `ttl` seconds; false: it is too large, and what was there is gone, or only an `absent` one was to be
    /// stored.
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

    /// Changes an integer of `kind` to what `change` makes of it. Where there is none, it begins at 0, for `begins` seconds, if
    /// that is said. `None`: it has not changed.
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

    /// The first value from place `from` on, and the place after it. [`Cache::noted_key`] and [`Cache::noted_value`] have it.
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

    /// What it has done, and what is in it.
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
