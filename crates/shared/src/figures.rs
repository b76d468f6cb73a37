//! What the server says of the shared memory: it only looks, and believes nothing.

use crate::breaker::{self, BreakerFigures};
use crate::cache::{self, CacheFigures};
use crate::directory::{self, Kind};
use crate::memory::{AT_REFUSED, Shared};
use crate::{limiter, named_lock, table};
use std::sync::atomic::Ordering;

/// All of it at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that objects can have.
    pub bytes_max: u64,
    /// Bytes that they have.
    pub bytes: u64,
    /// Objects that could not be made.
    pub refused: u64,
    /// Each object.
    pub objects: Vec<ObjectFigures>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFigures {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Bytes beside its entry in the directory.
    pub bytes: u64,
    /// How much is in it, and how much can be: a table's rows.
    pub fill: Option<(u64, u64)>,
    /// What a counter says.
    pub value: Option<i64>,
    /// Whether somebody who lives holds a lock.
    pub is_held: Option<bool>,
    /// What a cache has done.
    pub cache: Option<CacheFigures>,
    /// What a limiter has allowed, and what not.
    pub allowed: Option<(u64, u64)>,
    /// What a breaker says.
    pub breaker: Option<BreakerFigures>,
}

impl Shared {
    /// What there is now. Reads a table's bitmap, so not for every request.
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
