//! The canary: a second generation that serves a share of the visitors.

use crate::setup::{Setup, ValidSettings};
use std::hash::{BuildHasher, Hash, RandomState};
use std::rc::Rc;

/// How requests are assigned to the canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanaryBy {
    /// By a cookie with a random value: a visitor stays with one generation.
    Cookie,
    /// By the client's address.
    Client,
    /// At random, each request on its own.
    Random,
}

/// Order to send a share of the requests to held workers.
#[derive(Clone, Debug)]
pub struct CanaryRouting {
    /// Settings of the canary.
    pub settings: ValidSettings,
    /// Its generation.
    pub generation: u32,
    /// Its share of the visitors, ppm.
    pub share_ppm: u32,
    /// How requests are assigned.
    pub by: CanaryBy,
    /// Keys of the assignment. The same for the whole life of a canary, so that visitors stay with
    /// it when the share grows.
    pub keys: RandomState,
}

/// The canary, as one thread of the front uses it.
#[derive(Debug)]
pub(crate) struct Canary {
    pub(crate) setup: Rc<Setup>,
    pub(crate) generation: u32,
    pub(crate) share_ppm: u32,
    pub(crate) by: CanaryBy,
    keys: RandomState,
}

impl Canary {
    pub(crate) fn new(routing: CanaryRouting) -> Canary {
        let CanaryRouting { settings, generation, share_ppm, by, keys } = routing;
        Canary { setup: Rc::new(settings.into_setup()), generation, share_ppm, by, keys }
    }

    /// Returns a number for a new visitor, which does not reveal the random one.
    pub(crate) fn visitor(&self, random: u64) -> u64 {
        self.keys.hash_one(("visitor", random))
    }

    /// Whether the visitor with this key belongs to the canary.
    pub(crate) fn has(&self, visitor: impl Hash) -> bool {
        let place = ((self.keys.hash_one(visitor) >> 32) * 1_000_000) >> 32;
        place < u64::from(self.share_ppm)
    }
}
