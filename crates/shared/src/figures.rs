//! Figures of the shared memory for the server. Only reads, and trusts no word.

use crate::breaker::{self, BreakerFigures};
use crate::cache::{self, CacheFigures};
use crate::directory::{self, Kind};
use crate::memory::{AT_REFUSED, Shared};
use crate::{limiter, named_lock, table};
use std::sync::atomic::Ordering;

/// Figures of the whole memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Bytes available for objects.
    pub bytes_max: u64,
    /// Bytes used by objects.
    pub bytes: u64,
    /// Objects that could not be created.
    pub refused: u64,
    /// Figures of each object.
    pub objects: Vec<ObjectFigures>,
}

/// Figures of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFigures {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Bytes in addition to its directory entry.
    pub bytes: u64,
    /// Used and maximum number of rows, for a table or a limiter.
    pub fill: Option<(u64, u64)>,
    /// Value of a counter.
    pub value: Option<i64>,
    /// Whether a live process holds a lock.
    pub is_held: Option<bool>,
    /// Figures of a cache.
    pub cache: Option<CacheFigures>,
    /// Numbers of operations that a limiter allowed and denied.
    pub allowed: Option<(u64, u64)>,
    /// Figures of a breaker.
    pub breaker: Option<BreakerFigures>,
}

impl Shared {
    /// The present figures. Reads the bitmap of each table, so it is too slow for every request.
    pub fn figures(&self) -> Figures {
        let objects = directory::entries(self).filter_map(|(_, entry)| {
            let kind = entry.kind()?;
            let words = entry.words(self).unwrap_or_default();
            Some(ObjectFigures {
                kind,
                name: String::from_utf8_lossy(&entry.name()).into_owned(),
                bytes: entry.bytes().min(self.heap_words() as u64 * 8),
                fill: match kind {
                    Kind::Table => table::fill(words, &entry.definition()),
                    Kind::RateLimiter => limiter::fill(words, &entry.definition()),
                    Kind::Counter | Kind::Lock | Kind::Cache | Kind::Breaker => None,
                },
                value: (kind == Kind::Counter)
                    .then(|| entry.own()[0].load(Ordering::Relaxed).cast_signed()),
                is_held: (kind == Kind::Lock).then(|| named_lock::is_held(entry.own(), self)),
                cache: match kind {
                    Kind::Cache => cache::figures(words, entry.own(), &entry.definition()),
                    _ => None,
                },
                allowed: (kind == Kind::RateLimiter).then(|| limiter::counts(entry.own())),
                breaker: (kind == Kind::Breaker)
                    .then(|| breaker::figures(entry.own(), &entry.definition())),
            })
        });
        let objects: Vec<_> = objects.collect();
        Figures {
            bytes_max: self.heap_words() as u64 * 8,
            bytes: directory::bytes_used(self).min(self.heap_words() as u64 * 8),
            refused: self.words()[AT_REFUSED].load(Ordering::Relaxed),
            objects,
        }
    }
}
