//! A process that uses the shared memory: it sits down when it first needs a seat, and puts right what the dead have left.

use crate::directory::{self, Entry, Kind, OpenError, Wanted};
use crate::lock::{Me, Owner, noted};
use crate::memory::{AT_SEED, Shared};
use crate::seats::{self, SEATS};
use crate::{limiter, table};
use std::cell::Cell;
use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::Ordering;

/// Why a process cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum NoSeat {
    /// There are too many.
    #[error("{SEATS} processes use the shared memory already")]
    All,
    /// The system said no.
    #[error("cannot lock a seat in the shared memory: {0}")]
    Io(#[from] io::Error),
}

/// The shared memory as one process has it.
#[derive(Debug)]
pub struct Client {
    shared: Shared,
    generation: u64,
    /// 0: it has no seat yet.
    owner: Cell<Owner>,
    hashing: foldhash::quality::FixedState,
}

impl Client {
    /// Of a process of this generation of the application. It gets a seat when it needs one.
    pub fn new(shared: Shared, generation: u64) -> Client {
        let seed = shared.words()[AT_SEED].load(Ordering::Relaxed);
        let hashing = foldhash::quality::FixedState::with_seed(seed);
        Client { shared, generation, owner: Cell::new(0), hashing }
    }

    /// This process is the child of the one that sat: it needs a seat of its own.
    pub fn forked(&self) {
        self.owner.set(0);
    }

    pub(crate) fn is_seated(&self) -> bool {
        self.owner.get() != 0
    }

    /// Sits down, if that is still to be done.
    pub fn begin(&self) -> Result<(), NoSeat> {
        if self.owner.get() != 0 {
            return Ok(());
        }
        // On its own seat, which it does not find locked, the last one's note comes first.
        let owner = seats::sit(&self.shared, self.generation)?.ok_or(NoSeat::All)?;
        self.owner.set(owner);
        self.repair(seats::journal(&self.shared, owner).load(Ordering::Acquire));
        for seat in seats::used(&self.shared).filter(|seat| *seat != seats::seat_of(owner)) {
            if let Some(note) = seats::left_behind(&self.shared, seat) {
                self.repair(note);
            }
        }
        Ok(())
    }

    /// Ends what a dead process was about to do with a row.
    fn repair(&self, note: u64) {
        let Some((object, row)) = noted(note) else { return };
        let entry = Entry::of(&self.shared, object);
        match entry.kind() {
            Some(Kind::Table) => table::settle(self, object, row),
            Some(Kind::RateLimiter) => limiter::settle(self, object, row),
            Some(Kind::Counter | Kind::Lock | Kind::Cache | Kind::Breaker) | None => {}
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// This process, as it acts on an object.
    pub(crate) fn me(&self, object: u32) -> Me<'_> {
        let owner = self.owner.get();
        let journal = seats::journal(&self.shared, owner);
        Me { owner, living: &self.shared, journal, object }
    }

    pub(crate) fn open(&self, wanted: &Wanted<'_>) -> Result<u32, OpenError> {
        directory::open(&self.shared, self.me(0), self.generation, wanted)
    }

    /// A key that is too long to be kept, as it is known: what `to` begins with, and 16 bytes that nobody can foresee.
    pub(crate) fn digest<'a>(&self, key: &[u8], to: &'a mut [u8; 17]) -> &'a [u8] {
        to[1..9].copy_from_slice(&self.hash(key).to_ne_bytes());
        to[9..].copy_from_slice(&self.hashing.hash_one((1_u8, key)).to_ne_bytes());
        &to[..]
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hashing.hash_one(key)
    }
}
