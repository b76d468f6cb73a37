//! A process that uses the shared memory. It registers (takes a *seat*) when it first needs one,
//! and repairs the changes that dead processes left unfinished.

use crate::buckets;
use crate::chain::Chains;
use crate::columns::Definition;
use crate::directory::{self, Entry, Kind, OpenError, Wanted};
use crate::limits::SEATS;
use crate::lock::{ActingProcess, Owner, noted};
use crate::memory::{AT_SEED, Shared};
use crate::process_registry;
use std::cell::Cell;
use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::Ordering;

/// Why a process cannot register.
#[derive(Debug, thiserror::Error)]
pub enum RegistryFull {
    /// There are too many processes.
    #[error("{SEATS} processes, the maximum, already use the shared memory")]
    All,
    /// A system call failed.
    #[error("cannot lock an entry of the process registry: {0}")]
    Io(#[from] io::Error),
}

/// A process's handle of the shared memory.
#[derive(Debug)]
pub struct Client {
    shared: Shared,
    generation: u64,
    /// Its owner number; 0: it has no seat yet.
    owner: Cell<Owner>,
    hashing: foldhash::quality::FixedState,
}

impl Client {
    /// Creates the handle of a process of this application generation. It gets a seat when it needs
    /// one.
    pub fn new(shared: Shared, generation: u64) -> Client {
        let seed = shared.words()[AT_SEED].load(Ordering::Relaxed);
        let hashing = foldhash::quality::FixedState::with_seed(seed);
        Client { shared, generation, owner: Cell::new(0), hashing }
    }

    /// Called in a forked child: it needs a seat of its own.
    pub fn forked(&self) {
        self.owner.set(0);
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.owner.get() != 0
    }

    /// Takes a seat, unless the process has one.
    pub fn begin(&self) -> Result<(), RegistryFull> {
        if self.owner.get() != 0 {
            return Ok(());
        }
        // The note of the seat's last owner comes first: this process does not find its own seat
        // locked.
        let owner =
            process_registry::sit(&self.shared, self.generation)?.ok_or(RegistryFull::All)?;
        self.owner.set(owner);
        self.repair(process_registry::journal(&self.shared, owner).load(Ordering::Acquire));
        for seat in process_registry::used(&self.shared)
            .filter(|seat| *seat != process_registry::entry_of(owner))
        {
            if let Some(note) = process_registry::left_behind(&self.shared, seat) {
                self.repair(note);
            }
        }
        Ok(())
    }

    /// Completes a dead process's change of a row.
    fn repair(&self, note: u64) {
        let Some((object, row)) = noted(note) else { return };
        let entry = Entry::of(&self.shared, object);
        let is = match entry.kind() {
            Some(Kind::Table) => Definition::parse(&entry.definition()).map(|is| is.dimensions),
            Some(Kind::RateLimiter) => buckets::parse(&entry.definition()),
            Some(Kind::Counter | Kind::Lock | Kind::Cache | Kind::Breaker) | None => None,
        };
        if let Some(is) = is
            && let Some(words) = entry.words(&self.shared).filter(|words| words.len() >= is.words())
        {
            Chains::new(words, is).settle(self.me(object), row);
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// This process, acting on an object.
    pub(crate) fn me(&self, object: u32) -> ActingProcess<'_> {
        let owner = self.owner.get();
        let journal = process_registry::journal(&self.shared, owner);
        ActingProcess { owner, living: &self.shared, journal, object }
    }

    pub(crate) fn open(&self, wanted: &Wanted<'_>) -> Result<u32, OpenError> {
        directory::open(&self.shared, self.me(0), self.generation, wanted)
    }

    /// A replacement for a key that is too long to store: the first byte of `to`, and 16 bytes that
    /// no client can predict.
    pub(crate) fn digest<'a>(&self, key: &[u8], to: &'a mut [u8; 17]) -> &'a [u8] {
        to[1..9].copy_from_slice(&self.hash(key).to_ne_bytes());
        to[9..].copy_from_slice(&self.hashing.hash_one((1_u8, key)).to_ne_bytes());
        &to[..]
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hashing.hash_one(key)
    }
}
